//===- gemv.cuh - matrix product with few rows ----------------------------===//
//
// Streams B once. The lanes of a warp cover some consecutive rows k of B (BN / VecB lanes a row), the warps and the cluster split
// K. Constant weights are on their way before the wait, a lane has Depth loads in flight. With one or two rows of A a lane reads
// the elements that it needs itself, each element once a row of lanes; more rows go through shared memory. Partial sums meet by
// shuffles that leave each lane fewer columns, in shared memory and in distributed shared memory. Products are f32 multiply-adds.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_GEMV_CUH
#define OGC_DEVICE_GEMV_CUH

#include "ogc/ahead.cuh"
#include "ogc/norm.cuh"

namespace ogc {

/// See README.md, "gemv".
struct GemvDefaults : NormDefaults {
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
    Depth = 8,
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
    /// Loads in flight, as even as possible over the rounds that the slice takes.
    Rounds = (Steps + C::Depth - 1) / C::Depth,
    InFlight = (Steps + Rounds - 1) / Rounds,
    /// Every lane has an element of B in every step.
    IsExact = Slice * Split == K && InFlight * Rounds * RowsPerStep == Slice,
    ReadsDirectly = M <= 2,
    /// Partial sums of a column lie side by side, columns apart from each other by an odd number of 16 bytes.
    Stride = Warps < 4                ? Warps
             : Warps / 4 * 4 == Warps ? (Warps / 4 | 1) * 4
                                      : Warps,
    Columns = BN + C::Norm, // sums of a row behind its columns
    PartialOffset = ReadsDirectly ? 0 : (M * Slice * 4 + 15) / 16 * 16,
    ReceiveOffset = PartialOffset + M * Columns * Stride * 4,
    BarrierOffset = (ReceiveOffset + Split * M * Columns * 4 + 7) / 8 * 8,
    Bytes = Split > 1 ? BarrierOffset + 8 : ReceiveOffset,
    Vectors = M * BN / V, ///< of the epilogue
    ReadsAhead = Vectors <= Threads
  };
  static_assert(BN % Vec == 0 && LanesPerRow <= 32 && 32 % LanesPerRow == 0, "lanes do not cover rows of B");
  static_assert(BN % V == 0 && N % V == 0 && (int)C::SharedBytes >= (int)Bytes,
                "V does not divide the columns, or SharedBytes is too small");
  static_assert(!C::Norm || ReadsDirectly, "rows in shared memory are not summed");
};

/// VecB elements of B at p, which are those from column n on, as they lie in memory; columns past N read as zero.
template <class C, bool IsAhead, class T> __device__ __forceinline__ auto loadWeights(const T *p, int n, bool in) {
  constexpr int Vec = C::VecB, Columns = divUp(C::N, C::P) * C::P, Bytes = Vec * (int)sizeof(T);
  constexpr long long Sn = C::BSn;
  constexpr bool Ordinary = IsAhead || !C::WeightsConstant;
  typename Word<Bytes>::Type word = {};
  if constexpr (C::BLayout == 0) {
    if (in && (Columns % C::BN == 0 || n < Columns))
      word = loadStream<Bytes, Ordinary>(p);
  } else if (in && Vec > 1 && n + Vec <= C::N) {
    word = loadStream<Bytes, Ordinary>(p);
  } else {
    T single[Vec];
#pragma unroll
    for (int v = 0; v < Vec; ++v)
      single[v] = in && n + v < C::N ? p[v * Sn] : T{};
    memcpy(&word, single, Bytes);
  }
  return word;
}

/// The sum of a column over the warps.
template <class S> __device__ __forceinline__ float sumWarps(const float *partial) {
  float sum = 0.f;
  if constexpr (S::Stride % 4 == 0) {
#pragma unroll
    for (int warp = 0; warp < S::Warps; warp += 4) {
      float4 four = *reinterpret_cast<const float4 *>(partial + warp);
      sum += (four.x + four.y) + (four.z + four.w);
    }
  } else {
#pragma unroll
    for (int warp = 0; warp < S::Warps; ++warp)
      sum += partial[warp];
  }
  return sum;
}

