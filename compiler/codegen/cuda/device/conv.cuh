//===- conv.cuh - convolution as an implicit matrix product ---------------===//
#ifndef OGC_DEVICE_CONV_CUH
#define OGC_DEVICE_CONV_CUH

#include "ogc/memory.cuh"
#include "ogc/wide.cuh"

namespace ogc {

/// See README.md, "conv".
struct ConvDefaults : TileDefaults {
  enum {
    StrideH = 1,
    StrideW = 1,
    DilationH = 1,
    DilationW = 1,
    PadTop = 0,
    PadLeft = 0,
    XSb = -1,
    XSh = -1,
    XSw = -1,
    SSb = 0, // images of the channel factors, with Scaled
    WeightsConstant = 1
  };
};

/// Strides of the input in elements, dense [N, H, W, C] where the configuration gives none.
template <class C> struct ImageStrides {
  enum : long long {
    Sw = (long long)C::XSw < 0 ? (long long)C::C : (long long)C::XSw,
    Sh = (long long)C::XSh < 0 ? (long long)C::W * C::C : (long long)C::XSh,
    Sb = (long long)C::XSb < 0 ? (long long)C::H * C::W * C::C : (long long)C::XSb
  };
};

/// Rows of the product are output pixels of one image, columns are (kh, kw, c): gathers the input, zero where the filter hangs
/// over.
template <class C, class S> struct PixelLoader {
  using T = typename C::Element;
  using X = ImageStrides<C>;
  using G = CopyGrid<S::BM, S::BK / C::VecA, S::Threads>;
  enum {
    Vec = C::VecA,
    Inside = (C::PadTop == 0 && C::PadLeft == 0 && (C::OH - 1) * C::StrideH + (C::KH - 1) * C::DilationH < C::H &&
              (C::OW - 1) * C::StrideW + (C::KW - 1) * C::DilationW < C::W), // no tap ever leaves the image
    OneTap = C::KH == 1 && C::KW == 1
  };
  static_assert(C::C % C::VecA == 0, "a load would cross from one filter tap to the next");
  /// Where tap (0, 0) of one output pixel reads: row, column and offset, which may lie outside; unused rows are not loaded.
  struct Corner {
    int top, left;
    long long offset;
    bool used;
  };
  enum { Kept = G::Steps <= 8 ? (int)G::Steps : 1 }; // many narrow loads: computed again instead of filling the registers
  const T *x, *scales;
  int pixel0;
  Corner kept[Kept];

  __device__ __forceinline__ PixelLoader(const T *base, const T *factors, int batch, int m0)
      : x(base + X::Sb * batch), scales(factors + (C::Scaled ? (int)C::SSb * batch : 0)), pixel0(m0) {
#pragma unroll
    for (int step = 0; step < Kept; ++step)
      kept[step] = corner(step);
  }
  __device__ __forceinline__ Corner corner(int step) const {
    int pixel = pixel0 + G::row(step), top = pixel / C::OW * C::StrideH - C::PadTop,
        left = pixel % C::OW * C::StrideW - C::PadLeft;
    bool used = (G::Total % S::Threads == 0 || G::in(step)) && (S::M % S::BM == 0 || pixel < S::M);
    return Corner{top, left, top * (long long)X::Sh + left * (long long)X::Sw, used};
  }

  __device__ __forceinline__ void load(unsigned char *shared, int k0) const {
    if constexpr (Vec * S::E < 4)
      loadElements(shared, k0);
    else
      loadVectors(shared, k0);
  }

  /// For a few channels (an image): the thread keeps its column and walks down the pixels.
  __device__ __forceinline__ void loadElements(unsigned char *shared, int k0) const {
    int kh, kw, col = G::column(0);
    long long offset = tap(k0 + col, kh, kw);
    Corner at = corner(0);
    copyElements<T, G::Steps>(shared, [&](int step, const T *&from, int &target) {
      if constexpr (!G::Even)
        col = G::column(step), offset = tap(k0 + col, kh, kw), at = corner(step);
      else if constexpr ((int)G::RowStep > (int)C::OW)
        at = corner(step);
      else if (step > 0)
        advance(at, step);
      if (!at.used)
        return false;
      target = S::placeA(G::row(step), col);
      if ((S::K % S::BK == 0 || k0 + col < S::K) &&
          (Inside || ((unsigned)(at.top + kh) < (unsigned)C::H && (unsigned)(at.left + kw) < (unsigned)C::W)))
        from = x + (at.offset + offset);
      return true;
    });
  }
  /// The pixel RowStep further on, at most one row of the output down.
  __device__ __forceinline__ void advance(Corner &at, int step) const {
    at.left += G::RowStep * C::StrideW;
    at.offset += G::RowStep * C::StrideW * (long long)X::Sw;
    if (at.left + C::PadLeft >= C::OW * C::StrideW) {
      at.left -= C::OW * C::StrideW, at.top += C::StrideH;
      at.offset += C::StrideH * (long long)X::Sh - C::OW * C::StrideW * (long long)X::Sw;
    }
    at.used = (G::Total % S::Threads == 0 || G::in(step)) && (S::M % S::BM == 0 || pixel0 + G::row(step) < S::M);
  }

  __device__ __forceinline__ void loadVectors(unsigned char *shared, int k0) const {
    int col = G::column(0) * Vec, kh, kw;
    long long offset = tap(k0 + col, kh, kw);
#pragma unroll
    for (int step = 0; step < G::Steps; ++step) {
      if (!G::Even)
        col = G::column(step) * Vec, offset = tap(k0 + col, kh, kw);
      Corner at = (int)G::Steps == (int)Kept ? kept[(int)G::Steps == (int)Kept ? step : 0] : corner(step);
      if (!at.used)
        continue;
      bool in = S::K % S::BK == 0 || k0 + col < S::K;
      if constexpr (!Inside)
        in = in && (unsigned)(at.top + kh) < (unsigned)C::H && (unsigned)(at.left + kw) < (unsigned)C::W;
      copyVector<T, Vec>(shared + S::placeA(G::row(step), col), in ? x + (at.offset + offset) : x, in ? Vec : 0);
    }
  }

  /// With Scaled: brings the channel factors of this block's slice, from channel k0 on, to shared memory.
  __device__ __forceinline__ void loadScales(unsigned char *shared, int k0) const {
    const T *from = afterWait(scales);
#pragma unroll
    for (int step = 0; step < divUp(S::SliceK * S::BK, S::Threads); ++step) {
      int k = step * S::Threads + threadIdx.x;
      if (k < S::SliceK * S::BK)
        reinterpret_cast<T *>(shared)[k] = k0 + k < S::K ? from[k0 + k] : T{};
    }
  }
  /// Multiplies what this thread has copied of a stage by the stage's factors; no other thread has touched it yet.
  __device__ __forceinline__ void scale(unsigned char *shared, const unsigned char *factors) const {
    if constexpr (Vec * S::E >= 4 || G::Steps <= 8) {
#pragma unroll
      for (int step = 0; step < G::Steps; ++step)
        scaleVector(shared, factors, step);
    } else {
#pragma unroll 1
      for (int step = 0; step < G::Steps; ++step)
        scaleVector(shared, factors, step);
    }
  }
  __device__ __forceinline__ void scaleVector(unsigned char *shared, const unsigned char *factors, int step) const {
    int col = G::column(step) * Vec;
    if (!corner(step).used)
      return;
    T *at = reinterpret_cast<T *>(shared + S::placeA(G::row(step), col)), element[Vec], factor[Vec];
    loadRaw<Vec>(element, at);
    loadRaw<Vec>(factor, reinterpret_cast<const T *>(factors) + col);
#pragma unroll
    for (int v = 0; v < Vec; ++v)
      element[v] = fromFloat<T>(__fmul_rn(toFloat(element[v]), toFloat(factor[v])));
    storeRaw<Vec>(at, element);
  }

  /// Splits k = (kh, kw, c): the tap's distance from tap (0, 0) in rows and columns, and the offset of the element.
  static __device__ __forceinline__ long long tap(int k, int &kh, int &kw) {
    int t = OneTap ? 0 : k / C::C, c = k - t * C::C;
    kh = t / C::KW * C::DilationH, kw = t % C::KW * C::DilationW;
    return kh * (long long)X::Sh + kw * (long long)X::Sw + c;
  }
};

/// acc[b, pixel, f] of the convolution of x (NHWC) with the packed filter; calls the epilogue once for each V filters of a pixel.
/// With Scaled (1x1, no padding) each element of x is first multiplied by the factor of its channel, and rounded.
template <class C, class Epilogue>
__device__ __forceinline__ void conv(const typename C::Element *x, const typename C::Element *filter, const Epilogue &epilogue,
                                     const typename C::Element *scales = nullptr) {
  static_assert(!C::Scaled || C::KH * C::KW == 1, "channel factors need a 1x1 kernel");
  using S = typename SelectTile<C, C::OH * C::OW, C::F, C::KH * C::KW * C::C, C::Engine>::Type;
  static_assert(C::BLayout == 0, "filters come in panels");
  int block = blockIdx.x;
  int rank = block % S::Split;
  block /= S::Split;
  int n0 = block % S::TilesN * S::BN;
  block /= S::TilesN;
  int m0 = block % S::TilesM * S::BM, batch = block / S::TilesM;
  PixelLoader<C, S> pixels(x, scales, batch, m0);
  runTile<C, S>(pixels, PanelLoader<C, S>(filter, batch, n0), rank, batch, m0, n0, epilogue);
}

} // namespace ogc

#endif
