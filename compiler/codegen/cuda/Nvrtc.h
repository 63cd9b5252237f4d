//===- Nvrtc.h - CUDA C++ text to cubins ----------------------------------===//
//
// NVRTC is opened at run time: a compiler without it still builds bundles for the cpu target.
//
#ifndef OGC_CODEGEN_CUDA_NVRTC_H
#define OGC_CODEGEN_CUDA_NVRTC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ogc::codegen {

struct NvrtcSymbols;

/// Called from several threads at once.
class Nvrtc {
public:
  /// Opens libnvrtc once for the process: from the CUDA folder that the compiler was built with, then $CUDA_HOME, then as the
  /// dynamic linker finds it. The error lists what was tried.
  static llvm::Expected<const Nvrtc *> get();

  /// "13.0"
  std::string version() const;

  /// Compiles one program with the device headers at hand. `name` appears in messages. The error is NVRTC's log. `outPtx`
  /// receives the PTX that the cubin was made from.
  llvm::Expected<std::vector<char>> compile(const std::string &name, const std::string &source,
                                            llvm::ArrayRef<std::string> options, std::string *outPtx = nullptr) const;

private:
  Nvrtc() = default;
  const NvrtcSymbols *symbols = nullptr;
  int major = 0, minor = 0;
};

} // namespace ogc::codegen

#endif
