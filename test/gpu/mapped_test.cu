//===- mapped_test.cu - checks of tma.cuh ---------------------------------===//
#include "maps.h"
#include "ogc/gemm.cuh"

using namespace bench;
using ogc::bf16;
using ogc::f16;

namespace {

/// Gap: elements between the end of a row of A and the next one.
template <class T, int B_, int M_, int N_, int K_, int Gap_, int BM_, int WN_, int WK_, int BK_, int Stages_, int Split_, int V_, int Weights_, int Trigger_, int P_>
struct Config : ogc::GemmDefaults {
  using Element = T;
  enum {
    Batch = B_, M = M_, N = N_, K = K_, Gap = Gap_, BM = BM_, BN = 64 * WN_, WM = 1, WN = WN_, WK = WK_, BK = BK_, Stages = Stages_, Split = Split_, V = V_, WeightsConstant = Weights_, Trigger = Trigger_, P = P_,
    Engine = 2, SharedBytes = 232448
  };
};

template <class C, class Epilogue> __global__ void __launch_bounds__(128 * C::WN *C::WK + 32)
mappedKernel(const __grid_constant__ ogc::TensorMap a, const __grid_constant__ ogc::TensorMap b, Epilogue epilogue) {
  ogc::gemm<C>(a, b, epilogue);
}

template <class T> __global__ void reference(const T *a, const T *b, double *out, int B, int M, int N, int K, int lda, int P) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (long long)B * M * N)
    return;
  int n = i % N, m = i / N % M, batch = i / N / M;
  double sum = 0;
  for (int k = 0; k < K; ++k)
    sum += MappedOperand::of(a[((long long)batch * M + m) * lda + k]) * MappedOperand::of(b[(long long)(n / P) * K * P + (long long)k * P + n % P]);
  out[i] = sum;
}

template <class T, int B, int M, int N, int K, int Gap, int BM, int WN, int WK, int BK, int Stages, int Split, int V, int Weights = 1, int Trigger = 1, bool Ahead = false, int P = 64> void mappedCase() {
  using C = Config<T, B, M, N, K, Gap, BM, WN, WK, BK, Stages, Split, V, Weights, Trigger, P>;
  using S = ogc::TmaTile<C, M, N, K>;
  constexpr int lda = K + Gap;
  auto a = makeTensor<T>({1, B, M, K}, {0, (long long)M * lda, lda, 1}, 1);
  T *b = makePanels<T>(K, N, P, 2);
  size_t n = (size_t)B * M * N;
  float *out = (float *)allocate(n * 4);
  int *calls = (int *)allocate(n * 4);
  double *ref = (double *)allocate(n * 8);
  CHECK_CUDA(cudaMemset(out, 255, n * 4));
  CHECK_CUDA(cudaMemset(calls, 0, n * 4));
  reference<T><<<(unsigned)((n + 127) / 128), 128>>>(a.data, b, ref, B, M, N, K, lda, P);
  constexpr int span = 128 / sizeof(T);
  constexpr bool whole = K % span == 0;
  constexpr cuuint64_t line = lda * sizeof(T);
  ogc::TensorMap rows = encode(a.data, {whole ? span : K, M, whole ? K / span : 1, B}, {line, 128, M * line}, {span, BM, whole ? BK / span : 1, 1});
  ogc::TensorMap panels = encode(b, {P, K, (N + P - 1) / P}, {P * sizeof(T), (cuuint64_t)K * P * sizeof(T)}, {span, BK, 1});
  long long grid = (long long)Split * S::TilesN * S::TilesM * B;
  Recorder<V> recorder{out, calls, (long long)M * N, N};
  if constexpr (Ahead) {
    T *columns = makeTensor<T>({1, 1, 1, N}, {0, 0, 0, 1}, 3).data, *elements = makeTensor<T>({1, 1, 1, (long long)n}, {0, 0, 0, 1}, 4).data;
    launch(mappedKernel<C, AheadRecorder<T, V>>, grid, S::Threads, S::Bytes, Split, 0, rows, panels, AheadRecorder<T, V>{recorder, columns, elements});
  } else
    launch(mappedKernel<C, Recorder<V>>, grid, S::Threads, S::Bytes, Split, 0, rows, panels, recorder);
  CHECK_CUDA(cudaGetLastError());
  char name[160];
  snprintf(name, sizeof name, "gemm mapped %dx%dx%d w%d%d st%d split%d v%d %s %dx%dx%dx%d", BM, 64 * WN, BK, WN, WK, Stages, Split, V, typeName<T>(), B, M, N, K);
  report(name, compare(out, calls, ref, n), 5e-6);
  freeAll();
}

