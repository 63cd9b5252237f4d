//===- Check.h - an output against what a case expects --------------------===//
#ifndef OGC_TEST_CONFORMANCE_CHECK_H
#define OGC_TEST_CONFORMANCE_CHECK_H

#include "ogc/runtime.h"
#include "test/conformance/Cases.h"

namespace ogc::conformance {

/// What a run gave: the bytes of each output and of each input, in the graph's order.
struct Values {
  std::vector<std::vector<char>> inputs, outputs;
};

/// Why an output is wrong, on one line; empty where it is right. As the onnx package's runner: |actual - expected| <= atol + rtol
/// · |expected|, with at least 2^-6 for bfloat16 and 2^-9 for float16, NaN where NaN is expected, shapes and types the same;
/// integers and bools are exact.
std::string checkOutput(const Case &item, size_t index, const ogc_tensor &info, llvm::ArrayRef<char> actual);

/// A tensor as `ogc compile --value` reads it.
std::string valueText(const Tensor &tensor);

/// A number for the bytes of an output in which all NaNs are the same.
uint64_t bitsOf(const ogc_tensor &info, llvm::ArrayRef<char> data, uint64_t seed);

} // namespace ogc::conformance

#endif
