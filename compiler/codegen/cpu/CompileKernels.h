//===- CompileKernels.h - kernels to one shared object --------------------===//
#ifndef OGC_CODEGEN_CPU_COMPILEKERNELS_H
#define OGC_CODEGEN_CPU_COMPILEKERNELS_H

#include "compiler/codegen/cpu/CpuTarget.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include <string>
#include <vector>

namespace ogc::codegen {

struct CpuOptions {
  CpuTarget target = CpuTarget::host();
  /// Threads of LLVM's part; the result does not depend on it.
  unsigned threads = 2;
};

/// A compiled kernel: `extern "C" void symbol(void *const *buffers, int64_t begin, int64_t end)` computes units [begin, end) of
/// [0, units).
struct CpuEntry {
  std::string symbol;
  int64_t units = 0;
};

/// A shared object without dependencies, for `dlopen`.
struct CpuObject {
  std::vector<char> image;
  /// In the order of the kernels given.
  std::vector<CpuEntry> kernels;
  std::string cpu, features;
};

/// The dialects and translations that `compileKernels` needs in the context of its kernels.
void registerCpuCodegenDialects(mlir::DialectRegistry &registry);

/// Compiles kernels (unique symbol names). Errors are emitted on the operations concerned; all kernels are tried.
mlir::FailureOr<CpuObject> compileKernels(llvm::ArrayRef<kern::KernelOp> kernels, const CpuOptions &options = {});

/// All kernels of a module, in order.
mlir::FailureOr<CpuObject> compileKernels(mlir::ModuleOp module, const CpuOptions &options = {});

} // namespace ogc::codegen

#endif
