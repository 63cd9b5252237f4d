//===- Unroll.h - If, Loop and Scan as straight-line code -----------------===//
#ifndef OGC_PASSES_SPECIALIZE_UNROLL_H
#define OGC_PASSES_SPECIALIZE_UNROLL_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include <functional>

namespace ogc::specialize {

/// Iterations that a loop may have, and nodes that the copies of all bodies of a function may have. 2,000 rows of a Scan take the
/// compiler 2 to 5 s, three times that with a sanitizer; a model of a few hundred bytes must not take 10.
constexpr int64_t maxIterations = 1024, maxCopiedNodes = 65536;

/// Infers and folds the operators of a block after `previous` (null: from its start) up to `end` (exclusive).
using FoldRange = std::function<mlir::LogicalResult(mlir::Block &, mlir::Operation *previous, mlir::Operation *end)>;

/// Replaces control flow by copies of its bodies, folding each copy. `copiedNodes` counts over the whole function. Fails with an
/// error that names the node when it cannot, and leaves the operation.
class Unroller {
public:
  explicit Unroller(FoldRange fold) : fold(std::move(fold)) {}

  /// An If whose condition is known becomes the branch taken; false when it is not known.
  bool takeBranch(mlir::Operation *op);
  /// Any other If computes both branches and selects: they must yield the same static types.
  mlir::LogicalResult selectBranch(mlir::Operation *op);
  /// A Loop whose trip count and conditions are constants.
  mlir::LogicalResult unrollLoop(mlir::Operation *op);
  /// A Scan over an axis of known extent.
  mlir::LogicalResult unrollScan(mlir::Operation *op);

private:
  using Values = llvm::SmallVector<mlir::Value>;
  mlir::FailureOr<Values> copyBody(mlir::Operation *op, mlir::ValueRange arguments);
  mlir::FailureOr<mlir::Value> stack(mlir::Operation *op, unsigned result, llvm::ArrayRef<mlir::Value> slices, int64_t axis);
  mlir::LogicalResult replace(mlir::Operation *op, llvm::ArrayRef<mlir::Value> carried,
                              llvm::ArrayRef<llvm::SmallVector<mlir::Value>> scanned, llvm::function_ref<int64_t(size_t)> axisOf);

  FoldRange fold;
  int64_t copiedNodes = 0;
};

} // namespace ogc::specialize

#endif
