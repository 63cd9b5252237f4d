//===- Pipelines.cpp - the passes of the normalize phase in order ---------===//
#include "compiler/passes/normalize/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ogc::normalize {

static void addOptional(OpPassManager &manager, const PassFilter &isDisabled, std::unique_ptr<Pass> pass) {
  if (!isDisabled(pass->getArgument()))
    manager.addNestedPass<func::FuncOp>(std::move(pass));
}

void addNormalizePasses(OpPassManager &manager, const PassFilter &isDisabled) {
  manager.addNestedPass<func::FuncOp>(createDropIdentities());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  addOptional(manager, isDisabled, createFoldBatchNorm());
}

void addFormPasses(OpPassManager &manager, std::function<bool(StringRef)> hasLowering, const PassFilter &isDisabled) {
  // Reshapes and casts that change nothing hide patterns, and equal subexpressions must be one value.
  manager.addNestedPass<func::FuncOp>(createDropIdentities());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  addOptional(manager, isDisabled, createFormLayerNorm());
  addOptional(manager, isDisabled, createFormGelu());
  addOptional(manager, isDisabled, createFormTensorScatter());
  addOptional(manager, isDisabled, createFormAttention());
  manager.addNestedPass<func::FuncOp>(createExpandFunctions(std::move(hasLowering)));
  manager.addNestedPass<func::FuncOp>(createDropIdentities());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
}

} // namespace ogc::normalize
