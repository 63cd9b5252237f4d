//===- tma.cuh - the block tile filled by tensor maps (sm_90a) ------------===//
//
// Engine 2: one warp asks for everything that the others multiply. One thread of it copies boxes of the operands through tensor
// maps into a ring of stages, weights before the wait for the previous kernel, rows after it; four warps a warpgroup multiply
// what has arrived. They meet at barriers in shared memory, one a stage, not at barriers of the block.
//
// The roles of wgmma's operands are exchanged: its 64 rows are columns of the result, which come in panels of 64, and its columns
// are rows of the result. So a tile has any multiple of eight rows: 197 rows are three tiles of 72.
//
// f16, bf16, and f32 by tf32. Of four-byte operands in shared memory wgmma wants k to be the fastest dimension: rows have it,
// panels do not. So f32 weights go from shared memory through registers to the tensor cores, without another layout for them.
//
// Partial sums of a cluster go to the rank that owns the rows.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_TMA_CUH
#define OGC_DEVICE_TMA_CUH

#include "ogc/ahead.cuh"
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
__device__ __forceinline__ void copyBox(unsigned dst, const TensorMap &map, int c0, int c1, int c2, int c3, int c4,
                                        unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
               "{%2,%3,%4,%5,%6}], [%7];" ::"r"(dst),
               "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(barrier)
               : "memory");
}
/// True for one thread of the warp, which ptxas knows to be alone: it does not copy in a loop over threads then.
__device__ __forceinline__ bool electOne() {
  unsigned elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
  return elected != 0;
}
#else
template <int Threads> __device__ __forceinline__ void consumersMeet() {}
__device__ __forceinline__ void prefetchMap(const TensorMap &) {}
__device__ __forceinline__ void copyBox(unsigned, const TensorMap &, int, int, int, int, unsigned) {}
__device__ __forceinline__ void copyBox(unsigned, const TensorMap &, int, int, int, unsigned) {}
__device__ __forceinline__ void copyBox(unsigned, const TensorMap &, int, int, int, int, int, unsigned) {}
__device__ __forceinline__ bool electOne() { return threadIdx.x % 32 == 0; }
#endif

