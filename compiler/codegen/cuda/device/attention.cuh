//===- attention.cuh - scaled dot product attention -----------------------===//
//
// Scores never leave the registers. A block handles BQ rows of one key head. Warps split rows (WQ) and keys (WT), a cluster may
// split the keys again; every warp runs its own online softmax, and the parts are merged at the end.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_ATTENTION_CUH
#define OGC_DEVICE_ATTENTION_CUH

#include "ogc/attention_rows.cuh"

namespace ogc {

/// Operands that are all in memory.
struct NoOperands {
  __device__ __forceinline__ void bind() const {}
  __device__ __forceinline__ void store(int, int) const {}
};

template <class C> struct AttentionShape : AttentionRows<C> {
  using R = AttentionRows<C>;
  using T = typename C::Element;
  enum {
    E = (int)sizeof(T),
    Pad = 16 / E,
    KS = Mma<T>::KS,
    BQ = 16 * R::WQ,
    BT = C::BT,
    Stages = C::Stages,
    Split = C::Split,
    Threads = 32 * R::WQ * R::WT,
    KeysPerWarp = BT / R::WT,
    NF = KeysPerWarp / 8,
    LdQ = R::DP + Pad,
    LdV = R::DVP + Pad,
    QBytes = BQ * LdQ * E,
    KBytes = BT * LdQ * E,
    VBytes = BT * LdV * E,
    StageBytes = KBytes + VBytes,
    MergeBytes = R::WT * BQ * R::LdO * 4,
    ReceiveOffset = (QBytes + Stages * StageBytes > MergeBytes ? QBytes + Stages * StageBytes : MergeBytes),
    Bytes = ReceiveOffset + (Split > 1 ? BQ * R::LdO * 4 : 0),
    Tiles = (R::Keys + BT - 1) / BT,
    Slice = (Tiles + Split - 1) / Split,
    TilesQ = (R::Rows + BQ - 1) / BQ,
    RowsOut = BQ / Split
  };
  static_assert(BT % (16 * R::WT) == 0 && BQ % Split == 0 && (Stages == 1 || Stages == 2), "attention tile");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// One warp's state: 16 rows, its share of the keys.
template <class C> struct AttentionWarp : SoftmaxRows<AttentionShape<C>::DVP / 8> {
  using T = typename C::Element;
  using A = AttentionShape<C>;
  using Rows = SoftmaxRows<A::DVP / 8>;
  using Rows::out, Rows::top, Rows::sum;

  static __device__ __forceinline__ void multiply(float (&acc)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (A::E == 2)
      Mma<T>::run(acc, a, b0, b1);
    else {
      unsigned high[4], low[4], b0Low, b1Low;
#pragma unroll
      for (int q = 0; q < 4; ++q)
        splitTf32(a[q], high[q], low[q]);
      splitTf32(b0, b0, b0Low);
      splitTf32(b1, b1, b1Low);
      if constexpr (C::Products == 3) {
        Mma<T>::run(acc, low, b0, b1);
        Mma<T>::run(acc, high, b0Low, b1Low);
      }
      Mma<T>::run(acc, high, b0, b1);
    }
  }

  /// scores = Q K^T for the warp's rows (shared address of the first one) and keys.
  __device__ __forceinline__ void score(float (&s)[A::NF][4], unsigned q, unsigned k, int lane) const {
    unsigned qa = q + ((lane & 15) * A::LdQ + (lane >> 4) * A::Pad) * A::E;
    unsigned ka = k + (((lane & 7) + ((lane >> 4) << 3)) * A::LdQ + ((lane >> 3) & 1) * A::Pad) * A::E;
#pragma unroll
    for (int d = 0; d < A::DP; d += A::KS) {
      unsigned a[4];
      loadMatrix4(a, qa + d * A::E);
#pragma unroll
      for (int j = 0; j < A::NF / 2; ++j) {
        unsigned b[4];
        loadMatrix4(b, ka + (j * 16 * A::LdQ + d) * A::E);
        multiply(s[2 * j], a, b[0], b[1]);
        multiply(s[2 * j + 1], a, b[2], b[3]);
      }
    }
  }

  /// Turns scores into exp(score - top), rescales what was summed before.
  __device__ __forceinline__ void soften(float (&s)[A::NF][4]) {
    const float log2e = 1.4426950408889634f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float best = top[half];
#pragma unroll
      for (int j = 0; j < A::NF; ++j)
        best = fmaxf(best, fmaxf(s[j][half * 2], s[j][half * 2 + 1]));
      best = maxOfQuad(best);
      float base = best == -__int_as_float(0x7f800000) ? 0.f : best; // no visible key yet
      float factor = exp2Fast((top[half] - base) * log2e), total = 0.f;
#pragma unroll
      for (int j = 0; j < A::NF; ++j)
#pragma unroll
        for (int q = half * 2; q < half * 2 + 2; ++q) {
          s[j][q] = exp2Fast((s[j][q] - base) * log2e);
          total += s[j][q];
        }
      sum[half] = sum[half] * factor + total;
      top[half] = best;
#pragma unroll
      for (int j = 0; j < A::DVP / 8; ++j) {
        out[j][half * 2] *= factor;
        out[j][half * 2 + 1] *= factor;
      }
    }
  }

  /// out += P V. The accumulator layout of the scores is the operand layout of the probabilities (for tf32 with the keys of a
  /// step renumbered 0 2 4 6 1 3 5 7, on both sides).
  __device__ __forceinline__ void weigh(const float (&s)[A::NF][4], unsigned v, int lane) {
    if constexpr (A::E == 2) {
      unsigned va = v + ((lane & 15) * A::LdV + (lane >> 4) * 8) * A::E;
#pragma unroll
      for (int i = 0; i < A::NF / 2; ++i) {
        unsigned a[4] = {Convert<T>::pair(s[2 * i][0], s[2 * i][1]), Convert<T>::pair(s[2 * i][2], s[2 * i][3]),
                         Convert<T>::pair(s[2 * i + 1][0], s[2 * i + 1][1]), Convert<T>::pair(s[2 * i + 1][2], s[2 * i + 1][3])};
#pragma unroll
        for (int j = 0; j < A::DVP / 16; ++j) {
          unsigned b[4];
          loadMatrix4Transposed(b, va + (i * 16 * A::LdV + j * 16) * A::E);
          multiply(out[2 * j], a, b[0], b[1]);
          multiply(out[2 * j + 1], a, b[2], b[3]);
        }
      }
    } else {
      unsigned va = v + ((lane & 3) * 2 * A::LdV + (lane >> 2)) * A::E;
#pragma unroll
      for (int i = 0; i < A::NF; ++i) {
        unsigned a[4] = {__float_as_uint(s[i][0]), __float_as_uint(s[i][2]), __float_as_uint(s[i][1]), __float_as_uint(s[i][3])};
#pragma unroll
        for (int j = 0; j < A::DVP / 8; ++j) {
          unsigned b0 = __float_as_uint(loadShared(va + (i * 8 * A::LdV + j * 8) * A::E));
          unsigned b1 = __float_as_uint(loadShared(va + ((i * 8 + 1) * A::LdV + j * 8) * A::E));
          multiply(out[j], a, b0, b1);
        }
      }
    }
  }
};

/// Scales, adds the bias and hides keys that do not exist or lie ahead.
template <class C, class BiasElement>
__device__ __forceinline__ void maskScores(float (&s)[AttentionShape<C>::NF][4], const BiasElement *bias, float scale, int batch,
                                           int keyHead, int row0, int key0, int lane) {
  using A = AttentionShape<C>;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int row = row0 + (lane >> 2) + half * 8, query = row / A::Group, head = keyHead * A::Group + row % A::Group;
    int visible = visibleKeys<C>(row);
    long long biasRow = (long long)C::BiasSb * batch + (long long)C::BiasSh * head + (long long)C::BiasSs * query;
#pragma unroll
    for (int j = 0; j < A::NF; ++j)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        int key = key0 + j * 8 + (lane & 3) * 2 + q;
        float &x = s[j][half * 2 + q];
        x *= scale;
        if constexpr (C::HasBias) {
          if (key < A::Keys && row < A::Rows)
            x += toFloat(bias[biasRow + (long long)C::BiasSt * key]);
        }
        if (key >= visible)
          x = -__int_as_float(0x7f800000);
      }
  }
}

