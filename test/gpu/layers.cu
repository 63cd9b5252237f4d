//===- layers.cu - times the layers of known networks ---------------------===//
#include "choose.h"
#include "harness.h"
#include "ogc/attention.cuh"
#include "ogc/conv.cuh"
#include "ogc/depthwise.cuh"
#include "ogc/gemm.cuh"
#include "ogc/gemv.cuh"

using namespace bench;
using ogc::f16;

namespace {

template <class E> constexpr int vectorOf(int n) {
  int most = 16 / (int)sizeof(E);
  while (n % most)
    most /= 2;
  return most;
}

/// Adds a bias and a residual, clamps at zero and stores, as a typical fused kernel does.
template <class E, int V, long long N> struct Fused {
  const float *bias;
  const E *residual;
  E *out;
  __device__ __forceinline__ void operator()(int, int m, int n, const float (&acc)[V]) const {
    float c[V], r[V], y[V];
    ogc::load<V>(c, bias + n);
    ogc::load<V>(r, residual + (m * N + n));
#pragma unroll
    for (int i = 0; i < V; ++i)
      y[i] = fmaxf(acc[i] + c[i] + r[i], 0.f);
    ogc::store<V>(out + (m * N + n), y);
  }
};

/// Layout 0 panels, 2 transposed dense.
template <class E, int P_, int M_, int N_, int K_, int Layout_> struct Matmul : ogc::GemmDefaults {
  using Element = E;
  enum { Products = P_, M = M_, N = N_, K = K_, BLayout = Layout_, P = N_ >= 64 ? 64 : 32, VecA = vectorOf<E>(K_), VecB = vectorOf<E>(K_), BSn = K_, BSk = 1,
         V = vectorOf<E>(N_), WeightsConstant = Layout_ == 0, SharedBytes = 232448 };
};
template <class Base, int BM_, int BN_, int BK_, int WM_, int WN_, int WK_, int Stages_, int Split_, int Engine_> struct Tiled : Base {
  enum { Engine = Engine_, BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, WK = WK_, Stages = Stages_, Split = Split_ };
};
template <class E, int P_, int H_, int C_, int F_, int KH_, int Stride_> struct Convolution : ogc::ConvDefaults {
  using Element = E;
  enum { Products = P_, H = H_, W = H_, C = C_, F = F_, KH = KH_, KW = KH_, StrideH = Stride_, StrideW = Stride_, PadTop = KH_ / 2, PadLeft = KH_ / 2,
         OH = (H_ - 1) / Stride_ + 1, OW = OH, VecA = vectorOf<E>(C_), V = vectorOf<E>(F_), P = F_ >= 64 ? 64 : 32, M = OH * OW, N = F, K = KH * KW * C, SharedBytes = 232448 };
};

template <class C, class Ep> __global__ void __launch_bounds__(32 * C::WM *C::WN *C::WK *(C::Engine ? 4 : 1))
gemmKernel(const typename C::Element *__restrict__ a, const typename C::Element *__restrict__ b, Ep epilogue) {
  ogc::gemm<C>(a, b, epilogue);
}
template <class C, class Ep> __global__ void __launch_bounds__(32 * C::WM *C::WN *C::WK *(C::Engine ? 4 : 1))
convKernel(const typename C::Element *__restrict__ a, const typename C::Element *__restrict__ b, Ep epilogue) {
  ogc::conv<C>(a, b, epilogue);
}

template <class T> T *buffer(long long n, float scale = 1.f) { return makeTensor<T>({1, 1, 1, n}, {0, 0, 0, 1}, (unsigned)n, scale).data; }

/// Weights rotate over at least `spread` bytes.
template <class C, bool Conv> double timeTiled(size_t spread) {
  using E = typename C::Element;
  using S = typename ogc::SelectTile<C, C::M, C::N, C::K, C::Engine>::Type;
  using Ep = Fused<E, C::V, C::N>;
  long long weights = (long long)(C::N + 63) / 64 * 64 * C::K, input = 0;
  if constexpr (Conv)
    input = (long long)C::H * C::W * C::C;
  else
    input = (long long)C::M * C::K;
  int copies = (int)std::min<size_t>(20, spread / (weights * sizeof(E)) + 1);
  E *x = buffer<E>(input), *w = buffer<E>(weights * copies, 0.05f), *r = buffer<E>((long long)C::M * C::N), *y = buffer<E>((long long)C::M * C::N);
  float *bias = buffer<float>(C::N);
  double t = timeChain([&](cudaStream_t stream, int i) {
    const E *wi = w + weights * (i % copies);
    if constexpr (Conv)
      launch(convKernel<C, Ep>, (long long)S::Split * S::TilesN * S::TilesM, S::Threads, std::max<int>(S::Bytes, 80 << 10), S::Split, stream, (const E *)x, wi, Ep{bias, r, y});
    else
      launch(gemmKernel<C, Ep>, (long long)S::Split * S::TilesN * S::TilesM, S::Threads, std::max<int>(S::Bytes, 80 << 10), S::Split, stream, (const E *)x, wi, Ep{bias, r, y});
  });
  freeAll();
  return t;
}

template <class Base, bool Conv, int BM, int BN, int BK, int WM, int WN, int WK, int Stages, int Split, int Engine = 0> double timeTile(const char *mark, size_t spread) {
  using C = Tiled<Base, BM, BN, BK, WM, WN, WK, Stages, Split, Engine>;
  using S = typename ogc::SelectTile<C, C::M, C::N, C::K, C::Engine>::Type;
  double t = timeTiled<C, Conv>(spread);
  printf("%s%s%dx%dx%d w%d%d%d st%d S%d (%d blocks, %d KB): %.2f", mark, Engine ? "wide " : "", BM, BN, BK, WM, WN, WK, Stages, Split, S::TilesM * S::TilesN * Split, S::Bytes / 1024, t);
  return t;
}

template <class Base, bool Conv> double timeRule(size_t spread) {
  constexpr Choice c = chooseTile(1, Base::M, Base::N, Base::K, sizeof(typename Base::Element), Base::BLayout == 2, Base::VecA * sizeof(typename Base::Element) < 4);
  return timeTile<Base, Conv, c.BM, c.BN, c.BK, c.WM, c.WN, c.WK, c.Stages, c.Split, c.Engine>("  ", spread);
}

template <class E, int Products, int H, int C, int F, int KH, int Stride> double convLayer() {
  using Base = Convolution<E, Products, H, C, F, KH, Stride>;
  printf("%s conv %dx%d s%d %d>%d @%d:", typeName<E>(), KH, KH, Stride, C, F, Base::OH);
  double t = timeRule<Base, true>(0);
  printf("\n");
  return t;
}
template <class E, int Products, int M, int N, int K, int Layout = 0> double matmulLayer() {
  printf("%s matmul %dx%dx%d:", typeName<E>(), M, N, K);
  double t = timeRule<Matmul<E, Products, M, N, K, Layout>, false>(150u << 20);
  printf("\n");
  return t;
}

template <class E, int P_, int S_, int H_, int D_, int Causal_, int WQ_, int WT_, int BT_, int Stages_> struct SelfAttention : ogc::AttentionDefaults {
  using Element = E;
  enum { Products = P_, B = 1, S = S_, T = S_, H = H_, HK = H_, D = D_, DV = D_, QSb = 0, KSb = 0, VSb = 0, QSs = 3 * H_ * D_, KSt = QSs, VSt = QSs, QSh = D_, KSh = D_, VSh = D_,
         Causal = Causal_, VecQ = vectorOf<E>(D_), VecK = VecQ, VecV = VecQ, V = VecQ, WQ = WQ_, WT = WT_, BT = BT_, Stages = Stages_, SharedBytes = 232448 };
};
template <class E, int V, int H, int D> struct StoreHeads {
  E *out;
  __device__ __forceinline__ void operator()(int, int s, int h, int d, const float (&acc)[V]) const { ogc::store<V>(out + ((s * H + h) * D + d), acc); }
};
template <class C, class Ep> __global__ void __launch_bounds__(32 * C::WQ *C::WT) attentionKernel(const typename C::Element *__restrict__ qkv, Ep epilogue) {
  ogc::attention<C>(qkv, qkv + C::H * C::D, qkv + 2 * C::H * C::D, (const typename C::Element *)nullptr, 0.125f, epilogue);
}
template <class E, int P, int S, int H, int D, int Causal, int WQ = 1, int WT = 4, int BT = 64, int Stages = 2> double attentionLayer() {
  using C = SelfAttention<E, P, S, H, D, Causal, WQ, WT, BT, Stages>;
  using A = ogc::AttentionShape<C>;
  using Ep = StoreHeads<E, C::V, H, D>;
  E *qkv = buffer<E>(3ll * S * H * D), *y = buffer<E>(1ll * S * H * D);
  double t = timeChain([&](cudaStream_t stream, int) { launch(attentionKernel<C, Ep>, (long long)A::TilesQ * H, A::Threads, A::Bytes, 1, stream, (const E *)qkv, Ep{y}); });
  printf("%s attention S%d H%d D%d w%d%d bt%d st%d: %d blocks %d KB: %.2f\n", typeName<E>(), S, H, D, WQ, WT, BT, Stages, A::TilesQ * H, A::Bytes / 1024, t);
  freeAll();
  return t;
}

template <class E, int H_, int C_, int KH_, int Stride_, int V_> struct Depthwise : ogc::DepthwiseDefaults {
  using Element = E;
  enum { H = H_, W = H_, C = C_, KH = KH_, KW = KH_, StrideH = Stride_, StrideW = Stride_, PadTop = KH_ / 2, PadLeft = KH_ / 2, OH = (H_ - 1) / Stride_ + 1, OW = OH, V = V_, WeightsConstant = 1 };
};
template <class C, class Ep> __global__ void __launch_bounds__(C::Threads) depthwiseKernel(const typename C::Element *__restrict__ x, const typename C::Element *__restrict__ w, Ep epilogue) {
  ogc::depthwise<C>(x, w, epilogue);
}
template <class E, int H, int Ch, int KH, int Stride, int V = vectorOf<E>(Ch)> void depthwiseLayer() {
  using C = Depthwise<E, H, Ch, KH, Stride, V>;
  using Ep = Fused<E, C::V, C::C>;
  E *x = buffer<E>(1ll * H * H * Ch), *w = buffer<E>(KH * KH * Ch), *r = buffer<E>(1ll * H * H * Ch), *y = buffer<E>(1ll * H * H * Ch);
  float *bias = buffer<float>(Ch);
  long long blocks = (1ll * C::OH * C::OW * (Ch / C::V) + C::Threads - 1) / C::Threads;
  double t = timeChain([&](cudaStream_t stream, int) { launch(depthwiseKernel<C, Ep>, blocks, C::Threads, 0, 1, stream, (const E *)x, (const E *)w, Ep{bias, r, y}); });
  printf("%s depthwise %dx%d s%d %d @%d v%d: %lld blocks: %.2f\n", typeName<E>(), KH, KH, Stride, Ch, C::OH, V, blocks, t);
  freeAll();
}

template <class E, int M_, int N_, int K_, int Split_, int BN_, int Warps_, int Trigger_> struct Vector : ogc::GemvDefaults {
  using Element = E;
  enum { M = M_, N = N_, K = K_, P = 32, VecB = 16 / sizeof(E), V = 4, WeightsConstant = 1, Split = Split_, BN = BN_, Warps = Warps_, Trigger = Trigger_, SharedBytes = 232448 };
};
template <class C, class Ep> __global__ void __launch_bounds__(32 * C::Warps) gemvKernel(const typename C::Element *__restrict__ a, const typename C::Element *__restrict__ b, Ep epilogue) {
  ogc::gemv<C>(a, b, epilogue);
}
template <class E, int M, int N, int K, int Split, int BN = 32, int Warps = 8, int Trigger = 1> void vectorLayer() {
  using C = Vector<E, M, N, K, Split, BN, Warps, Trigger>;
  using S = ogc::GemvShape<C>;
  using Ep = Fused<E, 4, N>;
  long long weights = (N + 63ll) / 64 * 64 * K;
  int copies = (int)std::min<size_t>(20, (150u << 20) / (weights * sizeof(E)) + 1);
  E *x = buffer<E>(1ll * M * K), *w = buffer<E>(weights * copies, 0.05f), *r = buffer<E>(1ll * M * N), *y = buffer<E>(1ll * M * N);
  float *bias = buffer<float>(N);
  double t = timeChain([&](cudaStream_t stream, int i) {
    launch(gemvKernel<C, Ep>, (long long)Split * S::TilesN, S::Threads, S::Bytes, Split, stream, (const E *)x, (const E *)(w + weights * (i % copies)), Ep{bias, r, y});
  });
  printf("%s gemv %dx%dx%d S%d bn%d w%d trigger %d: %d blocks: %.2f (%.2f TB/s)\n", typeName<E>(), M, N, K, Split, BN, Warps, Trigger, S::TilesN * Split, t, weights * sizeof(E) / t / 1e6);
  freeAll();
}

/// Sums the layers as often as ResNet-50 has them.
template <class E, int P> void resnet() {
  double t = convLayer<E, P, 224, 3, 64, 7, 2>();
  t += convLayer<E, P, 56, 64, 64, 1, 1>() + 3 * convLayer<E, P, 56, 64, 64, 3, 1>() + 4 * convLayer<E, P, 56, 64, 256, 1, 1>() + 2 * convLayer<E, P, 56, 256, 64, 1, 1>();
  t += convLayer<E, P, 56, 256, 128, 1, 1>() + convLayer<E, P, 56, 128, 128, 3, 2>() + 4 * convLayer<E, P, 28, 128, 512, 1, 1>() + convLayer<E, P, 56, 256, 512, 1, 2>();
  t += 3 * convLayer<E, P, 28, 512, 128, 1, 1>() + 3 * convLayer<E, P, 28, 128, 128, 3, 1>();
  t += convLayer<E, P, 28, 512, 256, 1, 1>() + convLayer<E, P, 28, 256, 256, 3, 2>() + 6 * convLayer<E, P, 14, 256, 1024, 1, 1>() + convLayer<E, P, 28, 512, 1024, 1, 2>();
  t += 5 * convLayer<E, P, 14, 1024, 256, 1, 1>() + 5 * convLayer<E, P, 14, 256, 256, 3, 1>();
  t += convLayer<E, P, 14, 1024, 512, 1, 1>() + convLayer<E, P, 14, 512, 512, 3, 2>() + 3 * convLayer<E, P, 7, 512, 2048, 1, 1>() + convLayer<E, P, 14, 1024, 2048, 1, 2>();
  t += 2 * convLayer<E, P, 7, 2048, 512, 1, 1>() + 2 * convLayer<E, P, 7, 512, 512, 3, 1>();
  printf("== %s products %d: ResNet-50 convolutions %.0f us\n", typeName<E>(), P, t);
}
template <class E, int P> void transformers() {
  double b = 12 * (matmulLayer<E, P, 128, 2304, 768>() + matmulLayer<E, P, 128, 768, 768>() + matmulLayer<E, P, 128, 3072, 768>() + matmulLayer<E, P, 128, 768, 3072>());
  double attention = attentionLayer<E, P, 128, 12, 64, 0, 1, 4, 128, 1>();
  printf("== %s products %d: BERT-base %.0f us (without norms)\n", typeName<E>(), P, b + 12 * attention);
  double head = matmulLayer<E, P, 128, 50257, 768>();
  printf("== %s products %d: GPT-2 %.0f us (without norms)\n", typeName<E>(), P, b + 12 * attentionLayer<E, P, 128, 12, 64, 1, 1, 4, 128, 1>() + head);
  double v = 12 * (matmulLayer<E, P, 197, 2304, 768>() + matmulLayer<E, P, 197, 768, 768>() + matmulLayer<E, P, 197, 3072, 768>() + matmulLayer<E, P, 197, 768, 3072>());
  printf("== %s products %d: ViT-B/16 %.0f us (without norms)\n", typeName<E>(), P, v + 12 * attentionLayer<E, P, 197, 12, 64, 0, 2, 4, 128, sizeof(E) == 2 ? 2 : 1>());
}

/// Variants of one product side by side.
template <class Base, bool Conv> struct Variants {
  static constexpr size_t Spread = Conv ? 0 : 150u << 20;
  Variants(const char *name) {
    printf("%s %s products %d, %dx%dx%d", typeName<typename Base::Element>(), name, Base::Products, Base::M, Base::N, Base::K);
    timeRule<Base, Conv>(Spread);
  }
  ~Variants() { printf("\n"); }
  template <int BM, int BN, int BK, int WM, int WN, int WK, int Stages, int Split, int Engine = 0> Variants &with() {
    timeTile<Base, Conv, BM, BN, BK, WM, WN, WK, Stages, Split, Engine>("\n    ", Spread);
    return *this;
  }
  /// Warpgroup tile of one 64-row group; WK groups split the stage.
  template <int BN, int WK, int Stages, int Split> Variants &wide() { return with<64, BN, 64, 1, 1, WK, Stages, Split, 1>(); }
};
template <class E, int P, int M, int N, int K> using MatmulVariants = Variants<Matmul<E, P, M, N, K, 0>, false>;
template <class E, int P, int H, int C, int F, int KH, int Stride> using ConvVariants = Variants<Convolution<E, P, H, C, F, KH, Stride>, true>;

} // namespace

