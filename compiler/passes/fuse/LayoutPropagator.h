//===- LayoutPropagator.h - values in the layout that their source has ----===//
#ifndef OGC_PASSES_FUSE_LAYOUTPROPAGATOR_H
#define OGC_PASSES_FUSE_LAYOUTPROPAGATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace ogc::fuse {

using Permutation = llvm::SmallVector<int64_t>;

/// A value of the function as it was, expressed in the function as it becomes: dimension i of the value is dimension
/// `permutation[i]` of `source`.
struct Layouted {
  mlir::Value source;
  Permutation permutation;
};

/// Walks a function once, in order, and gives each operation a copy that works in the layout of what it reads. The operations of
/// the function stay in place until the end, so that the result can be thrown away.
class LayoutPropagator {
public:
  explicit LayoutPropagator(mlir::func::FuncOp function);

  /// Does all the work; the number of transposes of values that are not constants never grows.
  void run();

private:
  // One a kind of operation; false when the operation cannot follow the layout of its operands.
  bool visitTranspose(mlir::linalg::TransposeOp op);
  bool visitGeneric(mlir::linalg::GenericOp op);
  bool visitSlice(mlir::tensor::ExtractSliceOp op);
  bool visitInsert(mlir::tensor::InsertSliceOp op);
  bool visitPad(mlir::tensor::PadOp op);
  bool visitConcat(mlir::tensor::ConcatOp op);
  bool visitExpand(mlir::tensor::ExpandShapeOp op);
  bool visitCollapse(mlir::tensor::CollapseShapeOp op);
  bool visitReshape(mlir::Operation *op, mlir::Value source);
  bool visitMatmul(mlir::Operation *op);
  void visit(mlir::Operation *op);
  void visitOther(mlir::Operation *op);

  Layouted get(mlir::Value value);
  bool isMoved(mlir::Value value);
  void set(mlir::Value value, mlir::Value source, Permutation permutation);

  /// `value` itself, through a transpose where it exists only in another layout.
  mlir::Value materialize(mlir::Value value);
  /// The source of which `value` is the transposition by `permutation`, through a transpose where there is none yet.
  mlir::Value inLayout(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  mlir::Value createTranspose(mlir::Location loc, mlir::Value source, llvm::ArrayRef<int64_t> permutation);
  mlir::Value createEmpty(mlir::Location loc, mlir::Type likeType, llvm::ArrayRef<int64_t> permutation);
  /// A cheap constant (empty, fill, splat) of the permuted shape; null when `value` is none.
  mlir::Value permutedSplat(mlir::Value value, llvm::ArrayRef<int64_t> permutation);

  bool isConstant(mlir::Value value) { return constants.contains(value); }
  Permutation chooseLayout(mlir::linalg::GenericOp op);
  /// The copy of `op` that reads `inputs` through `maps` and writes its results in the layout `permutation`.
  mlir::linalg::GenericOp createGeneric(mlir::linalg::GenericOp op, mlir::ValueRange inputs,
                                        llvm::SmallVector<mlir::AffineMap> maps, llvm::ArrayRef<int64_t> permutation);
  bool canWriteLayout(mlir::linalg::GenericOp op);

  void foldTransposesIntoProducers(llvm::MutableArrayRef<mlir::Value> results);
  unsigned countTransposes(mlir::ValueRange results);
  llvm::SetVector<mlir::Operation *> liveOps(mlir::ValueRange results);

  mlir::Block &block;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Value, Layouted> layouts;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> transposes;
  llvm::DenseSet<mlir::Value> constants; ///< values of old and new function that are computed from constants only
};

} // namespace ogc::fuse

#endif
