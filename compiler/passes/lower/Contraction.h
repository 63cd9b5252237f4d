//===- Contraction.h - packed weights of matmul and conv ------------------===//
#ifndef OGC_PASSES_LOWER_CONTRACTION_H
#define OGC_PASSES_LOWER_CONTRACTION_H

#include "compiler/passes/lower/Node.h"

namespace ogc::lower {

/// The panel width (16, 32 or 64) of a packed weight with n columns: the widest whose padding to whole panels stays below a third
/// of n, or as small as possible.
int64_t panelWidth(int64_t n);

/// A weight [K, N] (or [N, K] when `transposed`) in panels [ceil(N/P), K, P], as structured operations: evaluated at compile time
/// when the weight is constant.
mlir::Value packPanels(Builder &b, mlir::Value weight, bool transposed);

/// True for the element types that the anchors take.
bool isAnchorElement(mlir::Type type);

/// The weight of a matmul: packed, or as it is.
struct Rhs {
  mlir::Value value; ///< [ceil(N/P), K, P] packed, else [B, K, N], else [B, N, K] transposed
  bool packed = false;
  bool transposed = false;
};

/// kern.matmul of lhs [B, M, K]; n is the number of columns. A product without terms is zero.
mlir::Value matmul(Node &node, mlir::Value lhs, const Rhs &rhs, int64_t n);

/// lhs [B, M, K] times rhs [B, K, N] (with `transposed` [B, N, K]) of any element type: an anchor where it takes the type, else a
/// reduction. The result is f32 for floats of up to 32 bits and has the type of the operands otherwise.
mlir::Value product(Node &node, mlir::Value lhs, mlir::Value rhs, bool transposed = false);

/// lhs [batch…, M, K] times rhs [batch…, K, N] (or without batch dimensions) of any element type: [batch…, M, N] of type
/// `element`.
mlir::Value matrixProduct(Node &node, mlir::Value lhs, mlir::Value rhs, bool rhsIsConstant, llvm::ArrayRef<int64_t> batch,
                          mlir::Type element);

/// A tensor [..., d, e] whose leading dimensions are broadcast to `batch` and collapsed to one: [B, d, e].
mlir::Value collapseBatch(Builder &b, mlir::Value v, llvm::ArrayRef<int64_t> batch);

/// The most products of two numbers of 9 bits whose sum is exact in f32.
constexpr int64_t mostExactTerms = 256;
/// The most such sums that one result is put together from; each is an operation by itself.
constexpr int64_t mostExactParts = 1024;

/// Operand i of integers, or 8-bit floats, less its zero point (operand `zero`, may be absent), in f16: exact for integers of 8
/// bits. The zero point is one number, one for each extent of `axis`, or broadcasts.
mlir::Value lessZeroPoint(Node &node, int i, int zero, int64_t axis);

/// Sum of f32 tensors that hold integers, in i32; `bias` (i32, or null) has extent `dimension` of them, or one.
mlir::Value exactSum(Node &node, llvm::ArrayRef<mlir::Value> parts, mlir::Value bias, unsigned dimension);

/// round(acc * factor) + zero point in the type of result 0. `factor` (f32) and `acc` (i32 or f32) broadcast; the zero point is
/// operand `zero`, may be absent.
mlir::Value requantize(Node &node, mlir::Value acc, mlir::Value factor, int zero);

} // namespace ogc::lower

#endif
