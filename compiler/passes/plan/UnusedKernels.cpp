//===- UnusedKernels.cpp - kernels that no node launches ------------------===//
#include "compiler/passes/plan/UnusedKernels.h"

#include "compiler/dialect/cg/Cg.h"
#include "compiler/dialect/kern/Kern.h"

using namespace mlir;

namespace ogc::plan {

void eraseUnusedKernels(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  module.walk([&](Operation *node) {
    if (auto launch = dyn_cast<cg::KernelOp>(node))
      used.insert(launch.getKernelAttr().getAttr());
    else if (auto gemm = dyn_cast<cg::GemmOp>(node))
      used.insert(gemm.getFallbackAttr().getAttr());
  });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<kern::KernelOp>()))
    if (!used.contains(kernel.getSymNameAttr()))
      kernel.erase();
}

} // namespace ogc::plan
