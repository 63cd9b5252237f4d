//===- tma.cuh - the block tile filled by tensor maps (sm_90a) ------------===//
//
// Engine 2: one warp asks for everything that the others multiply. One thread of it copies boxes of the operands through tensor
// maps into a ring of stages, weights before the wait for the previous kernel, rows after it; four warps a warpgroup multiply
// what has arrived. They meet at barriers in shared memory, one a stage, not at barriers of the block.
//
// The roles of wgmma's operands are exchanged: its 64 rows are columns of the result, which come in panels of 64, and its columns
// are rows of the result. So a tile has any multiple of eight rows: 197 rows are three tiles of 72. f16 and bf16 only.
//
// Partial sums of a cluster go to the rank that owns the rows.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_TMA_CUH
#define OGC_DEVICE_TMA_CUH

#include "ogc/tile.cuh"
#include "ogc/wgmma.cuh"

namespace ogc {

/// CUtensorMap of the driver.
struct alignas(128) TensorMap {
  unsigned long long words[16];
};

#if OGC_HOPPER
/// Meets the other warps that multiply.
template <int Threads> __device__ __forceinline__ void consumersMeet() {
  asm volatile("bar.sync 1, %0;" ::"n"(Threads) : "memory");
}
__device__ __forceinline__ void prefetchMap(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
__device__ __forceinline__ void copyBox(unsigned dst, const TensorMap &map, int c0, int c1, int c2, int c3, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5}], [%6];" ::"r"(
          dst),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void copyBox(unsigned dst, const TensorMap &map, int c0, int c1, int c2, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4}], [%5];" ::"r"(dst),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(barrier)
      : "memory");
}
#else
template <int Threads> __device__ __forceinline__ void consumersMeet() {}
__device__ __forceinline__ void prefetchMap(const TensorMap &) {}
__device__ __forceinline__ void copyBox(unsigned, const TensorMap &, int, int, int, int, unsigned) {}
__device__ __forceinline__ void copyBox(unsigned, const TensorMap &, int, int, int, unsigned) {}
#endif

/// WN and WK count warpgroups: 64 columns each; K steps of a stage.
template <class C, int M_, int N_, int K_> struct TmaTile {
  using T = typename C::Element;
  enum {
    M = M_,
    N = N_,
    K = K_,
    BM = C::BM,
    BN = C::BN,
    BK = C::BK,
    WN = C::WN,
    WK = C::WK,
    Stages = C::Stages,
    Split = C::Split,
    V = C::V,
    Consumers = 128 * WN * WK,
    Threads = Consumers + 32,
    NI = BM / 8,
    ABytes = BM * BK * 2,
    BBytes = BN * BK * 2,
    StageBytes = ABytes + BBytes,
    LdR = BN + 4, // consecutive rows of a fragment lie in different banks
    SlotBytes = BM * LdR * 4,
    ReceiveOffset = (Stages * StageBytes > WK * SlotBytes ? Stages * StageBytes : WK * SlotBytes),
    BarrierOffset = ReceiveOffset + (Split > 1 ? SlotBytes : 0),
    Bytes = BarrierOffset + 2 * Stages * 8,
    TilesM = (M + BM - 1) / BM,
    TilesN = (N + BN - 1) / BN,
    TilesK = (K + BK - 1) / BK,
    SliceK = (TilesK + Split - 1) / Split,
    Resident = SliceK <= Stages,
    RowsOut = BM / Split,
    PerRow = BN / V,
    Vectors = RowsOut * PerRow,
    Steps = (Vectors + Consumers - 1) / Consumers
  };
  static_assert(sizeof(T) == 2 && BM % 8 == 0 && BM <= 256 && BN == 64 * WN && BK % 64 == 0 && BK <= 256 && C::WM == 1 &&
                    BK / 16 % WK == 0 && C::P % 64 == 0,
                "shape of a tile of tensor maps");
  static_assert(Resident || Stages >= 3, "a ring that turns has at least three stages");
  static_assert(BM % Split == 0 && N % V == 0 && BN % V == 0, "tile does not divide into epilogue vectors or cluster ranks");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// What an epilogue `E` can read before the sums are known: E::Constants, made by constants(b, m, n) of what never changes, and
/// E::Inputs, made by inputs(b, m, n); both are given back with the sums. An epilogue without them loads when it is called.
template <class E> struct ReadsAhead {
  template <class X> static __device__ char test(typename X::Inputs *);
  template <class X> static __device__ long test(...);
  enum { Value = sizeof(test<E>(nullptr)) == 1 };
};
template <class E, int Ahead = ReadsAhead<E>::Value> struct Early {
  struct Constants {};
  struct Inputs {};
  static __device__ __forceinline__ void load(const E &, int, int, int, Constants &) {}
  static __device__ __forceinline__ void load(const E &, int, int, int, Inputs &) {}
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &, const Inputs &,
                                                const float (&sum)[V]) {
    e(b, m, n, sum);
  }
};
template <class E> struct Early<E, 1> {
  using Constants = typename E::Constants;
  using Inputs = typename E::Inputs;
  static __device__ __forceinline__ void load(const E &e, int b, int m, int n, Constants &to) { to = e.constants(b, m, n); }
  static __device__ __forceinline__ void load(const E &e, int b, int m, int n, Inputs &to) { to = e.inputs(b, m, n); }
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &constants, const Inputs &inputs,
                                                const float (&sum)[V]) {
    e(b, m, n, sum, constants, inputs);
  }
};

