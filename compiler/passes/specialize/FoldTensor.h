//===- FoldTensor.h - a small tensor value while folding ------------------===//
#ifndef OGC_PASSES_SPECIALIZE_FOLDTENSOR_H
#define OGC_PASSES_SPECIALIZE_FOLDTENSOR_H

#include "compiler/dialect/onnx/OnnxOps.h"

namespace ogc::specialize {

/// A small constant: integers and booleans in `ints`, floats in `floats`; row-major.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  mlir::Type element;
  llvm::SmallVector<int64_t> ints;
  llvm::SmallVector<double> floats;

  bool isFloat() const { return mlir::isa<mlir::FloatType>(element); }
  int64_t size() const { return isFloat() ? floats.size() : ints.size(); }
  int64_t rank() const { return shape.size(); }
};

using Tensors = llvm::SmallVector<Tensor>;

/// Reads a constant operand of at most maxFoldedElements elements; nothing for others and for types folding does not know
/// (complex, unsigned 64-bit).
std::optional<Tensor> loadTensor(mlir::Value value);
/// Makes a constant; integers wrap and floats round to the element type.
mlir::ElementsAttr storeTensor(const Tensor &tensor);

/// Wraps an integer to the width and signedness of a type.
int64_t wrapInt(int64_t value, mlir::Type type);
/// Rounds to nearest even in the precision of a type.
double roundFloat(double value, mlir::Type type);

/// Elements of `source` by their index, with a new shape.
Tensor pick(const Tensor &source, llvm::ArrayRef<int64_t> indices, llvm::ArrayRef<int64_t> shape);

/// Row-major strides.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);
/// Calls `visit` with each position of a shape, in row-major order.
void forEachPosition(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);

/// Operators that move elements (Gather, Slice, Concat, …). Nothing when the operator is another or the operands are out of
/// range. `inputs` holds null for absent operands.
std::optional<Tensors> foldMovement(const onnx::OnnxOp &op, llvm::ArrayRef<std::optional<Tensor>> inputs);
/// What an operator with these operands gives, by either of them or by the type of its operand alone; nothing where none knows
/// it.
std::optional<Tensors> evaluateOperator(const onnx::OnnxOp &op, llvm::ArrayRef<std::optional<Tensor>> inputs);
/// Operators that compute element by element or reduce.
std::optional<Tensors> foldArithmetic(const onnx::OnnxOp &op, llvm::ArrayRef<std::optional<Tensor>> inputs);

} // namespace ogc::specialize

#endif
