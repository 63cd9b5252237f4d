//===- conv.cuh - convolution as an implicit matrix product ---------------===//
#ifndef OGC_DEVICE_CONV_CUH
#define OGC_DEVICE_CONV_CUH

#include "ogc/wide.cuh"

namespace ogc {

/// See README.md, "conv".
struct ConvDefaults : TileDefaults {
  enum {
    StrideH = 1, StrideW = 1, DilationH = 1, DilationW = 1, PadTop = 0, PadLeft = 0, XSb = -1, XSh = -1, XSw = -1, WeightsConstant = 1
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

/// Rows of the product are output pixels of one image, columns are (kh, kw, c): gathers the input, zero where the filter hangs over.
template <class C, class S> struct PixelLoader {
  using T = typename C::Element;
  using X = ImageStrides<C>;
  enum {
    Vec = C::VecA, Chunks = S::BK / Vec, Total = S::BM * Chunks, Threads = S::Threads, Steps = (Total + Threads - 1) / Threads,
    Pointwise = C::KH == 1 && C::KW == 1 && C::PadTop == 0 && C::PadLeft == 0 && (C::OH - 1) * C::StrideH < C::H && (C::OW - 1) * C::StrideW < C::W
  };
  static_assert(C::C % C::VecA == 0, "a load would cross from one filter tap to the next");
  const T *x;
  int pixel0;

  __device__ __forceinline__ PixelLoader(const T *base, int batch, int m0) : x(base + X::Sb * batch), pixel0(m0) {}

  __device__ __forceinline__ void load(unsigned char *shared, int k0) const {
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      int i = step * Threads + (int)threadIdx.x, row = i / Chunks, col = i % Chunks * Vec, pixel = pixel0 + row, k = k0 + col;
      if ((Total % Threads != 0 && i >= Total) || (S::M % S::BM != 0 && pixel >= S::M))
        continue;
      int tap = Pointwise ? 0 : k / C::C, c = k - tap * C::C, kh = tap / C::KW, kw = tap - kh * C::KW;
      int y = pixel / C::OW * C::StrideH - C::PadTop + kh * C::DilationH, xx = pixel % C::OW * C::StrideW - C::PadLeft + kw * C::DilationW;
      bool in = S::K % S::BK == 0 || k < S::K;
      if constexpr (!Pointwise)
        in = in && (unsigned)y < (unsigned)C::H && (unsigned)xx < (unsigned)C::W;
      copyVector<T, Vec>(shared + S::placeA(row, col), in ? x + (y * X::Sh + xx * X::Sw + c) : x, in ? Vec : 0);
    }
  }
};

/// acc[b, pixel, f] of the convolution of x (NHWC) with the packed filter; calls the epilogue once for each V filters of a pixel.
template <class C, class Epilogue>
__device__ __forceinline__ void conv(const typename C::Element *__restrict__ x, const typename C::Element *__restrict__ filter, const Epilogue &epilogue) {
  using S = typename SelectTile<C, C::OH * C::OW, C::F, C::KH * C::KW * C::C, C::Engine>::Type;
  static_assert(C::BLayout == 0, "filters come in panels");
  int block = blockIdx.x;
  int rank = block % S::Split;
  block /= S::Split;
  int n0 = block % S::TilesN * S::BN;
  block /= S::TilesN;
  int m0 = block % S::TilesM * S::BM, batch = block / S::TilesM;
  PixelLoader<C, S> pixels(x, batch, m0);
  runTile<C, S>(pixels, PanelLoader<C, S>(filter, batch, n0), rank, batch, m0, n0, epilogue);
}

} // namespace ogc

#endif
