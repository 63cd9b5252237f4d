//===- statistics_test.cu - norms between two products --------------------===//
//
// A product stores rows and their statistics from its epilogue, with each engine; another one scales its result by what they are
// merged to. The reference takes the spread from the rows as they are stored.
//
#include "maps.h"
#include "ogc/gemm.cuh"

using namespace bench;
using ogc::bf16;
using ogc::f16;

namespace {

constexpr int width = 64; // elements of a row that one pair of statistics is taken of

template <class T, int M_, int N_, int K_, int Engine_, int BM_, int BN_, int BK_, int WM_, int WN_, int WK_, int Stages_, int Split_>
struct Config : ogc::GemmDefaults {
  using Element = T;
  enum { Batch = 1, M = M_, N = N_, K = K_, Engine = Engine_, BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, WK = WK_, Stages = Stages_, Split = Split_, V = 8, VecA = 8, VecB = 8, WeightsConstant = 1, Trigger = 1, SharedBytes = 232448 };
};

/// Rows with a mean of `shift`.
template <class T, int N> struct Producer {
  T *rows;
  float *means, *squares;
  float shift;
  __device__ __forceinline__ void operator()(int, int m, int n, const float (&acc)[8]) const {
    ogc::Vec<T, 8> y;
    float x[8];
#pragma unroll
    for (int v = 0; v < 8; ++v)
      y.v[v] = ogc::fromFloat<T>(acc[v] * 0.1f + shift), x[v] = ogc::toFloat(y.v[v]);
    ogc::storeVec(rows + (long long)m * N + n, y);
    int part = m * (N / width) + n / width;
    ogc::storeStatistics<width, 8>(means + part, squares + part, x);
  }
};

template <int K> struct Scaler : Recorder<8> {
  const float *means, *squares;
  struct Constants {};
  struct Inputs {};
  struct Row {
    float factor;
  };
  __device__ __forceinline__ Constants constants(int, int, int) const { return {}; }
  __device__ __forceinline__ Inputs inputs(int, int, int) const { return {}; }
  __device__ __forceinline__ Row row(int, int m) const {
    const float *mean = ogc::afterWait(means) + m * (K / width), *square = ogc::afterWait(squares) + m * (K / width);
    float sum = 0, between = 0, within = 0;
    for (int part = 0; part < K / width; ++part) {
      float distance = mean[part] - mean[0];
      sum += distance, between += distance * distance, within += square[part];
    }
    return {1 / sqrtf((within + width * fmaxf(between - sum * sum * width / K, 0.f)) / K + 1e-5f)};
  }
  __device__ __forceinline__ void operator()(int b, int m, int n, const float (&acc)[8], const Constants &, const Inputs &, const Row &row) const {
    float scaled[8];
#pragma unroll
    for (int v = 0; v < 8; ++v)
      scaled[v] = acc[v] * row.factor;
    Recorder<8>::operator()(b, m, n, scaled);
  }
};

template <class C, class Epilogue> __global__ void pointerKernel(const typename C::Element *a, const typename C::Element *b, Epilogue epilogue) { ogc::gemm<C>(a, b, epilogue); }
template <class C, class Epilogue>
__global__ void mapKernel(const __grid_constant__ ogc::TensorMap a, const __grid_constant__ ogc::TensorMap b, Epilogue epilogue) { ogc::gemm<C>(a, b, epilogue); }

template <class C, class Epilogue> void multiply(const typename C::Element *a, const typename C::Element *b, Epilogue epilogue) {
  if constexpr (C::Engine == 2) {
    using Early = ogc::Early<Epilogue>;
    using S = ogc::TmaTile<C, C::M, C::N, C::K, Early::HasRow ? (int)sizeof(typename Early::Row) : 0>;
    ogc::TensorMap rows = encode(a, {64, C::M, C::K / 64, 1}, {C::K * 2, 128, (cuuint64_t)C::M * C::K * 2}, {64, C::BM, C::BK / 64, 1});
    ogc::TensorMap panels = encode(b, {64, C::K, (C::N + 63) / 64}, {128, (cuuint64_t)C::K * 128}, {64, C::BK, 1});
    launch(mapKernel<C, Epilogue>, (long long)S::Split * S::TilesN * S::TilesM, S::Threads, S::Bytes, S::Split, 0, rows, panels, epilogue);
  } else {
    using S = typename ogc::SelectTile<C, C::M, C::N, C::K, C::Engine>::Type;
    launch(pointerKernel<C, Epilogue>, (long long)S::Split * S::TilesN * S::TilesM, S::Threads, S::Bytes, S::Split, 0, a, b, epilogue);
  }
}

template <class T> __global__ void reference(const T *x, const T *w, double *out, int M, int N, int K) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (long long)M * N)
    return;
  int m = i / N, n = i % N;
  double dot = 0, sum = 0, squares = 0;
  for (int k = 0; k < K; ++k)
    sum += ogc::toFloat(x[(long long)m * K + k]);
  for (int k = 0; k < K; ++k) {
    double e = ogc::toFloat(x[(long long)m * K + k]), distance = e - sum / K;
    squares += distance * distance;
    dot += e * ogc::toFloat(w[(long long)(n / 64) * K * 64 + (long long)k * 64 + n % 64]);
  }
  out[i] = dot / sqrt(squares / K + 1e-5);
}

