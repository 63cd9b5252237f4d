//===- VerifyStatic.cpp - fail when a value is not a static tensor --------===//
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/passes/specialize/Passes.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_VERIFYSTATIC
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

bool isStatic(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return !type || type.hasStaticShape();
}

struct VerifyStaticPass : impl::VerifyStaticBase<VerifyStaticPass> {
  void runOnOperation() override {
    Operation *firstDynamic = nullptr;
    bool hasErrors = false;
    getOperation().walk([&](Operation *op) {
      if (llvm::all_of(op->getResults(), isStatic))
        return;
      firstDynamic = firstDynamic ? firstDynamic : op;
      if (llvm::all_of(op->getOperands(), isStatic))
        hasErrors |= report(op);
    });
    if (!hasErrors && firstDynamic)
      hasErrors = report(firstDynamic);
    for (auto [i, argument] : llvm::enumerate(getOperation().getArguments()))
      if (!isStatic(argument)) {
        getOperation().emitError() << "argument " << i << " has type " << argument.getType() << ", expected a static shape";
        hasErrors = true;
      }
    if (hasErrors)
      signalPassFailure();
  }

  bool report(Operation *op) {
    for (OpResult result : op->getResults())
      if (!isStatic(result))
        onnx::emitNodeError(op) << "output " << result.getResultNumber() << " has type " << result.getType()
                                << ", expected a static shape: its shape depends on the data";
    return true;
  }
};

} // namespace
} // namespace ogc::specialize
