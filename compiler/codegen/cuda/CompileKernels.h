//===- CompileKernels.h - all kernels of a bundle to cubins ---------------===//
#ifndef OGC_CODEGEN_CUDA_COMPILEKERNELS_H
#define OGC_CODEGEN_CUDA_COMPILEKERNELS_H

#include "compiler/codegen/cuda/KernelCache.h"
#include "compiler/codegen/cuda/KernelText.h"
#include "compiler/codegen/cuda/Tuning.h"

namespace ogc::codegen {

struct CudaOptions {
  std::vector<std::string> archs = {"sm_90"};          ///< one set of cubins each
  std::string cacheDir = KernelCache::defaultFolder(); ///< empty: no cache
  unsigned threads = 0;                                ///< 0: as many as cores
  std::string dumpDir;                                 ///< the programs' text is written here; empty: nowhere
  const TuningTable *tuning = nullptr;                 ///< searched before the shipped tables
  bool useShippedTuning = true;
  bool candidates = false; ///< compile every other choice of a kernel too, for a tuner to measure
};

/// Another choice for a kernel.
struct CudaVariant {
  std::string problem, knobs; ///< a line of a tuning table
  std::string name;           ///< entry point
  uint32_t cubin = 0;
  LaunchShape launch;
  std::vector<TensorMap> tensorMaps;
};

/// One kernel of an architecture.
struct CudaKernel {
  std::string name;   ///< symbol of the kern.kernel, also the entry point in the cubin
  uint32_t cubin = 0; ///< index into `CudaArchModule::cubins`
  LaunchShape launch;
  std::vector<TensorMap> tensorMaps;
  std::vector<CudaVariant> variants; ///< with candidates: all of them, the kernel's own choice first
};

struct CudaArchModule {
  std::string arch; ///< "sm_90"
  std::vector<std::vector<char>> cubins;
  std::vector<CudaKernel> kernels; ///< in the order given
};

struct CudaModule {
  std::vector<CudaArchModule> archs; ///< in the order of the options
  unsigned programs = 0;             ///< compiled or found in the cache
  unsigned cacheHits = 0;
};

/// Prints the kernels, batches them into programs and compiles these, in parallel, for every architecture. The result depends on
/// the kernels and the options alone. Emits an error for every kernel that cannot be printed or compiled; the latter with NVRTC's
/// log.
mlir::FailureOr<CudaModule> compileKernels(llvm::ArrayRef<kern::KernelOp> kernels, const CudaOptions &options);

/// The text of a program: the includes that its kernels need, then the kernels.
std::string programText(llvm::ArrayRef<KernelText> kernels);

} // namespace ogc::codegen

#endif
