//===- decode.cuh - attention of a few query rows over a long cache -------===//
//
// Bound by the bytes of keys and values, so that nothing is staged: a lane holds eight elements of a key and of a value in
// registers, D / 8 lanes are a key. A warp has 256 / D keys at a time; warps and a cluster split the keys. Queries, new rows and
// the bias are computed while the cache is on its way. Products are exact f32 multiply-adds for every element type.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_DECODE_CUH
#define OGC_DEVICE_DECODE_CUH

#include "ogc/attention.cuh"
#include "ogc/memory.cuh"

namespace ogc {

/// See README.md, "decode".
struct DecodeDefaults : AttentionDefaults {
  enum { Warps = 8, CacheConstant = 0 };
};

template <class C> struct DecodeShape {
  enum {
    Group = C::H / C::HK,
    R = C::S * Group, ///< query rows of a key head
    D = C::D,
    KeyLanes = D / 8,
    KeysPerWarp = 32 / KeyLanes,
    Groups = C::Warps * KeysPerWarp,
    Threads = 32 * C::Warps,
    Split = C::Split,
    Slice = (C::T + Split - 1) / Split,
    Steps = (Slice + Groups - 1) / Groups,
    Chunk = Steps < 4 ? Steps
            : R <= 4  ? 4
                      : 2, ///< keys that a lane loads at a time
    Chunks = (Steps + Chunk - 1) / Chunk,
    QueryFloats = R * D,
    RowFloats = C::NewRows * 2 * D,
    PartFloats = R * (D + 2), ///< of a warp or a block: values, maximum, sum
    Bytes = (QueryFloats + RowFloats + (C::Warps + (Split > 1 ? Split : 0)) * PartFloats) * 4
  };
  static_assert(C::DV == D && D % 8 == 0 && KeyLanes <= 32 && (KeyLanes & (KeyLanes - 1)) == 0 && C::H % C::HK == 0,
                "decode heads");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// Eight elements in registers, as they are stored.
template <class T> struct Eight {
  uint4 words[sizeof(T) / 2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 2; ++i)
      words[i] = make_uint4(0, 0, 0, 0);
  }
  /// Not moved over a wait, and not kept in the first cache: each element is read once.
  __device__ __forceinline__ void load(const T *p) {
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 2; ++i)
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(words[i].x), "=r"(words[i].y), "=r"(words[i].z), "=r"(words[i].w)
                   : "l"(reinterpret_cast<const uint4 *>(p) + i)
                   : "memory");
  }
  /// As numbers of the type that attention computes with.
  template <class Element> __device__ __forceinline__ void get(float (&x)[8]) const {
    T raw[8];
    memcpy(raw, words, sizeof(raw));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      x[i] = SameType<T, Element>::Value ? toFloat(raw[i]) : toFloat(fromFloat<Element>(toFloat(raw[i])));
  }
};

/// Queries (times scale) and new rows to shared memory, as floats: [R, D], then [NewRows, D] of keys, then of values.
template <class C, class Operands>
__device__ __forceinline__ void fillDecode(float *shared, const typename C::Element *q, const Operands &operands, float scale,
                                           int batch, int keyHead) {
  using A = DecodeShape<C>;
#pragma unroll
  for (int step = 0; step < divUp(A::QueryFloats + A::RowFloats, A::Threads); ++step) {
    int i = threadIdx.x + step * A::Threads, d = i % A::D, row = i / A::D;
    if (row < A::R) {
      int query = row / A::Group, head = keyHead * A::Group + row % A::Group;
      if constexpr (C::PulledQuery)
        shared[i] = toFloat(operands.query(batch, query, head, d)) * scale;
      else
        shared[i] =
            toFloat(q[(long long)C::QSb * batch + (long long)C::QSs * query + (long long)C::QSh * head + (long long)C::QSd * d]) *
            scale;
    }
    if constexpr (C::NewRows > 0) {
      if (row >= A::R && row < A::R + C::NewRows)
        shared[i] = toFloat(operands.newKey(batch, row - A::R, keyHead, d));
      else if (row >= A::R + C::NewRows && row < A::R + 2 * C::NewRows)
        shared[i] = toFloat(operands.newValue(batch, row - A::R - C::NewRows, keyHead, d));
    }
  }
}

