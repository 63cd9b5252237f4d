//===- CudaApi.h - the driver and cuBLASLt, opened at run time ------------===//
#ifndef OGC_RUNTIME_CUDA_CUDA_API_H
#define OGC_RUNTIME_CUDA_CUDA_API_H

#include "runtime_lib/format/Status.h"
#include "runtime_lib/src/cuda/CudaTypes.h"

namespace ogc::cuda {

/// Every function of libcuda.so.1 that is called: name in this program, exported symbol, parameters. The driver exports the
/// versions named here since 12.3.
#define OGC_CUDA_SYMBOLS(X)                                                                                                      \
  X(cuInit, "cuInit", (unsigned flags))                                                                                          \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                                                    \
  X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name))                                                       \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))                                                   \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                                                          \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                                \
  X(cuDeviceGetName, "cuDeviceGetName", (char *name, int length, CUdevice device))                                               \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))                                  \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                                \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                                                \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))                                                                \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))                                                                \
  X(cuCtxSynchronize, "cuCtxSynchronize", ())                                                                                    \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                         \
  X(cuModuleLoadData, "cuModuleLoadData", (CUmodule * module, const void *image))                                                \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                                         \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char *name))                      \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", (int *value, int attribute, CUfunction function))                                  \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                                   \
  X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", (size_t *bytes, const MemAllocationProp *prop, int option))  \
  X(cuMemAddressReserve, "cuMemAddressReserve",                                                                                  \
    (CUdeviceptr * address, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags))                          \
  X(cuMemAddressFree, "cuMemAddressFree", (CUdeviceptr address, size_t size))                                                    \
  X(cuMemCreate, "cuMemCreate", (CUmemHandle * handle, size_t size, const MemAllocationProp *prop, unsigned long long flags))    \
  X(cuMemRelease, "cuMemRelease", (CUmemHandle handle))                                                                          \
  X(cuMemMap, "cuMemMap", (CUdeviceptr address, size_t size, size_t offset, CUmemHandle handle, unsigned long long flags))       \
  X(cuMemUnmap, "cuMemUnmap", (CUdeviceptr address, size_t size))                                                                \
  X(cuMemSetAccess, "cuMemSetAccess", (CUdeviceptr address, size_t size, const MemAccessDesc *desc, size_t count))               \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * address, size_t size))                                                           \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr address))                                                                            \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **memory, size_t size, unsigned flags))                                              \
  X(cuMemFreeHost, "cuMemFreeHost", (void *memory))                                                                              \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                                                              \
  X(cuPointerGetAttributes, "cuPointerGetAttributes",                                                                            \
    (unsigned count, const int *attributes, void **values, CUdeviceptr pointer))                                                 \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr target, const void *source, size_t size))                                      \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr target, const void *source, size_t size, CUstream stream))           \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *target, CUdeviceptr source, size_t size, CUstream stream))                 \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream))           \
  X(cuMemsetD8Async, "cuMemsetD8Async", (CUdeviceptr target, unsigned char value, size_t count, CUstream stream))                \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                                                       \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                                    \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                               \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, int *status))                                                  \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph",                                                                  \
    (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const EdgeData *data, size_t count, int mode))             \
  X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v3",                                                                         \
    (CUstream stream, int *status, unsigned long long *id, CUgraph *graph, const CUgraphNode **dependencies,                     \
     const EdgeData **data, size_t *count))                                                                                      \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                                                \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                                           \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                                                        \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                                            \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                                                                   \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float *milliseconds, CUevent begin, CUevent end))                                 \
  X(cuGraphCreate, "cuGraphCreate", (CUgraph * graph, unsigned flags))                                                           \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph))                                                                           \
  X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2",                                                                             \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const KernelNodeParams *params))          \
  X(cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode",                                                                                \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const Memcpy3D *params,                   \
     CUcontext context))                                                                                                         \
  X(cuGraphAddMemsetNode, "cuGraphAddMemsetNode",                                                                                \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const MemsetNodeParams *params,           \
     CUcontext context))                                                                                                         \
  X(cuGraphAddDependencies, "cuGraphAddDependencies_v2",                                                                         \
    (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const EdgeData *data, size_t count))                         \
  X(cuGraphKernelNodeSetAttribute, "cuGraphKernelNodeSetAttribute",                                                              \
    (CUgraphNode node, int attribute, const LaunchAttributeValue *value))                                                        \
  X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                                            \
    (TensorMapValue * map, int type, unsigned rank, void *address, const uint64_t *extents, const uint64_t *strides,             \
     const uint32_t *box, const uint32_t *elementStrides, int interleave, int swizzle, int promotion, int fill))                 \
  X(cuGraphGetNodes, "cuGraphGetNodes", (CUgraph graph, CUgraphNode * nodes, size_t *count))                                     \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec * exec, CUgraph graph, unsigned long long flags))            \
  X(cuGraphExecUpdate, "cuGraphExecUpdate_v2", (CUgraphExec exec, CUgraph graph, ExecUpdateInfo * info))                         \
  X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2",                                                         \
    (CUgraphExec exec, CUgraphNode node, const KernelNodeParams *params))                                                        \
  X(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams",                                                            \
    (CUgraphExec exec, CUgraphNode node, const Memcpy3D *params, CUcontext context))                                             \
  X(cuGraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams",                                                            \
    (CUgraphExec exec, CUgraphNode node, const MemsetNodeParams *params, CUcontext context))                                     \
  X(cuGraphUpload, "cuGraphUpload", (CUgraphExec exec, CUstream stream))                                                         \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))                                                         \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec exec))

/// The same for libcublasLt.
#define OGC_BLAS_SYMBOLS(X)                                                                                                      \
  X(cublasLtCreate, "cublasLtCreate", (BlasHandle * handle))                                                                     \
  X(cublasLtDestroy, "cublasLtDestroy", (BlasHandle handle))                                                                     \
  X(cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate", (BlasDesc * desc, int computeType, int scaleType))                     \
  X(cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy", (BlasDesc desc))                                                     \
  X(cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute",                                                            \
    (BlasDesc desc, int attribute, const void *value, size_t size))                                                              \
  X(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate",                                                                    \
    (BlasLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t leadingDimension))                                  \
  X(cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", (BlasLayout layout))                                             \
  X(cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute",                                                        \
    (BlasLayout layout, int attribute, const void *value, size_t size))                                                          \
  X(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", (BlasPreference * preference))                             \
  X(cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", (BlasPreference preference))                             \
  X(cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",                                                \
    (BlasPreference preference, int attribute, const void *value, size_t size))                                                  \
  X(cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                                                            \
    (BlasHandle handle, BlasDesc desc, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d, BlasPreference preference,        \
     int requested, BlasHeuristic *results, int *returned))                                                                      \
  X(cublasLtMatmul, "cublasLtMatmul",                                                                                            \
    (BlasHandle handle, BlasDesc desc, const void *alpha, const void *a, BlasLayout layoutA, const void *b, BlasLayout layoutB,  \
     const void *beta, const void *c, BlasLayout layoutC, void *d, BlasLayout layoutD, const BlasAlgo *algo, void *workspace,    \
     size_t workspaceBytes, CUstream stream))

/// The functions of the driver. Every one returns a CUresult.
struct DriverApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters
#define OGC_DECLARE(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  OGC_CUDA_SYMBOLS(OGC_DECLARE)
#undef OGC_DECLARE
};

/// The functions of cuBLASLt. Every one returns a cublasStatus_t.
struct BlasApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters
#define OGC_DECLARE(name, symbol, parameters) BlasStatus(*name) parameters = nullptr;
  OGC_BLAS_SYMBOLS(OGC_DECLARE)
#undef OGC_DECLARE
};

