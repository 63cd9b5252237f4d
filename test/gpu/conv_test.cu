//===- conv_test.cu - checks of conv.cuh and depthwise.cuh ----------------===//
#include "conv_reference.h"
#include "ogc/conv.cuh"
#include "ogc/depthwise.cuh"

using namespace bench;
using ogc::bf16;
using ogc::f16;

namespace {

template <class E, int B_, int H_, int W_, int C_, int F_, int KH_, int KW_, int SH_, int SW_, int DH_, int DW_, int Top, int Left, int Bottom, int Right, int Vec_, int Gap_ = 0> struct Problem {
  using Element = E;
  enum {
    Batch = B_, H = H_, W = W_, C = C_, F = F_, KH = KH_, KW = KW_, StrideH = SH_, StrideW = SW_, DilationH = DH_, DilationW = DW_, PadTop = Top, PadLeft = Left,
    OH = (H + Top + Bottom - DH_ * (KH - 1) - 1) / SH_ + 1, OW = (W + Left + Right - DW_ * (KW - 1) - 1) / SW_ + 1, Vec = Vec_,
    XSw = C + Gap_, XSh = XSw * W, XSb = XSh * H
  };
};

template <class Q, int Products_, int P_, int BM_, int BN_, int BK_, int WM_, int WN_, int WK_, int Stages_, int Split_, int V_, int Engine_ = 0> struct Config : ogc::ConvDefaults {
  using Element = typename Q::Element;
  enum {
    Batch = Q::Batch, H = Q::H, W = Q::W, C = Q::C, F = Q::F, KH = Q::KH, KW = Q::KW, StrideH = Q::StrideH, StrideW = Q::StrideW, DilationH = Q::DilationH,
    DilationW = Q::DilationW, PadTop = Q::PadTop, PadLeft = Q::PadLeft, OH = Q::OH, OW = Q::OW, XSb = Q::XSb, XSh = Q::XSh, XSw = Q::XSw, VecA = Q::Vec,
    Products = Products_, P = P_, BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, WK = WK_, Stages = Stages_, Split = Split_, V = V_, Engine = Engine_, SharedBytes = 232448
  };
};

template <class Q, int V_> struct DepthwiseConfig : ogc::DepthwiseDefaults {
  using Element = typename Q::Element;
  enum {
    Batch = Q::Batch, H = Q::H, W = Q::W, C = Q::C, KH = Q::KH, KW = Q::KW, StrideH = Q::StrideH, StrideW = Q::StrideW, DilationH = Q::DilationH,
    DilationW = Q::DilationW, PadTop = Q::PadTop, PadLeft = Q::PadLeft, OH = Q::OH, OW = Q::OW, XSb = Q::XSb, XSh = Q::XSh, XSw = Q::XSw, V = V_
  };
};

template <class C> __global__ void __launch_bounds__(32 * C::WM *C::WN *C::WK *(C::Engine ? 4 : 1))
convKernel(const typename C::Element *__restrict__ x, const typename C::Element *__restrict__ w, Recorder<C::V> epilogue) {
  ogc::conv<C>(x, w, epilogue);
}
template <class C> __global__ void __launch_bounds__(C::Threads)
depthwiseKernel(const typename C::Element *__restrict__ x, const typename C::Element *__restrict__ w, Recorder<C::V> epilogue) {
  ogc::depthwise<C>(x, w, epilogue);
}

template <class Q, class Run> void check(const char *what, int P, bool depthwise, double tolerance, Run run) {
  using T = typename Q::Element;
  auto x = makeTensor<T>({Q::Batch, Q::H, Q::W, Q::C}, {Q::XSb, Q::XSh, Q::XSw, 1}, 3);
  T *w = depthwise ? makePanels<T>(Q::KH * Q::KW, Q::C, Q::C, 4) : makePanels<T>(Q::KH * Q::KW * Q::C, Q::F, P, 4);
  size_t n = (size_t)Q::Batch * Q::OH * Q::OW * (depthwise ? (int)Q::C : (int)Q::F);
  float *out = (float *)allocate(n * 4);
  int *calls = (int *)allocate(n * 4);
  double *ref = (double *)allocate(n * 8);
  CHECK_CUDA(cudaMemset(out, 255, n * 4));
  CHECK_CUDA(cudaMemset(calls, 0, n * 4));
  convReference<Q><<<(unsigned)((n + 127) / 128), 128>>>(x.data, w, ref, P, depthwise);
  run(x.data, w, out, calls);
  CHECK_CUDA(cudaGetLastError());
  char name[200];
  snprintf(name, sizeof name, "%s %s %dx%dx%dx%d to %dx%dx%d kernel %dx%d stride %d vec %d", what, typeName<T>(), Q::Batch, Q::H, Q::W, Q::C, Q::OH, Q::OW, Q::F, Q::KH, Q::KW, Q::StrideH, Q::Vec);
  report(name, compare(out, calls, ref, n), tolerance);
  freeAll();
}

template <class Q, int Products, int P, int BM, int BN, int BK, int WM, int WN, int WK, int Stages, int Split, int V, int Engine = 0> void convCase() {
  using C = Config<Q, Products, P, BM, BN, BK, WM, WN, WK, Stages, Split, V, Engine>;
  using S = typename ogc::SelectTile<C, C::OH * C::OW, C::F, C::KH * C::KW * C::C, Engine>::Type;
  double tolerance = sizeof(typename Q::Element) == 2 ? 5e-6 : Products == 3 ? 2e-6 : 1e-3;
  check<Q>("conv", P, false, tolerance, [](auto *x, auto *w, float *out, int *calls) {
    launch(convKernel<C>, (long long)Split * S::TilesN * S::TilesM * C::Batch, S::Threads, S::Bytes, Split, 0, x, w, Recorder<V>{out, calls, (long long)C::OH * C::OW * C::F, C::F});
  });
}

template <class Q, int V> void depthwiseCase() {
  using C = DepthwiseConfig<Q, V>;
  check<Q>("depthwise", 1, true, 2e-6, [](auto *x, auto *w, float *out, int *calls) {
    long long threads = (long long)C::Batch * C::OH * C::OW * (C::C / V);
    launch(depthwiseKernel<C>, (threads + C::Threads - 1) / C::Threads, C::Threads, 0, 1, 0, x, w, Recorder<V>{out, calls, (long long)C::OH * C::OW * C::C, C::C});
  });
}

template <class T, int Products> void convolutions() {
  constexpr int W = 16 / sizeof(T);
  //                B  H   W   C   F   KH KW SH SW DH DW pads        vec
  convCase<Problem<T, 1, 56, 56, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, W>, Products, 32, 64, 64, 32, 2, 2, 1, 3, 1, 4>();
  convCase<Problem<T, 2, 15, 13, 24, 40, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, W, 8>, Products, 32, 32, 64, 32, 1, 2, 2, 8, 1, 4>();
  convCase<Problem<T, 1, 37, 41, 3, 64, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1>, Products, 64, 64, 64, 32, 2, 2, 1, 3, 1, 8>();
  convCase<Problem<T, 1, 14, 14, 256, 512, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, W>, Products, 64, 32, 64, 32, 1, 2, 2, 4, 2, 4>();
  convCase<Problem<T, 2, 14, 14, 32, 48, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, W>, Products, 16, 32, 32, 32, 1, 1, 2, 3, 1, 4>();
  convCase<Problem<T, 1, 9, 11, 20, 17, 2, 5, 1, 2, 2, 1, 0, 2, 1, 3, 4>, Products, 16, 16, 32, 32, 1, 2, 1, 3, 4, 1>();
  convCase<Problem<T, 1, 5, 5, 7, 5, 3, 3, 1, 1, 1, 1, 2, 2, 0, 0, 1>, Products, 16, 16, 16, 16, 1, 1, 1, 2, 8, 1>();
  convCase<Problem<T, 1, 7, 7, 512, 512, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, W>, Products, 32, 64, 32, 32, 2, 1, 2, 6, 8, 4>();
  convCase<Problem<T, 1, 1, 1, 8, 16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 4>, Products, 16, 16, 16, 16, 1, 1, 1, 2, 1, 2>();
}

template <class T> void wide() {
  convCase<Problem<T, 1, 56, 56, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8>, 1, 32, 64, 64, 64, 1, 1, 1, 9, 1, 8, 1>();
  convCase<Problem<T, 1, 9, 11, 20, 17, 2, 5, 1, 2, 2, 1, 0, 2, 1, 3, 4>, 1, 16, 64, 16, 64, 1, 1, 2, 3, 4, 1, 1>();
  convCase<Problem<T, 1, 37, 41, 3, 64, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1>, 1, 64, 128, 64, 64, 2, 1, 1, 3, 1, 8, 1>();
}

template <class T> void depthwises() {
  constexpr int W = 16 / sizeof(T);
  depthwiseCase<Problem<T, 2, 28, 28, 72, 72, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2, W>, W>();
  depthwiseCase<Problem<T, 1, 14, 15, 33, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1>, 1>();
  depthwiseCase<Problem<T, 1, 9, 9, 12, 12, 3, 2, 1, 2, 2, 2, 0, 1, 2, 1, 4, 4>, 4>();
}

} // namespace

void checkConv() {
  convolutions<f16, 1>();
  convolutions<bf16, 1>();
  convolutions<float, 1>();
  convolutions<float, 3>();
  wide<f16>();
  wide<bf16>();
  depthwises<f16>();
  depthwises<bf16>();
  depthwises<float>();
}
