//===- KernelText.h - CUDA C++ text and launch shape of one kernel --------===//
#ifndef OGC_CODEGEN_CUDA_KERNELTEXT_H
#define OGC_CODEGEN_CUDA_KERNELTEXT_H

#include "compiler/dialect/kern/Kern.h"
#include <cstdint>
#include <string>
#include <vector>

namespace ogc::codegen {

/// A CUDA architecture, e.g. `sm_90`.
struct CudaArch {
  unsigned major = 0, minor = 0;

  /// Parses "sm_90"; fails on anything else.
  static mlir::FailureOr<CudaArch> parse(llvm::StringRef name);
  std::string name() const { return "sm_" + std::to_string(major) + std::to_string(minor); }
  /// Programmatic dependent launch, clusters and distributed shared memory exist from sm_90 on.
  bool hasClusters() const { return major >= 9; }
};

/// When `griddepcontrol.launch_dependents` runs.
enum class Trigger { Start = 0, AfterWait = 1, AfterMainLoop = 2 };

/// How a kernel is launched; fixed at compile time.
struct LaunchShape {
  uint32_t grid = 1;    ///< blocks, one-dimensional
  uint32_t block = 1;   ///< threads a block, one-dimensional
  uint32_t cluster = 1; ///< blocks a cluster
  uint32_t dynamicSharedBytes = 0;
};

/// A parameter behind the pointers: a part of an argument as the copy engine sees it. Dimensions are in elements, the fastest
/// first; `strides` leaves out that of the first, which is one.
struct TensorMap {
  unsigned argument = 0;
  mlir::Type element; ///< f16, bf16, or f32, which the copy rounds to tf32
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 5> extents, strides;
  llvm::SmallVector<int64_t, 5> box;
  int64_t swizzleBytes = 128;
};

struct Tuning;

struct KernelText {
  std::string name;                 ///< entry point
  std::string nodes;                ///< ONNX nodes it computes, for messages
  std::vector<std::string> headers; ///< device headers it includes, e.g. "ogc/gemm.cuh"
  std::string source;               ///< everything but the includes
  LaunchShape launch;
  std::vector<TensorMap> tensorMaps;
  unsigned cost = 1; ///< relative time to compile it
};

/// Prints a kernel for an architecture; a schedule that does not fit the body falls back to `pointwise`.
/// Emits an error that names the operation and its ONNX node when something has no CUDA form.
mlir::FailureOr<KernelText> printKernel(kern::KernelOp kernel, CudaArch arch, Tuning &tuning);

} // namespace ogc::codegen

#endif
