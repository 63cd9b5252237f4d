//===- nbits.cuh - product with weights of 2, 4 or 8 bits, few rows -------===//
//
// Streams the packed weights once for up to eight rows of x. A warp computes Columns columns; its lanes take consecutive chunks
// of a row of weights, so that a warp reads a contiguous stretch. Numbers become floats by their bits (2^23 + q is q in the
// mantissa), scales apply once for each word; sums are f32.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_NBITS_CUH
#define OGC_DEVICE_NBITS_CUH

#include "ogc/memory.cuh"

namespace ogc {

struct NBitsDefaults {
  enum { Rows = 1, Columns = 1, Warps = 4, HasZeros = 0, DefaultZero = 8, Trigger = 1, WeightsConstant = 0, VecX = 1 };
};

template <class C> struct NBitsShape {
  enum {
    PerByte = 8 / C::Bits,
    RowBytes = C::K / PerByte, ///< of one column of the product
    Chunk = RowBytes % 16 == 0  ? 16
            : RowBytes % 8 == 0 ? 8
                                : 4,
    Words = Chunk / 4,
    PerWord = 4 * PerByte,
    Steps = (RowBytes + 32 * Chunk - 1) / (32 * Chunk),
    Unroll = Steps < 4 ? Steps : 4,
    Blocks = C::K / C::Block,
    PerBlock = C::Warps * C::Columns, ///< columns of a thread block
    TilesN = (C::N + PerBlock - 1) / PerBlock
  };
  static_assert(RowBytes % 4 == 0 && C::Block % PerWord == 0, "a word holds numbers of more than one block");
};

/// Number i of a word as a float, less the zero point.
template <int Bits> __device__ __forceinline__ float numberOf(unsigned word, int i, float shifted) {
  return __uint_as_float(((word >> (i * Bits)) & ((1u << Bits) - 1)) | 0x4b000000u) - shifted;
}

template <class C, class Scale, class Zero, class Epilogue>
__device__ __forceinline__ void nbits(const typename C::Element *x, const signed char *weights, const Scale *scales,
                                      const Zero *zeros, const Epilogue &epilogue) {
  using S = NBitsShape<C>;
  constexpr int Rows = C::Rows, Columns = C::Columns, U = S::Unroll, Words = S::Words;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int n0 = ((int)blockIdx.x % S::TilesN) * S::PerBlock + warp * Columns, m0 = (int)blockIdx.x / S::TilesN * Rows;
  if constexpr (C::Trigger == 0)
    launchDependents();
  unsigned w[U][Columns][Words];
  auto fetch = [&](int base) {
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int c = 0; c < Columns; ++c) {
        int byte = ((base + u) * 32 + lane) * S::Chunk;
        if (byte < S::RowBytes && n0 + c < C::N)
          loadRaw<Words>(w[u][c], reinterpret_cast<const unsigned *>(weights + (long long)(n0 + c) * S::RowBytes + byte));
      }
  };
  if constexpr (C::WeightsConstant)
    fetch(0);
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  x = afterWait(x);
  if constexpr (!C::WeightsConstant)
    fetch(0);

  float acc[Rows][Columns] = {};
#pragma unroll 1
  for (int base = 0; base < S::Steps; base += U) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      int byte = ((base + u) * 32 + lane) * S::Chunk;
      if (byte >= S::RowBytes)
        continue;
#pragma unroll
      for (int word = 0; word < Words; ++word) {
        int k = (byte + 4 * word) * S::PerByte, block = k / C::Block;
        float part[Rows][Columns] = {}, shifted[Columns];
#pragma unroll
        for (int c = 0; c < Columns; ++c) {
          shifted[c] = 8388608.f + (float)C::DefaultZero;
          if constexpr (C::HasZeros)
            shifted[c] = n0 + c < C::N ? toFloat(zeros[(long long)(n0 + c) * S::Blocks + block]) : 0.f;
        }
        constexpr int Piece = S::PerWord < 8 ? S::PerWord : 8;
#pragma unroll
        for (int piece = 0; piece < S::PerWord; piece += Piece) {
          float q[Columns][Piece];
#pragma unroll
          for (int c = 0; c < Columns; ++c)
#pragma unroll
            for (int i = 0; i < Piece; ++i)
              q[c][i] = C::HasZeros ? numberOf<C::Bits>(w[u][c][word], piece + i, 8388608.f) - shifted[c]
                                    : numberOf<C::Bits>(w[u][c][word], piece + i, shifted[c]);
#pragma unroll
          for (int m = 0; m < Rows; ++m) {
            if (C::M % Rows != 0 && m0 + m >= C::M)
              continue;
            float value[Piece];
            const typename C::Element *from = x + (long long)(m0 + m) * C::XSm + k + piece;
            if constexpr (C::VecX >= Piece)
              load<Piece>(value, from);
            else
#pragma unroll
              for (int i = 0; i < Piece; ++i)
                value[i] = toFloat(from[i]);
#pragma unroll
            for (int c = 0; c < Columns; ++c)
#pragma unroll
              for (int i = 0; i < Piece; ++i)
                part[m][c] += q[c][i] * value[i];
          }
        }
#pragma unroll
        for (int c = 0; c < Columns; ++c) {
          float scale = n0 + c < C::N ? toFloat(scales[(long long)(n0 + c) * S::Blocks + block]) : 0.f;
#pragma unroll
          for (int m = 0; m < Rows; ++m)
            acc[m][c] += n0 + c < C::N ? part[m][c] * scale : 0.f;
        }
      }
    }
    if (base + U < S::Steps)
      fetch(base + U);
  }
  if constexpr (C::Trigger == 2)
    launchDependents();
#pragma unroll
  for (int m = 0; m < Rows; ++m)
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      float sum = acc[m][c];
#pragma unroll
      for (int delta = 16; delta > 0; delta /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, delta);
      float result[1] = {sum};
      if (lane == (m * Columns + c) % 32 && n0 + c < C::N && m0 + m < C::M)
        epilogue(m0 + m, n0 + c, result);
    }
}

} // namespace ogc

#endif
