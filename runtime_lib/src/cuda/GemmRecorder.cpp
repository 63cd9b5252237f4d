//===- GemmRecorder.cpp - a cuBLASLt call for a gemm node -----------------===//
//
// The library thinks in columns. A row-major D = A B is the column-major D' = B' A', where the primes are the same bytes read by
// columns; so the library's first operand is our B, and a bias along our columns is the library's bias along its rows.
//
#include "runtime_lib/src/cuda/GemmRecorder.h"

#include <string>

namespace ogc::cuda {

namespace fb = format::fb;

namespace {

/// cudaDataType of an element type, or -1.
int libraryType(fb::DataType type) {
  switch (type) {
  case fb::DataType::F32:
    return kR32F;
  case fb::DataType::F64:
    return kR64F;
  case fb::DataType::F16:
    return kR16F;
  case fb::DataType::BF16:
    return kR16BF;
  default:
    return -1;
  }
}

} // namespace

bool canRecord(const fb::Gemm &gemm) {
  return libraryType(gemm.element_type()) >= 0 && libraryType(gemm.result_type()) >= 0 &&
         !(gemm.has_residual() && gemm.activation() != fb::Activation::None);
}

GemmRecorder::~GemmRecorder() {
  if (preference_)
    api_.cublasLtMatmulPreferenceDestroy(preference_);
  for (BlasLayout layout : {layoutA_, layoutB_, layoutD_})
    if (layout)
      api_.cublasLtMatrixLayoutDestroy(layout);
  if (desc_)
    api_.cublasLtMatmulDescDestroy(desc_);
}

Status GemmRecorder::makeLayout(BlasLayout &layout, int type, int64_t rows, int64_t columns, int64_t leadingDimension,
                                int64_t batch, int64_t stride) {
  OGC_BLAS(api_, cublasLtMatrixLayoutCreate, &layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
           leadingDimension);
  int32_t count = static_cast<int32_t>(batch);
  if (count > 1) {
    OGC_BLAS(api_, cublasLtMatrixLayoutSetAttribute, layout, kLayoutBatchCount, &count, sizeof count);
    OGC_BLAS(api_, cublasLtMatrixLayoutSetAttribute, layout, kLayoutBatchStride, &stride, sizeof stride);
  }
  return Status();
}

Status GemmRecorder::setEpilogue(const fb::Gemm &gemm) {
  int epilogue = gemm.has_bias() ? kEpilogueBias : 0;
  epilogue |= gemm.activation() == fb::Activation::Relu       ? kEpilogueRelu
              : gemm.activation() == fb::Activation::GeluTanh ? kEpilogueGelu
                                                              : 0;
  if (epilogue == 0)
    epilogue = kEpilogueDefault;
  OGC_BLAS(api_, cublasLtMatmulDescSetAttribute, desc_, kDescEpilogue, &epilogue, sizeof epilogue);
  if (gemm.has_bias()) {
    void *bias = devicePointer(bias_);
    OGC_BLAS(api_, cublasLtMatmulDescSetAttribute, desc_, kDescBiasPointer, static_cast<const void *>(&bias), sizeof bias);
  }
  return Status();
}

Status GemmRecorder::describe(const fb::Gemm &gemm, int type, int resultType) {
  int compute = isDouble_ ? kCompute64F : gemm.tf32() && type == kR32F ? kCompute32FFastTF32 : kCompute32F;
  OGC_BLAS(api_, cublasLtMatmulDescCreate, &desc_, compute, isDouble_ ? kR64F : kR32F);
  int64_t m = gemm.m(), n = gemm.n(), k = gemm.k(), batch = gemm.batch(), strideB = gemm.broadcast_b() ? 0 : k * n;
  if (gemm.transpose_b()) {
    int32_t transpose = kOpTranspose;
    OGC_BLAS(api_, cublasLtMatmulDescSetAttribute, desc_, kDescTransA, &transpose, sizeof transpose);
    OGC_RETURN_IF_ERROR(makeLayout(layoutA_, type, k, n, k, batch, strideB));
  } else {
    OGC_RETURN_IF_ERROR(makeLayout(layoutA_, type, n, k, n, batch, strideB));
  }
  OGC_RETURN_IF_ERROR(makeLayout(layoutB_, type, k, m, k, batch, m * k));
  OGC_RETURN_IF_ERROR(makeLayout(layoutD_, resultType, n, m, n, batch, m * n));
  return setEpilogue(gemm);
}

Status GemmRecorder::prepare(const fb::Node &node, const std::vector<CUdeviceptr> &arguments) {
  const fb::Gemm &gemm = *node.gemm();
  size_t next = 0;
  a_ = arguments[next++];
  b_ = arguments[next++];
  bias_ = gemm.has_bias() ? arguments[next++] : 0;
  residual_ = gemm.has_residual() ? arguments[next++] : 0;
  d_ = arguments[next++];
  uint64_t workspace = gemm.has_workspace() ? node.args()->Get(static_cast<unsigned>(next))->size_bytes() : 0;
  workspace_ = workspace ? arguments[next] : 0;
  int type = libraryType(gemm.element_type()), resultType = libraryType(gemm.result_type());
  isDouble_ = type == kR64F;
  OGC_RETURN_IF_ERROR(describe(gemm, type, resultType));
  OGC_BLAS(api_, cublasLtMatmulPreferenceCreate, &preference_);
  OGC_BLAS(api_, cublasLtMatmulPreferenceSetAttribute, preference_, kPreferenceMaxWorkspace, &workspace, sizeof workspace);
  int found = 0;
  constexpr BlasStatus notSupported = 15; // CUBLAS_STATUS_NOT_SUPPORTED, also the answer where no algorithm fits
  BlasStatus status = api_.cublasLtMatmulAlgoGetHeuristic(handle_, desc_, layoutA_, layoutB_, layoutD_, layoutD_, preference_, 1,
                                                          &heuristic_, &found);
  if (status == notSupported || (status == 0 && (found == 0 || heuristic_.workspaceSize > workspace)))
    return Status(Code::Unsupported, "cublaslt has no algorithm for this gemm");
  if (status != 0)
    return Status(Code::Device, "cublasLtMatmulAlgoGetHeuristic failed: cublas status " + std::to_string(status));
  return Status();
}

Status GemmRecorder::record(CUstream stream) {
  float one = 1, zero = 0;
  double one64 = 1, zero64 = 0;
  const void *alpha = isDouble_ ? static_cast<const void *>(&one64) : &one;
  const void *none = isDouble_ ? static_cast<const void *>(&zero64) : &zero;
  auto pointer = devicePointer;
  OGC_BLAS(api_, cublasLtMatmul, handle_, desc_, alpha, pointer(b_), layoutA_, pointer(a_), layoutB_, residual_ ? alpha : none,
           pointer(residual_ ? residual_ : d_), layoutD_, pointer(d_), layoutD_, &heuristic_.algo, pointer(workspace_),
           heuristic_.workspaceSize, stream);
  return Status();
}

} // namespace ogc::cuda
