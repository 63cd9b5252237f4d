//===- wide.cuh - the block tile with warpgroup products (sm_90a) ---------===//
//
// Engine 1: four warps multiply 64 rows by BN columns with one instruction that reads both operands from shared memory.
// Everything else (ring, split of K, epilogue) is the tile of tile.cuh. Operands lie in the swizzled layouts the instruction
// knows: A as rows of 64 k (128 bytes), B in panels or row-major as rows of BN columns (n fastest), B transposed like A. f16 and
// bf16 only.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_WIDE_CUH
#define OGC_DEVICE_WIDE_CUH

#include "ogc/tile.cuh"
#include "ogc/wgmma.cuh"

namespace ogc {

/// Makes this thread's writes to shared memory visible to the tensor cores' own reads.
__device__ __forceinline__ void wideReady() {
#if OGC_HOPPER
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

template <class C, class S> struct WideProduct;

/// As Tile; WM and WK count warpgroups (64 rows each; K steps of a stage), WN is 1.
template <class C, int M_, int N_, int K_> struct WideTile {
  using T = typename C::Element;
  enum {
    M = M_,
    N = N_,
    K = K_,
    E = (int)sizeof(T),
    KS = 16,
    BM = C::BM,
    BN = C::BN,
    BK = C::BK,
    Groups = C::WM,
    WM = 4 * Groups,
    WN = 1,
    WK = C::WK,
    Stages = C::Stages,
    Split = C::Split,
    V = C::V,
    Transposed = C::BLayout == 2,
    Threads = 128 * Groups * WK,
    MI = 1,
    NI = BN / 8,
    Swizzle = Transposed || BN % 64 == 0 ? 128
              : BN % 32 == 0             ? 64
                                         : 32,
    Span = Swizzle / 2, // bytes of a row of B, and elements
    ABytes = BM * 128,
    BBytes = BK * BN * 2,
    StageBytes = ABytes + (BBytes + 1023) / 1024 * 1024,
    LdR = BN + 8,
    ScratchBytes = WK * BM * LdR * 4,
    ReceiveOffset = (Stages * StageBytes > ScratchBytes ? Stages * StageBytes : ScratchBytes),
    TilesM = (M + BM - 1) / BM,
    TilesN = (N + BN - 1) / BN,
    TilesK = (K + BK - 1) / BK,
    SliceK = (TilesK + Split - 1) / Split,
    ScaleOffset = ReceiveOffset + (Split > 1 ? BM * LdR * 4 : 0),
    Bytes = ScaleOffset + (C::Scaled ? SliceK * BK * E : 0),
    Resident = SliceK <= Stages,
    Ahead = Resident ? SliceK : Stages - 1,
    RowsOut = BM / Split
  };
  static_assert(E == 2 && BM == 64 * Groups && BK == 64 && C::WN == 1 && 4 % WK == 0, "shape of a warpgroup tile");
  static_assert(BM % Split == 0 && N % V == 0 && BN % V == 0 && Stages >= 2,
                "tile does not divide into epilogue vectors or cluster ranks");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
  template <class Config> using Product = WideProduct<Config, WideTile>;
  static __device__ __forceinline__ int placeA(int m, int k) { return m * 128 + ((k * 2) ^ ((m & 7) << 4)); }
  static __device__ __forceinline__ int placeB(int k, int n) {
    if (Transposed)
      return n * 128 + ((k * 2) ^ ((n & 7) << 4));
    int at = n / Span * (BK * Swizzle) + k * Swizzle + n % Span * 2;
    return at ^ (at >> 7 & (Swizzle / 16 - 1)) << 4;
  }
};

template <class C, class S> struct WideProduct {
  using T = typename C::Element;
  int group; // 64-row slice of this warpgroup

  __device__ __forceinline__ WideProduct(int, int wm, int) : group(wm / 4) {}

  __device__ __forceinline__ void ready() const { wideReady(); }
  __device__ __forceinline__ void run(float (&acc)[1][S::NI][4], unsigned aBase, unsigned bBase, int wk) const {
    wideFence();
#pragma unroll
    for (int step = 0; step < S::BK / 16 / S::WK; ++step) {
      int k = (step * S::WK + wk) * 16;
      unsigned long long a = wideDescriptor(aBase + group * 64 * 128 + k * 2, 16, 1024, 128), b;
      if constexpr (S::Transposed)
        b = wideDescriptor(bBase + k * 2, 16, 1024, 128);
      else
        b = wideDescriptor(bBase + k * S::Swizzle, S::BK * S::Swizzle, 8 * S::Swizzle, S::Swizzle);
      WideMma<T, S::NI, 0, !S::Transposed>::run(acc[0], a, b);
    }
    wideCommit();
    if constexpr (!S::Resident)
      wideWait(); // the next stage's copies overwrite the last one
  }
  __device__ __forceinline__ void finish(float (&acc)[1][S::NI][4]) const { wideFinish(acc[0]); }
};

template <class C, int M, int N, int K, int Engine> struct SelectTile {
  using Type = Tile<C, M, N, K>;
};
template <class C, int M, int N, int K> struct SelectTile<C, M, N, K, 1> {
  using Type = WideTile<C, M, N, K>;
};

} // namespace ogc

#endif
