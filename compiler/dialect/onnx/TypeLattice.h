//===- TypeLattice.h - more and less exact tensor types -------------------===//
#ifndef OGC_DIALECT_ONNX_TYPELATTICE_H
#define OGC_DIALECT_ONNX_TYPELATTICE_H

#include "mlir/IR/BuiltinTypes.h"

namespace ogc::onnx {

/// The type of a result before inference: `tensor<*xindex>`. ONNX has no index type.
mlir::TensorType unknownType(mlir::MLIRContext *context);
bool isKnownElement(mlir::TensorType type);

/// What both types say together, or null when they contradict each other.
mlir::TensorType meetTypes(mlir::TensorType a, mlir::TensorType b);
/// The most exact type that both are cases of, or null when the element types differ.
mlir::TensorType joinTypes(mlir::TensorType a, mlir::TensorType b);

/// A shape with one dimension more. `axis` may be negative (counted in the result). Null when out of range.
mlir::TensorType insertDim(mlir::TensorType type, int64_t axis, int64_t size);
/// A shape with one dimension less, whose size is returned in `size`. Null when out of range.
mlir::TensorType removeDim(mlir::TensorType type, int64_t axis, int64_t &size);

} // namespace ogc::onnx

#endif