template <class C, class Epilogue>
__device__ __forceinline__ void gemv(const typename C::Element *a, const typename C::Element *b, const Epilogue &epilogue) {
  using T = typename C::Element;
  using S = GemvShape<C>;
  constexpr int Vec = S::Vec, M = S::M, BN = S::BN, U = S::InFlight;
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  int block = blockIdx.x, rank = block % S::Split;
  block /= S::Split;
  int n0 = block % S::TilesN * BN, batch = block / S::TilesN;
  int first = rank * S::Slice, depth = most(0, least(S::Slice, C::K - first));
  int row = warp * S::RowsPerWarp + lane / S::LanesPerRow, col = lane % S::LanesPerRow * Vec;
  unsigned char *shared = sharedBase();
  float *x = reinterpret_cast<float *>(shared), *partial = reinterpret_cast<float *>(shared + S::PartialOffset);

  if constexpr (C::Trigger == 0)
    launchDependents();
  unsigned barrier = sharedAddress(shared + S::BarrierOffset);
  if constexpr (S::Split > 1) {
    if (tid == 0) {
      barrierInit(barrier, 1);
      barrierInitDone();
      barrierExpect(barrier, S::Split * M * S::Columns * 4);
    }
    __syncwarp();
    clusterArriveRelaxed();
  }
  // Pointers to the first row of a round; a step is a constant distance.
  constexpr long long Sk = C::BLayout == 0 ? (long long)C::P : (long long)C::BSk < 0 ? (long long)C::N : (long long)C::BSk;
  constexpr long long StepB = S::RowsPerStep * Sk, StepA = S::RowsPerStep * (long long)C::ASk;
  int n = n0 + col, k = row;
  const T *weights =
      b + (first + row) * Sk +
      (C::BLayout == 0 ? (long long)(n / C::P) * C::K * C::P + n % C::P : (long long)C::BSb * batch + (long long)C::BSn * n);
  typename Word<Vec *(int)sizeof(T)>::Type words[U];
  auto isIn = [&](int step) { return S::IsExact || k + step * S::RowsPerStep < depth; };
  auto fetchAll = [&] {
#pragma unroll
    for (int u = 0; u < U; ++u)
      words[u] = loadWeights<C, C::WeightsConstant>(weights + u * StepB, n, isIn(u));
  };
  if constexpr (C::WeightsConstant)
    fetchAll();
  // What the epilogue of this thread reads is on its way before the sums are known.
  using E = Early<Epilogue>;
  typename E::Constants constants;
  typename E::Inputs inputs;
  int aheadRow = tid / (BN / S::V), aheadColumn = n0 + tid % (BN / S::V) * S::V;
  bool isAhead = S::ReadsAhead && tid < S::Vectors && rank == 0 && aheadColumn < C::N;
  if (isAhead)
    E::load(epilogue, batch, aheadRow, aheadColumn, constants);
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  constexpr long long Sm = (long long)C::ASm < 0 ? (long long)C::K : (long long)C::ASm;
  const T *rows = a + (long long)C::ASb * batch + (long long)C::ASk * first;
  const T *own = rows + (long long)C::ASk * row;
  T factors[S::ReadsDirectly ? U : 1][M];
  auto fetchFactors = [&](int u, int step) {
    if constexpr (S::ReadsDirectly)
#pragma unroll
      for (int m = 0; m < M; ++m)
        factors[u][m] = isIn(step) ? loadWritten(own + (Sm * m + step * StepA)) : T{};
  };
  if constexpr (S::ReadsDirectly) {
#pragma unroll
    for (int u = 0; u < U; ++u)
      fetchFactors(u, u);
  } else {
#pragma unroll
    for (int m = 0; m < M; ++m)
      for (int i = tid; i < depth; i += S::Threads)
        x[m * S::Slice + i] = toFloat(loadWritten(rows + (Sm * m + (long long)C::ASk * i)));
  }
  if (isAhead)
    E::load(epilogue, batch, aheadRow, aheadColumn, inputs);
  if constexpr (!C::WeightsConstant)
    fetchAll();
  if constexpr (!S::ReadsDirectly)
    __syncthreads();

  float acc[M][Vec] = {}, sums[M][most(1, C::Norm)] = {};
  auto use = [&](int u) {
    if (!S::ReadsDirectly && !isIn(u))
      return;
    T w[Vec];
    memcpy(w, &words[u], sizeof w);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      float factor = S::ReadsDirectly ? toFloat(factors[S::ReadsDirectly ? u : 0][m]) : x[m * S::Slice + k + u * S::RowsPerStep];
#pragma unroll
      for (int v = 0; v < Vec; ++v)
        acc[m][v] += factor * toFloat(w[v]);
      if constexpr (C::Norm >= 1)
        sums[m][0] += factor * factor;
      if constexpr (C::Norm == 2)
        sums[m][1] += factor;
    }
  };
