// Debian's static libLLVMLTO, which lld brings in, names Polly's entry point, but Polly is not packaged as an archive. Link-time
// optimization is never run here: an empty plugin satisfies the linker.
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "", [](llvm::PassBuilder &) {}};
}
