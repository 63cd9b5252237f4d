//===- chain.cuh - vectors of an image, one stage after the other ---------===//
//
// One cluster computes the vectors of one image: sums over pixels, then products with one row each. A vector is either spread
// over the blocks (each has its shard) or in all of them. A product of a vector that all have gives each block its shard of
// columns; a product of a spread one gives each block a part of every column, and the parts meet in distributed shared memory.
// So of two products that follow each other one needs no exchange. Weights come to shared memory before the wait.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_CHAIN_CUH
#define OGC_DEVICE_CHAIN_CUH

#include "ogc/memory.cuh"

namespace ogc {

/// See README.md, "chain".
struct ChainDefaults {
  enum { Ranks = 8, Threads = 512, V = 1, P = 64, Spread = 0, Resident = 1 };
};

/// The part of a vector of `Length` elements that a block has.
template <int Length, int Ranks> struct Shard {
  enum { Size = (divUp(Length, Ranks) + 7) / 8 * 8 };
  static __device__ __forceinline__ int first(int rank) { return rank * Size; }
  static __device__ __forceinline__ int count(int rank) { return most(0, least(Size, Length - rank * Size)); }
  static __device__ __forceinline__ bool owns(int rank, int n) { return n / Size == rank; }
};

/// How the warps cover `Columns` vectors of columns: the lanes of a warp have neighbouring columns, then neighbouring rows;
/// `Across` warps have further columns, the others further rows, so that `Down` partial sums a column are left.
template <int Columns, int Warps> struct BlockGrid {
  enum {
    Lanes = Columns > 16  ? 32
            : Columns > 8 ? 16
            : Columns > 4 ? 8
            : Columns > 2 ? 4
            : Columns > 1 ? 2
                          : 1,
    Parts = (Columns + Lanes - 1) / Lanes,
    Across = least(Warps, Parts >= 16  ? 16
                          : Parts >= 8 ? 8
                          : Parts >= 4 ? 4
                          : Parts >= 2 ? 2
                                       : 1),
    Down = Warps / Across,
    Passes = (Parts + Across - 1) / Across,
    RowsAWarp = 32 / Lanes,
    Rows = RowsAWarp * Down
  };
  static __device__ __forceinline__ int column(int pass) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    return (pass * Across + warp % Across) * Lanes + lane % Lanes;
  }
  static __device__ __forceinline__ int slot() { return (threadIdx.x >> 5) / Across; }
  static __device__ __forceinline__ int row() { return slot() * RowsAWarp + (threadIdx.x & 31) / Lanes; }
};

/// Requests 16 bytes for shared memory; before sm_80 they are there at once.
__device__ __forceinline__ void request16(unsigned char *shared, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  copyAsync<16>(sharedAddress(shared), from, 16);
#else
  *reinterpret_cast<uint4 *>(shared) = *reinterpret_cast<const uint4 *>(from);
#endif
}
/// Waits for what this thread has requested.
__device__ __forceinline__ void receive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

//===----------------------------------------------------------------------===//
// Reduction over pixels: members Element, Pixels, Channels, V (channels of one load), Ranks, Threads
//===----------------------------------------------------------------------===//

template <class C> struct ReductionShape {
  using Own = Shard<C::Channels, C::Ranks>;
  using Grid = BlockGrid<Own::Size / C::V, C::Threads / 32>;
  enum { PartialBytes = Grid::Down * Own::Size * 4 };
};