/// Query rows row0.. from the functor to shared memory; what does not exist is zero.
template <class C, class Operands>
__device__ __forceinline__ void fillQueries(unsigned char *shared, const Operands &operands, int batch, int keyHead, int row0) {
  using T = typename C::Element;
  using A = AttentionShape<C>;
#pragma unroll 2
  for (int i = threadIdx.x; i < A::BQ * A::DP; i += A::Threads) {
    int r = i / A::DP, d = i % A::DP, row = row0 + r;
    T x{};
    if (row < A::Rows && d < A::D)
      x = operands.query(batch, row / A::Group, keyHead * A::Group + row % A::Group, d);
    *reinterpret_cast<T *>(shared + (r * A::LdQ + d) * A::E) = x;
  }
}

/// Rows of a cache that is stored in another element type, converted on the way to shared memory.
template <class C, int Columns, int Ld, int Vec, class CacheElement>
__device__ __forceinline__ void loadConverted(unsigned char *shared, const CacheElement *origin, long long sRow, long long sCol,
                                              int rows, int columns) {
  using T = typename C::Element;
  using A = AttentionShape<C>;
  constexpr int Chunks = Columns / Vec, Steps = divUp(A::BT * Chunks, A::Threads);
#pragma unroll 8
  for (int step = 0; step < Steps; ++step) {
    int i = threadIdx.x + step * A::Threads, t = i / Chunks, d = i % Chunks * Vec;
    if (A::BT * Chunks % A::Threads != 0 && t >= A::BT)
      break;
    float x[Vec];
#pragma unroll
    for (int j = 0; j < Vec; ++j)
      x[j] = 0.f;
    if (t < rows && d < columns) {
      const CacheElement *from = origin + (t * sRow + d * sCol);
      if (d + Vec <= columns)
        load<Vec>(x, from);
      else
#pragma unroll
        for (int j = 0; j < Vec; ++j)
          if (d + j < columns)
            x[j] = toFloat(from[j]);
    }
    store<Vec>(reinterpret_cast<T *>(shared + (t * Ld + d) * A::E), x);
  }
}

