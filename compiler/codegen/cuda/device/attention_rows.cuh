//===- attention_rows.cuh - what the forms of attention share -------------===//
//
// The rows of a block and the keys that they see; the state of an online softmax; how parts of a row meet, and how rows are
// stored. A row is (query, head of the group): with grouped heads one read of K and V serves the whole group.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_ATTENTION_ROWS_CUH
#define OGC_DEVICE_ATTENTION_ROWS_CUH

#include "ogc/tile.cuh"

namespace ogc {

/// See README.md, "attention".
struct AttentionDefaults {
  enum {
    Products = 1,
    QSd = 1,
    KSd = 1,
    VSd = 1,
    HasBias = 0,
    BiasSb = 0,
    BiasSh = 0,
    BiasSs = 0,
    BiasSt = 0,
    VecBias = 1,
    Causal = 0,
    PulledQuery = 0,
    NewRows = 0,
    VecQ = 1,
    VecK = 1,
    VecV = 1,
    WQ = 1,
    WT = 4,
    BT = 64,
    Stages = 2,
    Split = 1,
    V = 1,
    Trigger = 1,
    SharedBytes = 0
  };
};

/// The sizes that all forms have.
template <class C> struct AttentionRows {
  enum {
    S = C::S,
    Keys = C::T,
    Group = C::H / C::HK,
    Rows = S * Group,
    D = C::D,
    DV = C::DV,
    DP = (D + 15) / 16 * 16,
    DVP = (DV + 15) / 16 * 16,
    LdO = DVP + 8, // floats of a part: the values, maximum and sum; consecutive rows lie in different banks
    WQ = C::WQ,
    WT = C::WT
  };
  static_assert(C::H % C::HK == 0 && DV % C::V == 0, "heads of attention");
};

/// Keys that a row sees are those before this one; may be negative.
template <class C> __device__ __forceinline__ int visibleKeys(int row) {
  using R = AttentionRows<C>;
  return C::Causal ? least(R::Keys, row / R::Group + R::Keys - R::S + 1) : (int)R::Keys;
}

/// Of the four lanes that share a row of a product's result.
__device__ __forceinline__ float maxOfQuad(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float sumOfQuad(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// What values are multiplied by: a row without a visible key is zero.
__device__ __forceinline__ float inverseOf(float sum) { return sum == 0.f ? 0.f : 1.f / sum; }

/// The biases of a thread's scores, asked for while keys are on their way. With one bias for all queries both rows share it.
/// `A`: the form's shape.
template <class C, class A> struct ScoreBias {
  using E = typename C::BiasElement;
  enum { Halves = C::BiasSs == 0 && (A::Group == 1 || C::BiasSh == 0) ? 1 : 2, Vec = C::VecBias };
  static_assert(Vec == 1 || Vec == 2, "a thread has two neighbours at a time");
  struct alignas(Vec * sizeof(E)) Vector {
    E x[Vec];
  };
  Vector value[C::HasBias ? A::NF : 1][Halves][2 / Vec];

  __device__ __forceinline__ void load(const E *bias, int batch, int keyHead, int row0, int key0, int lane) {
    if constexpr (C::HasBias)
#pragma unroll
      for (int half = 0; half < Halves; ++half) {
        int row = least(row0 + (lane >> 2) + half * 8, A::Rows - 1);
        const E *at = bias + ((long long)C::BiasSb * batch + (long long)C::BiasSh * (keyHead * A::Group + row % A::Group) +
                              (long long)C::BiasSs * (row / A::Group));
#pragma unroll
        for (int j = 0; j < A::NF; ++j)
#pragma unroll
          for (int i = 0; i < 2 / Vec; ++i) {
            int key = least(key0 + j * 8 + (lane & 3) * 2 + i, A::Keys - Vec);
            value[j][half][i] = *reinterpret_cast<const Vector *>(at + (long long)C::BiasSt * key);
          }
      }
  }
  __device__ __forceinline__ float at(int j, int half, int q) const {
    if constexpr (C::HasBias)
      return toFloat(value[j][Halves == 2 ? half : 0][q / Vec].x[q % Vec]);
    else
      return 0.f;
  }
};

/// The online softmax of sixteen rows of a warp, as products leave them: a thread has rows lane / 4 and lane / 4 + 8.
template <int Tiles> struct SoftmaxRows {
  float out[Tiles][4];
  float top[2], sum[2]; // running maximum (in units of the scores) and sum, of the thread's keys

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int j = 0; j < Tiles; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        out[j][q] = 0.f;
    top[0] = top[1] = -__int_as_float(0x7f800000);
    sum[0] = sum[1] = 0.f;
  }

  /// store(half, column, x, y) for the thread's two rows as parts. `unit`: what a maximum is multiplied by to be one of scores.
  template <class Store> __device__ __forceinline__ void storePart(float unit, const Store &store) const {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = sumOfQuad(sum[half]);
#pragma unroll
      for (int j = 0; j < Tiles; ++j)
        store(half, j * 8 + (lane & 3) * 2, out[j][half * 2], out[j][half * 2 + 1]);
      if ((lane & 3) == 0)
        store(half, Tiles * 8, top[half] * unit, total);
    }
  }
};

/// Reads the parts of one row (Slots of them, `stride` floats apart), each [DVP values, maximum, sum]; gives weighted values.
template <class A, int Slots, int V>
__device__ __forceinline__ void mergeParts(float (&value)[V], float &top, float &sum, const float *part, int stride, int d) {
  const float minus = -__int_as_float(0x7f800000), log2e = 1.4426950408889634f;
  top = minus;
#pragma unroll
  for (int w = 0; w < Slots; ++w)
    top = fmaxf(top, part[w * stride + A::DVP]);
  sum = 0.f;
#pragma unroll
  for (int v = 0; v < V; ++v)
    value[v] = 0.f;
  float base = top == minus ? 0.f : top;
#pragma unroll
  for (int w = 0; w < Slots; ++w) {
    float factor = exp2Fast((part[w * stride + A::DVP] - base) * log2e);
    sum += part[w * stride + A::DVP + 1] * factor;
#pragma unroll
    for (int v = 0; v < V; ++v)
      value[v] += part[w * stride + d + v] * factor;
  }
}

/// Merges the parts of the block's WT groups, and sends each row to the rank of the cluster that stores it.
template <class A> __device__ __forceinline__ void sendRows(unsigned char *shared, int rank) {
  constexpr int Chunks = A::DVP / 4;
  const float *parts = reinterpret_cast<const float *>(shared);
#pragma unroll 1
  for (int i = threadIdx.x; i < A::BQ * Chunks; i += A::Threads) {
    int r = i / Chunks, d = i % Chunks * 4;
    float value[4], top, sum;
    mergeParts<A, A::WT>(value, top, sum, parts + r * A::LdO, A::BQ * A::LdO, d);
    unsigned local = sharedAddress(shared) + A::ReceiveOffset + ((rank * A::RowsOut + r % A::RowsOut) * A::LdO) * 4;
    unsigned remote = clusterAddress(local, r / A::RowsOut);
    storeCluster4(remote + d * 4, value[0], value[1], value[2], value[3]);
    if (d == 0)
      storeCluster4(remote + A::DVP * 4, top, sum, 0.f, 0.f);
  }
}

/// Merges the parts of a block's rows and stores the results. The parts lie in shared memory, [WT][BQ][LdO] floats, or `IsSent`:
/// they are on their way to the ranks that store them, [Split][RowsOut][LdO] at ReceiveOffset.
template <class C, class A, bool IsSent, class Epilogue>
__device__ __forceinline__ void mergeRows(unsigned char *shared, int batch, int keyHead, int row0, int rank,
                                          const Epilogue &epilogue) {
  constexpr int Slots = A::Split > 1 ? (int)A::Split : (int)A::WT, V = C::V, PerRow = A::DV / V;
  const float *parts = reinterpret_cast<const float *>(shared);
  int stride = A::BQ * A::LdO, skipped = 0;
  if constexpr (A::Split > 1) {
    if constexpr (!IsSent) {
      clusterWait();
      sendRows<A>(shared, rank);
    }
    clusterArrive();
    clusterWait();
    parts = reinterpret_cast<const float *>(shared + A::ReceiveOffset);
    stride = A::RowsOut * A::LdO, skipped = rank * A::RowsOut;
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < A::RowsOut * PerRow; i += A::Threads) {
    int r = i / PerRow, d = i % PerRow * V, row = row0 + skipped + r;
    if (row >= A::Rows || (A::BQ % A::Split != 0 && skipped + r >= A::BQ))
      continue;
    float value[V], top, sum;
    mergeParts<A, Slots>(value, top, sum, parts + r * A::LdO, stride, d);
    float inverse = inverseOf(sum);
#pragma unroll
    for (int x = 0; x < V; ++x)
      value[x] *= inverse;
    epilogue(batch, row / A::Group, keyHead * A::Group + row % A::Group, d, value);
  }
}

/// Lane c of four has the columns 2c and 2c + 1 of four vectors of eight; afterwards x is vector c.
__device__ __forceinline__ void gatherVector(float (&x)[4][2], int lane) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
    for (int low = 0; low < 4; ++low) {
      int high = low | bit;
      if (low == high)
        continue;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        float got = __shfl_xor_sync(0xffffffffu, lane & bit ? x[low][q] : x[high][q], bit);
        x[low][q] = lane & bit ? got : x[low][q];
        x[high][q] = lane & bit ? x[high][q] : got;
      }
    }
}

/// Stores a warp's sixteen rows from row0, columns d0.., of which a thread has the whole sums; `inverse` of its two rows.
template <class C, int Tiles, class Epilogue>
__device__ __forceinline__ void storeRows(const float (&out)[Tiles][4], const float (&inverse)[2], int batch, int keyHead,
                                          int row0, int d0, const Epilogue &epilogue) {
  using R = AttentionRows<C>;
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int tile = 0; tile < Tiles / 2; ++tile) {
    float vector[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int x = 0; x < 2; ++x)
        vector[i][x] = out[tile * 2 + i / 2][i % 2 * 2 + x] * inverse[i % 2];
    gatherVector(vector, lane);
    int i = lane & 3, row = row0 + (lane >> 2) + i % 2 * 8, d = d0 + tile * 16 + i / 2 * 8;
#pragma unroll
    for (int x = 0; x < 8; x += C::V) {
      float value[C::V];
#pragma unroll
      for (int y = 0; y < C::V; ++y)
        value[y] = vector[(x + y) / 2][(x + y) % 2];
      if (row < R::Rows && d + x < R::DV)
        epilogue(batch, row / R::Group, keyHead * R::Group + row % R::Group, d + x, value);
    }
  }
}

} // namespace ogc

#endif
