//===- harness.h - checks and timings of the device templates -------------===//
//
// Every check fills its operands with numbers from a hash of the index (NaN in the gaps that strides leave), runs the template
// through an epilogue that stores the accumulator and counts its calls, and compares every element with a slow reference in
// double.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_TEST_GPU_HARNESS_H
#define OGC_TEST_GPU_HARNESS_H

#include "ogc/types.cuh"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK_CUDA(call)                                                                                                         \
  do {                                                                                                                           \
    cudaError_t status = (call);                                                                                                 \
    if (status != cudaSuccess) {                                                                                                 \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status));                                          \
      exit(2);                                                                                                                   \
    }                                                                                                                            \
  } while (0)

namespace bench {

/// Uniform in [-1, 1), exactly representable in bf16.
__device__ inline float noise(unsigned long long i, unsigned seed) {
  unsigned long long x = i * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
  x ^= x >> 31, x *= 0xBF58476D1CE4E5B9ull, x ^= x >> 29, x *= 0x94D049BB133111EBull, x ^= x >> 32;
  return ((int)(x & 255) - 128) / 128.f;
}
/// For float operands: 24 significant bits, so that tf32 and 3xTF32 differ.
__device__ inline float fineNoise(unsigned long long i, unsigned seed) {
  return noise(i, seed) + noise(i, seed + 77) / 1024.f + noise(i, seed + 78) / 1048576.f;
}

template <class T> __device__ T element(unsigned long long i, unsigned seed) { return ogc::fromFloat<T>(noise(i, seed)); }
template <> __device__ inline float element<float>(unsigned long long i, unsigned seed) { return fineNoise(i, seed); }

/// A strided 4-d tensor in device memory; unused elements are NaN.
template <class T> struct Tensor {
  T *data = nullptr;
  size_t count = 0;
  long long extent[4], stride[4];
};

template <class T> __global__ void fillNan(T *p, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n)
    p[i] = ogc::fromFloat<T>(__int_as_float(0x7fffffff));
}
template <class T>
__global__ void fillTensor(T *p, long long n0, long long n1, long long n2, long long n3, long long s0, long long s1, long long s2,
                           long long s3, unsigned seed, float scale, float shift) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n0 * n1 * n2 * n3)
    return;
  long long i3 = i % n3, i2 = i / n3 % n2, i1 = i / n3 / n2 % n1, i0 = i / n3 / n2 / n1;
  p[i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3] = ogc::fromFloat<T>(ogc::toFloat(element<T>(i, seed)) * scale + shift);
}

inline std::vector<void *> &allocations() {
  static std::vector<void *> all;
  return all;
}
inline void *allocate(size_t bytes) {
  void *p;
  CHECK_CUDA(cudaMalloc(&p, std::max<size_t>(bytes, 16)));
  allocations().push_back(p);
  return p;
}
inline void freeAll() {
  for (void *p : allocations())
    CHECK_CUDA(cudaFree(p));
  allocations().clear();
}

template <class T>
Tensor<T> makeTensor(std::vector<long long> extent, std::vector<long long> stride, unsigned seed, float scale = 1.f,
                     float shift = 0.f) {
  Tensor<T> t;
  long long top = 0, total = 1;
  for (int i = 0; i < 4; ++i) {
    t.extent[i] = extent[i], t.stride[i] = stride[i];
    top += (extent[i] - 1) * stride[i], total *= extent[i];
  }
  t.count = top + 1;
  t.data = static_cast<T *>(allocate((t.count * sizeof(T) + 15) / 16 * 16)); // whole vectors, as in the arena
  fillNan<<<(unsigned)((t.count + 255) / 256), 256>>>(t.data, t.count);
  fillTensor<<<(unsigned)((total + 255) / 256), 256>>>(t.data, extent[0], extent[1], extent[2], extent[3], stride[0], stride[1],
                                                       stride[2], stride[3], seed, scale, shift);
  CHECK_CUDA(cudaGetLastError());
  return t;
}

