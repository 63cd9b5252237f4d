//===- depthwise.cuh - one filter a channel -------------------------------===//
#ifndef OGC_DEVICE_DEPTHWISE_CUH
#define OGC_DEVICE_DEPTHWISE_CUH

#include "ogc/conv.cuh"

namespace ogc {

/// See README.md, "depthwise".
struct DepthwiseDefaults {
  enum {
    Batch = 1,
    StrideH = 1,
    StrideW = 1,
    DilationH = 1,
    DilationW = 1,
    PadTop = 0,
    PadLeft = 0,
    XSb = -1,
    XSh = -1,
    XSw = -1,
    V = 1,
    Threads = 128,
    Trigger = 1,
    WeightsConstant = 0
  };
};

/// acc[b, pixel, c]; one thread computes V channels of one pixel in f32.
template <class C, class FilterElement, class Epilogue>
__device__ __forceinline__ void depthwise(const typename C::Element *x, const FilterElement *filter, const Epilogue &epilogue) {
  using X = ImageStrides<C>;
  constexpr int V = C::V, Groups = C::C / V;
  constexpr long long Total = (long long)C::Batch * C::OH * C::OW * Groups;
  static_assert(C::C % V == 0, "V does not divide the channels");
  if constexpr (C::Trigger == 0)
    launchDependents();
  long long i = (long long)blockIdx.x * C::Threads + threadIdx.x;
  bool used = i < Total;
  int c = (int)(i % Groups) * V;
  long long q = i / Groups;
  int pixel = (int)(q % (C::OH * C::OW)), batch = (int)(q / (C::OH * C::OW));
  int y0 = pixel / C::OW * C::StrideH - C::PadTop, x0 = pixel % C::OW * C::StrideW - C::PadLeft;
  const typename C::Element *image = x + X::Sb * batch + c;
  // Two rows of the filter at a time, where registers hold them, with all loads before the first product: a row by itself waits
  // for memory too often, all rows take too many registers. Small filters are held from before the wait.
  constexpr int Taps = C::KH * C::KW;
  constexpr bool Early = C::WeightsConstant && Taps * V * (int)sizeof(FilterElement) <= 160;
  constexpr int TapBytes = V * ((int)sizeof(typename C::Element) + (Early ? 0 : (int)sizeof(FilterElement)));
  constexpr int Rows = C::KH > 1 && 2 * C::KW * TapBytes <= 320 ? 2 : 1;
  FilterElement weight[Early ? Taps : Rows * C::KW][V];
  if constexpr (Early) {
#pragma unroll
    for (int t = 0; t < Taps; ++t)
      loadRaw<V>(weight[t], filter + (t * (long long)C::C + c));
  }
  wait();
  if constexpr (C::Trigger != 0)
    launchDependents();
  if (!used)
    return;
  float acc[V] = {};
#pragma unroll
  for (int first = 0; first < Taps; first += Rows * C::KW) {
    typename C::Element in[Rows * C::KW][V];
#pragma unroll
    for (int t = 0; t < Rows * C::KW; ++t) {
      int tap = first + t, y = y0 + tap / C::KW * C::DilationH, xx = x0 + tap % C::KW * C::DilationW;
#pragma unroll
      for (int v = 0; v < V; ++v)
        in[t][v] = typename C::Element{};
      if (tap < Taps && (unsigned)y < (unsigned)C::H && (unsigned)xx < (unsigned)C::W)
        loadRaw<V>(in[t], image + (y * X::Sh + xx * X::Sw));
      if constexpr (!Early)
        if (tap < Taps)
          loadRaw<V>(weight[t], filter + (tap * (long long)C::C + c));
    }
#pragma unroll
    for (int t = 0; t < Rows * C::KW; ++t)
      if (first + t < Taps)
#pragma unroll
        for (int v = 0; v < V; ++v)
          acc[v] += toFloat(in[t][v]) * toFloat(weight[Early ? first + t : t][v]);
  }
  epilogue(batch, pixel, c, acc);
}

} // namespace ogc

#endif
