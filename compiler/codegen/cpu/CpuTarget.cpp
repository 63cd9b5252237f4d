//===- CpuTarget.cpp - the processor that kernels are compiled for --------===//
#include "compiler/codegen/cpu/CpuTarget.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <memory>
#include <mutex>
#include <vector>

namespace ogc::codegen {

static const llvm::Target *nativeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  std::string error;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(llvm::sys::getProcessTriple()), error);
}

/// Fills in what follows from name and features.
static bool derive(CpuTarget &target) {
  const llvm::Target *native = nativeTarget();
  if (!native)
    return false;
  llvm::Triple triple(llvm::sys::getProcessTriple());
  // A name that LLVM does not know must be found before LLVM is asked to use it: it prints several lines then.
  std::unique_ptr<llvm::MCSubtargetInfo> any(native->createMCSubtargetInfo(triple, "", ""));
  if (!any || !any->isCPUStringValid(target.cpu))
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> info(native->createMCSubtargetInfo(triple, target.cpu, target.features));
  if (!info)
    return false;
  auto has = [&](llvm::StringRef feature) { return info->checkFeatures(("+" + feature).str()); };
  if (triple.isX86()) {
    if (!has("sse4.1")) // rounding would be a call into libm
      return false;
    bool wide = has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
    target.lanes = wide ? 16 : has("avx2") ? 8 : 4;
    target.registers = wide ? 32 : 16;
    target.hasFma = has("fma") || wide;
    target.hasF16C = has("f16c") || wide;
  } else {
    target.registers = 32;
    target.hasFma = target.hasF16C = true;
  }
  return true;
}

CpuTarget CpuTarget::host() {
  CpuTarget target;
  target.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features);
  target.features = llvm::join(features, ",");
  if (!derive(target))
    target = {"x86-64-v2", "", 4, 16, false, false};
  return target;
}

llvm::FailureOr<CpuTarget> CpuTarget::named(llvm::StringRef cpu) {
  if (cpu == "host")
    return host();
  CpuTarget target;
  target.cpu = cpu.str();
  if (!derive(target))
    return llvm::failure();
  // Spelled out, so that the bundle says what a machine must have: instruction sets, which are the names that a processor can be
  // asked for, without LLVM's hints for tuning.
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::unique_ptr<llvm::MCSubtargetInfo> info(nativeTarget()->createMCSubtargetInfo(triple, target.cpu, ""));
  std::vector<std::string> features;
  const llvm::StringMap<bool> instructionSets = llvm::sys::getHostCPUFeatures();
  for (const llvm::SubtargetFeatureKV &feature : info->getEnabledProcessorFeatures())
    if (instructionSets.contains(feature.Key))
      features.push_back(("+" + llvm::StringRef(feature.Key)).str());
  llvm::sort(features);
  target.features = llvm::join(features, ",");
  return target;
}

} // namespace ogc::codegen