template <class T> void mapped() {
  //      T B  M    N    K   gap BM WN WK BK stages split V
  mappedCase<T, 1, 128, 768, 768, 0, 32, 1, 2, 192, 4, 1, 8, 1, 1, true>();  // resident
  mappedCase<T, 1, 197, 2304, 768, 0, 104, 1, 1, 64, 10, 1, 8, 1, 2, true>(); // a ring that turns
  mappedCase<T, 1, 197, 768, 3072, 1536, 104, 1, 1, 64, 9, 4, 8, 1, 1, true>(); // a view, a cluster
  mappedCase<T, 1, 33, 64, 2048, 0, 40, 1, 2, 128, 4, 8, 4, 1, 0>();
  mappedCase<T, 1, 70, 160, 520, 0, 40, 2, 1, 64, 3, 1, 8, 0, 2, true>(); // K and N tails, weights after the wait
  mappedCase<T, 1, 128, 129, 712, 8, 64, 1, 1, 128, 3, 2, 1>();           // columns one by one
  mappedCase<T, 3, 50, 200, 192, 8, 24, 2, 1, 128, 2, 1, 8>();            // batches, a last stage half full
  mappedCase<T, 1, 17, 64, 64, 0, 24, 1, 1, 64, 1, 4, 2>();               // ranks without work
  mappedCase<T, 1, 300, 130, 256, 0, 256, 1, 1, 256, 1, 1, 2>();          // rows late
}

void mappedTf32() {
  mappedCase<float, 1, 128, 768, 768, 0, 32, 1, 2, 64, 9, 1, 4, 1, 1, true>();  // a ring that turns, two warpgroups along k
  mappedCase<float, 1, 197, 2304, 768, 0, 104, 1, 1, 64, 4, 1, 4, 1, 2, true>();
  mappedCase<float, 1, 197, 768, 3072, 1536, 104, 1, 1, 32, 9, 4, 4, 1, 1, true>(); // a view, a cluster
  mappedCase<float, 1, 33, 64, 2048, 0, 40, 1, 2, 128, 4, 8, 4, 1, 0>();           // resident
  mappedCase<float, 1, 70, 160, 520, 0, 40, 2, 1, 64, 3, 1, 4, 0, 2, true>();      // K and N tails, weights after the wait
  mappedCase<float, 1, 128, 129, 708, 4, 64, 1, 1, 96, 3, 2, 1>();                 // columns one by one
  mappedCase<float, 3, 50, 200, 192, 8, 24, 2, 1, 128, 2, 1, 4>();                 // batches, a last stage half full
  mappedCase<float, 1, 17, 64, 32, 0, 24, 1, 1, 32, 1, 4, 2>();                    // ranks without work
  mappedCase<float, 1, 197, 130, 256, 0, 200, 1, 1, 32, 4, 1, 2>();                // rows late
  mappedCase<float, 1, 128, 256, 512, 0, 128, 1, 2, 32, 6, 2, 2>();                // one step a group
  mappedCase<float, 1, 70, 96, 256, 0, 40, 1, 1, 64, 3, 1, 4, 1, 1, true, 32>();     // panels of one line
}

} // namespace

void checkMapped() {
  mapped<f16>();
  mapped<bf16>();
  mappedTf32();
}
