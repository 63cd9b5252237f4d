//===- ExpandFunctions.cpp - operators without a lowering by their bodies -===//
#include "compiler/dialect/onnx/FunctionBody.h"
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_EXPANDFUNCTIONS
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

/// Bodies use other operators with bodies; deeper than this is a circle.
constexpr unsigned maxDepth = 16;

struct ExpandFunctionsPass : impl::ExpandFunctionsBase<ExpandFunctionsPass> {
  using ExpandFunctionsBase::ExpandFunctionsBase;
  explicit ExpandFunctionsPass(std::function<bool(StringRef)> hasLowering) : hasLowering(std::move(hasLowering)) {}

  void runOnOperation() override {
    for (unsigned depth = 0; depth < maxDepth; ++depth) {
      SmallVector<Operation *> found;
      getOperation().walk([&](Operation *op) {
        if (onnx::isOperator(op) && !isKept(onnx::getOpType(op)) && op->getNumRegions() == 0 && onnx::hasFunctionBody(op))
          found.push_back(op);
      });
      if (found.empty())
        return;
      for (Operation *op : found)
        if (failed(expand(op)))
          return signalPassFailure();
    }
  }

private:
  bool isKept(StringRef opType) const { return hasLowering ? hasLowering(opType) : llvm::is_contained(keep, opType); }

  LogicalResult expand(Operation *op) {
    OpBuilder builder(op);
    std::string reason;
    FailureOr<SmallVector<Value>> values = onnx::expandFunctionBody(builder, op, reason);
    if (failed(values))
      return onnx::emitNodeError(op) << reason;
    for (auto [result, value] : llvm::zip(op->getResults(), *values)) {
      // A body may be less exact about its shapes than the operator was.
      if (value && value.getType() != result.getType() && value.getDefiningOp())
        value.setType(result.getType());
      if (value)
        result.replaceAllUsesWith(value);
    }
    op->erase();
    return success();
  }

  std::function<bool(StringRef)> hasLowering;
};

} // namespace

std::unique_ptr<Pass> createExpandFunctions(std::function<bool(StringRef)> hasLowering) {
  return std::make_unique<ExpandFunctionsPass>(std::move(hasLowering));
}

} // namespace ogc::normalize
