//===- RowFlow.h - how operations carry the positions of a symbol ---------===//
#ifndef OGC_ANALYSIS_ROWFLOW_H
#define OGC_ANALYSIS_ROWFLOW_H

#include "compiler/analysis/RowState.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <string>

namespace ogc::rows {

/// The states of the values of two functions, one for each size of the symbol. Values and operations are those of the small
/// function; `b`, `other` are their counterparts in the large one.
class RowFlow {
public:
  RowFlow(int64_t smallSize, int64_t largeSize) : smallSize(smallSize), largeSize(largeSize) {}

  const int64_t smallSize, largeSize;

  /// Why the last step failed: "reduces over it".
  const std::string &reason() const { return why; }
  mlir::Value counterpart(mlir::Value value) const { return values.lookup(value); }
  const State &stateOf(mlir::Value value) const { return states.find(value)->second; }

  /// Gives a value its state. Fails where its sizes differ in other dimensions, or by other factors, than the state says.
  mlir::LogicalResult define(mlir::Value value, mlir::Value other, State state);

  /// Remembers why.
  mlir::LogicalResult fail(const llvm::Twine &reason);

  /// Finds the states of the results of `a`. Fails where it mixes positions, or is not known not to.
  mlir::LogicalResult visit(mlir::Operation *a, mlir::Operation *b);

private:
  /// A tensor read in a loop nest: the loop that runs along each dimension, -1 for any other way of reading it.
  struct Read {
    mlir::Value value;
    llvm::SmallVector<int> loops;
  };
  /// A loop nest as far as positions are concerned.
  struct Nest {
    llvm::SmallVector<Read> reads;
    llvm::SmallVector<llvm::SmallVector<int>> results; // loops along the dimensions of each result
    llvm::SmallVector<bool> isReduction;               // by loop
    llvm::SmallDenseSet<unsigned> indexed;             // loops whose index is used as a number
    std::string mixing;                                // what reading along no loop does
  };

  class BodyMatcher;

  bool varies(mlir::Value value, unsigned dim) const;
  /// True for equal regions that use nothing from outside that varies.
  bool haveSameRegions(mlir::Operation *a, mlir::Operation *b);

  mlir::LogicalResult visitNest(mlir::Operation *a, mlir::Operation *b, const Nest &nest);
  mlir::LogicalResult visitLinalg(mlir::linalg::LinalgOp a, mlir::linalg::LinalgOp b);
  mlir::LogicalResult visitAnchor(mlir::Operation *a, mlir::Operation *b);
  mlir::LogicalResult visitConstant(mlir::arith::ConstantOp a, mlir::arith::ConstantOp b);
  mlir::LogicalResult visitCollapse(mlir::tensor::CollapseShapeOp a, mlir::Operation *b);
  mlir::LogicalResult visitExpand(mlir::tensor::ExpandShapeOp a, mlir::Operation *b);
  mlir::LogicalResult visitSlice(mlir::tensor::ExtractSliceOp a, mlir::tensor::ExtractSliceOp b);
  mlir::LogicalResult visitConcat(mlir::tensor::ConcatOp a, mlir::Operation *b);
  mlir::LogicalResult visitPad(mlir::tensor::PadOp a, mlir::tensor::PadOp b);
  mlir::LogicalResult visitUnknown(mlir::Operation *a, mlir::Operation *b);

  std::string why;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::DenseMap<mlir::Value, State> states;
};

} // namespace ogc::rows

#endif