template <class First, class Second> void chainCase(const char *what, float shift) {
  using T = typename First::Element;
  constexpr int M = First::M, K = Second::K, N = Second::N;
  static_assert((int)First::N == (int)Second::K && (int)First::M == (int)Second::M, "a chain");
  auto a = makeTensor<T>({1, 1, M, First::K}, {0, 0, First::K, 1}, 1);
  T *v = makePanels<T>(First::K, K, 64, 2), *w = makePanels<T>(K, N, 64, 3), *x = (T *)allocate((size_t)M * K * 2);
  float *means = (float *)allocate(M * (K / width) * 4), *squares = (float *)allocate(M * (K / width) * 4);
  size_t n = (size_t)M * N;
  float *out = (float *)allocate(n * 4);
  int *calls = (int *)allocate(n * 4);
  double *ref = (double *)allocate(n * 8);
  CHECK_CUDA(cudaMemset(x, 255, (size_t)M * K * 2));
  CHECK_CUDA(cudaMemset(means, 255, M * (K / width) * 4));
  CHECK_CUDA(cudaMemset(squares, 255, M * (K / width) * 4));
  CHECK_CUDA(cudaMemset(out, 255, n * 4));
  CHECK_CUDA(cudaMemset(calls, 0, n * 4));
  multiply<First>(a.data, v, Producer<T, K>{x, means, squares, shift});
  multiply<Second>(x, w, Scaler<K>{{out, calls, (long long)n, N}, means, squares});
  reference<T><<<(unsigned)((n + 127) / 128), 128>>>(x, w, ref, M, N, K);
  CHECK_CUDA(cudaGetLastError());
  char name[160];
  snprintf(name, sizeof name, "statistics %s %s %dx%dx%d, mean %g", what, typeName<T>(), M, N, K, shift);
  report(name, compare(out, calls, ref, n), 1e-5);
  freeAll();
}

template <class T> void statistics() {
  //                M    N     K     E  BM  BN  BK  WM WN WK stages split
  using Mapped = Config<T, 197, 768, 768, 2, 40, 64, 256, 1, 1, 1, 3, 1>;
  using MappedCluster = Config<T, 128, 768, 3072, 2, 64, 64, 192, 1, 1, 1, 4, 4>;
  using MappedWide = Config<T, 197, 768, 768, 2, 104, 128, 64, 1, 2, 1, 4, 1>;
  using Warps = Config<T, 197, 768, 768, 0, 32, 64, 64, 1, 2, 4, 4, 1>;
  using WarpsWide = Config<T, 128, 768, 3072, 0, 64, 128, 64, 2, 4, 1, 3, 2>;
  using Warpgroups = Config<T, 197, 768, 768, 1, 64, 128, 64, 1, 1, 2, 4, 1>;
  using Second197 = Config<T, 197, 2304, 768, 2, 72, 64, 128, 1, 1, 1, 6, 1>;
  using Second197Odd = Config<T, 197, 200, 768, 2, 104, 64, 128, 1, 1, 2, 3, 2>; // columns past the last, a cluster
  using Second128 = Config<T, 128, 3072, 768, 2, 64, 64, 192, 1, 1, 2, 4, 1>;
  for (float shift : {0.f, 50.f}) {
    chainCase<Mapped, Second197>("mapped", shift);
    chainCase<MappedCluster, Second128>("mapped, cluster", shift);
    chainCase<MappedWide, Second197Odd>("mapped, two panels", shift);
    chainCase<Warpgroups, Second197>("warpgroups", shift);
    chainCase<WarpsWide, Second128>("warps, cluster", shift);
    chainCase<Warps, Second197Odd>("warps", shift);
  }
}

} // namespace

void checkStatistics() {
  statistics<f16>();
  statistics<bf16>();
}
