//===- gemm_test.cu - checks of gemm.cuh and gemv.cuh ---------------------===//
#include "harness.h"
#include "ogc/gemm.cuh"
#include "ogc/gemv.cuh"

using namespace bench;
using ogc::bf16;
using ogc::f16;

namespace {

/// Extents and operand layout. Gap: elements between the end of a row and the next one; Swap: A is stored [K, M].
template <class E, int B_, int M_, int N_, int K_, int Layout_, int GapA_, int VecA_, int GapB_, int VecB_, bool Swap_ = false, bool ShareB_ = false> struct Operands {
  using Element = E;
  enum {
    Batch = B_, M = M_, N = N_, K = K_, Layout = Layout_, VecA = VecA_, VecB = VecB_,
    LdA = (Swap_ ? M : K) + GapA_, SM = Swap_ ? 1 : LdA, SK = Swap_ ? LdA : 1, SB = LdA * (Swap_ ? K : M),
    LdB = (Layout_ == 2 ? K : N) + GapB_, BK_ = Layout_ == 2 ? 1 : LdB, BN_ = Layout_ == 2 ? LdB : 1, BB = ShareB_ || Layout_ == 0 ? 0 : LdB * (Layout_ == 2 ? N : K)
  };
};

template <class O, int Products_, int P_, int BM_, int BN_, int BK_, int WM_, int WN_, int WK_, int Stages_, int Split_, int V_, int Weights_, int Trigger_, int Engine_ = 0>
struct Config : ogc::GemmDefaults {
  using Element = typename O::Element;
  enum {
    Products = Products_, Batch = O::Batch, M = O::M, N = O::N, K = O::K, ASb = O::SB, ASm = O::SM, ASk = O::SK, VecA = O::VecA, BLayout = O::Layout, P = P_,
    BSb = O::BB, BSk = O::BK_, BSn = O::BN_, VecB = O::VecB, BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, WK = WK_, Stages = Stages_, Split = Split_,
    V = V_, WeightsConstant = Weights_, Trigger = Trigger_, Engine = Engine_, SharedBytes = 232448
  };
};

template <class O, int P_, int BN_, int Warps_, int Split_, int V_, int Weights_, int Depth_, int Norm_> struct VectorConfig : ogc::GemvDefaults {
  using Element = typename O::Element;
  enum {
    Batch = O::Batch, M = O::M, N = O::N, K = O::K, ASb = O::SB, ASm = O::SM, ASk = O::SK, BLayout = O::Layout, P = P_, BSb = O::BB, BSk = O::BK_, BSn = O::BN_,
    VecB = O::VecB, BN = BN_, Warps = Warps_, Depth = Depth_, Split = Split_, V = V_, WeightsConstant = Weights_, Norm = Norm_, Epsilon = 0x3727c5ac, SharedBytes = 232448
  };
};

template <class C> __global__ void __launch_bounds__(32 * C::WM *C::WN *C::WK *(C::Engine ? 4 : 1))
gemmKernel(const typename C::Element *__restrict__ a, const typename C::Element *__restrict__ b, Recorder<C::V> epilogue) {
  ogc::gemm<C>(a, b, epilogue);
}
template <class C> __global__ void __launch_bounds__(32 * C::Warps)
gemvKernel(const typename C::Element *__restrict__ a, const typename C::Element *__restrict__ b, Recorder<C::V> epilogue) {
  ogc::gemv<C>(a, b, epilogue);
}

template <class T> __global__ void reference(const T *a, const T *b, double *out, int B, int M, int N, int K, long long sb, long long sm, long long sk, int layout, int P, long long bb, long long bk, long long bn, int norm) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (long long)B * M * N)
    return;
  int n = i % N, m = i / N % M, batch = i / N / M;
  double sum = 0;
  for (int k = 0; k < K; ++k)
    sum += (double)ogc::toFloat(a[batch * sb + m * sm + k * sk]) * ogc::toFloat(layout == 0 ? b[(long long)(n / P) * K * P + (long long)k * P + n % P] : b[batch * bb + k * bk + n * bn]);
  out[i] = sum / rowSpread(norm, 1e-5f, K, [&](int k) { return (double)ogc::toFloat(a[batch * sb + m * sm + k * sk]); });
}

