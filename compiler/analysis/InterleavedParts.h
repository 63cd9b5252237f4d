//===- InterleavedParts.h - a result whose columns alternate --------------===//
#ifndef OGC_ANALYSIS_INTERLEAVEDPARTS_H
#define OGC_ANALYSIS_INTERLEAVEDPARTS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

/// A value that is read in parts: part i of `count` has the columns i, i + count, i + 2 count, … of the last dimension.
struct InterleavedParts {
  struct Part {
    int64_t number;
    mlir::Value value; ///< the result of a `tensor.extract_slice`
  };
  int64_t count = 1;             ///< or 2, or 4: so many accumulators of a row lie side by side in every schedule of products
  llvm::SmallVector<Part> parts; ///< those that are read, in any order; a number may be there twice
};

/// The parts of `value`, when nothing reads it but them; without any (`count` is 1) else.
InterleavedParts interleavedParts(mlir::Value value);

} // namespace ogc

#endif
