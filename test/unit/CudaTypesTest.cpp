//===- CudaTypesTest.cpp - our declarations against NVIDIA's headers ------===//
#include "runtime_lib/src/cuda/CudaTypes.h"

#include <cublasLt.h>
#include <cuda.h>

#include <cstddef>
#include <gtest/gtest.h>

namespace ours = ogc::cuda;

#define SAME_SIZE(mine, theirs) static_assert(sizeof(ours::mine) == sizeof(theirs) && alignof(ours::mine) == alignof(theirs))
#define SAME_FIELD(mine, theirs, field) static_assert(offsetof(ours::mine, field) == offsetof(theirs, field))

SAME_SIZE(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_FIELD(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
SAME_FIELD(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_FIELD(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_FIELD(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_SIZE(Memcpy3D, CUDA_MEMCPY3D_v2);
SAME_FIELD(Memcpy3D, CUDA_MEMCPY3D_v2, srcMemoryType);
SAME_FIELD(Memcpy3D, CUDA_MEMCPY3D_v2, srcDevice);
SAME_FIELD(Memcpy3D, CUDA_MEMCPY3D_v2, dstMemoryType);
SAME_FIELD(Memcpy3D, CUDA_MEMCPY3D_v2, dstDevice);
SAME_FIELD(Memcpy3D, CUDA_MEMCPY3D_v2, WidthInBytes);
SAME_SIZE(MemsetNodeParams, CUDA_MEMSET_NODE_PARAMS_v1);
SAME_FIELD(MemsetNodeParams, CUDA_MEMSET_NODE_PARAMS_v1, width);
SAME_SIZE(ExecUpdateInfo, CUgraphExecUpdateResultInfo);
SAME_FIELD(ExecUpdateInfo, CUgraphExecUpdateResultInfo, errorNode);
SAME_SIZE(EdgeData, CUgraphEdgeData);
SAME_FIELD(EdgeData, CUgraphEdgeData, from_port);
SAME_FIELD(EdgeData, CUgraphEdgeData, type);
SAME_SIZE(MemAllocationProp, CUmemAllocationProp);
SAME_FIELD(MemAllocationProp, CUmemAllocationProp, location);
SAME_FIELD(MemAllocationProp, CUmemAllocationProp, win32HandleMetaData);
SAME_SIZE(MemAccessDesc, CUmemAccessDesc);
SAME_FIELD(MemAccessDesc, CUmemAccessDesc, flags);
SAME_SIZE(TensorMapValue, CUtensorMap);
SAME_SIZE(LaunchAttributeValue, CUlaunchAttributeValue);
static_assert(offsetof(CUlaunchAttributeValue, clusterDim) == 0);
SAME_SIZE(BlasAlgo, cublasLtMatmulAlgo_t);
SAME_SIZE(BlasHeuristic, cublasLtMatmulHeuristicResult_t);
SAME_FIELD(BlasHeuristic, cublasLtMatmulHeuristicResult_t, workspaceSize);

TEST(CudaTypes, NumbersAreThoseOfTheHeaders) {
  EXPECT_EQ(ours::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(ours::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(ours::kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(ours::kMultiprocessorThreads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  EXPECT_EQ(ours::kMultiprocessorSharedBytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  EXPECT_EQ(ours::kFuncStaticSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  EXPECT_EQ(ours::kFuncMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(ours::kFuncPreferredCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  EXPECT_EQ(ours::kFuncNonPortableCluster, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  EXPECT_EQ(ours::kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_EQ(ours::kPointerIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
  EXPECT_EQ(ours::kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  EXPECT_EQ(ours::kMemoryTypeHost, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(ours::kCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(ours::kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(ours::kMemAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(ours::kMemLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(ours::kMemAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_EQ(ours::kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  EXPECT_EQ(ours::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(ours::kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(ours::kCaptureModeThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(ours::kCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(ours::kTensorMapFloat16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_EQ(ours::kTensorMapBfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(ours::kTensorMapTfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
  EXPECT_EQ(ours::kTensorMapInterleaveNone, CU_TENSOR_MAP_INTERLEAVE_NONE);
  EXPECT_EQ(ours::kTensorMapPromotion256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  EXPECT_EQ(ours::kTensorMapFillZero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  EXPECT_EQ(ours::kLaunchAttributeClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(ours::kPortProgrammatic, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  EXPECT_EQ(ours::kDependencyProgrammatic, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
}

TEST(CudaTypes, NumbersAreThoseOfCublas) {
  EXPECT_EQ(ours::kR32F, CUDA_R_32F);
  EXPECT_EQ(ours::kR64F, CUDA_R_64F);
  EXPECT_EQ(ours::kR16F, CUDA_R_16F);
  EXPECT_EQ(ours::kR16BF, CUDA_R_16BF);
  EXPECT_EQ(ours::kCompute32F, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(ours::kCompute64F, CUBLAS_COMPUTE_64F);
  EXPECT_EQ(ours::kCompute32FFastTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(ours::kOpTranspose, CUBLAS_OP_T);
  EXPECT_EQ(ours::kDescTransA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(ours::kDescEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(ours::kDescBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(ours::kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(ours::kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_EQ(ours::kPreferenceMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(ours::kEpilogueDefault, CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(ours::kEpilogueRelu, CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(ours::kEpilogueBias | ours::kEpilogueRelu, CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_EQ(ours::kEpilogueBias | ours::kEpilogueGelu, CUBLASLT_EPILOGUE_GELU_BIAS);
}