template <class O, class Run> void check(const std::string &what, int P, double tolerance, int norm, Run run) {
  using T = typename O::Element;
  auto a = makeTensor<T>({1, O::Batch, O::M, O::K}, {0, O::SB, O::SM, O::SK}, 1, 1, norm ? 0.5f : 0);
  T *b = O::Layout == 0 ? makePanels<T>(O::K, O::N, P, 2) : makeTensor<T>({1, O::BB ? (int)O::Batch : 1, O::K, O::N}, {0, O::BB, O::BK_, O::BN_}, 2).data;
  size_t n = (size_t)O::Batch * O::M * O::N;
  float *out = (float *)allocate(n * 4);
  int *calls = (int *)allocate(n * 4);
  double *ref = (double *)allocate(n * 8);
  CHECK_CUDA(cudaMemset(out, 255, n * 4));
  CHECK_CUDA(cudaMemset(calls, 0, n * 4));
  reference<T><<<(unsigned)((n + 127) / 128), 128>>>(a.data, b, ref, O::Batch, O::M, O::N, O::K, O::SB, O::SM, O::SK, O::Layout, P, O::BB, O::BK_, O::BN_, norm);
  run(a.data, b, out, calls);
  CHECK_CUDA(cudaGetLastError());
  char name[160];
  snprintf(name, sizeof name, "%s %s %dx%dx%dx%d layout %d vec %d %d", what.c_str(), typeName<T>(), O::Batch, O::M, O::N, O::K, O::Layout, O::VecA, O::VecB);
  report(name, compare(out, calls, ref, n), tolerance);
  freeAll();
}

template <class O, int Products, int P, int BM, int BN, int BK, int WM, int WN, int WK, int Stages, int Split, int V, int Weights = 0, int Trigger = 1, int Engine = 0> void gemmCase() {
  using C = Config<O, Products, P, BM, BN, BK, WM, WN, WK, Stages, Split, V, Weights, Trigger, Engine>;
  using S = typename ogc::SelectTile<C, C::M, C::N, C::K, Engine>::Type;
  double tolerance = sizeof(typename O::Element) == 2 ? 5e-6 : Products == 3 ? 2e-6 : 1e-3;
  char what[96];
  snprintf(what, sizeof what, "gemm%s %dx%dx%d w%d%d%d st%d split%d v%d p%d", Engine ? " wide" : "", BM, BN, BK, WM, WN, WK, Stages, Split, V, Products);
  check<O>(what, P, tolerance, 0, [](auto *a, auto *b, float *out, int *calls) {
    launch(gemmKernel<C>, (long long)Split * S::TilesN * S::TilesM * C::Batch, S::Threads, S::Bytes, Split, 0, a, b, Recorder<V>{out, calls, (long long)C::M * C::N, C::N});
  });
}

template <class O, int P, int BN, int Warps, int Split, int V, int Weights = 0, int Depth = 8, int Norm = 0> void gemvCase() {
  using C = VectorConfig<O, P, BN, Warps, Split, V, Weights, Depth, Norm>;
  using S = ogc::GemvShape<C>;
  char what[96];
  snprintf(what, sizeof what, "gemv norm%d bn%d w%d depth%d split%d v%d", Norm, BN, Warps, Depth, Split, V);
  check<O>(what, P, 2e-6, Norm, [](auto *a, auto *b, float *out, int *calls) {
    launch(gemvKernel<C>, (long long)Split * S::TilesN * C::Batch, S::Threads, S::Bytes, Split, 0, a, b, Recorder<V>{out, calls, (long long)C::M * C::N, C::N});
  });
}

