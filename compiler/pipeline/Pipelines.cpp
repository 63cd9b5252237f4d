//===- Pipelines.cpp - the passes of each phase ---------------------------===//
#include "compiler/pipeline/Pipelines.h"

#include "compiler/codegen/cpu/Passes.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/lower/Lowering.h"
#include "compiler/passes/lower/Passes.h"
#include "compiler/passes/normalize/Passes.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/verify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace ogc {

using namespace mlir;

namespace {

void addSpecializePasses(const CompileOptions &options, OpPassManager &manager) {
  specialize::SpecializeShapesOptions specialize;
  specialize.shapes = llvm::join(options.shapes, ";");
  manager.addPass(specialize::createSpecializeShapes(specialize));
  manager.addNestedPass<func::FuncOp>(specialize::createFoldShapes());
  manager.addNestedPass<func::FuncOp>(specialize::createBoundExtents());
  manager.addNestedPass<func::FuncOp>(specialize::createVerifyStatic());
  specialize::DeclareStateOptions state;
  state.states = llvm::join(options.states, ";");
  manager.addPass(specialize::createDeclareState(state));
  normalize::addFormPasses(manager, hasLowering);
  manager.addNestedPass<func::FuncOp>(specialize::createFoldShapes()); // function bodies bring shape arithmetic of their own
}

void addLowerPasses(const CompileOptions &options, OpPassManager &manager) {
  ConvertPrecisionOptions precision;
  precision.precision = options.precision;
  manager.addPass(createConvertPrecision(precision));
  LowerOnnxOptions lower;
  lower.packWeights = options.gemm != "cublaslt";
  manager.addPass(createLowerOnnx(lower));
  manager.addPass(createCSEPass());
}

void addFusePasses(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createPropagateLayout());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createPairMatmuls());
  manager.addNestedPass<func::FuncOp>(createMergeMatmuls());
  manager.addNestedPass<func::FuncOp>(createFuseRegions());
  // Regions over constants are computed by the kernels that they would have been, so their schedules are chosen before.
  manager.addNestedPass<func::FuncOp>(createSelectSchedule());
  manager.addPass(createFoldConstantsPass());
  manager.addPass(createOutlineKernels());
}

void addPlanPasses(const CompileOptions &options, OpPassManager &manager) {
  manager.addPass(createBuildGraph());
  if (options.gemm == "cublaslt")
    manager.addPass(createSelectGemmProvider());
  manager.addPass(createPlaceConcats());
  manager.addPass(createPlaceSlices());
  manager.addPass(createUpdateInPlace());
  PlanArenaOptions arena;
  arena.serial = options.serial;
  arena.memory = options.memoryBytes;
  manager.addPass(createPlanArena(arena));
  DeriveEdgesOptions edges;
  edges.serial = options.serial;
  manager.addPass(createDeriveEdges(edges));
  if (options.pdl)
    manager.addPass(createMarkProgrammaticEdges());
  manager.addPass(createClassifyTopologies());
  manager.addPass(createMarkConstantArguments());
  manager.addPass(createVerifyGraph());
}

} // namespace

void addPhasePasses(Phase phase, const CompileOptions &options, OpPassManager &manager) {
  switch (phase) {
  case Phase::Import:
  case Phase::Codegen:
  case Phase::Bundle:
    return; // not passes
  case Phase::Normalize:
    return normalize::addNormalizePasses(manager);
  case Phase::Specialize:
    return addSpecializePasses(options, manager);
  case Phase::Lower:
    return addLowerPasses(options, manager);
  case Phase::Fuse:
    return addFusePasses(manager);
  case Phase::Plan:
    return addPlanPasses(options, manager);
  }
}

} // namespace ogc
