//===- decode.cuh - attention of a few query rows over a long cache -------===//
//
// Bound by latencies, one after the other, so that as few as possible follow each other. Nothing is staged: a lane holds eight
// elements of a key and of a value in registers, D / 8 lanes are a key. A warp has 256 / D keys at a time; warps and a cluster
// split the keys. Behind the wait queries, bias and position are asked for at the same time, and so are the new rows, by warps of
// their own, which store what else the kernel has to write while the others compute. Products are exact f32 multiply-adds for
// every element type, of keys and values as the cache has them.
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
    Threads = 32 * C::Warps, ///< that hold keys
    Helpers = C::NewRows == 0            ? 0
              : C::NewRows * 2 * D < 128 ? roundUp(C::NewRows * 2 * D, 32)
                                         : 128, ///< that compute new rows
    Split = C::Split,
    Slice = (C::T + Split - 1) / Split,
    Steps = (Slice + Groups - 1) / Groups,
    Chunk = Steps < 4 ? Steps
            : R <= 4  ? 4
                      : 2, ///< keys that a lane loads at a time
    Chunks = (Steps + Chunk - 1) / Chunk,
    QueryFloats = R * D,
    RowFloats = C::NewRows * 2 * D,
    PartFloats = roundUp(R * (D + 2), 4), ///< of a warp or a block: values, maximum, sum
    BiasRows = !C::HasBias                        ? 0
               : C::BiasSh == 0 && C::BiasSs == 0 ? 1
                                                  : R,
    Bytes = (QueryFloats + RowFloats + (C::Warps + (Split > 1 ? Split : 0)) * PartFloats) * 4 + (Split > 1 ? 8 : 0)
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
  __device__ __forceinline__ void get(float (&x)[8]) const {
    T raw[8];
    memcpy(raw, words, sizeof(raw));
#pragma unroll
    for (int i = 0; i < 8; ++i)
      x[i] = toFloat(raw[i]);
  }
};

/// Queries (times scale) to shared memory, as floats [R, D].
template <class C, class Operands>
__device__ __forceinline__ void fillQueries(float *shared, const typename C::Element *q, const Operands &operands, float scale,
                                            int batch, int keyHead) {
  using A = DecodeShape<C>;
#pragma unroll
  for (int step = 0; step < divUp(A::QueryFloats, A::Threads); ++step) {
    int i = threadIdx.x + step * A::Threads, d = i % A::D, row = i / A::D;
    if (A::QueryFloats % A::Threads != 0 && i >= A::QueryFloats)
      break;
    int query = row / A::Group, head = keyHead * A::Group + row % A::Group;
    if constexpr (C::PulledQuery)
      shared[i] = toFloat(operands.query(batch, query, head, d)) * scale;
    else
      shared[i] =
          toFloat(q[(long long)C::QSb * batch + (long long)C::QSs * query + (long long)C::QSh * head + (long long)C::QSd * d]) *
          scale;
  }
}

/// New rows to shared memory, as floats: [NewRows, D] of keys, then of values; by the helpers.
template <class C, class Operands>
__device__ __forceinline__ void fillNewRows(float *rows, const Operands &operands, int batch, int keyHead) {
  using A = DecodeShape<C>;
  if constexpr (A::Helpers > 0)
#pragma unroll 1
    for (int i = threadIdx.x - A::Threads; i < A::RowFloats; i += A::Helpers) {
      int row = i / A::D, d = i % A::D;
      rows[i] = toFloat(row < C::NewRows ? operands.newKey(batch, row, keyHead, d)
                                         : operands.newValue(batch, row - C::NewRows, keyHead, d));
    }
}

/// The product of a query (in shared memory) with a key, of which KeyLanes lanes have eight elements each.
template <class A> __device__ __forceinline__ float scoreOf(const float *query, const float (&key)[8]) {
  float q[8], sum = 0.f;
  load<8>(q, query);
#pragma unroll
  for (int j = 0; j < 8; ++j)
    sum = fmaf(q[j], key[j], sum);
#pragma unroll
  for (int offset = 1; offset < A::KeyLanes; offset *= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  return sum;
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

  /// Some keys with their scores.
  template <int N> __device__ __forceinline__ void add(const float (&score)[N][A::R], const float (&content)[N][8]) {
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
      float best = top[r];
#pragma unroll
      for (int i = 0; i < N; ++i)
        best = fmaxf(best, score[i][r]);
      float base = raise(r, best);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float weight = exp2Fast((score[i][r] - base) * 1.4426950408889634f);
        sum[r] += weight;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          out[r][j] = fmaf(weight, content[i][j], out[r][j]);
      }
    }
  }

  /// The keys of a warp together, in shared memory: [R, D], then maxima and sums.
  __device__ __forceinline__ void joinWarp(float *part, int lane) {
    int column = lane % A::KeyLanes * 8;
    bool isOwner = true;
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
      float best = top[r];
#pragma unroll
      for (int offset = A::KeyLanes; offset < 32; offset *= 2)
        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, offset));
      raise(r, best);
