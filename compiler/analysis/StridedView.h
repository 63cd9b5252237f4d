//===- StridedView.h - a tensor as an offset and strides of another -------===//
#ifndef OGC_ANALYSIS_STRIDEDVIEW_H
#define OGC_ANALYSIS_STRIDEDVIEW_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace ogc {

/// A static tensor value seen as elements of `root`: element (i0, i1, …) is element `offset + i0 * strides[0] + i1 * strides[1] +
/// …` of the row-major root.
struct StridedView {
  mlir::Value root;
  int64_t offset = 0;                 ///< in elements
  llvm::SmallVector<int64_t> strides; ///< in elements, one a dimension of the viewed value
  llvm::SmallVector<mlir::Operation *>
      chain; ///< the view operations from `root` to the value, in order; empty when they are the same

  /// True when only reshapes (no slice, no transpose) lie between root and value, so that both have the same bytes.
  bool isReshape() const;
};

/// True for `tensor.extract_slice`, `tensor.expand_shape`, `tensor.collapse_shape` and `linalg.transpose` on static tensors.
bool isViewOp(mlir::Operation *op);

/// Resolves `value` through the view operations above it, as far up as one offset and one stride a dimension describe it, and no
/// further than a value for which `isRoot` holds. Never fails: a value that is no view is its own root.
StridedView resolveStridedView(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isRoot = nullptr);

/// True for a generic that only converts floats between element types, element by element.
bool isConversion(mlir::Operation *op);

/// The same, and on through one conversion of a whole argument: `value` is then the converted elements of the root.
StridedView resolveStoredView(mlir::Value value);

} // namespace ogc

#endif
