//===- GemmRecorder.h - a cuBLASLt call for a gemm node -------------------===//
#ifndef OGC_RUNTIME_CUDA_GEMM_RECORDER_H
#define OGC_RUNTIME_CUDA_GEMM_RECORDER_H

#include "runtime_lib/format/bundle_generated.h"
#include "runtime_lib/src/cuda/CudaApi.h"

#include <vector>

namespace ogc::cuda {

/// True where cuBLASLt computes this gemm: f32, f16, bf16 or f64 operands, and not both an activation and a residual, whose order
/// the library fixes (the activation comes last).
bool canRecord(const format::fb::Gemm &gemm);

/// Describes one product to cuBLASLt, asks for its best algorithm and enqueues it.
class GemmRecorder {
public:
  GemmRecorder(const BlasApi &api, BlasHandle handle) : api_(api), handle_(handle) {}
  ~GemmRecorder();
  GemmRecorder(const GemmRecorder &) = delete;
  GemmRecorder &operator=(const GemmRecorder &) = delete;

  /// `arguments`: addresses of the arguments of `node`, a gemm. Unsupported where the library has no algorithm that makes do with
  /// the workspace.
  Status prepare(const format::fb::Node &node, const std::vector<CUdeviceptr> &arguments);

  /// Enqueues the product on `stream`, which may be capturing.
  Status record(CUstream stream);

private:
  Status describe(const format::fb::Gemm &gemm, int type, int resultType);
  Status makeLayout(BlasLayout &layout, int type, int64_t rows, int64_t columns, int64_t leadingDimension, int64_t batch,
                    int64_t stride);
  Status setEpilogue(const format::fb::Gemm &gemm);

  const BlasApi &api_;
  BlasHandle handle_;
  BlasDesc desc_ = nullptr;
  BlasLayout layoutA_ = nullptr, layoutB_ = nullptr, layoutD_ = nullptr;
  BlasPreference preference_ = nullptr;
  BlasHeuristic heuristic_ = {};
  CUdeviceptr a_ = 0, b_ = 0, bias_ = 0, residual_ = 0, d_ = 0, workspace_ = 0;
  bool isDouble_ = false;
};

} // namespace ogc::cuda

#endif