/// A lane's part of the output rows: eight of D elements, with the maximum and the sum of the keys seen.
template <class C> struct DecodeState {
  using A = DecodeShape<C>;
  float out[A::R][8], top[A::R], sum[A::R];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
      top[r] = -__int_as_float(0x7f800000), sum[r] = 0.f;
#pragma unroll
      for (int j = 0; j < 8; ++j)
        out[r][j] = 0.f;
    }
  }

  /// Rescales to a maximum that is at least the present one.
  __device__ __forceinline__ float raise(int r, float best) {
    float base = best == -__int_as_float(0x7f800000) ? 0.f : best; // no visible key yet
    float factor = exp2Fast((top[r] - base) * 1.4426950408889634f);
    top[r] = best;
    sum[r] *= factor;
#pragma unroll
    for (int j = 0; j < 8; ++j)
      out[r][j] *= factor;
    return base;
  }

  /// The keys of a warp together, in all of its lanes.
  __device__ __forceinline__ void joinWarp() {
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
      float best = top[r];
#pragma unroll
      for (int offset = A::KeyLanes; offset < 32; offset *= 2)
        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, offset));
      raise(r, best);
#pragma unroll
      for (int offset = A::KeyLanes; offset < 32; offset *= 2) {
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
#pragma unroll
        for (int j = 0; j < 8; ++j)
          out[r][j] += __shfl_xor_sync(0xffffffffu, out[r][j], offset);
      }
    }
  }
};

/// Element d of row r from `Parts` parts: their weighted sum, with maximum and sum.
template <class C, int Parts>
__device__ __forceinline__ float joinParts(const float *parts, int r, int d, float &top, float &sum) {
  using A = DecodeShape<C>;
  const float log2e = 1.4426950408889634f;
  top = -__int_as_float(0x7f800000);
#pragma unroll
  for (int p = 0; p < Parts; ++p)
    top = fmaxf(top, parts[p * A::PartFloats + A::R * A::D + r]);
  float base = top == -__int_as_float(0x7f800000) ? 0.f : top, value = 0.f;
  sum = 0.f;
#pragma unroll
  for (int p = 0; p < Parts; ++p) {
    const float *part = parts + p * A::PartFloats;
    float factor = exp2Fast((part[A::R * A::D + r] - base) * log2e);
    sum += part[A::R * A::D + A::R + r] * factor;
    value += part[r * A::D + d] * factor;
  }
  return value;
}