/// New rows that lie among the keys t0.. of a tile replace those of the caches. The whole block comes here or none of it.
template <class C, class Operands>
__device__ __forceinline__ void patchRows(unsigned char *keys, unsigned char *values, const Operands &operands, int position,
                                          int batch, int keyHead, int t0) {
  using T = typename C::Element;
  using A = AttentionShape<C>;
#pragma unroll 1
  for (int i = threadIdx.x; i < C::NewRows * (A::D + A::DV); i += A::Threads) {
    int r = i / (A::D + A::DV), d = i % (A::D + A::DV), t = position + r - t0;
    if (t < 0 || t >= A::BT || t + t0 >= A::Keys)
      continue;
    if (d < A::D)
      *reinterpret_cast<T *>(keys + (t * A::LdQ + d) * A::E) = operands.newKey(batch, r, keyHead, d);
    else
      *reinterpret_cast<T *>(values + (t * A::LdV + d - A::D) * A::E) = operands.newValue(batch, r, keyHead, d - A::D);
  }
}

/// Where the new rows begin, in a range in which nothing overflows.
template <class C, class Operands> __device__ __forceinline__ int firstNewRow(const Operands &operands, int batch) {
  long long position = operands.position(batch);
  return position<-(long long)C::NewRows ? -(int)C::NewRows : position>(int) C::T ? (int)C::T : (int)position;
}

template <class X, class Y> struct SameType {
  enum { Value = 0 };
};
template <class X> struct SameType<X, X> {
  enum { Value = 1 };
};

