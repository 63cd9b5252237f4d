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
#include "llvm/Support/ErrorHandling.h"

namespace ogc {

using namespace mlir;

namespace {

bool isDisabled(const CompileOptions &options, StringRef name) {
  name.consume_front("ogc-");
  if (!llvm::is_contained(optionalPasses(), name)) // in every build: each compilation asks for all of them
    llvm::report_fatal_error("pass '" + name + "' is not in the list of those that may be left out");
  return llvm::is_contained(options.disabled, name);
}

normalize::PassFilter filterOf(const CompileOptions &options) {
  return [&options](StringRef name) { return isDisabled(options, name); };
}

/// Adds a pass over the module, or over its functions, that the options may leave out.
void addOptional(OpPassManager &manager, const CompileOptions &options, std::unique_ptr<Pass> pass) {
  if (isDisabled(options, pass->getArgument()))
    return;
  if (pass->getOpName() == StringRef(func::FuncOp::getOperationName()))
    manager.addNestedPass<func::FuncOp>(std::move(pass));
  else
    manager.addPass(std::move(pass));
}

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
  normalize::addFormPasses(manager, hasLowering, filterOf(options));
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

void addFusePasses(const CompileOptions &options, OpPassManager &manager) {
  addOptional(manager, options, createPropagateLayout());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  addOptional(manager, options, createNarrowPanels());
  addOptional(manager, options, createPairMatmuls());
  addOptional(manager, options, createMergeMatmuls());
  addOptional(manager, options, createAbsorbScales());
  addOptional(manager, options, createAbsorbNorms());
  FuseRegionsOptions regions;
  regions.epilogues = !isDisabled(options, "fuse-epilogues");
  regions.vectorChains = !isDisabled(options, "vector-chains");
  manager.addNestedPass<func::FuncOp>(createFuseRegions(regions));
  // Regions over constants are computed by the kernels that they would have been, so their schedules are chosen before.
  manager.addNestedPass<func::FuncOp>(createSelectSchedule());
  manager.addPass(createFoldConstantsPass());
  manager.addPass(createOutlineKernels());
}

void addPlanPasses(const CompileOptions &options, OpPassManager &manager) {
  manager.addPass(createBuildGraph());
  if (options.gemm == "cublaslt")
    manager.addPass(createSelectGemmProvider());
  addOptional(manager, options, createPlaceConcats());
  addOptional(manager, options, createPlaceSlices());
  addOptional(manager, options, createUpdateInPlace());
  PlanArenaOptions arena;
  arena.serial = options.serial;
  arena.memory = options.memoryBytes;
  manager.addPass(createPlanArena(arena));
  DeriveEdgesOptions edges;
  edges.serial = options.serial;
  manager.addPass(createDeriveEdges(edges));
  if (options.pdl)
    addOptional(manager, options, createMarkProgrammaticEdges());
  manager.addPass(createClassifyTopologies());
  manager.addPass(createMarkConstantArguments());
  manager.addPass(createVerifyGraph());
}

} // namespace

llvm::ArrayRef<StringRef> optionalPasses() {
  static constexpr StringRef passes[] = {
      "fold-batch-norm",  "form-layer-norm",         "form-gelu",      "form-tensor-scatter", "form-attention",
      "propagate-layout", "narrow-panels",           "pair-matmuls",   "merge-matmuls",       "absorb-scales",
      "absorb-norms",     "vector-chains",           "fuse-epilogues", "place-concats",       "place-slices",
      "update-in-place",  "mark-programmatic-edges",
  };
  return passes;
}

void addPhasePasses(Phase phase, const CompileOptions &options, OpPassManager &manager) {
  switch (phase) {
  case Phase::Import:
  case Phase::Codegen:
  case Phase::Bundle:
    return; // not passes
  case Phase::Normalize:
    return normalize::addNormalizePasses(manager, filterOf(options));
  case Phase::Specialize:
    return addSpecializePasses(options, manager);
  case Phase::Lower:
    return addLowerPasses(options, manager);
  case Phase::Fuse:
    return addFusePasses(options, manager);
  case Phase::Plan:
    return addPlanPasses(options, manager);
  }
}

} // namespace ogc