/// Opens libcuda.so.1, once a process; it stays open. NotFound where there is no driver, Unsupported where it lacks a symbol.
Result<const DriverApi *> loadDriver();

/// Opens libcublasLt.so.13 or .12 likewise, from the loader's path or from the toolkit's default folder.
Result<const BlasApi *> loadBlas();

/// The status of a failed driver call: "cuGraphLaunch failed: CUDA_ERROR_… (text)". Out-of-memory errors get their own code.
Status driverError(const DriverApi &api, CUresult result, const char *function);

/// Calls a driver function and returns its failure from the calling function.
#define OGC_CUDA(api, function, ...)                                                                                             \
  do {                                                                                                                           \
    if (::ogc::cuda::CUresult ogcResult = (api).function(__VA_ARGS__); ogcResult != 0)                                           \
      return ::ogc::cuda::driverError((api), ogcResult, #function);                                                              \
  } while (false)

/// The same for cuBLASLt.
#define OGC_BLAS(api, function, ...)                                                                                             \
  do {                                                                                                                           \
    if (::ogc::cuda::BlasStatus ogcResult = (api).function(__VA_ARGS__); ogcResult != 0)                                         \
      return ::ogc::Status(::ogc::Code::Device, #function " failed: cublas status " + std::to_string(ogcResult));                \
  } while (false)

} // namespace ogc::cuda

#endif
