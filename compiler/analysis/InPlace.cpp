//===- InPlace.cpp - results that may take the bytes of an input ----------===//
#include "compiler/analysis/InPlace.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc {

/// True when element i of `value` is read for element i of the result only.
static bool staysAtItsElement(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<kern::YieldOp>(user))
      return true;
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
      return staysAtItsElement(user->getResult(0));
    auto generic = dyn_cast<linalg::GenericOp>(user);
    auto isIdentity = [&](OpOperand &operand) { return generic.getMatchingIndexingMap(&operand).isIdentity(); };
    return generic && generic.getNumReductionLoops() == 0 && isIdentity(use) &&
           llvm::all_of(generic.getDpsInitsMutable(), isIdentity) && llvm::all_of(generic.getResults(), staysAtItsElement);
  });
}

SmallVector<unsigned> inPlaceArguments(kern::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  SmallVector<unsigned> arguments;
  if (yield->getNumOperands() != 1 || !kern::computesElementsOnce(kernel.getSchedule()))
    return arguments;
  Value result = yield->getOperand(0);
  if (auto scatter = result.getDefiningOp<tensor::ScatterOp>()) {
    auto data = dyn_cast<BlockArgument>(scatter.getDest());
    if (data && data.hasOneUse() && scatter->hasOneUse())
      arguments.push_back(data.getArgNumber());
    return arguments;
  }
  for (BlockArgument argument : body.getArguments())
    if (argument.getType() == result.getType() && !argument.use_empty() && staysAtItsElement(argument))
      arguments.push_back(argument.getArgNumber());
  return arguments;
}

} // namespace ogc
