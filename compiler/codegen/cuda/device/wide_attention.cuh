//===- wide_attention.cuh - attention over many keys (sm_90a) -------------===//
//
// f16 and bf16. Boxes of Q, K and V come through tensor maps, tiles of keys into a ring. Warpgroups multiply 64 rows (a
// row is a query and a head of the group) by them with wgmma; probabilities go from the accumulators of the scores to the operand
// of the second product without leaving registers. The scores of a tile are computed while the values of the one before are
// weighed: a warpgroup finds exponentials of one tile while the tensor cores work on the other.
//
// Warpgroups split rows (WQ) and the keys of a tile (WT), a cluster may split the tiles again; parts are merged at the end.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_WIDE_ATTENTION_CUH
#define OGC_DEVICE_WIDE_ATTENTION_CUH

#include "ogc/mapped_attention.cuh"

namespace ogc {

/// Of a configuration with the members of AttentionDefaults; see README.md, "wide attention".
template <class C> struct WideAttentionShape {
  using T = typename C::Element;
  enum {
    S = C::S,
    Keys = C::T,
    Group = C::H / C::HK,
    Rows = S * Group,
    WQ = C::WQ,
    WT = C::WT,
    BQ = 64 * WQ,
    BT = C::BT,
    NK = BT / WT, // keys of a warpgroup
    NF = NK / 8,
    Stages = C::Stages,
    Split = C::Split,
    Threads = 128 * WQ * WT,
    DP = (C::D + 15) / 16 * 16,
    DVP = (C::DV + 15) / 16 * 16,
    NV = DVP / 8,
    Spans = (DP + 63) / 64, // of 128 bytes: what a swizzled box holds of a row
    SpansV = (DVP + 63) / 64,
    QBytes = BQ * Spans * 128,
    KBytes = BT * Spans * 128,
    VBytes = BT * SpansV * 128,
    StageBytes = KBytes + VBytes,
    Merges = WT > 1 || Split > 1,
    Turns = WQ == 2 && WT == 1, // measured: not better for three
    LdO = DVP + 8,
    MergeBytes = WT > 1 ? WT * BQ * LdO * 4 : 0,
    TileBytes = QBytes + Stages * StageBytes,
    ReceiveOffset = TileBytes > MergeBytes ? TileBytes : MergeBytes,
    RowsOut = (BQ + Split - 1) / Split,
    BarrierOffset = ReceiveOffset + (Split > 1 ? Split * RowsOut * LdO * 4 : 0),
    Bytes = BarrierOffset + (4 * Stages + 1) * 8,
    Tiles = (Keys + BT - 1) / BT,
    TilesQ = (Rows + BQ - 1) / BQ
  };
  static_assert(sizeof(T) == 2 && WQ * WT <= 4 && BT % (16 * WT) == 0 && BT <= 256 && BQ % Group == 0 && DP <= 128 &&
                    DVP <= 128 && C::DV % C::V == 0 && 8 % C::V == 0,
                "wide attention");
  static_assert(Stages >= 2 || Tiles <= Split, "a ring that turns has at least two stages");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// Keys that a row sees.
template <class C> __device__ __forceinline__ int visibleKeys(int row) {
  using A = WideAttentionShape<C>;
  return C::Causal ? most(0, least(A::Keys, row / A::Group + A::Keys - A::S + 1)) : (int)A::Keys;
}

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

/// One warpgroup's state: 64 rows, its share of the keys. A thread has rows lane / 4 and lane / 4 + 8 of its warp's sixteen.
template <class C> struct WideAttention {
  using T = typename C::Element;
  using A = WideAttentionShape<C>;
  float out[A::NV][4];
  unsigned probability[A::NF / 2][4];
  float top[2], sum[2];
  ScoreBias<C, A> biases;

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int j = 0; j < A::NV; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        out[j][q] = 0.f;
    top[0] = top[1] = -__int_as_float(0x7f800000);
    sum[0] = sum[1] = 0.f;
  }

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
    clear();
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
__device__ __forceinline__ void storeRows(const WideAttention<C> &state, int batch, int keyHead, int row0,
                                          const Epilogue &epilogue) {
  using A = WideAttentionShape<C>;
  int lane = threadIdx.x & 31;
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = state.sum[half];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    inverse[half] = total == 0.f ? 0.f : 1.f / total; // no visible key: zeros
  }
#pragma unroll
  for (int tile = 0; tile < A::DVP / 16; ++tile) {
    float vector[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int x = 0; x < 2; ++x)
        vector[i][x] = state.out[tile * 2 + i / 2][i % 2 * 2 + x] * inverse[i % 2];
    gatherVector(vector, lane);
    int i = lane & 3, at = row0 + (lane >> 2) + i % 2 * 8, d = tile * 16 + i / 2 * 8;
#pragma unroll
    for (int x = 0; x < 8; x += C::V) {
      float value[C::V];
#pragma unroll
      for (int y = 0; y < C::V; ++y)
        value[y] = vector[(x + y) / 2][(x + y) % 2];
      if (at < A::Rows && d + x < C::DV)
        epilogue(batch, at / A::Group, keyHead * A::Group + at % A::Group, d + x, value);
    }
  }
}

/// Merges the parts of all warpgroups, then of the cluster, whose ranks share the rows.
template <class C, class Epilogue>
__device__ __forceinline__ void mergeRows(const WideAttention<C> &state, float scale, int batch, int keyHead, int row0, int wq,
                                          int wt, int rank, const Epilogue &epilogue) {
  using A = WideAttentionShape<C>;
  int tid = threadIdx.x, lane = tid & 31;
  unsigned char *shared = sharedBase();
  unsigned base = sharedAddress(shared);
  constexpr bool Direct = A::WT == 1; // to the rank that owns the row; else over Q, K and V
  if constexpr (Direct)
    clusterWait();
  else
    __syncthreads(); // all have read the ring
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = state.sum[half], top = state.top[half] * (C::HasBias ? 0.6931471805599453f : scale); // as one of scores
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    int row = wq * 64 + (tid >> 5) % 4 * 16 + (lane >> 2) + half * 8, column = (lane & 3) * 2;
    unsigned to = base + (wt * A::BQ + row) * A::LdO * 4;
    if constexpr (Direct)
      to = clusterAddress(base + A::ReceiveOffset + (rank * A::RowsOut + row % A::RowsOut) * A::LdO * 4, row / A::RowsOut);
    auto store = [&](int at, float x, float y) {
      if constexpr (Direct)
        storeCluster2(to + at * 4, x, y);
      else
        storeShared2(to + at * 4, x, y);
    };
#pragma unroll
    for (int j = 0; j < A::NV; ++j)
      store(j * 8 + column, state.out[j][half * 2], state.out[j][half * 2 + 1]);
    if (column == 0)
      store(A::DVP, top, total);
  }
  const float *parts = reinterpret_cast<const float *>(shared);
  constexpr int Slots = A::Split > 1 ? A::Split : A::WT;
  int stride = A::BQ * A::LdO, skipped = rank * A::RowsOut;
  if constexpr (!Direct)
    __syncthreads();
  if constexpr (A::Split > 1) {
    if constexpr (!Direct) {
      clusterWait();
      constexpr int Chunks = A::DVP / 4;
#pragma unroll 1
      for (int i = tid; i < A::BQ * Chunks; i += A::Threads) {
        int r = i / Chunks, d = i % Chunks * 4;
        float value[4], top, sum;
        mergeParts<A, A::WT>(value, top, sum, parts + r * A::LdO, stride, d);
        unsigned local = base + A::ReceiveOffset + ((rank * A::RowsOut + r % A::RowsOut) * A::LdO) * 4;
        unsigned remote = clusterAddress(local, r / A::RowsOut);
        storeCluster4(remote + d * 4, value[0], value[1], value[2], value[3]);
        if (d == 0)
          storeCluster4(remote + A::DVP * 4, top, sum, 0.f, 0.f);
      }
    }
    clusterArrive();
    clusterWait();
    parts = reinterpret_cast<const float *>(shared + A::ReceiveOffset);
    stride = A::RowsOut * A::LdO;
  }
  constexpr int V = C::V, PerRow = C::DV / V;
#pragma unroll 1
  for (int i = tid; i < A::RowsOut * PerRow; i += A::Threads) {
    int r = i / PerRow, d = i % PerRow * V, row = row0 + skipped + r;
    if (row >= A::Rows || skipped + r >= A::BQ)
      continue;
    float value[V], top, sum;
    mergeParts<A, Slots>(value, top, sum, parts + r * A::LdO, stride, d);
    float inverse = sum == 0.f ? 0.f : 1.f / sum; // no visible key: zeros
#pragma unroll
    for (int x = 0; x < V; ++x)
      value[x] *= inverse;
    epilogue(batch, row / A::Group, keyHead * A::Group + row % A::Group, d, value);
  }
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
  int tiles = divUp(visibleKeys<C>(least(row0 + A::BQ, A::Rows) - 1), A::BT), slice = divUp(tiles, A::Split),
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
    mergeRows<C>(state, scale, batch, keyHead, row0, wq, wt, rank, epilogue);
  else
    storeRows<C>(state, batch, keyHead, warpRow, epilogue);
}

} // namespace ogc

#endif