#pragma unroll 1
  for (int round = 1; round < S::Rounds; ++round) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      use(u);
      words[u] = loadWeights<C, false>(weights + (U + u) * StepB, n, isIn(U + u));
      fetchFactors(u, U + u);
    }
    k += U * S::RowsPerStep;
    weights += U * StepB;
    own += U * StepA;
  }
#pragma unroll
  for (int u = 0; u < U; ++u)
    use(u);
  if constexpr (C::Trigger == 2)
    launchDependents();

  constexpr int Left = most(1, Vec / S::RowsPerWarp);
#pragma unroll
  for (int m = 0; m < M; ++m) {
    int column = col;
    bool isOwner = true;
    reduceLanes<Vec, 16, S::LanesPerRow>(acc[m], lane, column, isOwner);
#pragma unroll
    for (int v = 0; v < Left; ++v)
      if (isOwner)
        partial[(m * S::Columns + column + v) * S::Stride + warp] = acc[m][v];
#pragma unroll
    for (int s = 0; s < C::Norm; ++s) {
#pragma unroll
      for (int delta = 16; delta >= S::LanesPerRow; delta /= 2)
        sums[m][s] += __shfl_xor_sync(0xffffffffu, sums[m][s], delta);
      if (lane == 0)
        partial[(m * S::Columns + BN + s) * S::Stride + warp] = sums[m][s];
    }
  }
  __syncthreads();

  float *received = reinterpret_cast<float *>(shared + S::ReceiveOffset);
  if constexpr (S::Split > 1) {
    // every rank sends its sums to rank 0
    clusterWait();
#pragma unroll 1
    for (int i = tid; i < M * S::Columns; i += S::Threads)
      sendCluster1(clusterAddress(sharedAddress(received) + (rank * M * S::Columns + i) * 4, 0),
                   sumWarps<S>(partial + i * S::Stride), clusterAddress(barrier, 0));
    if (rank != 0)
      return;
    barrierWait(barrier, 0);
  }
#pragma unroll 1
  for (int i = tid; i < S::Vectors; i += S::Threads) {
    int m = i / (BN / S::V), c = i % (BN / S::V) * S::V;
    if (n0 + c >= C::N)
      continue;
    auto columnSum = [&](int column) {
      if constexpr (S::Split == 1)
        return sumWarps<S>(partial + (m * S::Columns + column) * S::Stride);
      float sum = 0.f;
#pragma unroll
      for (int slot = 0; slot < S::Split; ++slot)
        sum += received[(slot * M + m) * S::Columns + column];
      return sum;
    };
    float sum[S::V];
#pragma unroll
    for (int v = 0; v < S::V; ++v)
      sum[v] = columnSum(c + v);
    if constexpr (C::Norm != 0) {
      float scale = rowFactor<C, C::K>(columnSum(BN), C::Norm == 2 ? columnSum(BN + 1) : 0.f);
#pragma unroll
      for (int v = 0; v < S::V; ++v)
        sum[v] *= scale;
    }
    if constexpr (!S::ReadsAhead)
      E::load(epilogue, batch, m, n0 + c, constants), E::load(epilogue, batch, m, n0 + c, inputs);
    E::finish(epilogue, batch, m, n0 + c, constants, inputs, sum);
  }
}

} // namespace ogc

#endif
