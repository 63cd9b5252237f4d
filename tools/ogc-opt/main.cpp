//===- main.cpp - ogc-opt: runs single passes on MLIR text ----------------===//
//
// The tool of the lit tests: upstream's dialects and passes, ours, and nothing else. Its behaviour is that of MlirOptMain.
//
//===----------------------------------------------------------------------===//
#include "compiler/dialect/cg/Cg.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#if __has_include("compiler/dialect/onnx/Onnx.h")
#include "compiler/dialect/onnx/Onnx.h"
#define OGC_HAS_ONNX
#endif
#if __has_include("compiler/passes/normalize/Passes.h")
#include "compiler/passes/normalize/Passes.h"
#define OGC_HAS_NORMALIZE
#endif
#if __has_include("compiler/passes/specialize/Passes.h")
#include "compiler/passes/specialize/Passes.h"
#define OGC_HAS_SPECIALIZE
#endif
#if __has_include("compiler/passes/lower/Passes.h")
#include "compiler/passes/lower/Passes.h"
#define OGC_HAS_LOWER
#endif
#if __has_include("compiler/passes/fuse/Passes.h")
#include "compiler/passes/fuse/Passes.h"
#define OGC_HAS_FUSE
#endif
#if __has_include("compiler/passes/plan/Passes.h")
#include "compiler/passes/plan/Passes.h"
#define OGC_HAS_PLAN
#endif
#if __has_include("compiler/passes/verify/Passes.h")
#include "compiler/passes/verify/Passes.h"
#define OGC_HAS_VERIFY
#endif

static void registerOgcDialects(mlir::DialectRegistry &registry) {
  registry.insert<ogc::kern::KernDialect, ogc::cg::CgDialect>();
#ifdef OGC_HAS_ONNX
  registry.insert<ogc::onnx::OnnxDialect>();
#endif
}

static void registerOgcPasses() {
#ifdef OGC_HAS_NORMALIZE
  ogc::registerNormalizePasses();
#endif
#ifdef OGC_HAS_SPECIALIZE
  ogc::registerSpecializePasses();
#endif
#ifdef OGC_HAS_LOWER
  ogc::registerLowerPasses();
#endif
#ifdef OGC_HAS_FUSE
  ogc::registerFusePasses();
#endif
#ifdef OGC_HAS_PLAN
  ogc::registerPlanPasses();
#endif
#ifdef OGC_HAS_VERIFY
  ogc::registerVerifyPasses();
#endif
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  registerOgcDialects(registry);
  registerOgcPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "runs passes of ogc on MLIR text\n", registry));
}