/// W(k, n) = element(k * N + n) in panels [ceil(N / P), K, P].
template <class T> __global__ void fillPanels(T *p, long long K, long long N, int P, unsigned seed) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (N + P - 1) / P * P * K)
    return;
  long long n = i / P / K * P + i % P, k = i / P % K;
  p[i] = n < N ? element<T>(k * N + n, seed) : ogc::fromFloat<T>(0.f);
}
template <class T> T *makePanels(long long K, long long N, int P, unsigned seed) {
  long long count = (N + P - 1) / P * P * K;
  T *p = static_cast<T *>(allocate(count * sizeof(T)));
  fillPanels<<<(unsigned)((count + 255) / 256), 256>>>(p, K, N, P, seed);
  CHECK_CUDA(cudaGetLastError());
  return p;
}

/// What a product with C::Norm divides a row by; element(k) is the row's.
template <class Element> __device__ double rowSpread(int norm, float epsilon, int K, const Element &element) {
  double squares = 0, sum = 0;
  for (int k = 0; k < K && norm; ++k)
    squares += element(k) * element(k), sum += element(k);
  return norm == 0 ? 1 : sqrt(squares / K - (norm == 2 ? sum / K * (sum / K) : 0) + epsilon);
}

/// Stores the accumulators and counts the calls for each element.
template <int V> struct Recorder {
  float *out;
  int *calls;
  long long strideB, strideM;
  __device__ __forceinline__ void operator()(int b, int m, int n, const float (&acc)[V]) const {
    long long at = b * strideB + m * strideM + n;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      out[at + v] = acc[v];
      atomicAdd(calls + at + v, 1);
    }
  }
};

struct Outcome {
  double worst;
  bool once;
};

/// Largest difference over the largest magnitude of the reference.
inline Outcome compare(const float *out, const int *calls, const double *reference, size_t n) {
  std::vector<float> x(n);
  std::vector<int> c(n);
  std::vector<double> r(n);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaMemcpy(x.data(), out, n * 4, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(c.data(), calls, n * 4, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(r.data(), reference, n * 8, cudaMemcpyDeviceToHost));
  Outcome o{0, true};
  double top = 1e-30;
  for (size_t i = 0; i < n; ++i)
    top = std::max(top, std::fabs(r[i]));
  for (size_t i = 0; i < n; ++i) {
    double d = std::fabs(x[i] - r[i]) / top;
    if (!(d <= o.worst))
      o.worst = std::isnan(d) ? 1e30 : d;
    o.once = o.once && c[i] == 1;
  }
  return o;
}

inline int &failures() {
  static int n = 0;
  return n;
}
inline void report(const std::string &name, const Outcome &o, double tolerance) {
  bool good = o.once && o.worst <= tolerance;
  failures() += !good;
  if (!good || getenv("VERBOSE"))
    printf("%s %s: error %.3g (allowed %.3g)%s\n", good ? "ok  " : "FAIL", name.c_str(), o.worst, tolerance,
           o.once ? "" : ", an element was written not exactly once");
}

template <class T> const char *typeName();
template <> inline const char *typeName<float>() { return "f32"; }
template <> inline const char *typeName<ogc::f16>() { return "f16"; }
template <> inline const char *typeName<ogc::bf16>() { return "bf16"; }

/// Launches with a cluster and programmatic serialization, as the runtime's graph does.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), long long grid, int threads, int shared, int cluster, cudaStream_t stream, Args... args) {
  CHECK_CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  CHECK_CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  cudaLaunchAttribute attribute[2];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  attribute[1].id = cudaLaunchAttributeClusterDimension;
  attribute[1].val.clusterDim.x = cluster, attribute[1].val.clusterDim.y = 1, attribute[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)grid), config.blockDim = dim3(threads), config.dynamicSmemBytes = shared,
  config.stream = stream;
  config.attrs = attribute, config.numAttrs = cluster > 1 ? 2 : 1;
  CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, args...));
}

/// Median time of one launch in a replayed chain of them, in microseconds.
template <class Launch> double timeChain(Launch launchOne, int links = 20, int repeats = 40) {
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < links; ++i)
    launchOne(stream, i);
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < repeats + 5; ++i) {
    CHECK_CUDA(cudaEventRecord(begin, stream));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaEventRecord(end, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    float ms;
    CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 5)
      times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaStreamDestroy(stream));
  return times[times.size() / 2] * 1000.0 / links;
}

} // namespace bench

#endif