/// Candidates that the rule was fitted to; extend it when a form is added.
void timeVariants() {
  MatmulVariants<f16, 1, 128, 2304, 768>("").wide<64, 2, 12, 1>().wide<64, 2, 6, 1>();
  MatmulVariants<f16, 1, 128, 768, 3072>("").wide<64, 2, 12, 4>();
  MatmulVariants<f16, 1, 8, 3072, 2048>("");
  ConvVariants<f16, 1, 28, 128, 128, 3, 1>("3x3").wide<64, 2, 5, 4>().wide<32, 2, 9, 2>();
  ConvVariants<f16, 1, 224, 3, 64, 7, 2>("7x7").with<64, 64, 64, 2, 2, 2, 3, 1>().with<32, 64, 64, 1, 2, 4, 3, 1>();
  MatmulVariants<float, 1, 128, 3072, 768>("").with<64, 64, 32, 2, 2, 2, 6, 1>();
  ConvVariants<float, 1, 28, 128, 128, 3, 1>("3x3").with<64, 64, 64, 1, 2, 4, 3, 4>();
  ConvVariants<float, 1, 14, 256, 256, 3, 1>("3x3").with<32, 64, 32, 1, 1, 4, 7, 4>().with<32, 64, 64, 1, 2, 4, 4, 4>().with<32, 64, 64, 1, 1, 8, 4, 4>();
}

