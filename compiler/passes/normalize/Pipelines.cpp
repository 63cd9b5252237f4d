//===- Pipelines.cpp - the passes of the normalize phase in order ---------===//
#include "compiler/passes/normalize/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ogc::normalize {

void addNormalizePasses(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createDropIdentities());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createFoldBatchNorm());
}

void addFormPasses(OpPassManager &manager, std::function<bool(StringRef)> hasLowering) {
  // Reshapes and casts that change nothing hide patterns, and equal subexpressions must be one value.
  manager.addNestedPass<func::FuncOp>(createDropIdentities());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createFormLayerNorm());
  manager.addNestedPass<func::FuncOp>(createFormGelu());
  manager.addNestedPass<func::FuncOp>(createFormAttention());
  manager.addNestedPass<func::FuncOp>(createExpandFunctions(std::move(hasLowering)));
  manager.addNestedPass<func::FuncOp>(createDropIdentities());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
}

} // namespace ogc::normalize
