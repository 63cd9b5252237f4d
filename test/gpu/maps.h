//===- maps.h - for the checks of kernels that tensor maps feed -----------===//
#ifndef OGC_TEST_GPU_MAPS_H
#define OGC_TEST_GPU_MAPS_H

#include "harness.h"
#include "ogc/memory.cuh"
#include "ogc/tma.cuh"
#include <cuda.h>

namespace bench {

/// Extents and box in elements, the fastest dimension first; strides in bytes, without that of the first. Swizzle of 128 bytes.
template <class T>
ogc::TensorMap encode(const T *data, std::vector<cuuint64_t> extents, std::vector<cuuint64_t> strides,
                      std::vector<cuuint32_t> box) {
  static decltype(&cuTensorMapEncodeTiled) function = [] {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result));
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  CUtensorMap map;
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapDataType type = sizeof(T) == 4                 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                             : std::is_same_v<T, ogc::bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                            : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUresult status = function(&map, type, (cuuint32_t)extents.size(), const_cast<T *>(data), extents.data(), strides.data(),
                             box.data(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    printf("cuTensorMapEncodeTiled: %d\n", (int)status);
    exit(2);
  }
  ogc::TensorMap out;
  memcpy(&out, &map, sizeof out);
  return out;
}

/// An operand as the tensor cores see it: the copy rounds f32 to tf32, halves to even.
struct MappedOperand {
  template <class T> static __device__ double of(T x) { return ogc::toFloat(x); }
  static __device__ double of(float x) {
    return __uint_as_float((__float_as_uint(x) + 0xfff + (__float_as_uint(x) >> 13 & 1)) & 0xffffe000);
  }
};

/// Stores the accumulators, and checks what it was given to read ahead: both buffers hold the noise of their position.
template <class T, int V> struct AheadRecorder : Recorder<V> {
  const T *columns, *elements;
  struct Constants {
    ogc::Vec<T, V> v;
  };
  struct Inputs {
    ogc::Vec<T, V> v;
  };
  __device__ __forceinline__ Constants constants(int, int, int n) const { return {ogc::loadVec<T, V>(columns + n)}; }
  __device__ __forceinline__ Inputs inputs(int b, int m, int n) const {
    return {ogc::loadVec<T, V>(ogc::afterWait(elements) + (b * this->strideB + m * this->strideM + n))};
  }
  __device__ __forceinline__ void operator()(int b, int m, int n, const float (&acc)[V], const Constants &c,
                                             const Inputs &in) const {
    float sum[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      long long at = b * this->strideB + m * this->strideM + n + v;
      sum[v] = acc[v] + (ogc::toFloat(c.v.v[v]) - ogc::toFloat(element<T>(n + v, 3))) +
               (ogc::toFloat(in.v.v[v]) - ogc::toFloat(element<T>(at, 4)));
    }
    Recorder<V>::operator()(b, m, n, sum);
  }
};

} // namespace bench

#endif