template <class T> void sixteenBit() {
  //       element B  M    N    K   layout gapA vecA gapB vecB
  gemmCase<Operands<T, 1, 128, 768, 768, 0, 0, 8, 0, 8>, 1, 64, 64, 64, 64, 2, 2, 1, 3, 1, 8, 1>();
  gemmCase<Operands<T, 1, 197, 96, 200, 0, 8, 8, 0, 8>, 1, 32, 32, 64, 64, 1, 2, 4, 4, 1, 8, 1>(); // resident, K tail
  gemmCase<Operands<T, 1, 49, 100, 1001, 0, 0, 1, 0, 8>, 1, 16, 32, 64, 32, 2, 1, 2, 3, 2, 4, 1>(); // odd K, N tail in a panel
  gemmCase<Operands<T, 1, 1, 1, 1, 0, 0, 1, 0, 8>, 1, 16, 16, 16, 16, 1, 1, 1, 2, 1, 1, 0>();
  gemmCase<Operands<T, 1, 33, 130, 70, 0, 2, 2, 0, 8>, 1, 64, 32, 32, 64, 2, 1, 4, 2, 4, 2, 1, 2>();
  gemmCase<Operands<T, 1, 196, 1024, 768, 0, 0, 8, 0, 8>, 1, 32, 32, 64, 64, 1, 2, 4, 4, 8, 8, 1, 0>(); // ranks of unequal depth
  gemmCase<Operands<T, 1, 17, 48, 64, 0, 0, 8, 0, 8>, 1, 16, 16, 64, 64, 1, 4, 1, 4, 8, 2, 1>();       // ranks without any work
  gemmCase<Operands<T, 3, 40, 56, 72, 1, 0, 8, 0, 8>, 1, 64, 64, 64, 32, 2, 2, 1, 3, 1, 4>();
  gemmCase<Operands<T, 2, 40, 53, 71, 1, 1, 4, 3, 4>, 1, 64, 32, 32, 32, 2, 1, 1, 2, 1, 1>();
  gemmCase<Operands<T, 2, 40, 53, 71, 1, 0, 1, 0, 1, true, true>, 1, 64, 32, 32, 32, 2, 1, 2, 3, 2, 1>(); // A stored [K, M], B shared
  gemmCase<Operands<T, 4, 64, 128, 64, 2, 0, 8, 0, 8>, 1, 64, 64, 64, 64, 2, 2, 1, 2, 1, 8>();
  gemmCase<Operands<T, 2, 70, 37, 45, 2, 3, 8, 3, 8>, 1, 64, 64, 64, 32, 4, 1, 1, 2, 1, 1>();
  gemmCase<Operands<T, 2, 70, 37, 45, 2, 0, 1, 0, 1>, 1, 64, 32, 32, 32, 1, 2, 2, 3, 4, 1>();
  gemmCase<Operands<T, 1, 300, 260, 512, 0, 0, 8, 0, 8>, 1, 64, 128, 128, 64, 2, 4, 1, 3, 1, 4, 1>();
}

template <class T> void wide() {
  gemmCase<Operands<T, 1, 128, 768, 768, 0, 0, 8, 0, 8>, 1, 64, 64, 64, 64, 1, 1, 1, 12, 1, 8, 1, 1, 1>(); // resident
  gemmCase<Operands<T, 1, 197, 160, 1001, 0, 0, 1, 0, 8>, 1, 32, 128, 32, 64, 2, 1, 2, 4, 1, 8, 1, 1, 1>();
  gemmCase<Operands<T, 1, 49, 100, 200, 0, 0, 8, 0, 8>, 1, 16, 64, 16, 64, 1, 1, 4, 2, 1, 4, 1, 1, 1>();
  gemmCase<Operands<T, 1, 70, 260, 520, 0, 0, 8, 0, 8>, 1, 64, 64, 128, 64, 1, 1, 1, 3, 2, 4, 1, 1, 1>();
  gemmCase<Operands<T, 1, 128, 768, 3072, 0, 0, 8, 0, 8>, 1, 64, 64, 64, 64, 1, 1, 2, 12, 4, 8, 1, 1, 1>();
  gemmCase<Operands<T, 1, 70, 144, 200, 0, 0, 8, 0, 8>, 1, 64, 64, 48, 64, 1, 1, 1, 4, 1, 8, 1, 1, 1>();
  gemmCase<Operands<T, 1, 70, 192, 200, 0, 0, 8, 0, 8>, 1, 64, 64, 96, 64, 1, 1, 1, 4, 1, 8, 1, 1, 1>();
  gemmCase<Operands<T, 2, 70, 130, 77, 1, 3, 4, 6, 8>, 1, 64, 64, 64, 64, 1, 1, 1, 2, 1, 2, 0, 1, 1>();
  gemmCase<Operands<T, 2, 70, 130, 77, 2, 0, 1, 0, 1>, 1, 64, 64, 64, 64, 1, 1, 1, 2, 1, 2, 0, 1, 1>();
  gemmCase<Operands<T, 2, 70, 130, 76, 2, 4, 8, 4, 8>, 1, 64, 128, 32, 64, 2, 1, 1, 2, 1, 2, 0, 1, 1>();
}