/// WN and WK count warpgroups: 64 columns each; K steps of a stage.
/// RowBytes: what the epilogue keeps of a row.
template <class C, int M_, int N_, int K_, int RowBytes = 0> struct TmaTile {
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
    Span = 128 / sizeof(T), // elements of a line of the swizzle
    KS = 32 / sizeof(T),    // depth of one product
    ABytes = BM * BK * (int)sizeof(T),
    BBytes = BN * BK * (int)sizeof(T),
    StageBytes = ABytes + BBytes,
    LdR = BN + 4, // consecutive rows of a fragment lie in different banks
    SlotBytes = BM * LdR * 4,
    ReceiveOffset = (Stages * StageBytes > WK * SlotBytes ? Stages * StageBytes : WK * SlotBytes),
    BarrierOffset = ReceiveOffset + (Split > 1 ? SlotBytes : 0),
    RowOffset = BarrierOffset + 2 * Stages * 8,
    Bytes = RowOffset + BM / Split * RowBytes,
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
  static_assert(BM % 8 == 0 && BM <= 256 && BN == 64 * WN && BK % Span == 0 && BK <= 256 && C::WM == 1 && BK / KS % WK == 0 &&
                    C::P % Span == 0,
                "shape of a tile of tensor maps");
  static_assert(Resident || Stages >= 3, "a ring that turns has at least three stages");
  static_assert(BM % Split == 0 && N % V == 0 && BN % V == 0, "tile does not divide into epilogue vectors or cluster ranks");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// Copies box after box: the thread that feeds a block.
template <class C, class S> struct BoxLoader {
  const TensorMap &rows, &weights;
  unsigned base;
  int first, batch, m0, n0;

  __device__ __forceinline__ unsigned full(int stage) const { return base + S::BarrierOffset + stage * 8; }
  __device__ __forceinline__ unsigned empty(int stage) const { return base + S::BarrierOffset + (S::Stages + stage) * 8; }
  /// Rows lie as [K / Span, M, Span] in their map: one box takes all of a stage. Where Span does not divide K, as [K, M].
  __device__ __forceinline__ void loadRows(int stage, int tile) const {
    int k = (first + tile) * S::BK;
    if constexpr (S::K % S::Span == 0)
      copyBox(base + stage * S::StageBytes, rows, 0, m0, k / S::Span, batch, full(stage));
    else
#pragma unroll
      for (int part = 0; part < S::BK / S::Span; ++part)
        copyBox(base + stage * S::StageBytes + part * S::BM * 128, rows, k + part * S::Span, m0, 0, batch, full(stage));
  }
  __device__ __forceinline__ void loadWeights(int stage, int tile) const {
#pragma unroll
    for (int part = 0; part < S::BN / S::Span; ++part) {
      int n = n0 + part * S::Span;
      copyBox(base + stage * S::StageBytes + S::ABytes + part * S::BK * 128, weights, n % C::P, (first + tile) * S::BK, n / C::P,
              full(stage));
    }
  }
};

/// The column of the result, of 64, that is row `row` of this warp's 16 rows of wgmma: any order will do. f32: one in which the
/// two rows of a thread are neighbours, and a warp reads a fragment without bank conflicts.
template <class T> __device__ __forceinline__ int columnOf(int warp, int row) {
  if constexpr (sizeof(T) == 2)
    return warp * 16 + row;
  return (row >> 3) | (row & 1) << 1 | (row >> 2 & 1) << 2 | (warp & 1) << 3 | (row >> 1 & 1) << 4 | warp >> 1 << 5;
}

/// Columns of f32 weights, k to k + 7, as the first operand of a product: this thread's columns (see columnOf) at k + lane % 4
/// and four further on. `weights` is two boxes of [BK, 32], swizzled.
template <class S> __device__ __forceinline__ void loadFragment(unsigned (&to)[4], unsigned weights, int k) {
  int lane = threadIdx.x & 31, row = lane & 3, column = columnOf<float>(threadIdx.x >> 5 & 3, lane >> 2);
  unsigned line = weights + column / 32 * (S::BK * 128) + row * 128 + column % 4 * 4, unit = column / 4 % 8;
  loadShared2(to[0], to[1], line + ((unit ^ row) << 4) + k * 128);
  loadShared2(to[2], to[3], line + ((unit ^ row ^ 4) << 4) + (k + 4) * 128);
}

/// Tells that the products of the stage before `t` are done: its place is free.
template <class S> __device__ __forceinline__ void freeStageBefore(unsigned empty, int t, bool signals) {
  if (t > 0 && signals)
    barrierArrive(empty + (t - 1) % S::Stages * 8);
}

/// Products of one warpgroup over the stages as they arrive.
template <class C, class S>
__device__ __forceinline__ void multiplyStages(float (&acc)[S::NI][4], unsigned base, int tiles, int wn, int wk, bool signals) {
  using T = typename C::Element;
  constexpr int Steps = S::BK / S::KS / S::WK; // of this warpgroup in a stage
  unsigned full = base + S::BarrierOffset, empty = full + S::Stages * 8;
  int t = 0; // there is a first stage: ptxas lets products overlap only where it sees that
#pragma unroll 1
  do {
    int stage = S::Resident ? t : t % S::Stages;
    barrierWait(full + stage * 8, S::Resident ? 0 : t / S::Stages & 1);
    unsigned rows = base + stage * S::StageBytes, weights = rows + S::ABytes + wn * (S::BK * 64 * (int)sizeof(T));
    auto rowsAt = [&](int step) {
      int k = (step * S::WK + wk) * S::KS;
      return wideDescriptor(rows + k / S::Span * (S::BM * 128) + k % S::Span * (int)sizeof(T), 16, 1024, 128);
    };
    if constexpr (sizeof(T) == 2) {
      wideFence();
#pragma unroll
      for (int step = 0; step < Steps; ++step) {
        unsigned long long a = wideDescriptor(weights + (step * S::WK + wk) * 16 * 128, 16, 1024, 128);
        WideMma<T, S::NI, 1, 0>::run(acc, a, rowsAt(step));
      }
      wideCommit();
      if constexpr (!S::Resident) {
        wideWait<1>();
        freeStageBefore<S>(empty, t, signals);
      }
    } else {
      // Two sets of registers in turn: one is loaded while the other is multiplied. Over all stages, so a stage has an even
      // number.
      constexpr int Group = Steps % 8 == 0 ? 4 : Steps % 6 == 0 ? 3 : Steps % 4 == 0 ? 2 : 1;
      static_assert(Steps % (2 * Group) == 0, "steps of a stage in an even number of groups");
      unsigned fragments[2][Group][4];
#pragma unroll
      for (int group = 0; group < Steps / Group; ++group) {
#pragma unroll
        for (int i = 0; i < Group; ++i)
          loadFragment<S>(fragments[group & 1][i], weights, ((group * Group + i) * S::WK + wk) * S::KS);
        wideFence();
#pragma unroll
        for (int i = 0; i < Group; ++i)
          WideMma<float, S::NI, 0, 0>::run(acc, fragments[group & 1][i], rowsAt(group * Group + i));
        wideCommit();
        wideWait<1>(); // the group before this one is done
        if constexpr (!S::Resident)
          if (group == 0)
            freeStageBefore<S>(empty, t, signals);
      }
    }
  } while (++t < tiles);
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
  // What registers hold besides the accumulators: inputs and constants of all steps.
  constexpr bool Ahead =
      S::Steps <= 16 && S::Steps * S::V <= 64 && S::NI * 4 + S::Steps * S::V * (int)sizeof(typename C::Element) / 2 <= 200;
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
  // What is computed of a row alone, while its elements are on their way. The warps meet before anyone reads it.
  typename E::Row *rowsAhead = reinterpret_cast<typename E::Row *>(shared + S::RowOffset);
  if constexpr (E::HasRow)
    for (int row = tid; row < S::RowsOut && m0 + row0 + row < S::M; row += S::Consumers)
      rowsAhead[row] = epilogue.row(batch, m0 + row0 + row);
  float acc[S::NI][4] = {};
  multiplyStages<C, S>(acc, base, tiles, wn, wk, lane == 0);
  if constexpr (C::Trigger == 2)
    launchDependents();
  consumersMeet<S::Consumers>(); // all have read the stages, whose memory takes the sums now
  float *slot = reinterpret_cast<float *>(shared) + wk * (S::SlotBytes / 4) + wn * 64;
  int column = columnOf<typename C::Element>(warp & 3, lane >> 2),
      next = columnOf<typename C::Element>(warp & 3, 8 + (lane >> 2));
#pragma unroll
  for (int j = 0; j < S::NI; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      slot[(j * 8 + (lane & 3) * 2 + (q & 1)) * S::LdR + (q < 2 ? column : next)] = acc[j][q];
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
  auto rowOf = [&](int m) {
    if constexpr (E::HasRow)
      return rowsAhead[m - m0 - row0];
    else
      return typename E::Row{};
  };
  if constexpr (Ahead) {
#pragma unroll
    for (int step = 0; step < S::Steps; ++step) {
      float sum[S::V];
      int m, n;
      if (takeSum<S>(partial, step, m0 + row0, n0, m, n, sum))
        E::finish(epilogue, batch, m, n, constants[step], inputs[step], rowOf(m), sum);
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
      E::finish(epilogue, batch, m, n, constants[0], inputs[0], rowOf(m), sum);
    }
  }
}

/// The whole block.
template <class C, class S, class Epilogue>
__device__ __forceinline__ void runTma(const TensorMap &rows, const TensorMap &weights, int rank, int batch, int m0, int n0,
                                       const Epilogue &epilogue) {
  unsigned char *shared = sharedBase();
  unsigned base = sharedAddress(shared);
  // A rank that has no work multiplies a stage of zeros, which lies outside of the maps.
  int first = rank * S::SliceK, tiles = most(1, least(S::SliceK, S::TilesK - first)), ahead = least(tiles, S::Stages);
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