/// Calls result(channel, value) once for each channel of this block. `x` is the image [Pixels, Channels]; fold(accumulator,
/// element) takes one element in, combine joins two accumulators.
template <class C, class Fold, class Combine, class Result>
__device__ __forceinline__ void reducePixels(const typename C::Element *x, float *partial, int rank, float neutral,
                                             const Fold &fold, const Combine &combine, const Result &result) {
  using T = typename C::Element;
  using S = ReductionShape<C>;
  using Own = typename S::Own;
  using G = typename S::Grid;
  constexpr int V = C::V, Unroll = least(8, divUp(C::Pixels, G::Rows));
  int tid = threadIdx.x, count = Own::count(rank);
#pragma unroll 1
  for (int pass = 0; pass < G::Passes; ++pass) {
    int column = G::column(pass) * V;
    const T *from = x + Own::first(rank) + column;
    float acc[V];
#pragma unroll
    for (int v = 0; v < V; ++v)
      acc[v] = neutral;
#pragma unroll 1
    for (int base = 0; base < C::Pixels; base += Unroll * G::Rows) {
      T value[Unroll][V];
#pragma unroll
      for (int u = 0; u < Unroll; ++u) {
        int pixel = base + u * G::Rows + G::row();
        if (column < count && pixel < C::Pixels)
          loadRaw<V>(value[u], from + (long long)pixel * C::Channels);
      }
#pragma unroll
      for (int u = 0; u < Unroll; ++u) {
        int pixel = base + u * G::Rows + G::row();
        if (column < count && pixel < C::Pixels)
#pragma unroll
          for (int v = 0; v < V; ++v)
            acc[v] = fold(acc[v], value[u][v]);
      }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
#pragma unroll
      for (int delta = G::Lanes; delta < 32; delta *= 2)
        acc[v] = combine(acc[v], __shfl_xor_sync(0xffffffffu, acc[v], delta));
      if ((tid & 31) < G::Lanes && column < count)
        partial[G::slot() * Own::Size + column + v] = acc[v];
    }
  }
  receive();
  __syncthreads();
  for (int i = tid; i < count; i += C::Threads) {
    float sum = partial[i];
#pragma unroll
    for (int slot = 1; slot < G::Down; ++slot)
      sum = combine(sum, partial[slot * Own::Size + i]);
    result(Own::first(rank) + i, sum);
  }
}

//===----------------------------------------------------------------------===//
// Product of one row: members Element, K, N, P, Ranks, Threads, Spread (the row is spread over the blocks), Resident (its
// weights fit in shared memory)
//===----------------------------------------------------------------------===//

template <class C> struct ProductShape {
  using Own = Shard<C::Spread ? C::K : C::N, C::Ranks>; // rows or columns of this block
  enum {
    E = (int)sizeof(typename C::Element),
    Vec = 16 / E,
    Rows = C::Spread ? (int)Own::Size : (int)C::K,
    Columns = C::Spread ? roundUp(C::N, 8) : (int)Own::Size,
    Padded = roundUp(C::N, 8), // panels are at least 16 wide
    WeightBytes = C::Resident ? Rows * Columns * E : 0,
    ReceiveBytes = C::Spread && C::Ranks > 1 ? C::Ranks *C::N * 4 : 0
  };
  static_assert(C::P % 8 == 0, "panels do not divide into vectors");
  using Grid = BlockGrid<Columns / Vec, C::Threads / 32>;
  enum { PartialBytes = Grid::Down * Columns * 4 };
  /// Rows and columns in the whole matrix of the local ones.
  static __device__ __forceinline__ int row(int rank, int k) { return C::Spread ? Own::first(rank) + k : k; }
  static __device__ __forceinline__ int column(int rank, int n) { return C::Spread ? n : Own::first(rank) + n; }
  static __device__ __forceinline__ int rows(int rank) { return C::Spread ? Own::count(rank) : (int)C::K; }
  static __device__ __forceinline__ long long offset(int k, int n) {
    return (long long)(n / C::P) * C::K * C::P + (long long)k * C::P + n % C::P;
  }
};

