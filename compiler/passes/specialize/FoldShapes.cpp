//===- FoldShapes.cpp - infer all types, evaluate the shape arithmetic ----===//
#include "compiler/dialect/onnx/Inference.h"
#include "compiler/passes/specialize/Folder.h"
#include "compiler/passes/specialize/Passes.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_FOLDSHAPES
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

/// Replaces an If whose condition is known by the branch taken.
bool inlineBranch(Operation *op) {
  if (!onnx::isOp(op, "If"))
    return false;
  std::optional<SmallVector<int64_t>> condition = onnx::getConstantInts(op->getOperand(0));
  if (!condition || condition->size() != 1)
    return false;
  Block &branch = op->getRegion(condition->front() ? 0 : 1).front();
  auto yield = dyn_cast<onnx::YieldOp>(branch.back());
  if (!yield || yield.getNumOperands() != op->getNumResults())
    return false;
  SmallVector<Value> values(yield.getValues());
  yield.erase();
  op->getBlock()->getOperations().splice(op->getIterator(), branch.getOperations());
  op->replaceAllUsesWith(values);
  op->erase();
  return true;
}

bool replaceByConstants(Operation *op) {
  std::optional<SmallVector<ElementsAttr>> values = foldOperator(onnx::OnnxOp(op));
  if (!values)
    return false;
  OpBuilder builder(op);
  SmallVector<Value> constants;
  for (ElementsAttr value : *values)
    constants.push_back(onnx::createConstant(builder, op->getLoc(), value));
  op->replaceAllUsesWith(constants);
  op->erase();
  return true;
}

LogicalResult foldBlock(Block &block) {
  LogicalResult result = success();
  // A branch that takes the place of its If is visited too, so the next operation is found from the one before.
  Operation *previous = nullptr;
  for (;;) {
    Operation *op = previous ? previous->getNextNode() : (block.empty() ? nullptr : &block.front());
    if (!op)
      return result;
    if (!onnx::isOperator(op)) {
      previous = op;
      continue;
    }
    if (inlineBranch(op))
      continue;
    if (failed(onnx::inferTypes(op))) {
      result = failure();
      previous = op;
      continue;
    }
    if (replaceByConstants(op))
      continue; // the constants are visited next, and skipped
    for (Region &region : op->getRegions())
      if (!region.empty() && failed(foldBlock(region.front())))
        result = failure();
    // What was folded inside may have made the results exact.
    if (op->getNumRegions() && succeeded(result) && failed(onnx::inferTypes(op)))
      result = failure();
    previous = op;
  }
}

struct FoldShapesPass : impl::FoldShapesBase<FoldShapesPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(foldBlock(function.front())))
      return signalPassFailure();
    auto terminator = function.front().getTerminator();
    function.setFunctionType(FunctionType::get(&getContext(), function.getArgumentTypes(), terminator->getOperandTypes()));
    // Constants that fed folded operators only.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
      if (op.use_empty() && isa<onnx::ConstantOp, onnx::AbsentOp>(op))
        op.erase();
  }
};

} // namespace
} // namespace ogc::specialize
