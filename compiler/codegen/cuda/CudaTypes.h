//===- CudaTypes.h - names of types and literals in CUDA C++ --------------===//
#ifndef OGC_CODEGEN_CUDA_CUDATYPES_H
#define OGC_CODEGEN_CUDA_CUDATYPES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include <string>

namespace ogc::codegen {

/// CUDA C++ spellings. `index` is `int` where all offsets of a kernel fit into 32 bits, else `long long`.
class CudaTypes {
public:
  explicit CudaTypes(bool wideIndex) : wideIndex(wideIndex) {}

  /// The name of a scalar or short vector type, or an empty string where CUDA has no such type. i1 is `bool`, one byte in memory;
  /// integers are signed; f16 and bf16 are the storage structs of `ogc/types.cuh`.
  std::string name(mlir::Type type) const;

  /// The unsigned integer type of the same width as `type` (an integer wider than one bit, or index).
  std::string unsignedName(mlir::Type type) const;

  /// A literal of exactly this value: hexadecimal floats, infinities and NaNs by their bits. Empty where the type has no name.
  std::string literal(mlir::TypedAttr value) const;

  /// Width of an integer or index type in bits.
  unsigned width(mlir::Type type) const;

private:
  bool wideIndex;
};

/// Bytes of one element in a buffer (i1 takes one byte); 0 where the type has no CUDA form.
unsigned cudaElementBytes(mlir::Type type);

/// Names of the ONNX nodes a location stands for, each once, in order, joined by ", "; "unknown" for a location without names.
std::string nodeNames(mlir::Location loc);

} // namespace ogc::codegen

#endif
