//===- OutlineKernels.cpp - make one kernel of equal regions --------------===//
#include "compiler/passes/fuse/Passes.h"

#include "mlir/IR/AsmState.h"
#include "llvm/ADT/StringMap.h"

namespace ogc {

#define GEN_PASS_DEF_OUTLINEKERNELS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;

/// The text of a region without locations and without the names of values outside: equal texts are equal kernels. Regions hold no
/// big constants, so the text is short.
std::string keyOf(kern::RegionOp region) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << static_cast<int>(*region.getSchedule()) << ' ';
  for (Type type : region.getInputs().getTypes())
    os << type << ',';
  // Whatever the command line says about printing, the text must be whole and without locations.
  OpPrintingFlags flags;
  flags.useLocalScope().printGenericOpForm().skipRegions(false).enableDebugInfo(false);
  flags.elideLargeElementsAttrs(std::numeric_limits<int64_t>::max());
  AsmState state(region, flags);
  for (Operation &op : region.getBody().front()) {
    os << '\n';
    op.print(os, state);
  }
  return text;
}

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
      kern::KernelOp &kernel = kernels[keyOf(region)];
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
