//===- boxes_test.cu - checks of tma_conv.cuh -----------------------------===//
#include "conv_reference.h"
#include "maps.h"
#include "ogc/tma_conv.cuh"

using namespace bench;
using ogc::bf16;
using ogc::f16;

namespace {

/// Gap: elements between the end of a pixel and the next one; where it is negative, pixels overlap.
template <class E, int B_, int H_, int W_, int C_, int F_, int K_, int S_, int D_, int Pad_, int End_, int Gap_ = 0, int KW_ = K_> struct Problem {
  using Element = E;
  enum {
    Batch = B_, H = H_, W = W_, C = C_, F = F_, KH = K_, KW = KW_, StrideH = S_, StrideW = S_, DilationH = D_, DilationW = D_, PadTop = Pad_, PadLeft = Pad_,
    OH = (H + Pad_ + End_ - D_ * (K_ - 1) - 1) / S_ + 1, OW = (W + Pad_ + End_ - D_ * (KW_ - 1) - 1) / S_ + 1, XSw = C + Gap_, XSh = XSw * W, XSb = XSh * H
  };
};

template <class Q, int Flat_, int Halo_, int BX_, int BY_, int Boxes_, int WN_, int Turns_, int AStages_, int BStages_, int ResidentB_, int V_, int Trigger_, int P_, int Split_> struct Config : ogc::BoxConvDefaults {
  using Element = typename Q::Element;
  enum {
    Batch = Q::Batch, H = Q::H, W = Q::W, C = Q::C, F = Q::F, KH = Q::KH, KW = Q::KW, StrideH = Q::StrideH, StrideW = Q::StrideW, DilationH = Q::DilationH, DilationW = Q::DilationW,
    PadTop = Q::PadTop, PadLeft = Q::PadLeft, OH = Q::OH, OW = Q::OW, Flat = Flat_, Halo = Halo_, BX = BX_, BY = BY_, Boxes = Boxes_, WN = WN_, Turns = Turns_, AStages = AStages_, BStages = BStages_,
    ResidentB = ResidentB_, V = V_, P = P_, Split = Split_, WeightsConstant = Trigger_ != 0, Trigger = Trigger_, Engine = 3, SharedBytes = 232448
  };
};

struct Phases {
  ogc::TensorMap maps[4];
};

template <class C, class Epilogue> __global__ void __launch_bounds__(128 * C::WN *C::Turns + 32)
boxKernel(const __grid_constant__ Phases phases, const __grid_constant__ ogc::TensorMap filter, Epilogue epilogue) {
  ogc::convBoxes<C>(ogc::PhaseMaps{&phases.maps[0], &phases.maps[1], &phases.maps[2], &phases.maps[3]}, filter, epilogue);
}

/// Rows (pixels) of phase `phase` of one dimension: where they begin, and how many there are.
int phaseBegin(int phase, int dilation, int pad, int stride) { return ((phase * dilation - pad) % stride + stride) % stride; }

template <class Q, class S, class C> Phases mapsOf(const typename Q::Element *x) {
  Phases phases;
  for (int p = 0; p < 4; ++p) {
    int q = p < (int)S::Phases ? p : 0;
    int top = phaseBegin(q / S::TapsX::Phases, Q::DilationH, Q::PadTop, Q::StrideH), left = phaseBegin(q % S::TapsX::Phases, Q::DilationW, Q::PadLeft, Q::StrideW);
    cuuint64_t pixels = (cuuint64_t)Q::Batch * Q::H * Q::W, pixelBytes = Q::XSw * sizeof(typename Q::Element);
    if (C::Flat)
      phases.maps[p] = encode(x, {Q::C, pixels, 1, 1}, {pixelBytes, pixelBytes * pixels, pixelBytes * pixels}, {S::BK, C::BX, 1, 1});
    else
      phases.maps[p] = encode(x + top * Q::XSh + left * Q::XSw, {Q::C, (cuuint64_t)(Q::W - left + Q::StrideW - 1) / Q::StrideW, (cuuint64_t)(Q::H - top + Q::StrideH - 1) / Q::StrideH, Q::Batch},
                              {pixelBytes * Q::StrideW, (cuuint64_t)Q::XSh * sizeof(*x) * Q::StrideH, (cuuint64_t)Q::XSb * sizeof(*x)}, {S::BK, (cuuint32_t)S::Pitch, (cuuint32_t)(C::BY + S::ExtraY), 1});
  }
  return phases;
}

template <class Q, int Flat, int Halo, int BX, int BY, int Boxes, int WN, int Turns, int AStages, int BStages, int ResidentB, int V, bool Ahead = false, int Trigger = 1, int P = 64, int Split = 1> void boxCase(int blocks) {
  using T = typename Q::Element;
  using C = Config<Q, Flat, Halo, BX, BY, Boxes, WN, Turns, AStages, BStages, ResidentB, V, Trigger, P, Split>;
  using S = ogc::BoxTile<C>;
  auto x = makeTensor<T>({Q::Batch, Q::H, Q::W, Q::C}, {Q::XSb, Q::XSh, Q::XSw, 1}, 3);
  T *w = makePanels<T>(Q::KH * Q::KW * Q::C, Q::F, P, 4);
  size_t n = (size_t)Q::Batch * Q::OH * Q::OW * Q::F;
  float *out = (float *)allocate(n * 4);
  int *calls = (int *)allocate(n * 4);
  double *ref = (double *)allocate(n * 8);
  CHECK_CUDA(cudaMemset(out, 255, n * 4));
  CHECK_CUDA(cudaMemset(calls, 0, n * 4));
  convReference<Q, MappedOperand><<<(unsigned)((n + 127) / 128), 128>>>(x.data, w, ref, P, false);
  Phases phases = mapsOf<Q, S, C>(x.data);
  constexpr cuuint64_t line = P * sizeof(T);
  constexpr cuuint32_t columns = P < (int)S::BN ? P : (int)S::BN; // of a panel in a box
  ogc::TensorMap filter = encode(w, {S::BK, Q::C, P / S::BK, Q::KH * Q::KW, (Q::F + P - 1) / P}, {line, 128, Q::C * line, Q::C * line * Q::KH * Q::KW}, {S::BK, S::BK, columns / S::BK, 1, S::BN / columns});
  long long grid = Split > 1 ? S::Tiles * Split : std::min<long long>(S::Tiles, std::max<long long>(blocks / S::TilesN * S::TilesN, S::TilesN));
  Recorder<V> recorder{out, calls, (long long)Q::OH * Q::OW * Q::F, Q::F};
  if constexpr (Ahead) {
    T *columns = makeTensor<T>({1, 1, 1, Q::F}, {0, 0, 0, 1}, 3).data, *elements = makeTensor<T>({1, 1, 1, (long long)n}, {0, 0, 0, 1}, 4).data;
    launch(boxKernel<C, AheadRecorder<T, V>>, grid, S::Threads, S::Bytes, Split, 0, phases, filter, AheadRecorder<T, V>{recorder, columns, elements});
  } else
    launch(boxKernel<C, Recorder<V>>, grid, S::Threads, S::Bytes, Split, 0, phases, filter, recorder);
  CHECK_CUDA(cudaGetLastError());
  char name[200];
  snprintf(name, sizeof name, "conv boxes %d of %dx%d flat%d border%d w%d turns%d st%d,%d keep%d split%d v%d %s %dx%dx%dx%d to %dx%dx%d kernel %d stride %d", Boxes, BX, BY, Flat, Halo, WN, Turns, AStages, BStages, ResidentB, Split, V,
           typeName<T>(), Q::Batch, Q::H, Q::W, Q::C, Q::OH, Q::OW, Q::F, Q::KH, Q::StrideH);
  report(name, compare(out, calls, ref, n), 5e-6);
  freeAll();
}

template <class T> void boxes() {
  //              B  H   W   C    F   K  S  D  pads   flat border box    WN turns stages keep V
  boxCase<Problem<T, 3, 14, 14, 128, 128, 3, 1, 1, 1, 1>, 0, 1, 8, 14, 2, 2, 1, 3, 4, 0, 8, true>(4);
  boxCase<Problem<T, 3, 14, 14, 128, 128, 3, 1, 1, 1, 1>, 0, 1, 8, 7, 1, 1, 2, 4, 4, 0, 8, true>(5);   // turns, rings that go round in a tile
  boxCase<Problem<T, 2, 20, 28, 64, 64, 3, 1, 1, 1, 1>, 0, 0, 28, 4, 1, 1, 2, 2, 2, 0, 8>(3);          // a box for each tap, turns
  boxCase<Problem<T, 2, 20, 28, 64, 64, 3, 1, 1, 1, 1>, 0, 1, 8, 20, 1, 1, 2, 2, 9, 1, 8>(3);          // the filter stays
  boxCase<Problem<T, 3, 15, 18, 72, 136, 3, 2, 1, 1, 1, 8>, 0, 1, 8, 4, 3, 1, 2, 2, 4, 0, 8, true>(7); // phases, channels and columns that end early, gaps
  boxCase<Problem<T, 3, 15, 18, 72, 136, 3, 2, 1, 1, 1, 8>, 0, 0, 9, 3, 2, 2, 1, 3, 3, 0, 4>(9);
  boxCase<Problem<T, 2, 17, 20, 40, 72, 3, 1, 2, 0, 3>, 0, 1, 8, 4, 2, 1, 3, 2, 4, 0, 8, true>(3);     // dilation
  boxCase<Problem<T, 1, 23, 21, 48, 65, 5, 2, 1, 2, 1>, 0, 1, 8, 5, 1, 1, 1, 2, 3, 0, 1>(3);           // columns one by one
  boxCase<Problem<T, 1, 19, 23, 32, 64, 3, 2, 2, 2, 2>, 0, 1, 8, 5, 2, 1, 2, 3, 3, 0, 8>(2);           // a stride that divides the dilation: one phase
  boxCase<Problem<T, 3, 15, 13, 136, 72, 1, 2, 1, 0, 0>, 0, 0, 7, 5, 2, 2, 1, 2, 4, 0, 8, true, 2>(2);
  boxCase<Problem<T, 3, 9, 11, 72, 136, 1, 1, 1, 0, 0>, 1, 0, 72, 1, 1, 2, 2, 2, 4, 0, 8, true>(4);    // pixels of all images in a row
  boxCase<Problem<T, 3, 9, 11, 256, 136, 1, 1, 1, 0, 0>, 1, 0, 40, 1, 1, 1, 2, 3, 4, 1, 8, true, 0>(6);
  boxCase<Problem<T, 2, 19, 30, 64, 64, 4, 1, 1, 0, 0, -48, 1>, 0, 1, 8, 16, 2, 1, 2, 2, 4, 1, 8>(3);   // four pixels of 16 channels are a line
  boxCase<Problem<T, 2, 9, 12, 64, 64, 1, 1, 1, 0, 0, 16>, 1, 0, 64, 1, 1, 1, 2, 2, 2, 0, 2>(1);
  boxCase<Problem<T, 3, 14, 14, 256, 72, 3, 1, 1, 1, 1>, 0, 1, 8, 14, 1, 1, 1, 2, 4, 0, 8, true, 1, 64, 4>(1);  // clusters
  boxCase<Problem<T, 3, 7, 7, 200, 136, 3, 2, 1, 1, 1>, 0, 1, 8, 4, 3, 2, 1, 2, 4, 0, 8, true, 2, 64, 2>(1);
  boxCase<Problem<T, 2, 9, 11, 520, 64, 1, 1, 1, 0, 0>, 1, 0, 72, 1, 1, 1, 1, 2, 2, 0, 4, true, 0, 64, 8>(1); // lines that do not exist
}

void boxesTf32() {
  using T = float;
  //              B  H   W   C    F   K  S  D  pads   flat border box    WN turns stages keep V
  boxCase<Problem<T, 3, 14, 14, 128, 128, 3, 1, 1, 1, 1>, 0, 1, 8, 14, 2, 2, 1, 3, 4, 0, 4, true>(4);
  boxCase<Problem<T, 3, 14, 14, 128, 128, 3, 1, 1, 1, 1>, 0, 1, 8, 7, 1, 1, 2, 4, 4, 0, 8>(5);    // turns, rings that go round in a tile
  boxCase<Problem<T, 2, 20, 28, 64, 64, 3, 1, 1, 1, 1>, 0, 0, 28, 4, 1, 1, 2, 2, 2, 0, 4>(3);           // a box for each tap, turns
  boxCase<Problem<T, 2, 20, 28, 64, 64, 3, 1, 1, 1, 1>, 0, 1, 8, 8, 1, 1, 2, 2, 18, 1, 4>(3);           // the filter stays
  boxCase<Problem<T, 3, 15, 18, 36, 132, 3, 2, 1, 1, 1, 4>, 0, 1, 8, 4, 3, 1, 2, 2, 4, 0, 4, true>(7);  // phases, channels and columns that end early, gaps
  boxCase<Problem<T, 3, 15, 18, 36, 136, 3, 2, 1, 1, 1, 4>, 0, 0, 9, 3, 2, 2, 1, 3, 3, 0, 8>(9);
  boxCase<Problem<T, 2, 17, 20, 20, 72, 3, 1, 2, 0, 3>, 0, 1, 8, 4, 2, 1, 3, 2, 4, 0, 4, true>(3);      // dilation, less than a line
  boxCase<Problem<T, 1, 23, 21, 16, 65, 5, 2, 1, 2, 1>, 0, 1, 8, 5, 1, 1, 1, 2, 3, 0, 1>(3);            // half a line, columns one by one
  boxCase<Problem<T, 1, 19, 23, 32, 64, 3, 2, 2, 2, 2>, 0, 1, 8, 5, 2, 1, 2, 3, 3, 0, 2>(2);            // a stride that divides the dilation: one phase
  boxCase<Problem<T, 3, 15, 13, 68, 72, 1, 2, 1, 0, 0>, 0, 0, 7, 5, 2, 2, 1, 2, 4, 0, 4, true, 2>(2);
  boxCase<Problem<T, 3, 9, 11, 36, 136, 1, 1, 1, 0, 0>, 1, 0, 72, 1, 1, 2, 2, 2, 4, 0, 4, true, 1, 32>(4); // pixels of all images in a row, panels of one line
  boxCase<Problem<T, 3, 9, 11, 128, 136, 1, 1, 1, 0, 0>, 1, 0, 40, 1, 1, 1, 2, 3, 4, 1, 4, true, 0>(6);
  boxCase<Problem<T, 2, 19, 30, 48, 64, 4, 1, 1, 0, 0, -36, 1>, 0, 1, 8, 16, 1, 1, 2, 2, 8, 1, 4>(3); // four pixels of 12 channels are a line and a half
  boxCase<Problem<T, 3, 14, 14, 128, 72, 3, 1, 1, 1, 1>, 0, 1, 8, 14, 1, 1, 1, 2, 4, 0, 4, true, 1, 64, 4>(1);  // clusters
  boxCase<Problem<T, 3, 7, 7, 100, 132, 3, 2, 1, 1, 1>, 0, 1, 8, 4, 3, 2, 1, 2, 4, 0, 4, true, 2, 64, 2>(1);
  boxCase<Problem<T, 2, 9, 11, 260, 64, 1, 1, 1, 0, 0>, 1, 0, 72, 1, 1, 1, 1, 2, 2, 0, 4, true, 0, 64, 8>(1);   // lines that do not exist
}

} // namespace

void checkBoxes() {
  boxesTf32();
  boxes<f16>();
  boxes<bf16>();
}