void timeLayers() {
  resnet<f16, 1>();
  transformers<f16, 1>();
  depthwiseLayer<f16, 112, 16, 3, 1>();
  depthwiseLayer<f16, 7, 960, 5, 1, 4>();
  depthwiseLayer<f16, 7, 960, 5, 1, 2>();
  depthwiseLayer<f16, 28, 120, 5, 1, 4>();
  depthwiseLayer<f16, 28, 120, 5, 1, 2>();
  depthwiseLayer<f16, 14, 480, 3, 1, 2>();
  depthwiseLayer<f16, 56, 72, 3, 1, 4>();
  depthwiseLayer<f16, 56, 72, 3, 1>();
  depthwiseLayer<f16, 28, 120, 5, 1>();
  depthwiseLayer<f16, 14, 480, 3, 1>();
  depthwiseLayer<f16, 7, 960, 5, 1>();
  convLayer<f16, 1, 56, 24, 72, 1, 1>();
  convLayer<f16, 1, 14, 112, 672, 1, 1>();
  convLayer<f16, 1, 7, 960, 160, 1, 1>();
  vectorLayer<f16, 1, 1000, 2048, 4>();
  vectorLayer<f16, 1, 3072, 2048, 2>();
  vectorLayer<f16, 1, 16384, 2048, 1>();
  vectorLayer<f16, 1, 2048, 8192, 4>();
  vectorLayer<f16, 8, 3072, 2048, 2>();
  resnet<float, 1>();
  transformers<float, 1>();
  transformers<float, 3>();
}