/// Copies box after box: the thread that feeds a block.
template <class C, class S> struct BoxLoader {
  const TensorMap &rows, &weights;
  unsigned base;
  int first, batch, m0, n0;

  __device__ __forceinline__ unsigned full(int stage) const { return base + S::BarrierOffset + stage * 8; }
  __device__ __forceinline__ unsigned empty(int stage) const { return base + S::BarrierOffset + (S::Stages + stage) * 8; }
  /// Rows lie as [K / 64, M, 64] in their map: one box takes all of a stage. Where 64 does not divide K, as [K, M].
  __device__ __forceinline__ void loadRows(int stage, int tile) const {
    int k = (first + tile) * S::BK;
    if constexpr (S::K % 64 == 0)
      copyBox(base + stage * S::StageBytes, rows, 0, m0, k / 64, batch, full(stage));
    else
#pragma unroll
      for (int part = 0; part < S::BK / 64; ++part)
        copyBox(base + stage * S::StageBytes + part * S::BM * 128, rows, k + part * 64, m0, 0, batch, full(stage));
  }
  __device__ __forceinline__ void loadWeights(int stage, int tile) const {
#pragma unroll
    for (int part = 0; part < S::WN; ++part) {
      int n = n0 + part * 64;
      copyBox(base + stage * S::StageBytes + S::ABytes + part * S::BK * 128, weights, n % C::P, (first + tile) * S::BK, n / C::P,
              full(stage));
    }
  }
};

/// Products of one warpgroup over the stages as they arrive.
template <class C, class S>
__device__ __forceinline__ void multiplyStages(float (&acc)[S::NI][4], unsigned base, int tiles, int wn, int wk, bool signals) {
  using T = typename C::Element;
  unsigned full = base + S::BarrierOffset, empty = full + S::Stages * 8;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    int stage = S::Resident ? t : t % S::Stages;
    barrierWait(full + stage * 8, S::Resident ? 0 : t / S::Stages & 1);
    unsigned rows = base + stage * S::StageBytes, weights = rows + S::ABytes + wn * (S::BK * 128);
    wideFence();
#pragma unroll
    for (int step = 0; step < S::BK / 16 / S::WK; ++step) {
      int k = (step * S::WK + wk) * 16;
      unsigned long long a = wideDescriptor(weights + k * 128, 16, 1024, 128);
      unsigned long long b = wideDescriptor(rows + k / 64 * (S::BM * 128) + k % 64 * 2, 16, 1024, 128);
      WideMma<T, S::NI, 1, 0>::run(acc, a, b);
    }
    wideCommit();
    if constexpr (!S::Resident) { // the products of the stage before this one are done: its place is free
      wideWait<1>();
      if (t > 0 && signals)
        barrierArrive(empty + (t - 1) % S::Stages * 8);
    }
  }
  wideFinish(acc);
}

