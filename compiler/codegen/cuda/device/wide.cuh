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

namespace ogc {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ __forceinline__ void wideFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wideCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wideWait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
/// Makes this thread's writes to shared memory visible to the tensor cores' own reads.
__device__ __forceinline__ void wideReady() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else
__device__ __forceinline__ void wideFence() {}
__device__ __forceinline__ void wideCommit() {}
__device__ __forceinline__ void wideWait() {}
__device__ __forceinline__ void wideReady() {}
#endif

/// acc (64 x 8 NI, as this thread's part) += A * B, both given by descriptors; TransposeB: n is the fastest dimension of B.
template <class T, int NI, int TransposeB> struct WideMma;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define OGC_ACC4(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define OGC_WIDE_MMA(type, name, width, ni, regs, da, db, tb, ...)                                                               \
  template <int TransposeB> struct WideMma<type, ni, TransposeB> {                                                               \
    static __device__ __forceinline__ void run(float (&c)[ni][4], unsigned long long a, unsigned long long b) {                  \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" width "k16.f32." name "." name " {" regs "}, " da ", " db                 \
                   ", 1, 1, 1, 0, " tb ";"                                                                                       \
                   : __VA_ARGS__                                                                                                 \
                   : "l"(a), "l"(b), "n"(TransposeB));                                                                           \
    }                                                                                                                            \
  };
OGC_WIDE_MMA(f16, "f16", "16", 2, "%0,%1,%2,%3,%4,%5,%6,%7", "%8", "%9", "%10", OGC_ACC4(0), OGC_ACC4(1))
OGC_WIDE_MMA(bf16, "bf16", "16", 2, "%0,%1,%2,%3,%4,%5,%6,%7", "%8", "%9", "%10", OGC_ACC4(0), OGC_ACC4(1))
OGC_WIDE_MMA(f16, "f16", "32", 4, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15", "%16", "%17", "%18", OGC_ACC4(0),
             OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3))
OGC_WIDE_MMA(bf16, "bf16", "32", 4, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15", "%16", "%17", "%18", OGC_ACC4(0),
             OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3))
OGC_WIDE_MMA(f16, "f16", "48", 6, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23", "%24",
             "%25", "%26", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5))
OGC_WIDE_MMA(bf16, "bf16", "48", 6, "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23",
             "%24", "%25", "%26", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5))
OGC_WIDE_MMA(
    f16, "f16", "64", 8,
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31",
    "%32", "%33", "%34", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5), OGC_ACC4(6), OGC_ACC4(7))
OGC_WIDE_MMA(
    bf16, "bf16", "64", 8,
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31",
    "%32", "%33", "%34", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5), OGC_ACC4(6), OGC_ACC4(7))
OGC_WIDE_MMA(
    f16, "f16", "96", 12,
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47",
    "%48", "%49", "%50", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5), OGC_ACC4(6), OGC_ACC4(7),
    OGC_ACC4(8), OGC_ACC4(9), OGC_ACC4(10), OGC_ACC4(11))
OGC_WIDE_MMA(
    bf16, "bf16", "96", 12,
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47",
    "%48", "%49", "%50", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5), OGC_ACC4(6), OGC_ACC4(7),
    OGC_ACC4(8), OGC_ACC4(9), OGC_ACC4(10), OGC_ACC4(11))
OGC_WIDE_MMA(
    f16, "f16", "128", 16,
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,"
    "%63",
    "%64", "%65", "%66", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5), OGC_ACC4(6), OGC_ACC4(7),
    OGC_ACC4(8), OGC_ACC4(9), OGC_ACC4(10), OGC_ACC4(11), OGC_ACC4(12), OGC_ACC4(13), OGC_ACC4(14), OGC_ACC4(15))
OGC_WIDE_MMA(
    bf16, "bf16", "128", 16,
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,"
    "%63",
    "%64", "%65", "%66", OGC_ACC4(0), OGC_ACC4(1), OGC_ACC4(2), OGC_ACC4(3), OGC_ACC4(4), OGC_ACC4(5), OGC_ACC4(6), OGC_ACC4(7),
    OGC_ACC4(8), OGC_ACC4(9), OGC_ACC4(10), OGC_ACC4(11), OGC_ACC4(12), OGC_ACC4(13), OGC_ACC4(14), OGC_ACC4(15))
#undef OGC_WIDE_MMA
#undef OGC_ACC4
#else
template <class T, int NI, int TransposeB> struct WideMma {
  static __device__ __forceinline__ void run(float (&)[NI][4], unsigned long long, unsigned long long) {
#if defined(__CUDA_ARCH__)
    static_assert(NI < 0, "Engine 1 needs code for sm_90a");
#endif
  }
};
#endif

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

  /// address / 16, leading offset / 16, stride between groups of eight rows / 16, swizzle
  static __device__ __forceinline__ unsigned long long descriptor(unsigned address, int leading, int stride, int swizzle) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 |
           (unsigned long long)(swizzle == 128  ? 1
                                : swizzle == 64 ? 2
                                                : 3)
               << 62;
  }
  __device__ __forceinline__ void ready() const { wideReady(); }
  __device__ __forceinline__ void run(float (&acc)[1][S::NI][4], unsigned aBase, unsigned bBase, int wk) const {
    wideFence();
#pragma unroll
    for (int step = 0; step < S::BK / 16 / S::WK; ++step) {
      int k = (step * S::WK + wk) * 16;
      unsigned long long a = descriptor(aBase + group * 64 * 128 + k * 2, 16, 1024, 128), b;
      if constexpr (S::Transposed)
        b = descriptor(bBase + k * 2, 16, 1024, 128);
      else
        b = descriptor(bBase + k * S::Swizzle, S::BK * S::Swizzle, 8 * S::Swizzle, S::Swizzle);
      WideMma<T, S::NI, !S::Transposed>::run(acc[0], a, b);
    }
    wideCommit();
    if constexpr (!S::Resident)
      wideWait(); // the next stage's copies overwrite the last one
  }
  __device__ __forceinline__ void finish(float (&acc)[1][S::NI][4]) const {
    wideWait();
#pragma unroll
    for (int j = 0; j < S::NI; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        asm volatile("" : "+f"(acc[0][j][q])::"memory");
  }
};

template <class C, int M, int N, int K, int Engine> struct SelectTile {
  using Type = Tile<C, M, N, K>;
};
template <class C, int M, int N, int K> struct SelectTile<C, M, N, K, 1> {
  using Type = WideTile<C, M, N, K>;
};

} // namespace ogc

#endif
