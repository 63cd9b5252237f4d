//===- gemv.cuh - matrix product with few rows ----------------------------===//
//
// Streams B once. The lanes of a warp cover some consecutive rows k of B (BN / VecB lanes a row), the warps and the cluster split
// K, and the partial sums meet by shuffles, in shared memory and in distributed shared memory. Products are f32 multiply-adds.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_GEMV_CUH
#define OGC_DEVICE_GEMV_CUH

#include "ogc/ptx.cuh"

namespace ogc {

/// See README.md, "gemv".
struct GemvDefaults {
  enum {
    Batch = 1,
    ASb = 0,
    ASm = -1,
    ASk = 1,
    BLayout = 0,
    P = 64,
    BSb = 0,
    BSk = -1,
    BSn = 1,
    VecB = 1,
    V = 1,
    WeightsConstant = 0,
    Trigger = 1,
    BN = 32,
    Warps = 8,
    Split = 1,
    SharedBytes = 0
  };
};

template <class C> struct GemvShape {
  enum {
    Vec = C::VecB,
    M = C::M,
    N = C::N,
    K = C::K,
    BN = C::BN,
    Warps = C::Warps,
    Split = C::Split,
    V = C::V,
    Threads = 32 * Warps,
    LanesPerRow = BN / Vec,
    RowsPerWarp = 32 / LanesPerRow,
    RowsPerStep = RowsPerWarp * Warps,
    Slice = (K + Split - 1) / Split,
    Steps = (Slice + RowsPerStep - 1) / RowsPerStep,
    TilesN = (N + BN - 1) / BN,
    Unroll = Vec * (int)sizeof(typename C::Element) >= 16 ? 8 : 4,
    PartialOffset = (M * Slice * 4 + 15) / 16 * 16,
    ReceiveOffset = PartialOffset + Warps * M * BN * 4,
    Bytes = ReceiveOffset + (Split > 1 ? Split * M * BN * 4 : 0)
  };
  static_assert(BN % Vec == 0 && LanesPerRow <= 32 && 32 % LanesPerRow == 0, "lanes do not cover rows of B");
  static_assert(BN % V == 0 && N % V == 0 && (int)C::SharedBytes >= (int)Bytes,
                "V does not divide the columns, or SharedBytes is too small");
};

/// Vec elements of row k of B from column n; columns past N read as zero.
template <class C, class T>
__device__ __forceinline__ void loadWeights(T (&dst)[C::VecB], const T *__restrict__ b, int k, int n, bool in) {
  constexpr int Vec = C::VecB, P = C::P;
  if constexpr (C::BLayout == 0) {
    if (in && n < divUp(C::N, P) * P)
      loadRaw<Vec>(dst, b + ((long long)(n / P) * C::K * P + (long long)k * P + n % P));
    else
#pragma unroll
      for (int v = 0; v < Vec; ++v)
        dst[v] = T{};
  } else {
    constexpr long long Sk = (long long)C::BSk < 0 ? (long long)C::N : (long long)C::BSk, Sn = C::BSn;
    if (in && Vec > 1 && n + Vec <= C::N)
      loadRaw<Vec>(dst, b + (k * Sk + n));
    else
#pragma unroll
      for (int v = 0; v < Vec; ++v)
        dst[v] = in && n + v < C::N ? b[k * Sk + (n + v) * Sn] : T{};
  }
}

template <class C, class Epilogue>
__device__ __forceinline__ void gemv(const typename C::Element *__restrict__ a, const typename C::Element *__restrict__ b,
                                     const Epilogue &epilogue) {
  using T = typename C::Element;
  using S = GemvShape<C>;
  constexpr int Vec = S::Vec, M = S::M, BN = S::BN;
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  int block = blockIdx.x, rank = block % S::Split;
  block /= S::Split;
  int n0 = block % S::TilesN * BN, batch = block / S::TilesN;
  int first = rank * S::Slice, depth = most(0, least(S::Slice, C::K - first));
  int row = warp * S::RowsPerWarp + lane / S::LanesPerRow, col = lane % S::LanesPerRow * Vec;
  const T *weights = b + (C::BLayout == 0 ? 0ll : (long long)C::BSb * batch);
  unsigned char *shared = sharedBase();
  float *x = reinterpret_cast<float *>(shared), *partial = reinterpret_cast<float *>(shared + S::PartialOffset);

  if constexpr (C::Trigger == 0)
    launchDependents();
  if constexpr (S::Split > 1)
    clusterArriveRelaxed();
  constexpr int U = least(S::Unroll, S::Steps);
  T w[U][Vec];
  auto fetch = [&](int base) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      int k = (base + u) * S::RowsPerStep + row;
      loadWeights<C>(w[u], weights, first + k, n0 + col, k < depth);
    }
  };
  if constexpr (C::WeightsConstant)
    fetch(0);
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  constexpr long long Sm = (long long)C::ASm < 0 ? (long long)C::K : (long long)C::ASm;
#pragma unroll
  for (int m = 0; m < M; ++m)
    for (int k = tid; k < depth; k += S::Threads)
      x[m * S::Slice + k] = toFloat(a[(long long)C::ASb * batch + Sm * m + (long long)C::ASk * (first + k)]);
  if constexpr (!C::WeightsConstant)
    fetch(0);
  __syncthreads();

  float acc[M][Vec] = {};
#pragma unroll 1
  for (int base = 0; base < S::Steps; base += U) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      int k = (base + u) * S::RowsPerStep + row;
      if (k < depth) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
          float factor = x[m * S::Slice + k];
#pragma unroll
          for (int v = 0; v < Vec; ++v)
            acc[m][v] += factor * toFloat(w[u][v]);
        }
      }
    }
    if (base + U < S::Steps)
      fetch(base + U);
  }
  if constexpr (C::Trigger == 2)
    launchDependents();

#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int v = 0; v < Vec; ++v) {
#pragma unroll
      for (int delta = S::LanesPerRow; delta < 32; delta *= 2)
        acc[m][v] += __shfl_xor_sync(0xffffffffu, acc[m][v], delta);
      if (lane < S::LanesPerRow)
        partial[(warp * M + m) * BN + col + v] = acc[m][v];
    }
  __syncthreads();

  constexpr int Slots = S::Split > 1 ? S::Split : S::Warps;
  if constexpr (S::Split > 1) {
    // every rank sends its sums to rank 0
    clusterWait();
    for (int i = tid; i < M * BN; i += S::Threads) {
      float sum = 0.f;
#pragma unroll
      for (int slot = 0; slot < S::Warps; ++slot)
        sum += partial[slot * M * BN + i];
      storeCluster1(clusterAddress(sharedAddress(shared + S::ReceiveOffset) + (rank * M * BN + i) * 4, 0), sum);
    }
    clusterArrive();
    clusterWait();
    if (rank != 0)
      return;
    partial = reinterpret_cast<float *>(shared + S::ReceiveOffset);
  }
  for (int i = tid; i < M * BN / S::V; i += S::Threads) {
    int m = i / (BN / S::V), c = i % (BN / S::V) * S::V;
    if (n0 + c >= C::N)
      continue;
    float sum[S::V] = {};
#pragma unroll
    for (int slot = 0; slot < Slots; ++slot)
#pragma unroll
      for (int v = 0; v < S::V; ++v)
        sum[v] += partial[(slot * M + m) * BN + c + v];
    epilogue(batch, m, n0 + c, sum);
  }
}

} // namespace ogc

#endif