template <int Products> void singles() {
  using T = float;
  gemmCase<Operands<T, 1, 128, 768, 768, 0, 0, 4, 0, 4>, Products, 64, 64, 64, 32, 2, 2, 1, 3, 1, 4, 1>();
  gemmCase<Operands<T, 1, 197, 96, 200, 0, 4, 4, 0, 4>, Products, 32, 32, 64, 32, 1, 2, 4, 7, 1, 4, 1>();
  gemmCase<Operands<T, 1, 49, 100, 1001, 0, 0, 1, 0, 4>, Products, 16, 32, 32, 32, 2, 1, 2, 3, 2, 4, 1>();
  gemmCase<Operands<T, 1, 1, 1, 1, 0, 0, 1, 0, 4>, Products, 16, 16, 16, 16, 1, 1, 1, 2, 1, 1, 0>();
  gemmCase<Operands<T, 2, 40, 53, 71, 1, 1, 4, 3, 4>, Products, 64, 32, 32, 32, 2, 1, 1, 2, 1, 1>();
  gemmCase<Operands<T, 2, 40, 53, 71, 1, 0, 1, 0, 1, true, true>, Products, 64, 32, 32, 32, 2, 1, 2, 3, 2, 1>();
  gemmCase<Operands<T, 2, 70, 37, 45, 2, 3, 4, 3, 4>, Products, 64, 64, 64, 32, 4, 1, 1, 2, 1, 1>();
  gemmCase<Operands<T, 2, 70, 37, 45, 2, 0, 1, 0, 1>, Products, 64, 32, 32, 32, 1, 2, 2, 3, 4, 1>();
  gemmCase<Operands<T, 1, 49, 512, 4608, 0, 0, 4, 0, 4>, Products, 32, 32, 64, 32, 1, 2, 2, 4, 8, 4, 1>();
}

template <class T> void vectors() {
  constexpr int W = 16 / sizeof(T);
  gemvCase<Operands<T, 1, 1, 1000, 2048, 0, 0, 1, 0, W>, 32, 32, 8, 4, 4, 1>();
  gemvCase<Operands<T, 1, 8, 50, 333, 0, 0, 1, 0, W>, 16, 32, 4, 1, 2, 1>();
  gemvCase<Operands<T, 2, 3, 50, 77, 1, 0, 1, 6, W>, 64, 64, 8, 2, 1, 0>();
  gemvCase<Operands<T, 2, 1, 51, 77, 1, 0, 1, 0, 1>, 64, 32, 8, 1, 1, 0>();
  gemvCase<Operands<T, 1, 5, 1, 7, 1, 0, 1, 0, 1, true>, 64, 16, 1, 1, 1, 0>();
  // Several rounds of loads in flight, with and without a rest.
  gemvCase<Operands<T, 1, 1, 200, 2048, 0, 0, 1, 0, W>, 64, 64, 32, 1, 1, 1>();
  gemvCase<Operands<T, 1, 2, 130, 8192, 0, 3, 1, 0, W>, 64, 64, 16, 8, 2, 1, 4>();
  gemvCase<Operands<T, 1, 1, 77, 1001, 0, 0, 1, 0, W>, 32, 16, 8, 1, 1, 1, 3>();
  gemvCase<Operands<T, 1, 2, 96, 500, 1, 0, 1, 0, W>, 64, 32, 16, 2, 2, 0, 2>();
  gemvCase<Operands<T, 1, 8, 40, 700, 0, 0, 1, 0, W>, 16, 16, 4, 2, 1, 1, 2>();
  gemvCase<Operands<T, 2, 1, 35, 60, 1, 0, 1, 1, 1, true>, 64, 32, 3, 1, 1, 0, 2>();
  // Rows divided by their spread.
  gemvCase<Operands<T, 1, 1, 1000, 2048, 0, 0, 1, 0, W>, 32, 32, 8, 4, 4, 1, 8, 1>();
  gemvCase<Operands<T, 1, 2, 130, 8192, 0, 3, 1, 0, W>, 64, 64, 16, 8, 2, 1, 4, 2>();
  gemvCase<Operands<T, 1, 1, 77, 1001, 0, 0, 1, 0, W>, 16, 16, 8, 1, 1, 1, 3, 2>();
  gemvCase<Operands<T, 1, 2, 96, 500, 0, 0, 1, 0, W>, 16, 16, 16, 1, 1, 1, 8, 1>();
}

} // namespace

void checkGemm() {
  sixteenBit<f16>();
  sixteenBit<bf16>();
  wide<f16>();
  wide<bf16>();
  singles<1>();
  singles<3>();
  vectors<f16>();
  vectors<bf16>();
  vectors<float>();
}
