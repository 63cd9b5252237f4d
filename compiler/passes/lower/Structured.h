//===- Structured.h - builders of structured tensor operations ------------===//
//
// Thin builders over linalg and tensor: broadcasting element-wise operations, reductions over a row domain, gathers, views. All
// shapes static.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_LOWER_STRUCTURED_H
#define OGC_PASSES_LOWER_STRUCTURED_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/passes/lower/ScalarRules.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ogc::lower {

using Shape = llvm::SmallVector<int64_t>;
using Builder = mlir::ImplicitLocOpBuilder;
using mlir::utils::IteratorType;

/// Computes one element. Arguments are the elements of the inputs (16-bit floats extended to f32), then, in reductions, the
/// accumulator. The result may be of the compute type: it is rounded to the element type of the result.
using Body = llvm::function_ref<mlir::Value(Scalar &, mlir::ValueRange)>;

/// A tensor and the map from the iteration domain to its dimensions.
struct Operand {
  mlir::Value value;
  mlir::AffineMap map;
};

mlir::RankedTensorType typeOf(mlir::Value v);
llvm::ArrayRef<int64_t> shapeOf(mlir::Value v);
mlir::Type elementOf(mlir::Value v);
int64_t numElements(llvm::ArrayRef<int64_t> shape);

using onnx::wrapAxis;

/// The value as a splat constant, or null.
mlir::DenseElementsAttr getSplat(mlir::Value v);

mlir::Value empty(Builder &b, llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// linalg.fill with a scalar constant of the scalar's type.
mlir::Value filled(Builder &b, llvm::ArrayRef<int64_t> shape, mlir::Value scalar);
mlir::Value constantTensor(Builder &b, mlir::DenseElementsAttr value);

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// The value with another shape of as many elements (an error at the location when they are not): collapse_shape and expand_shape
/// over the finest common grouping of dimensions.
mlir::Value reshape(Builder &b, mlir::Value v, llvm::ArrayRef<int64_t> shape);
/// linalg.transpose; nothing when the permutation is the identity.
mlir::Value transpose(Builder &b, mlir::Value v, llvm::ArrayRef<int64_t> permutation);
mlir::Value slice(Builder &b, mlir::Value v, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                  llvm::ArrayRef<int64_t> strides = {});
/// tensor.pad with a scalar constant; nothing when there is no padding.
mlir::Value pad(Builder &b, mlir::Value v, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high, mlir::Value scalar);
/// tensor.concat; the only input itself when there is one.
mlir::Value concat(Builder &b, int64_t axis, llvm::ArrayRef<mlir::Value> inputs);

//===----------------------------------------------------------------------===//
// Generics
//===----------------------------------------------------------------------===//

/// The map of a numpy-broadcast operand in the domain of the result's dimensions: right aligned, extents of one read index zero.
mlir::AffineMap broadcastMap(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// linalg.generic over the dimensions of the result (identity output map). Splat constants among the operands become scalar
/// constants in the body. `widen`: extend 16-bit floats for the body.
mlir::Value mapElements(Builder &b, llvm::ArrayRef<int64_t> shape, mlir::Type element, llvm::ArrayRef<Operand> operands,
                        Body body, bool widen = true);

/// mapElements with operands broadcast to the shape; an error at the location when one cannot be.
mlir::Value elementwise(Builder &b, llvm::ArrayRef<int64_t> shape, mlir::Type element, mlir::ValueRange operands, Body body,
                        bool widen = true);

/// A generic without operands whose body computes an element from its position (index values): for gathers through
/// tensor.extract.
mlir::Value generate(Builder &b, llvm::ArrayRef<int64_t> shape, mlir::Type element, Body body);

/// Element-wise conversion of floats between element types; nothing when equal.
mlir::Value convertFloat(Builder &b, mlir::Value v, mlir::Type element);

/// Elements offset + i * step in each dimension: a slice, or for a negative step a generic that reads backwards through its map.
mlir::Value stridedRead(Builder &b, mlir::Value v, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                        llvm::ArrayRef<int64_t> steps);

/// linalg.generic with any iterators: `init` is the destination (its elements are the accumulator, last argument of the body).
mlir::Value reduceInto(Builder &b, Operand init, llvm::ArrayRef<Operand> operands, llvm::ArrayRef<IteratorType> iterators,
                       Body body);

/// The iteration domain [kept dimensions, reduced dimensions] of a tensor.
struct RowDomain {
  Shape outer, inner;       ///< extents
  mlir::AffineMap full;     ///< domain -> the tensor's dimensions
  mlir::AffineMap outerMap; ///< domain -> kept dimensions
  Shape axes;               ///< reduced dimensions of the tensor, ascending

  RowDomain(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> axes);
  int64_t innerSize() const { return numElements(inner); }
  /// The map of a tensor that has only some of the domain's dimensions: `dims` are domain dimensions.
  mlir::AffineMap dims(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> dims) const;
  /// The domain dimension of a dimension of the tensor.
  int64_t domainDim(int64_t tensorDim) const;
};

/// A reduction over the inner dimensions; the result has the outer dimensions and the type of `start`.
mlir::Value reduceRows(Builder &b, const RowDomain &domain, llvm::ArrayRef<Operand> operands, mlir::Value start, Body body);
/// Element-wise over the domain; the result is laid out as the tensor of the domain.
mlir::Value mapRows(Builder &b, const RowDomain &domain, llvm::ArrayRef<Operand> operands, mlir::Type element, Body body);

} // namespace ogc::lower

#endif
