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

} // namespace ogc::lower

#endif