template <class C, class CacheElement, class BiasElement, class Operands, class Epilogue>
__device__ __forceinline__ void attention(const typename C::Element *q, const CacheElement *k, const CacheElement *v,
                                          const BiasElement *bias, float scale, Operands operands, const Epilogue &epilogue) {
  using T = typename C::Element;
  using A = AttentionShape<C>;
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, wq = warp / A::WT, wt = warp % A::WT;
  int block = blockIdx.x, rank = block % A::Split;
  block /= A::Split;
  int row0 = block % A::TilesQ * A::BQ;
  block /= A::TilesQ;
  int keyHead = block % C::HK, batch = block / C::HK;
  unsigned char *shared = sharedBase();
  if constexpr (C::Trigger == 0)
    launchDependents();
  if constexpr (A::Split > 1)
    clusterArriveRelaxed();
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  operands.bind();

  if constexpr (!C::PulledQuery) {
    constexpr int Vec = C::VecQ, Chunks = A::DP / Vec, Total = A::BQ * Chunks;
#pragma unroll 4
    for (int i = tid; i < Total; i += A::Threads) {
      int r = i / Chunks, d = i % Chunks * Vec, row = row0 + r, query = row / A::Group,
          head = keyHead * A::Group + row % A::Group;
      int valid = row < A::Rows ? most(0, least(Vec, A::D - d)) : 0;
      const T *src =
          q + ((long long)C::QSb * batch + (long long)C::QSs * query + (long long)C::QSh * head + (long long)C::QSd * d);
      if constexpr (Vec * A::E >= 4)
        copyVector<T, Vec>(shared + (r * A::LdQ + d) * A::E, valid ? src : q, valid);
      else
        *reinterpret_cast<T *>(shared + (r * A::LdQ + d) * A::E) = valid ? *src : T{};
    }
  }
  const CacheElement *keys = k + ((long long)C::KSb * batch + (long long)C::KSh * keyHead),
                     *values = v + ((long long)C::VSb * batch + (long long)C::VSh * keyHead);
  auto request = [&](int tile, int stage) {
    unsigned char *dst = shared + A::QBytes + stage * A::StageBytes;
    int t0 = tile * A::BT;
    const CacheElement *k0 = keys + (long long)C::KSt * t0, *v0 = values + (long long)C::VSt * t0;
    if constexpr (SameType<T, CacheElement>::Value) {
      loadMatrix<T, A::BT, A::DP, C::VecK, A::Threads, true>(dst, k0, C::KSt, C::KSd, A::Keys - t0, A::D,
                                                             [](int t, int d) { return (t * A::LdQ + d) * A::E; });
      loadMatrix<T, A::BT, A::DVP, C::VecV, A::Threads, true>(dst + A::KBytes, v0, C::VSt, C::VSd, A::Keys - t0, A::DV,
                                                              [](int t, int d) { return (t * A::LdV + d) * A::E; });
    } else {
      loadConverted<C, A::DP, A::LdQ, C::VecK>(dst, k0, C::KSt, C::KSd, A::Keys - t0, A::D);
      loadConverted<C, A::DVP, A::LdV, C::VecV>(dst + A::KBytes, v0, C::VSt, C::VSd, A::Keys - t0, A::DV);
    }
  };
  int first = rank * A::Slice, last = least(first + A::Slice, A::Tiles);
  if constexpr (C::Causal) // the last row sees the most keys
    last = least(last, divUp(most(0, visibleKeys<C>(least(row0 + A::BQ, A::Rows) - 1)), A::BT));

  AttentionWarp<C> state;
  state.clear();
  // The first tile is on its way while queries and new rows are computed.
  if (first < last)
    request(first, 0);
  int position = 0;
  if constexpr (C::NewRows > 0)
    position = firstNewRow<C>(operands, batch);
  if constexpr (C::PulledQuery)
    fillQueries<C>(shared, operands, batch, keyHead, row0);
  operands.store(blockIdx.x * A::Threads + tid, gridDim.x * A::Threads);
  copyCommit();
  unsigned base = sharedAddress(shared);
#pragma unroll 1
  for (int tile = first; tile < last; ++tile) {
    int stage = A::Stages == 2 ? (tile - first) & 1 : 0;
    if constexpr (A::Stages == 2) {
      if (tile + 1 < last)
        request(tile + 1, stage ^ 1);
    } else if (tile > first)
      request(tile, 0);
    copyCommit();
    copyWait<A::Stages - 1>();
    __syncthreads();
    if constexpr (C::NewRows > 0) {
      int t0 = tile * A::BT;
      if (position < t0 + A::BT && position + C::NewRows > t0) {
        unsigned char *base = shared + A::QBytes + stage * A::StageBytes;
        patchRows<C>(base, base + A::KBytes, operands, position, batch, keyHead, t0);
        __syncthreads();
      }
    }
    unsigned kAddress = base + A::QBytes + stage * A::StageBytes + wt * A::KeysPerWarp * A::LdQ * A::E;
    unsigned vAddress = base + A::QBytes + stage * A::StageBytes + A::KBytes + wt * A::KeysPerWarp * A::LdV * A::E;
    float s[A::NF][4] = {};
    state.score(s, base + wq * 16 * A::LdQ * A::E, kAddress, lane);
    maskScores<C>(s, bias, scale, batch, keyHead, row0 + wq * 16, tile * A::BT + wt * A::KeysPerWarp, lane);
    state.soften(s);
    state.weigh(s, vAddress, lane);
    __syncthreads();
  }
  copyWait<0>();
  __syncthreads();
  if constexpr (C::Trigger == 2)
    launchDependents();

  // parts of all warps to shared memory, over Q, K and V
  state.storePart(1.f, [&](int half, int column, float x, float y) {
    storeShared2(base + ((wt * A::BQ + wq * 16 + (lane >> 2) + half * 8) * A::LdO + column) * 4, x, y);
  });
  __syncthreads();
  mergeRows<C, A, /*IsSent=*/false>(shared, batch, keyHead, row0, rank, epilogue);
}

template <class C, class BiasElement, class Epilogue>
__device__ __forceinline__ void attention(const typename C::Element *q, const typename C::Element *k,
                                          const typename C::Element *v, const BiasElement *bias, float scale,
                                          const Epilogue &epilogue) {
  attention<C>(q, k, v, bias, scale, NoOperands(), epilogue);
}

} // namespace ogc

#endif
