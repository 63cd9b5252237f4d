//===- main.cpp - ogc-opt: runs single passes on MLIR text ----------------===//
//
// The tool of the lit tests: upstream's dialects and passes, ours, and nothing else. Its behaviour is that of MlirOptMain.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cpu/Passes.h"
#include "compiler/codegen/cuda/Passes.h"
#include "compiler/dialect/cg/Cg.h"
#include "compiler/dialect/kern/Kern.h"
#include "compiler/dialect/onnx/OnnxDialect.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/lower/Passes.h"
#include "compiler/passes/normalize/Passes.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/verify/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

static void registerOgcPasses() {
  // Each part keeps its passes in its own namespace.
  using namespace ogc;
  using namespace ogc::codegen;
  using namespace ogc::normalize;
  using namespace ogc::specialize;
  registerNormalizePasses();
  registerSpecializePasses();
  registerLowerPasses();
  registerFusePasses();
  registerPlanPasses();
  registerVerifyPasses();
  registerCudaPasses();
  registerCpuPasses();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<ogc::onnx::OnnxDialect, ogc::kern::KernDialect, ogc::cg::CgDialect>();
  mlir::registerAllPasses();
  registerOgcPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "runs passes of ogc on MLIR text\n", registry));
}