#pragma unroll
      for (int offset = A::KeyLanes; offset < 32; offset *= 2)
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
      column = lane % A::KeyLanes * 8, isOwner = true;
      reduceLanes<8, 16, A::KeyLanes>(out[r], lane, column, isOwner);
    }
#pragma unroll
    for (int r = 0; r < A::R; ++r) {
#pragma unroll
      for (int j = 0; j < most(1, 8 / A::KeysPerWarp); ++j)
        if (isOwner)
          part[r * A::D + column + j] = out[r][j];
      if (lane == 0)
        part[A::R * A::D + r] = top[r], part[A::R * A::D + A::R + r] = sum[r];
    }
  }
};

/// V elements of row r, from d on, of `Parts` parts: their weighted sums, with maximum and sum.
template <class C, int Parts, int V>
__device__ __forceinline__ void joinParts(float (&value)[V], const float *parts, int r, int d, float &top, float &sum) {
  using A = DecodeShape<C>;
  const float log2e = 1.4426950408889634f;
  top = -__int_as_float(0x7f800000);
#pragma unroll
  for (int p = 0; p < Parts; ++p)
    top = fmaxf(top, parts[p * A::PartFloats + A::R * A::D + r]);
  float base = top == -__int_as_float(0x7f800000) ? 0.f : top;
  sum = 0.f;
#pragma unroll
  for (int v = 0; v < V; ++v)
    value[v] = 0.f;
#pragma unroll
  for (int p = 0; p < Parts; ++p) {
    const float *part = parts + p * A::PartFloats;
    float factor = exp2Fast((part[A::R * A::D + r] - base) * log2e), x[V];
    sum += part[A::R * A::D + A::R + r] * factor;
    load<V>(x, part + r * A::D + d);
#pragma unroll
    for (int v = 0; v < V; ++v)
      value[v] = fmaf(x[v], factor, value[v]);
  }
}