/// What the epilogue reads for all vectors of this thread.
template <class S, class E, class Epilogue, class Part>
__device__ __forceinline__ void loadAhead(const Epilogue &epilogue, int batch, int m0, int n0, Part (&to)[S::Steps]) {
#pragma unroll
  for (int step = 0; step < S::Steps; ++step) {
    int i = step * S::Consumers + (int)threadIdx.x, m = m0 + i / S::PerRow, n = n0 + i % S::PerRow * S::V;
    if ((S::Vectors % S::Consumers == 0 || i < S::Vectors) && m < S::M && n < S::N)
      E::load(epilogue, batch, m, n, to[step]);
  }
}

/// The vector of this thread in a step, summed over its parts, and where it belongs; false where it is none of the result.
template <class S>
__device__ __forceinline__ bool takeSum(const float *partial, int step, int m0, int n0, int &m, int &n, float (&sum)[S::V]) {
  constexpr int Parts = S::Split > 1 ? S::Split : S::WK;
  int i = step * S::Consumers + (int)threadIdx.x, row = i / S::PerRow, col = i % S::PerRow * S::V;
  m = m0 + row, n = n0 + col;
  if ((S::Vectors % S::Consumers != 0 && i >= S::Vectors) || m >= S::M || n >= S::N)
    return false;
  loadRaw<S::V>(sum, partial + row * S::LdR + col);
#pragma unroll
  for (int other = 1; other < Parts; ++other) {
    float more[S::V];
    loadRaw<S::V>(more, partial + other * (S::RowsOut * S::LdR) + row * S::LdR + col);
#pragma unroll
    for (int v = 0; v < S::V; ++v)
      sum[v] += more[v];
  }
  return true;
}

