//===- wide_attention.cuh - attention over many keys (sm_90a) -------------===//
//
// f16 and bf16. Boxes of Q, K and V come through tensor maps, tiles of keys into a ring. Warpgroups multiply 64 rows by
// them with wgmma; probabilities go from the accumulators of the scores to the operand
// of the second product without leaving registers. The scores of a tile are computed while the values of the one before are
// weighed: a warpgroup finds exponentials of one tile while the tensor cores work on the other.
//
// Warpgroups split rows (WQ) and the keys of a tile (WT), a cluster may split the tiles again; parts are merged at the end.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_WIDE_ATTENTION_CUH
#define OGC_DEVICE_WIDE_ATTENTION_CUH

#include "ogc/attention_rows.cuh"
#include "ogc/tma.cuh"

namespace ogc {

/// Of a configuration with the members of AttentionDefaults; see README.md, "wide attention".
template <class C> struct WideAttentionShape : AttentionRows<C> {
  using R = AttentionRows<C>;
  using T = typename C::Element;
  enum {
    BQ = 64 * R::WQ,
    BT = C::BT,
    NK = BT / R::WT, // keys of a warpgroup
    NF = NK / 8,
    Stages = C::Stages,
    Split = C::Split,
    Threads = 128 * R::WQ * R::WT,
    NV = R::DVP / 8,
    Spans = (R::DP + 63) / 64, // of 128 bytes: what a swizzled box holds of a row
    SpansV = (R::DVP + 63) / 64,
    QBytes = BQ * Spans * 128,
    KBytes = BT * Spans * 128,
    VBytes = BT * SpansV * 128,
    StageBytes = KBytes + VBytes,
    Merges = R::WT > 1 || Split > 1,
    Turns = R::WQ == 2 && R::WT == 1, // measured: not better for three
    MergeBytes = R::WT > 1 ? R::WT * BQ * R::LdO * 4 : 0,
    TileBytes = QBytes + Stages * StageBytes,
    ReceiveOffset = TileBytes > MergeBytes ? TileBytes : MergeBytes,
    RowsOut = (BQ + Split - 1) / Split,
    BarrierOffset = ReceiveOffset + (Split > 1 ? Split * RowsOut * R::LdO * 4 : 0),
    Bytes = BarrierOffset + (4 * Stages + 1) * 8,
    Tiles = (R::Keys + BT - 1) / BT,
    TilesQ = (R::Rows + BQ - 1) / BQ
  };
  static_assert(sizeof(T) == 2 && R::WQ * R::WT <= 4 && BT % (16 * R::WT) == 0 && BT <= 256 && BQ % R::Group == 0 &&
                    R::DP <= 128 && R::DVP <= 128 && 8 % C::V == 0,
                "wide attention");
  static_assert(Stages >= 2 || Tiles <= Split, "a ring that turns has at least two stages");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// Addresses of the ring: tiles of keys and of values, each with a barrier that tells it is full and one that it is free.
template <class C> struct KeyRing {
  using A = WideAttentionShape<C>;
  unsigned base;
  __device__ __forceinline__ unsigned keys(int stage) const { return base + A::QBytes + stage * A::StageBytes; }
  __device__ __forceinline__ unsigned values(int stage) const { return keys(stage) + A::KBytes; }
  __device__ __forceinline__ unsigned barrier(int i) const { return base + A::BarrierOffset + i * 8; }
  __device__ __forceinline__ unsigned queriesFull() const { return barrier(0); }
  __device__ __forceinline__ unsigned keysFull(int stage) const { return barrier(1 + stage * 4); }
  __device__ __forceinline__ unsigned valuesFull(int stage) const { return barrier(2 + stage * 4); }
  __device__ __forceinline__ unsigned keysFree(int stage) const { return barrier(3 + stage * 4); }
  __device__ __forceinline__ unsigned valuesFree(int stage) const { return barrier(4 + stage * 4); }

  __device__ __forceinline__ void init() const {
    barrierInit(queriesFull(), 1);
    for (int stage = 0; stage < A::Stages; ++stage) {
      barrierInit(keysFull(stage), 1);
      barrierInit(valuesFull(stage), 1);
      barrierInit(keysFree(stage), A::Threads / 32);
      barrierInit(valuesFree(stage), A::Threads / 32);
    }
    barrierInitDone();
  }
};

/// What one thread copies: no warp of its own, which would take registers from the others.
template <class C> struct TileCopier {
  using A = WideAttentionShape<C>;
  const TensorMap &queries, &keys, &values;
  KeyRing<C> ring;
  int batch, keyHead, row0, first, tiles;

  __device__ __forceinline__ void copyQueries() const {
    barrierExpect(ring.queriesFull(), A::QBytes);
#pragma unroll
    for (int span = 0; span < A::Spans; ++span)
      copyBox(ring.base + span * A::BQ * 128, queries, span * 64, keyHead * A::Group, row0 / A::Group, batch, ring.queriesFull());
  }
  /// The keys of the tile `i`, once its place is free.
  __device__ __forceinline__ void copyKeys(int i) const {
    int stage = i % A::Stages, turn = i / A::Stages;
    if (turn > 0)
      barrierWait(ring.keysFree(stage), turn - 1 & 1);
    barrierExpect(ring.keysFull(stage), A::KBytes);
#pragma unroll
    for (int span = 0; span < A::Spans; ++span)
      copyBox(ring.keys(stage) + span * A::BT * 128, keys, span * 64, keyHead, (first + i) * A::BT, batch, ring.keysFull(stage));
  }
  __device__ __forceinline__ void copyValues(int i) const {
    int stage = i % A::Stages, turn = i / A::Stages;
    if (turn > 0)
      barrierWait(ring.valuesFree(stage), turn - 1 & 1);
    barrierExpect(ring.valuesFull(stage), A::VBytes);
#pragma unroll
    for (int span = 0; span < A::SpansV; ++span)
      copyBox(ring.values(stage) + span * A::BT * 128, values, span * 64, keyHead, (first + i) * A::BT, batch,
              ring.valuesFull(stage));
  }
  __device__ __forceinline__ void begin() const {
    copyQueries();
    for (int i = 0; i < least(A::Stages, tiles); ++i)
      copyKeys(i), copyValues(i);
  }
  /// Scores of the tile `i` are being computed: keys before it and values before those have been read.
  __device__ __forceinline__ void refill(int i) const {
    if (i - 1 + A::Stages < tiles)
      copyKeys(i - 1 + A::Stages);
    if (i > 1 && i - 2 + A::Stages < tiles)
      copyValues(i - 2 + A::Stages);
  }
};

/// Keeps the compiler from using registers of products before these are waited for.
template <int N> __device__ __forceinline__ void holdProducts(float (&x)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      asm volatile("" : "+f"(x[j][q])::"memory");
}

/// Two warpgroups begin products in turn, so that one finds exponentials while the other multiplies.
__device__ __forceinline__ void takeTurn(int group) { asm volatile("bar.sync %0, 256;" ::"r"(group + 1) : "memory"); }
__device__ __forceinline__ void giveTurn(int group) { asm volatile("bar.arrive %0, 256;" ::"r"(group + 1) : "memory"); }

/// One warpgroup's state: 64 rows, its share of the keys.
template <class C> struct WideAttention : SoftmaxRows<WideAttentionShape<C>::NV> {
  using T = typename C::Element;
  using A = WideAttentionShape<C>;
  using Rows = SoftmaxRows<A::NV>;
  using Rows::out, Rows::top, Rows::sum;
  unsigned probability[A::NF / 2][4];
  ScoreBias<C, A> biases;

  /// Begins score = Q K^T. Both operands lie with d as the fastest dimension.
  __device__ __forceinline__ void beginScores(float (&score)[A::NF][4], unsigned queries, unsigned keys) {
#pragma unroll
    for (int d = 0; d < A::DP; d += 16) {
      unsigned long long a = wideDescriptor(queries + d / 64 * A::BQ * 128 + d % 64 * 2, 16, 1024, 128),
                         b = wideDescriptor(keys + d / 64 * A::BT * 128 + d % 64 * 2, 16, 1024, 128);
      if (d == 0)
        WideMma<T, A::NF, 0, 0>::start(score, a, b);
      else
        WideMma<T, A::NF, 0, 0>::run(score, a, b);
    }
    wideCommit();
  }
  /// Begins out += P V.
  __device__ __forceinline__ void beginValues(unsigned values) {
#pragma unroll
    for (int i = 0; i < A::NF / 2; ++i)
      WideMma<T, A::NV, 0, 1>::run(out, probability[i], wideDescriptor(values + i * 16 * 128, A::BT * 128, 1024, 128));
    wideCommit();
  }

  /// Hides keys of key0 on that do not exist or lie ahead of the thread's rows.
  __device__ __forceinline__ void hideKeys(float (&score)[A::NF][4], int row, int key0, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int visible = visibleKeys<C>(row + half * 8) - key0 - (lane & 3) * 2;
#pragma unroll
      for (int j = 0; j < A::NF; ++j)
#pragma unroll
        for (int q = 0; q < 2; ++q)
          score[j][half * 2 + q] = j * 8 + q < visible ? score[j][half * 2 + q] : -__int_as_float(0x7f800000);
    }
  }

  /// Turns scores into exp2(scale * (score - top)); `factor` is what earlier sums are worth now. Several sums and maxima at a
  /// time: one warp of a scheduler does not wait for itself.
  __device__ __forceinline__ void soften(float (&score)[A::NF][4], float scale, float (&factor)[2]) {
    float best[2][2] = {{top[0], score[0][1]}, {top[1], score[0][3]}}, total[2][2] = {};
#pragma unroll
    for (int j = 0; j < A::NF; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        best[q / 2][q % 2] = fmaxf(best[q / 2][q % 2], score[j][q]);
    float base[2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      best[half][0] = fmaxf(best[half][0], best[half][1]);
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        best[half][0] = fmaxf(best[half][0], __shfl_xor_sync(0xffffffffu, best[half][0], bit));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = best[half][0];
      base[half] = now == -__int_as_float(0x7f800000) ? 0.f : now * scale; // no visible key yet
      factor[half] = exp2Fast(__fmaf_rn(top[half], scale, -base[half]));
      top[half] = now;
    }
#pragma unroll
    for (int j = 0; j < A::NF; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        score[j][q] = exp2Fast(__fmaf_rn(score[j][q], scale, -base[q / 2]));
        total[q / 2][q % 2] += score[j][q];
      }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sum[half] = __fmaf_rn(sum[half], factor[half], total[half][0] + total[half][1]);
  }
  /// Scores have arrived: bias, mask, probabilities. `scale` has the logarithm of two in it.
  __device__ __forceinline__ void takeScores(float (&score)[A::NF][4], float scale, int row, int firstRow, int key0, int lane,
                                             float (&factor)[2]) {
    holdProducts(score);
    if constexpr (C::HasBias)
#pragma unroll
      for (int j = 0; j < A::NF; ++j)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          score[j][q] = __fmaf_rn(score[j][q], scale, biases.at(j, q / 2, q % 2) * 1.4426950408889634f);
    if constexpr (C::Causal || A::Keys % A::BT != 0)
      if (key0 + A::NK > visibleKeys<C>(firstRow))
        hideKeys(score, row, key0, lane);
    soften(score, C::HasBias ? 1.f : scale, factor);
  }
  __device__ __forceinline__ void rescale(const float (&factor)[2]) {
#pragma unroll
    for (int j = 0; j < A::NV; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        out[j][q] *= factor[q / 2];
  }
  /// The accumulator layout of the scores is the operand layout of the probabilities.
  __device__ __forceinline__ void pack(const float (&score)[A::NF][4]) {
#pragma unroll
    for (int i = 0; i < A::NF / 2; ++i)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        probability[i][q] = Convert<T>::pair(score[2 * i + q / 2][q % 2 * 2], score[2 * i + q / 2][q % 2 * 2 + 1]);
  }

  /// All tiles of this warpgroup; row0: the first row of the warp's sixteen.
  __device__ __forceinline__ void run(const TileCopier<C> &copier, const typename C::BiasElement *bias, float scale, int wq,
                                      int wt, int row0) {
    const KeyRing<C> &ring = copier.ring;
    int lane = threadIdx.x & 31, row = row0 + (lane >> 2), key0 = copier.first * A::BT + wt * A::NK;
    int batch = copier.batch, keyHead = copier.keyHead;
    unsigned queries = ring.base + wq * 64 * 128, share = wt * A::NK * 128;
    scale *= 1.4426950408889634f;
    this->clear();
    barrierWait(ring.queriesFull(), 0);
    if (copier.tiles <= 0)
      return;
    float factor[2];
    if constexpr (A::Turns)
      if (wq == 1 && copier.tiles > 1)
        giveTurn(0);
    float score[A::NF][4];
    barrierWait(ring.keysFull(0), 0);
    wideFence();
    beginScores(score, queries, ring.keys(0) + share);
    biases.load(bias, batch, keyHead, row0, key0, lane);
    wideWait();
    if (lane == 0)
      barrierArrive(ring.keysFree(0));
    takeScores(score, scale, row, row0, key0, lane, factor);
    pack(score);
    int stage = 0, phase = 0;
#pragma unroll 1
    for (int i = 1; i < copier.tiles; ++i) {
      int before = stage, phaseBefore = phase;
      if (++stage == A::Stages)
        stage = 0, phase ^= 1;
      key0 += A::BT;
      barrierWait(ring.keysFull(stage), phase);
      if constexpr (A::Turns)
        takeTurn(wq);
      wideFence();
      beginScores(score, queries, ring.keys(stage) + share);
      biases.load(bias, batch, keyHead, row0, key0, lane);
      barrierWait(ring.valuesFull(before), phaseBefore);
      beginValues(ring.values(before) + share);
      if constexpr (A::Turns)
        if (wq == 0 || i + 1 < copier.tiles)
          giveTurn(1 - wq);
      if (threadIdx.x == 0)
        copier.refill(i);
      __syncwarp();
      wideWait<1>();
      if (lane == 0)
        barrierArrive(ring.keysFree(stage));
      takeScores(score, scale, row, row0, key0, lane, factor);
      wideWait();
      holdProducts(out);
      if (lane == 0)
        barrierArrive(ring.valuesFree(before));
      rescale(factor);
      pack(score);
    }
    barrierWait(ring.valuesFull(stage), phase);
    wideFence();
    beginValues(ring.values(stage) + share);
    wideFinish(out);
  }
};

/// Results of a warpgroup that has all keys of its rows.
template <class C, class Epilogue>
__device__ __forceinline__ void storeResults(const WideAttention<C> &state, int batch, int keyHead, int row0,
                                             const Epilogue &epilogue) {
  float inverse[2] = {inverseOf(sumOfQuad(state.sum[0])), inverseOf(sumOfQuad(state.sum[1]))};
  storeRows<C>(state.out, inverse, batch, keyHead, row0, 0, epilogue);
}

/// Merges the parts of all warpgroups, then of the cluster, whose ranks share the rows.
template <class C, class Epilogue>
__device__ __forceinline__ void mergeResults(const WideAttention<C> &state, float scale, int batch, int keyHead, int row0, int wq,
                                             int wt, int rank, const Epilogue &epilogue) {
  using A = WideAttentionShape<C>;
  unsigned base = sharedAddress(sharedBase());
  constexpr bool Direct = A::WT == 1; // to the rank that stores the row; else over Q, K and V
  if constexpr (Direct)
    clusterWait();
  else
    __syncthreads(); // all have read the ring
  int row = wq * 64 + (threadIdx.x >> 5) % 4 * 16 + (threadIdx.x & 31) / 4;
  unsigned to[2];
#pragma unroll
  for (int half = 0; half < 2; ++half, row += 8)
    if constexpr (Direct)
      to[half] = clusterAddress(base + A::ReceiveOffset + (rank * A::RowsOut + row % A::RowsOut) * A::LdO * 4, row / A::RowsOut);
    else
      to[half] = base + (wt * A::BQ + row) * A::LdO * 4;
  state.storePart(C::HasBias ? 0.6931471805599453f : scale, [&](int half, int column, float x, float y) {
    if constexpr (Direct)
      storeCluster2(to[half] + column * 4, x, y);
    else
      storeShared2(to[half] + column * 4, x, y);
  });
  if constexpr (!Direct)
    __syncthreads();
  mergeRows<C, A, Direct>(sharedBase(), batch, keyHead, row0, rank, epilogue);
}

/// `scale` is positive.
template <class C, class Epilogue>
__device__ __forceinline__ void wideAttention(const TensorMap &queries, const TensorMap &keys, const TensorMap &values,
                                              const typename C::BiasElement *bias, float scale, const Epilogue &epilogue) {
  using A = WideAttentionShape<C>;
  int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x >> 5, 0), wq = warp / 4 / A::WT, wt = warp / 4 % A::WT;
  int block = blockIdx.x, rank = block % A::Split;
  block /= A::Split;
  // Under a causal mask the last rows see most keys: they begin first.
  constexpr int Heads = C::HK * C::B;
  int row0 = (C::Causal ? A::TilesQ - 1 - block / Heads : block % A::TilesQ) * A::BQ;
  block = C::Causal ? block % Heads : block / A::TilesQ;
  int keyHead = block % C::HK, batch = block / C::HK;
  // The last row sees most keys.
  int tiles = divUp(most(0, visibleKeys<C>(least(row0 + A::BQ, A::Rows) - 1)), A::BT), slice = divUp(tiles, A::Split),
      first = rank * slice;
  TileCopier<C> copier{queries, keys, values, {sharedAddress(sharedBase())}, batch,
                       keyHead, row0, first,  least(slice, tiles - first)};
  if constexpr (C::Trigger == 0)
    launchDependents();
  if (threadIdx.x == 0) {
    prefetchMap(queries);
    prefetchMap(keys);
    prefetchMap(values);
    copier.ring.init();
  }
  __syncthreads();
  if constexpr (A::Split > 1)
    clusterArriveRelaxed();
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  if (threadIdx.x == 0)
    copier.begin();
  __syncwarp();
  int warpRow = row0 + wq * 64 + warp % 4 * 16;
  WideAttention<C> state;
  state.run(copier, bias, scale, wq, wt, warpRow);
  if constexpr (C::Trigger == 2)
    launchDependents();
  if constexpr (A::Merges)
    mergeResults<C>(state, scale, batch, keyHead, row0, wq, wt, rank, epilogue);
  else
    storeResults<C>(state, batch, keyHead, warpRow, epilogue);
}

} // namespace ogc

#endif