template <class C, class CacheElement, class BiasElement, class Operands, class Epilogue>
__device__ __forceinline__ void decode(const typename C::Element *q, const CacheElement *k, const CacheElement *v,
                                       const BiasElement *bias, float scale, Operands operands, const Epilogue &epilogue) {
  using T = typename C::Element;
  using A = DecodeShape<C>;
  const float minus = -__int_as_float(0x7f800000);
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, rank = blockIdx.x % A::Split, block = blockIdx.x / A::Split;
  int keyHead = block % C::HK, batch = block / C::HK, part = lane % A::KeyLanes * 8;
  float *shared = reinterpret_cast<float *>(sharedBase()), *rows = shared + A::QueryFloats, *parts = rows + A::RowFloats;
  if constexpr (C::Trigger == 0)
    launchDependents();
  if constexpr (A::Split > 1)
    clusterArriveRelaxed();

  int begin = rank * A::Slice, end = least(begin + A::Slice, C::T), own = begin + warp * A::KeysPerWarp + lane / A::KeyLanes;
  const CacheElement *keys = k + ((long long)C::KSb * batch + (long long)C::KSh * keyHead + part),
                     *values = v + ((long long)C::VSb * batch + (long long)C::VSh * keyHead + part);
  Eight<CacheElement> key[A::Chunk], value[A::Chunk];
  auto request = [&](int chunk) {
#pragma unroll
    for (int i = 0; i < A::Chunk; ++i) {
      int t = own + (chunk * A::Chunk + i) * A::Groups;
      if (t < end)
        key[i].load(keys + (long long)C::KSt * t), value[i].load(values + (long long)C::VSt * t);
      else
        key[i].clear(), value[i].clear();
    }
  };
  if constexpr (C::CacheConstant)
    request(0);
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  operands.bind();
  // Not through the read-only path, whose loads ptxas moves in front of the wait.
  q = afterWait(q), bias = afterWait(bias);
  if constexpr (!C::CacheConstant)
    request(0);
  int position = 0;
  if constexpr (C::NewRows > 0)
    position = firstNewRow<C>(operands, batch);
  fillDecode<C>(shared, q, operands, scale, batch, keyHead);
  operands.store(blockIdx.x * A::Threads + tid, gridDim.x * A::Threads);
  __syncthreads();

  DecodeState<C> state;
  state.clear();
#pragma unroll 1
  for (int chunk = 0; chunk < A::Chunks; ++chunk) {
    float score[A::Chunk][A::R], content[A::Chunk][8];
#pragma unroll
    for (int i = 0; i < A::Chunk; ++i) {
      int t = own + (chunk * A::Chunk + i) * A::Groups;
      float x[8];
      key[i].template get<T>(x);
      value[i].template get<T>(content[i]);
      if constexpr (C::NewRows > 0) {
        int row = t - position;
        if (row >= 0 && row < C::NewRows) {
#pragma unroll
          for (int j = 0; j < 8; ++j)
            x[j] = rows[row * A::D + part + j], content[i][j] = rows[(C::NewRows + row) * A::D + part + j];
        }
      }
#pragma unroll
      for (int r = 0; r < A::R; ++r) {
        float sum = 0.f;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          sum = fmaf(shared[r * A::D + part + j], x[j], sum);
#pragma unroll
        for (int offset = 1; offset < A::KeyLanes; offset *= 2)
          sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        int query = r / A::Group, head = keyHead * A::Group + r % A::Group;
        if constexpr (C::HasBias) {
          if (t < end)
            sum += toFloat(bias[(long long)C::BiasSb * batch + (long long)C::BiasSh * head + (long long)C::BiasSs * query +
                                (long long)C::BiasSt * t]);
        }
        bool isVisible = t < end && (!C::Causal || t <= query + (int)C::T - (int)C::S);
        score[i][r] = isVisible ? sum : minus;
      }
    }
    // Of the next keys while these are weighed.
    if (chunk + 1 < A::Chunks)
      request(chunk + 1);
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
      float best = state.top[r];
#pragma unroll
      for (int i = 0; i < A::Chunk; ++i)
        best = fmaxf(best, score[i][r]);
      float base = state.raise(r, best);
#pragma unroll
      for (int i = 0; i < A::Chunk; ++i) {
        float weight = exp2Fast((score[i][r] - base) * 1.4426950408889634f);
        state.sum[r] += weight;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          state.out[r][j] = fmaf(weight, content[i][j], state.out[r][j]);
      }
    }
  }
  if constexpr (C::Trigger == 2)
    launchDependents();

  state.joinWarp();
  if (lane < A::KeyLanes) {
    float *mine = parts + warp * A::PartFloats;
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        mine[r * A::D + part + j] = state.out[r][j];
      if (lane == 0)
        mine[A::R * A::D + r] = state.top[r], mine[A::R * A::D + A::R + r] = state.sum[r];
    }
  }
  __syncthreads();
  float *received = parts + C::Warps * A::PartFloats;
  if constexpr (A::Split > 1) { // the first block of the cluster gets them all
    clusterWait();
#pragma unroll 1
    for (int i = tid; i < A::QueryFloats; i += A::Threads) {
      int r = i / A::D, d = i % A::D;
      float top, sum, x = joinParts<C, C::Warps>(parts, r, d, top, sum);
      unsigned remote = clusterAddress(sharedAddress(received + rank * A::PartFloats), 0);
      storeCluster1(remote + i * 4, x);
      if (d == 0)
        storeCluster1(remote + (A::R * A::D + r) * 4, top), storeCluster1(remote + (A::R * A::D + A::R + r) * 4, sum);
    }
    clusterArrive();
    clusterWait();
    if (rank != 0)
      return;
  }
  constexpr int V = C::V;
#pragma unroll 1
  for (int i = tid; i < A::QueryFloats / V; i += A::Threads) {
    int r = i / (A::D / V), d = i % (A::D / V) * V;
    float result[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      float top, sum;
      if constexpr (A::Split > 1)
        result[j] = joinParts<C, A::Split>(received, r, d + j, top, sum);
      else
        result[j] = joinParts<C, C::Warps>(parts, r, d + j, top, sum);
      result[j] = sum == 0.f ? 0.f : result[j] / sum; // no visible key: zeros
    }
    epilogue(batch, r / A::Group, keyHead * A::Group + r % A::Group, d, result);
  }
}

} // namespace ogc

#endif