template <class C, class CacheElement, class BiasElement, class Operands, class Epilogue>
__device__ __forceinline__ void decode(const typename C::Element *q, const CacheElement *k, const CacheElement *v,
                                       const BiasElement *bias, float scale, Operands operands, const Epilogue &epilogue) {
  using T = typename C::Element;
  using A = DecodeShape<C>;
  const float minus = -__int_as_float(0x7f800000);
  // The same in all lanes, which the compiler sees by the shuffle: no form of the code for parts of a warp.
  int tid = threadIdx.x, lane = tid & 31, warp = __shfl_sync(0xffffffffu, tid >> 5, 0), rank = blockIdx.x % A::Split,
      block = blockIdx.x / A::Split;
  int keyHead = block % C::HK, batch = block / C::HK, part = lane % A::KeyLanes * 8;
  float *shared = reinterpret_cast<float *>(sharedBase()), *rows = shared + A::QueryFloats, *parts = rows + A::RowFloats;
  if constexpr (C::Trigger == 0)
    launchDependents();
  unsigned barrier = sharedAddress(parts + (C::Warps + A::Split) * A::PartFloats);
  if constexpr (A::Split > 1) {
    if (tid == 0) {
      barrierInit(barrier, 1);
      barrierInitDone();
      barrierExpect(barrier, A::Split * (A::QueryFloats + 2 * A::R) * 4);
    }
    __syncwarp();
    clusterArriveRelaxed();
  }

  int begin = rank * A::Slice, end = least(begin + A::Slice, C::T), own = begin + warp * A::KeysPerWarp + lane / A::KeyLanes;
  const CacheElement *keys = k + ((long long)C::KSb * batch + (long long)C::KSh * keyHead + part),
                     *values = v + ((long long)C::VSb * batch + (long long)C::VSh * keyHead + part);
  bool isHelper = A::Helpers > 0 && warp >= C::Warps;
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
  BiasElement biases[A::Chunk][most(1, A::BiasRows)];
  auto requestBias = [&](int chunk) {
#pragma unroll
    for (int i = 0; i < A::Chunk; ++i) {
      int t = least(own + (chunk * A::Chunk + i) * A::Groups, C::T - 1);
#pragma unroll
      for (int r = 0; r < A::BiasRows; ++r)
        biases[i][r] =
            loadWritten(bias + ((long long)C::BiasSb * batch + (long long)C::BiasSh * (keyHead * A::Group + r % A::Group) +
                                (long long)C::BiasSs * (r / A::Group) + (long long)C::BiasSt * t));
    }
  };
  if (C::CacheConstant && !isHelper)
    request(0);
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  operands.bind();
  // Not through the read-only path, whose loads ptxas moves in front of the wait.
  q = afterWait(q), bias = afterWait(bias);
  int position = 0;
  if (isHelper) {
    fillNewRows<C>(rows, operands, batch, keyHead);
  } else {
    if constexpr (!C::CacheConstant)
      request(0);
    requestBias(0);
    if constexpr (C::NewRows > 0)
      position = firstNewRow<C>(operands, batch);
    fillQueries<C>(shared, q, operands, scale, batch, keyHead);
  }
  __syncthreads();
  if (isHelper)
    operands.store(blockIdx.x * A::Helpers + tid - A::Threads, gridDim.x * A::Helpers);

  if (!isHelper) {
    DecodeState<C> state;
    state.clear();
#pragma unroll 1
    for (int chunk = 0; chunk < A::Chunks; ++chunk) {
      float score[A::Chunk][A::R], content[A::Chunk][8];
#pragma unroll
      for (int i = 0; i < A::Chunk; ++i) {
        int t = own + (chunk * A::Chunk + i) * A::Groups;
        float x[8];
        key[i].get(x);
        value[i].get(content[i]);
        if constexpr (C::NewRows > 0) {
          int row = t - position;
          if (row >= 0 && row < C::NewRows) {
            load<8>(x, rows + (row * A::D + part));
            load<8>(content[i], rows + ((C::NewRows + row) * A::D + part));
          }
        }
#pragma unroll
        for (int r = 0; r < A::R; ++r) {
          float sum = scoreOf<A>(shared + (r * A::D + part), x);
          if constexpr (C::HasBias)
            sum += toFloat(biases[i][A::BiasRows == 1 ? 0 : r]);
          bool isVisible = t < end && (!C::Causal || t <= r / A::Group + (int)C::T - (int)C::S);
          score[i][r] = isVisible ? sum : minus;
        }
      }
      // Of the next keys while these are weighed.
      if (chunk + 1 < A::Chunks)
        request(chunk + 1), requestBias(chunk + 1);
      state.add(score, content);
    }
    state.joinWarp(parts + warp * A::PartFloats, lane);
  }
  if constexpr (C::Trigger == 2)
    launchDependents();
  if constexpr (A::Helpers == 0)
    operands.store(blockIdx.x * A::Threads + tid, gridDim.x * A::Threads);
  __syncthreads();
  float *received = parts + C::Warps * A::PartFloats;
  if constexpr (A::Split > 1) { // the first block of the cluster gets them all
    clusterWait();
    unsigned first = clusterAddress(sharedAddress(received + rank * A::PartFloats), 0), counter = clusterAddress(barrier, 0);
#pragma unroll 1
    for (int i = tid; i < A::QueryFloats; i += A::Threads + A::Helpers) {
      int r = i / A::D, d = i % A::D;
      float x[1], top, sum;
      joinParts<C, C::Warps>(x, parts, r, d, top, sum);
      sendCluster1(first + i * 4, x[0], counter);
      if (d == 0) {
        sendCluster1(first + (A::QueryFloats + r) * 4, top, counter);
        sendCluster1(first + (A::QueryFloats + A::R + r) * 4, sum, counter);
      }
    }
    if (rank != 0)
      return;
    barrierWait(barrier, 0);
  }
  constexpr int V = C::V;
#pragma unroll 1
  for (int i = tid; i < A::QueryFloats / V; i += A::Threads + A::Helpers) {
    int r = i / (A::D / V), d = i % (A::D / V) * V;
    float result[V], top, sum;
    joinParts<C, (A::Split > 1 ? A::Split : C::Warps)>(result, A::Split > 1 ? received : parts, r, d, top, sum);
    float inverse = sum == 0.f ? 0.f : __fdividef(1.f, sum); // no visible key: zeros
#pragma unroll
    for (int j = 0; j < V; ++j)
      result[j] *= inverse;
    epilogue(batch, r / A::Group, keyHead * A::Group + r % A::Group, d, result);
  }
}

} // namespace ogc

#endif
