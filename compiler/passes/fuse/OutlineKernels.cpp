//===- OutlineKernels.cpp - make one kernel of equal regions --------------===//
#include "compiler/dialect/kern/RegionText.h"
#include "compiler/passes/fuse/Passes.h"

#include "llvm/ADT/StringMap.h"

namespace ogc {

#define GEN_PASS_DEF_OUTLINEKERNELS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;

struct OutlineKernels : impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    llvm::StringMap<kern::KernelOp> kernels;
    OpBuilder builder(&getContext());
    SmallVector<kern::RegionOp> regions;
    bool ok = true;
    module.walk([&](kern::RegionOp region) {
      regions.push_back(region);
      if (region.getSchedule())
        return;
      region.emitOpError("has no schedule");
      ok = false;
    });
    if (!ok)
      return signalPassFailure();

    for (kern::RegionOp region : regions) {
      kern::KernelOp &kernel = kernels[kern::textOf(region)];
      if (!kernel) {
        builder.setInsertionPointToEnd(module.getBody());
        std::string name = "k" + std::to_string(kernels.size() - 1) + "_" + kern::stringifySchedule(*region.getSchedule()).str();
        kernel = kern::KernelOp::create(builder, region.getLoc(), name, *region.getSchedule());
        kernel.getBody().takeBody(region.getBody());
        symbols.insert(kernel);
      }
      builder.setInsertionPoint(region);
      auto launch =
          kern::LaunchOp::create(builder, region.getLoc(), region.getResultTypes(), kernel.getSymName(), region.getInputs());
      region.replaceAllUsesWith(launch.getOutputs());
      region.erase();
    }
  }
};

} // namespace
} // namespace ogc
