//===- ElementEmitter.h - scalar IR for one element of a tensor value -----===//
//
// The one meaning of a kernel body: both targets compute elements through this class, so they cannot disagree about an operator.
//
#ifndef OGC_CODEGEN_SCALAR_ELEMENTEMITTER_H
#define OGC_CODEGEN_SCALAR_ELEMENTEMITTER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace ogc::codegen {

/// Emits scalar operations (arith, math, scf, memref.load) that compute single elements of the tensor values of one kernel body, by pulling
/// from its buffers: element-wise operations are inlined with their index maps composed, views become index arithmetic, reductions become
/// sequential loops.
class ElementEmitter {
public:
  explicit ElementEmitter(mlir::OpBuilder &builder) : builder(builder) {}

  /// Elements of `tensor` are loaded from `buffer` (a memref of the same shape).
  void bindBuffer(mlir::Value tensor, mlir::Value buffer);

  /// While bound, every element of `tensor` asked for is `scalar`: for the accumulator of an anchor and for reduced values of a row.
  /// The caller guarantees that only the element at its current position is asked for.
  void bindScalar(mlir::Value tensor, mlir::Value scalar);

  /// The element of `tensor` at `indices` (one `index` value a dimension), of the tensor's element type.
  /// Emits an error on the defining operation and returns a null value when it has no scalar form.
  mlir::Value emit(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);

private:
  mlir::OpBuilder &builder;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;
};

} // namespace ogc::codegen

#endif
