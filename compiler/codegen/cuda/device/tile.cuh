//===- tile.cuh - the block tile shared by gemm and conv ------------------===//
//
// One block computes BM x BN accumulators over its slice of K. Operands go through a ring of `Stages` buffers filled by cp.async.
// If the ring holds the whole slice, everything is requested at once and the ring never turns (the fast form for one image or
// sentence: weights are requested before the wait for the previous kernel). K is split over warps (WK) and over a cluster
// (Split); partial sums meet in shared memory, and the epilogue reads them from there, so that consecutive threads hold
// consecutive columns.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_TILE_CUH
#define OGC_DEVICE_TILE_CUH

#include "ogc/norm.cuh"
#include "ogc/ptx.cuh"

namespace ogc {

/// Defaults of the tile members of a configuration; see README.md.
struct TileDefaults {
  enum {
    Products = 1,
    Batch = 1,
    BLayout = 0,
    P = 64,
    BM = 64,
    BN = 64,
    BK = 64,
    WM = 2,
    WN = 2,
    WK = 1,
    Stages = 3,
    Split = 1,
    V = 1,
    WeightsConstant = 0,
    Trigger = 1,
    VecA = 1,
    VecB = 1,
    SharedBytes = 0,
    Engine = 0,
    Scaled = 0
  };
};

template <class C, class S> struct WarpProduct;

/// Numbers derived from a configuration and the extents of the product (M rows a batch, N columns, K).
template <class C, int M_, int N_, int K_> struct Tile {
  using T = typename C::Element;
  enum {
    M = M_,
    N = N_,
    K = K_,
    E = (int)sizeof(T),
    KS = Mma<T>::KS,
    Pad = 16 / E,
    BM = C::BM,
    BN = C::BN,
    BK = C::BK,
    WM = C::WM,
    WN = C::WN,
    WK = C::WK,
    Stages = C::Stages,
    Split = C::Split,
    V = C::V,
    Transposed = C::BLayout == 2,
    Threads = 32 * WM * WN * WK,
    MI = BM / WM / 16,
    NI = BN / WN / 8,
    LdA = BK + Pad,
    LdB = Transposed ? BK + Pad : BN + 8,
    ABytes = BM * LdA * E,
    BBytes = (Transposed ? BN : BK) * LdB * E,
    StageBytes = ABytes + BBytes,
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
  static_assert(BM % (16 * WM) == 0 && BN % (16 * WN) == 0 && BK % (KS * WK) == 0 && BK % 16 == 0,
                "tile does not divide into warps");
  static_assert(BM % Split == 0 && N % V == 0 && BN % V == 0 && Stages >= 2,
                "tile does not divide into epilogue vectors or cluster ranks");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
  /// Byte offsets in a stage: rows padded by 16 bytes, so that eight rows of a column lie in different banks.
  template <class Config> using Product = WarpProduct<Config, Tile>;
  static __device__ __forceinline__ int placeA(int m, int k) { return (m * LdA + k) * E; }
  static __device__ __forceinline__ int placeB(int k, int n) { return Transposed ? (n * LdB + k) * E : (k * LdB + n) * E; }
};

/// Fills one vector of Vec elements of shared memory; `valid` elements come from src, the others become zero.
template <class T, int Vec> __device__ __forceinline__ void copyVector(unsigned char *shared, const T *src, int valid) {
  copyAsync<Vec *(int)sizeof(T)>(sharedAddress(shared), src, valid * (int)sizeof(T));
}

/// Copies of two bytes have no asynchronous form: some of them at a time go through registers. take(step, source, target) tells
/// what step copies (a null source: zero) and returns false where there is nothing to do.
template <class T, int Steps, class Take> __device__ __forceinline__ void copyElements(unsigned char *shared, const Take &take) {
  constexpr int Batch = Steps < 8 ? Steps : 8;
#pragma unroll
  for (int base = 0; base < Steps; base += Batch) {
    T value[Batch];
    int target[Batch];
#pragma unroll
    for (int i = 0; i < Batch; ++i) {
      const T *source = nullptr;
      value[i] = T{};
      target[i] = -1;
      if (base + i < Steps && take(base + i, source, target[i]) && source)
        value[i] = *source;
    }
#pragma unroll
    for (int i = 0; i < Batch; ++i)
      if (target[i] >= 0)
        *reinterpret_cast<T *>(shared + target[i]) = value[i];
  }
}

/// How the threads share out a tile of Rows rows of Chunks vectors: if Even, a thread keeps its column and steps down the rows.
template <int Rows, int Chunks, int Threads> struct CopyGrid {
  enum {
    Total = Rows * Chunks,
    Steps = (Total + Threads - 1) / Threads,
    Even = Threads % Chunks == 0,
    RowStep = Threads / Chunks
  };
  static __device__ __forceinline__ int index(int step) { return step * Threads + (int)threadIdx.x; }
  static __device__ __forceinline__ int row(int step) { return index(step) / Chunks; }
  static __device__ __forceinline__ int column(int step) { return index(step) % Chunks; }
  static __device__ __forceinline__ bool in(int step) { return index(step) < Total; }
};

/// Loads the tile [Rows, Cols] of a strided matrix: rows step by sRow, columns by sCol (1 for Vec > 1); place(row, col) is the
/// offset in shared memory. Columns at or past `cols` become zero, rows at or past `rows` too if ZeroRows (else nobody needs
/// them).
template <class T, int Rows, int Cols, int Vec, int Threads, bool ZeroRows, class Place>
__device__ __forceinline__ void loadMatrix(unsigned char *shared, const T *origin, long long sRow, long long sCol, int rows,
                                           int cols, const Place &place) {
  using G = CopyGrid<Rows, Cols / Vec, Threads>;
  int row0 = G::row(0), col = G::column(0) * Vec;
  const T *source = origin + (row0 * sRow + col * sCol);
  if constexpr (Vec * (int)sizeof(T) < 4) {
    copyElements<T, G::Steps>(shared, [&](int step, const T *&from, int &target) {
      int row = G::row(step), c = G::column(step);
      if ((G::Total % Threads != 0 && !G::in(step)) || (!ZeroRows && row >= rows))
        return false;
      target = place(row, c);
      if (row < rows && c < cols)
        from = origin + (row * sRow + c * sCol);
      return true;
    });
  } else {
#pragma unroll
    for (int step = 0; step < G::Steps; ++step) {
      int row = G::Even ? row0 + step * G::RowStep : G::row(step);
      if (!G::Even)
        col = G::column(step) * Vec, source = origin + (row * sRow + col * sCol);
      bool rowIn = row < rows;
      if ((G::Total % Threads != 0 && !G::in(step)) || (!ZeroRows && !rowIn))
        continue;
      int valid = rowIn ? most(0, least(Vec, cols - col)) : 0;
      copyVector<T, Vec>(shared + place(row, col), valid ? (G::Even ? source + step * G::RowStep * sRow : source) : origin,
                         valid);
    }
  }
}

/// B panels [ceil(N/P), K, P]: rows k0.. and columns n0.. of the tile.
template <class C, class S> struct PanelLoader {
  using T = typename C::Element;
  const T *b;
  int n0;
  __device__ __forceinline__ PanelLoader(const T *base, int, int n) : b(base), n0(n) {}
  __device__ __forceinline__ void load(unsigned char *shared, int k0) const {
    constexpr int Vec = 16 / S::E, P = C::P, Padded = (S::N + P - 1) / P * P;
    using G = CopyGrid<S::BK, S::BN / Vec, S::Threads>;
    int col = G::column(0) * Vec;
    long long panel = offset(n0 + col, k0);
#pragma unroll
    for (int step = 0; step < G::Steps; ++step) {
      int row = G::Even ? G::row(0) + step * G::RowStep : G::row(step);
      if (!G::Even)
        col = G::column(step) * Vec, panel = offset(n0 + col, k0);
      if ((G::Total % S::Threads != 0 && !G::in(step)) || (Padded % S::BN != 0 && n0 + col >= Padded))
        continue;
      bool in = S::K % S::BK == 0 || k0 + row < S::K;
      copyAsync<16>(sharedAddress(shared + S::placeB(row, col)), b + (in ? panel + row * P : 0), in ? 16 : 0);
    }
  }
  static __device__ __forceinline__ long long offset(int n, int k) {
    return (long long)(n / C::P) * S::K * C::P + (long long)k * C::P + n % C::P;
  }
};

/// B row-major [K, N] (layout 1) or transposed [N, K] (layout 2), any strides.
template <class C, class S> struct DenseLoader {
  using T = typename C::Element;
  const T *b;
  int n0;
  __device__ __forceinline__ DenseLoader(const T *base, int batch, int n) : b(base + (long long)C::BSb * batch), n0(n) {}
  __device__ __forceinline__ void load(unsigned char *shared, int k0) const {
    const T *origin = b + (long long)C::BSk * k0 + (long long)C::BSn * n0;
    if constexpr (S::Transposed)
      loadMatrix<T, S::BN, S::BK, C::VecB, S::Threads, false>(shared, origin, C::BSn, C::BSk, S::N - n0, S::K - k0,
                                                              [](int n, int k) { return S::placeB(k, n); });
    else
      loadMatrix<T, S::BK, S::BN, C::VecB, S::Threads, true>(shared, origin, C::BSk, C::BSn, S::K - k0, S::N - n0,
                                                             [](int k, int n) { return S::placeB(k, n); });
  }
};

/// One warp's products over one stage.
template <class C, class S> struct WarpProduct {
  using T = typename C::Element;
  unsigned aAddress, bAddress;

  /// Hooks for products that run on their own (see wide.cuh): after this thread's copies have arrived; after the last stage.
  __device__ __forceinline__ void ready() const {}
  __device__ __forceinline__ void finish(float (&)[S::MI][S::NI][4]) const {}

  __device__ __forceinline__ WarpProduct(int lane, int wm, int wn) {
    int row = wm * (S::BM / S::WM) + (lane & 15);
    aAddress = (row * S::LdA + (lane >> 4) * S::Pad) * S::E;
    int n = wn * (S::BN / S::WN);
    if constexpr (S::Transposed)
      bAddress = ((n + (lane & 7) + ((lane >> 4) << 3)) * S::LdB + ((lane >> 3) & 1) * S::Pad) * S::E;
    else if constexpr (S::E == 2)
      bAddress = ((lane & 15) * S::LdB + n + (lane >> 4) * 8) * S::E;
    else
      bAddress = ((lane & 3) * S::LdB + n + (lane >> 2)) * S::E;
  }

  /// B fragments of columns 16 j .. 16 j + 15 at depth k: b[0], b[1] for the first eight columns, b[2], b[3] for the others.
  __device__ __forceinline__ void loadB(unsigned (&b)[4], unsigned base, int k, int j) const {
    if constexpr (S::Transposed)
      loadMatrix4(b, base + bAddress + (j * 16 * S::LdB + k) * S::E);
    else if constexpr (S::E == 2)
      loadMatrix4Transposed(b, base + bAddress + (k * S::LdB + j * 16) * S::E);
    else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        b[i] = __float_as_uint(loadShared(base + bAddress + ((k + (i & 1) * 4) * S::LdB + j * 16 + (i >> 1) * 8) * S::E));
    }
  }

  __device__ __forceinline__ void run(float (&acc)[S::MI][S::NI][4], unsigned aBase, unsigned bBase, int wk) const {
#pragma unroll
    for (int step = 0; step < S::BK / S::KS / S::WK; ++step) {
      int k = (step * S::WK + wk) * S::KS;
      unsigned a[S::MI][4], b[S::NI / 2][4];
#pragma unroll
      for (int i = 0; i < S::MI; ++i)
        loadMatrix4(a[i], aBase + aAddress + (i * 16 * S::LdA + k) * S::E);
#pragma unroll
      for (int j = 0; j < S::NI / 2; ++j)
        loadB(b[j], bBase, k, j);
      if constexpr (S::E == 4 && C::Products == 3)
        multiplySplit(acc, a, b);
      else {
        if constexpr (S::E == 4) {
#pragma unroll
          for (int q = 0; q < 4; ++q) {
#pragma unroll
            for (int i = 0; i < S::MI; ++i)
              a[i][q] = operandTf32(a[i][q]);
#pragma unroll
            for (int j = 0; j < S::NI / 2; ++j)
              b[j][q] = operandTf32(b[j][q]);
          }
        }
#pragma unroll
        for (int i = 0; i < S::MI; ++i)
#pragma unroll
          for (int j = 0; j < S::NI; ++j)
            Mma<T>::run(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

  /// Three tf32 products give the f32 product to about 2^-21; the smallest terms come first.
  static __device__ __forceinline__ void multiplySplit(float (&acc)[S::MI][S::NI][4], unsigned (&a)[S::MI][4],
                                                       unsigned (&b)[S::NI / 2][4]) {
    unsigned aLow[S::MI][4], bLow[S::NI / 2][4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
      for (int i = 0; i < S::MI; ++i)
        splitTf32(a[i][q], a[i][q], aLow[i][q]);
#pragma unroll
      for (int j = 0; j < S::NI / 2; ++j)
        splitTf32(b[j][q], b[j][q], bLow[j][q]);
    }
#pragma unroll
    for (int i = 0; i < S::MI; ++i)
#pragma unroll
      for (int j = 0; j < S::NI; ++j) {
        Mma<T>::run(acc[i][j], aLow[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        Mma<T>::run(acc[i][j], a[i], bLow[j / 2][j % 2 * 2], bLow[j / 2][j % 2 * 2 + 1]);
        Mma<T>::run(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
  }
};

/// Sums the warps' (and the cluster's) partial accumulators and calls the epilogue on every vector of the tile that lies in the
/// result.
template <class C, class S, class Epilogue>
__device__ __forceinline__ void finishTile(float (&acc)[S::MI][S::NI][4], unsigned char *shared, int rank, int batch, int m0,
                                           int n0, const Epilogue &epilogue) {
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  int wk = warp / (S::WM * S::WN), wm = warp / S::WN % S::WM, wn = warp % S::WN;
  __syncthreads();
  unsigned base = sharedAddress(shared) +
                  ((wk * S::BM + wm * (S::BM / S::WM) + (lane >> 2)) * S::LdR + wn * (S::BN / S::WN) + (lane & 3) * 2) * 4;
#pragma unroll
  for (int i = 0; i < S::MI; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < S::NI; ++j)
        storeShared2(base + ((i * 16 + half * 8) * S::LdR + j * 8) * 4, acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
  __syncthreads();

  const float *partial = reinterpret_cast<const float *>(shared);
  int row0 = 0;
  int slotStride = S::BM * S::LdR;
  if constexpr (S::Split > 1) {
    // each rank owns BM / Split rows: send every row, summed over this block's warps, to its owner
    clusterWait();
#pragma unroll 1
    for (int i = tid; i < S::BM * S::BN / 4; i += S::Threads) {
      int row = i / (S::BN / 4), col = i % (S::BN / 4) * 4;
      float4 sum = *reinterpret_cast<const float4 *>(partial + row * S::LdR + col);
#pragma unroll
      for (int w = 1; w < S::WK; ++w) {
        float4 more = *reinterpret_cast<const float4 *>(partial + (w * S::BM + row) * S::LdR + col);
        sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
      }
      unsigned local = sharedAddress(shared + S::ReceiveOffset) + ((rank * S::RowsOut + row % S::RowsOut) * S::LdR + col) * 4;
      storeCluster4(clusterAddress(local, row / S::RowsOut), sum.x, sum.y, sum.z, sum.w);
    }
    clusterArrive();
    clusterWait();
    partial = reinterpret_cast<const float *>(shared + S::ReceiveOffset);
    row0 = rank * S::RowsOut, slotStride = S::RowsOut * S::LdR;
  }

  constexpr int PerRow = S::BN / S::V, Total = S::RowsOut * PerRow, Slots = S::Split > 1 ? S::Split : S::WK;
#pragma unroll
  for (int step = 0; step < (Total + S::Threads - 1) / S::Threads; ++step) {
    int i = step * S::Threads + tid, row = i / PerRow, col = i % PerRow * S::V, m = m0 + row0 + row, n = n0 + col;
    if ((Total % S::Threads != 0 && i >= Total) || m >= S::M || n >= S::N)
      continue;
    float sum[S::V];
    loadRaw<S::V>(sum, partial + row * S::LdR + col);
#pragma unroll
    for (int slot = 1; slot < Slots; ++slot) {
      float more[S::V];
      loadRaw<S::V>(more, partial + slot * slotStride + row * S::LdR + col);
#pragma unroll
      for (int v = 0; v < S::V; ++v)
        sum[v] += more[v];
    }
    epilogue(batch, m, n, sum);
  }
}

/// The whole block: request weights, wait for the previous kernel, run the ring, finish.
template <class C, class S, class ALoader, class BLoader, class Epilogue>
__device__ __forceinline__ void runTile(ALoader &a, const BLoader &b, int rank, int batch, int m0, int n0,
                                        const Epilogue &epilogue) {
  unsigned char *shared = sharedBase();
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  int wk = warp / (S::WM * S::WN), wm = warp / S::WN % S::WM, wn = warp % S::WN;
  int first = rank * S::SliceK, tiles = most(0, least(S::SliceK, S::TilesK - first));
  if constexpr (C::Trigger == 0)
    launchDependents();
  if constexpr (S::Split > 1)
    clusterArriveRelaxed();
  if constexpr (C::WeightsConstant) {
#pragma unroll 1
    for (int s = 0; s < S::Ahead; ++s)
      if (s < tiles)
        b.load(shared + s * S::StageBytes + S::ABytes, (first + s) * S::BK);
  }
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
#pragma unroll 1
  for (int s = 0; s < S::Ahead; ++s) {
    if (s < tiles) {
      if constexpr (!C::WeightsConstant)
        b.load(shared + s * S::StageBytes + S::ABytes, (first + s) * S::BK);
      a.load(shared + s * S::StageBytes, (first + s) * S::BK);
    }
    copyCommit();
  }
  if constexpr (C::Scaled)
    a.loadScales(shared + S::ScaleOffset, first * S::BK);

  float acc[S::MI][S::NI][4] = {};
  typename S::template Product<C> product(lane, wm, wn);
  unsigned base = sharedAddress(shared);
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    copyWait<S::Ahead - 1>();
    if constexpr (C::Scaled) {
      if (t == 0)
        __syncthreads(); // all factors are there
      a.scale(shared + (S::Resident ? t : t % S::Stages) * S::StageBytes, shared + S::ScaleOffset + t * S::BK * S::E);
    }
    product.ready();
    __syncthreads();
    if constexpr (!S::Resident) {
      int next = t + S::Ahead;
      if (next < tiles) {
        unsigned char *stage = shared + next % S::Stages * S::StageBytes;
        b.load(stage + S::ABytes, (first + next) * S::BK);
        a.load(stage, (first + next) * S::BK);
      }
    }
    copyCommit();
    unsigned stage = base + (S::Resident ? t : t % S::Stages) * S::StageBytes;
    if constexpr (S::E == 4 && C::Products == 3) {
      // the tensor core's own accumulation truncates: keep its chains short and add them up in f32
      float part[S::MI][S::NI][4] = {};
      product.run(part, stage, stage + S::ABytes, wk);
#pragma unroll
      for (int i = 0; i < S::MI; ++i)
#pragma unroll
        for (int j = 0; j < S::NI; ++j)
#pragma unroll
          for (int q = 0; q < 4; ++q)
            acc[i][j][q] += part[i][j][q];
    } else
      product.run(acc, stage, stage + S::ABytes, wk);
  }
  copyWait<0>();
  product.finish(acc);
  if constexpr (C::Trigger == 2)
    launchDependents();
  finishTile<C, S>(acc, shared, rank, batch, m0, n0, epilogue);
}

} // namespace ogc

#endif