/// Requests the weights of this block.
template <class C>
__device__ __forceinline__ void loadProduct(unsigned char *shared, const typename C::Element *weights, int rank) {
  using S = ProductShape<C>;
  if constexpr (C::Resident) {
    constexpr int PerRow = S::Columns / S::Vec;
    int rows = S::rows(rank);
    for (int i = threadIdx.x; i < rows * PerRow; i += C::Threads) {
      int k = i / PerRow, n = i % PerRow * S::Vec, column = S::column(rank, n);
      if (column < S::Padded)
        request16(shared + (k * S::Columns + n) * S::E, weights + S::offset(S::row(rank, k), column));
    }
  }
}

/// Sums of this block's part of the product, one a warp and column, in `partial`. `x` is the whole row.
template <class C>
__device__ __forceinline__ void multiply(const float *x, const unsigned char *shared, const typename C::Element *weights,
                                         float *partial, int rank) {
  using T = typename C::Element;
  using S = ProductShape<C>;
  using G = typename S::Grid;
  receive();
  __syncthreads();
  int rows = S::rows(rank);
  const float *own = x + S::row(rank, 0);
#pragma unroll 1
  for (int pass = 0; pass < G::Passes; ++pass) {
    int column = G::column(pass) * S::Vec;
    bool in = column < S::Columns && S::column(rank, column) < S::Padded;
    float acc[S::Vec] = {};
    if (in)
#pragma unroll 4
      for (int k = G::row(); k < rows; k += G::Rows) {
        T w[S::Vec];
        if constexpr (C::Resident)
          loadRaw<S::Vec>(w, reinterpret_cast<const T *>(shared) + (k * S::Columns + column));
        else
          loadRaw<S::Vec>(w, weights + S::offset(S::row(rank, k), S::column(rank, column)));
        float factor = own[k];
#pragma unroll
        for (int v = 0; v < S::Vec; ++v)
          acc[v] += factor * toFloat(w[v]);
      }
#pragma unroll
    for (int v = 0; v < S::Vec; ++v) {
#pragma unroll
      for (int delta = G::Lanes; delta < 32; delta *= 2)
        acc[v] += __shfl_xor_sync(0xffffffffu, acc[v], delta);
      if ((threadIdx.x & 31) < G::Lanes && in)
        partial[G::slot() * S::Columns + column + v] = acc[v];
    }
  }
  __syncthreads();
}

/// Calls result(n, sum) for each column of this block; for a spread row for all columns, in every block. `parts` has room for
/// ReceiveBytes; the blocks of the cluster have started.
template <class C, class Result>
__device__ __forceinline__ void finishProduct(const float *partial, float *parts, int rank, const Result &result) {
  using S = ProductShape<C>;
  int first = C::Spread ? 0 : S::Own::first(rank), count = C::Spread ? (int)C::N : S::Own::count(rank);
  for (int i = threadIdx.x; i < count; i += C::Threads) {
    float sum = 0.f;
#pragma unroll
    for (int slot = 0; slot < S::Grid::Down; ++slot)
      sum += partial[slot * S::Columns + i];
    if constexpr (S::ReceiveBytes > 0) {
      unsigned to = sharedAddress(parts + rank * C::N + i);
#pragma unroll
      for (int r = 0; r < C::Ranks; ++r)
        storeCluster1(clusterAddress(to, r), sum);
    } else
      result(first + i, sum);
  }
  if constexpr (S::ReceiveBytes > 0) {
    clusterArrive();
    clusterWait();
    for (int i = threadIdx.x; i < C::N; i += C::Threads) {
      float sum = 0.f;
#pragma unroll
      for (int r = 0; r < C::Ranks; ++r)
        sum += parts[r * C::N + i];
      result(i, sum);
    }
  }
}

/// Requests `Bytes` of constants; buffers may be read up to the next multiple of 16 bytes.
template <int Bytes, int Threads> __device__ __forceinline__ void loadConstants(unsigned char *shared, const void *from) {
  for (int i = threadIdx.x; i < divUp(Bytes, 16); i += Threads)
    request16(shared + i * 16, reinterpret_cast<const unsigned char *>(from) + i * 16);
}

} // namespace ogc

#endif
