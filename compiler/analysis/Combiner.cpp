//===- Combiner.cpp - reductions that may be split into parts -------------===//
#include "compiler/analysis/Combiner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ogc {

Operation *findCombiner(linalg::LinalgOp op, unsigned position) {
  Block *body = op.getBlock();
  BlockArgument accumulator = op.getMatchingBlockArgument(op.getDpsInitOperand(position));
  Operation *combiner = body->getTerminator()->getOperand(position).getDefiningOp();
  if (!combiner || !accumulator.hasOneUse() || *accumulator.user_begin() != combiner || combiner->getNumOperands() != 2 ||
      combiner->getBlock() != body ||
      !isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::AddIOp,
           arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
           arith::MinUIOp>(combiner))
    return nullptr;
  // The combined value must not leave through another result.
  if (!combiner->hasOneUse() || !arith::getNeutralElement(combiner))
    return nullptr;
  return combiner;
}

} // namespace ogc