/// The warps that multiply: the wait, products, sums over warpgroups and cluster, epilogue.
template <class C, class S, class Epilogue>
__device__ __forceinline__ void consumeTile(unsigned char *shared, unsigned base, int tiles, int rank, int batch, int m0, int n0,
                                            const Epilogue &epilogue) {
  int tid = threadIdx.x, lane = tid & 31, warp = __shfl_sync(0xffffffff, tid >> 5, 0);
  int wn = warp / 4 % S::WN, wk = warp / 4 / S::WN;
  int row0 = rank * S::RowsOut;
  using E = Early<Epilogue>;
  constexpr bool Ahead = S::Steps <= 8; // what registers hold
  constexpr int Held = Ahead ? (int)S::Steps : 1;
  typename E::Constants constants[Held];
  typename E::Inputs inputs[Held];
  if constexpr (Ahead)
    loadAhead<S, E>(epilogue, batch, m0 + row0, n0, constants);
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  if constexpr (Ahead)
    loadAhead<S, E>(epilogue, batch, m0 + row0, n0, inputs);
  float acc[S::NI][4] = {};
  multiplyStages<C, S>(acc, base, tiles, wn, wk, lane == 0);
  if constexpr (C::Trigger == 2)
    launchDependents();
  consumersMeet<S::Consumers>(); // all have read the stages, whose memory takes the sums now
  float *slot = reinterpret_cast<float *>(shared) + wk * (S::SlotBytes / 4) + wn * 64 + (warp & 3) * 16 + (lane >> 2);
#pragma unroll
  for (int j = 0; j < S::NI; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      slot[(j * 8 + (lane & 3) * 2 + (q & 1)) * S::LdR + (q >> 1) * 8] = acc[j][q];
  const float *partial = reinterpret_cast<const float *>(shared);
  if constexpr (S::Split > 1) {
    // each rank owns BM / Split rows: send every row, summed over this block's warpgroups, to its owner
    consumersMeet<S::Consumers>();
    clusterWait();
#pragma unroll 1
    for (int i = tid; i < S::BM * S::BN / 4; i += S::Consumers) {
      int row = i / (S::BN / 4), col = i % (S::BN / 4) * 4;
      float4 sum = *reinterpret_cast<const float4 *>(partial + row * S::LdR + col);
#pragma unroll
      for (int w = 1; w < S::WK; ++w) {
        float4 more = *reinterpret_cast<const float4 *>(partial + (w * S::BM + row) * S::LdR + col);
        sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
      }
      unsigned local = base + S::ReceiveOffset + ((rank * S::RowsOut + row % S::RowsOut) * S::LdR + col) * 4;
      storeCluster4(clusterAddress(local, row / S::RowsOut), sum.x, sum.y, sum.z, sum.w);
    }
    clusterArrive();
    clusterWait();
    partial = reinterpret_cast<const float *>(shared + S::ReceiveOffset);
  } else
    consumersMeet<S::Consumers>();
  if constexpr (Ahead) {
#pragma unroll
    for (int step = 0; step < S::Steps; ++step) {
      float sum[S::V];
      int m, n;
      if (takeSum<S>(partial, step, m0 + row0, n0, m, n, sum))
        E::finish(epilogue, batch, m, n, constants[step], inputs[step], sum);
    }
  } else {
#pragma unroll 4
    for (int step = 0; step < S::Steps; ++step) {
      float sum[S::V];
      int m, n;
      if (!takeSum<S>(partial, step, m0 + row0, n0, m, n, sum))
        continue;
      E::load(epilogue, batch, m, n, constants[0]);
      E::load(epilogue, batch, m, n, inputs[0]);
      E::finish(epilogue, batch, m, n, constants[0], inputs[0], sum);
    }
  }
}

/// The whole block.
template <class C, class S, class Epilogue>
__device__ __forceinline__ void runTma(const TensorMap &rows, const TensorMap &weights, int rank, int batch, int m0, int n0,
                                       const Epilogue &epilogue) {
  unsigned char *shared = sharedBase();
  unsigned base = sharedAddress(shared);
  int first = rank * S::SliceK, tiles = most(0, least(S::SliceK, S::TilesK - first)), ahead = least(tiles, S::Stages);
  BoxLoader<C, S> loader{rows, weights, base, first, batch, m0, n0};
  bool feeds = threadIdx.x == S::Consumers;
  if constexpr (C::Trigger == 0)
    launchDependents();
  if (feeds) {
    prefetchMap(weights);
    prefetchMap(rows);
    for (int s = 0; s < S::Stages; ++s) {
      barrierInit(loader.full(s), 1);
      barrierInit(loader.empty(s), S::Consumers / 32);
    }
    barrierInitDone();
    for (int s = 0; s < ahead; ++s) {
      barrierExpect(loader.full(s), S::StageBytes);
      if constexpr (C::WeightsConstant)
        loader.loadWeights(s, s);
    }
  }
  __syncthreads();
  if constexpr (S::Split > 1)
    clusterArriveRelaxed();
  if (threadIdx.x >= S::Consumers) {
    wait();
    if constexpr (C::Trigger == 1)
      launchDependents();
    if (feeds) {
      for (int s = 0; s < ahead; ++s) {
        if constexpr (!C::WeightsConstant)
          loader.loadWeights(s, s);
        loader.loadRows(s, s);
      }
      if constexpr (!S::Resident)
#pragma unroll 1
        for (int t = S::Stages; t < tiles; ++t) {
          int s = t % S::Stages;
          barrierWait(loader.empty(s), t / S::Stages - 1 & 1);
          barrierExpect(loader.full(s), S::StageBytes);
          loader.loadWeights(s, t);
          loader.loadRows(s, t);
        }
    }
    __syncwarp();
    if constexpr (C::Trigger == 2)
      launchDependents();
    if constexpr (S::Split > 1) { // a barrier of a cluster counts all its threads
      clusterWait();
      clusterArrive();
      clusterWait();
    }
  } else
    consumeTile<C, S>(shared, base, tiles, rank, batch, m0, n0, epilogue);
}

} // namespace ogc

#endif
