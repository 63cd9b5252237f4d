//===- norm.cuh - normalization of the rows of a product ------------------===//
//
// A product whose rows are divided by their spread sums the rows of A while these pass through its registers, and multiplies the
// finished sums by one factor a row. So the normalized rows are never stored.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_NORM_CUH
#define OGC_DEVICE_NORM_CUH

#include "ogc/ptx.cuh"

namespace ogc {

/// Members of a configuration. Norm: 0 for none, 1 for the root of the mean square, 2 for the standard deviation. Epsilon: the
/// bits of the float that is added under the root.
struct NormDefaults {
  enum { Norm = 0, Epsilon = 0 };
};

/// One over the spread of a row of K elements with these sums.
template <class C, int K> __device__ __forceinline__ float rowFactor(float squares, float sum) {
  float spread = squares * (1.f / K);
  if constexpr (C::Norm == 2) {
    float mean = sum * (1.f / K), variance = spread - mean * mean;
    spread = variance < 0.f ? 0.f : variance; // a NaN stays one
  }
  return rsqrtf(spread + __int_as_float(C::Epsilon));
}

/// Threads that hold the Columns neighbouring elements of a row, V each in the order of the threads, store their mean and the sum
/// of their squared distances from it. All of them are in one warp and come here together; the first is at a multiple of their
/// number.
template <int Columns, int V> __device__ __forceinline__ void storeStatistics(float *mean, float *squares, const float (&x)[V]) {
  constexpr int Threads = Columns / V;
  static_assert(Threads <= 32 && 32 % Threads == 0 && Columns % V == 0, "the threads of a part are no part of a warp");
  int lane = threadIdx.x & 31, first = lane & ~(Threads - 1);
  unsigned mask = (Threads == 32 ? 0xffffffffu : (1u << Threads % 32) - 1) << first;
  auto sum = [&](float partial) {
#pragma unroll
    for (int delta = Threads / 2; delta > 0; delta /= 2)
      partial += __shfl_xor_sync(mask, partial, delta);
    return partial;
  };
  float total = 0.f, distances = 0.f;
#pragma unroll
  for (int v = 0; v < V; ++v)
    total += x[v];
  float center = sum(total) * (1.f / Columns);
#pragma unroll
  for (int v = 0; v < V; ++v)
    distances += (x[v] - center) * (x[v] - center);
  distances = sum(distances);
  if (lane == first)
    *mean = center, *squares = distances;
}

} // namespace ogc

#endif
