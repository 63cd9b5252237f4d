//===- CudaTypes.h - the part of the CUDA driver's ABI that is used -------===//
//
// Declared here, so that the runtime builds where no toolkit is installed. Names and layouts are those of cuda.h and cublasLt.h;
// a unit test compares them where these headers are found.
//
#ifndef OGC_RUNTIME_CUDA_CUDA_TYPES_H
#define OGC_RUNTIME_CUDA_CUDA_TYPES_H

#include <cstddef>
#include <cstdint>

namespace ogc::cuda {

// NOLINTBEGIN(readability-identifier-naming): the names of cuda.h

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUkernel = struct CUkern_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphNode = struct CUgraphNode_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUmemHandle = unsigned long long;

/// An address of device memory as the pointer that some interfaces want.
inline void *devicePointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(address); // NOLINT(performance-no-int-to-ptr): addresses are integers in the driver
}

// CUdevice_attribute
inline constexpr int kMultiprocessors = 16, kMultiprocessorThreads = 39, kComputeCapabilityMajor = 75,
                     kComputeCapabilityMinor = 76, kMultiprocessorSharedBytes = 81;
inline constexpr int kFuncStaticSharedBytes = 1, kFuncMaxDynamicSharedBytes = 8, kFuncPreferredCarveout = 9,
                     kFuncNonPortableCluster = 14;
inline constexpr int kPointerMemoryType = 2, kPointerIsManaged = 8, kPointerDeviceOrdinal = 9; // CUpointer_attribute
inline constexpr int kMemoryTypeHost = 1, kMemoryTypeDevice = 2, kMemAllocationPinned = 1, kMemLocationDevice = 1,
                     kMemAccessReadWrite = 3;
inline constexpr int kGranularityMinimum = 0;
inline constexpr unsigned kStreamNonBlocking = 1, kEventDisableTiming = 2;
inline constexpr int kCaptureModeThreadLocal = 1, kCaptureModeRelaxed = 2, kCaptureStatusNone = 0;
inline constexpr int kLaunchAttributeClusterDimension = 4;
inline constexpr int kTensorMapFloat16 = 6, kTensorMapBfloat16 = 9, kTensorMapTfloat32 = 11; // CUtensorMapDataType
inline constexpr int kTensorMapInterleaveNone = 0, kTensorMapPromotion256 = 3, kTensorMapFillZero = 0;
inline constexpr unsigned char kPortProgrammatic = 1, kDependencyProgrammatic = 1;

struct KernelNodeParams { // CUDA_KERNEL_NODE_PARAMS_v2
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams;
  void **extra;
  CUkernel kern;
  CUcontext ctx;
};

struct Memcpy3D { // CUDA_MEMCPY3D_v2
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray, *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray, *reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};

struct MemsetNodeParams { // CUDA_MEMSET_NODE_PARAMS_v1
  CUdeviceptr dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};

struct EdgeData { // CUgraphEdgeData
  unsigned char from_port, to_port, type, reserved[5];
};

struct ExecUpdateInfo { // CUgraphExecUpdateResultInfo
  int result;
  CUgraphNode errorNode, errorFromNode;
};

struct MemLocation { // CUmemLocation
  int type, id;
};

struct MemAllocationProp { // CUmemAllocationProp
  int type, requestedHandleTypes;
  MemLocation location;
  void *win32HandleMetaData;
  unsigned char allocFlags[8];
};

struct MemAccessDesc { // CUmemAccessDesc
  MemLocation location;
  int flags;
};

struct alignas(128) TensorMapValue { // CUtensorMap
  uint64_t words[16];
};

union alignas(8) LaunchAttributeValue { // CUlaunchAttributeValue
  char pad[64];
  struct {
    unsigned x, y, z;
  } clusterDim;
};

// cuBLASLt. Handles and descriptors are opaque pointers.
using BlasStatus = int;
using BlasHandle = struct cublasLtContext *;
using BlasDesc = void *;
using BlasLayout = void *;
using BlasPreference = void *;

inline constexpr int kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14;                 // cudaDataType
inline constexpr int kCompute32F = 68, kCompute64F = 70, kCompute32FFastTF32 = 77; // cublasComputeType_t
inline constexpr int kDescTransA = 3, kDescEpilogue = 7, kDescBiasPointer = 8;     // cublasLtMatmulDescAttributes_t
inline constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;                // cublasLtMatrixLayoutAttribute_t
inline constexpr int kPreferenceMaxWorkspace = 1;                                  // cublasLtMatmulPreferenceAttributes_t
inline constexpr int kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32; // bits, but Default
inline constexpr int kOpTranspose = 1;                                                               // cublasOperation_t

struct BlasAlgo { // cublasLtMatmulAlgo_t
  uint64_t data[8];
};

struct BlasHeuristic { // cublasLtMatmulHeuristicResult_t
  BlasAlgo algo;
  size_t workspaceSize;
  BlasStatus state;
  float wavesCount;
  int reserved[4];
};

// NOLINTEND(readability-identifier-naming)

} // namespace ogc::cuda

#endif
