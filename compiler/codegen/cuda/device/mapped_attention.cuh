//===- mapped_attention.cuh - attention over keys that fit (sm_90) --------===//
//
// For up to 256 keys, f16 and bf16. Boxes of Q, K and V come through tensor maps, all of them at once, V behind a barrier of its
// own: scores need not wait for it. A block handles BQ rows of one key head. Its warps
// split rows (WQ) and, for the scores, keys (WT). They agree on each row's maximum, put probabilities into shared memory, and
// then split the columns of the result instead: every warp reads all probabilities of its rows, and no sums of different warps
// meet.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_MAPPED_ATTENTION_CUH
#define OGC_DEVICE_MAPPED_ATTENTION_CUH

#include "ogc/attention_rows.cuh"
#include "ogc/tma.cuh"

namespace ogc {

/// Of a configuration with the members of AttentionDefaults; see README.md, "mapped attention".
template <class C> struct MappedAttentionShape : AttentionRows<C> {
  using R = AttentionRows<C>;
  using T = typename C::Element;
  enum {
    BQ = 16 * R::WQ,
    Threads = 32 * R::WQ * R::WT,
    Groups = (R::Keys + 15) / 16, // of sixteen keys, what a product takes
    KeyRows = Groups * 16,
    GW = (Groups + R::WT - 1) / R::WT, // groups of a warp; the last ones may be none
    NF = 2 * GW,
    DW = (R::DV + 16 * R::WT - 1) / (16 * R::WT) * 16, // columns of the result that a warp computes
    Spans = (R::D + 63) / 64,                          // of 128 bytes: what a swizzled box holds of a row
    SpansV = (DW * R::WT + 63) / 64,
    QBytes = BQ * Spans * 128,
    KBytes = KeyRows * Spans * 128,
    VBytes = KeyRows * SpansV * 128,
    LdP = (GW * R::WT * 16 + 8) * 2, // bytes; consecutive rows lie in different banks
    // The swizzle wants boxes at multiples of 1024 bytes.
    KOffset = (QBytes + 1023) / 1024 * 1024,
    VOffset = (KOffset + KBytes + 1023) / 1024 * 1024,
    POffset = VOffset + VBytes,
    StatisticsOffset = POffset + BQ * LdP, // maxima and sums of each warp's keys
    BarrierOffset = StatisticsOffset + 2 * BQ * R::WT * 4,
    // Keys that a last warp does not have are read behind the others; what is there is hidden.
    Bytes = BarrierOffset + 16,
    TilesQ = (R::Rows + BQ - 1) / BQ
  };
  static_assert(sizeof(T) == 2 && R::Keys <= 256 && R::WQ <= 8 && BQ % R::Group == 0 && BQ / R::Group <= 256 && R::Group <= 256 &&
                    8 % C::V == 0,
                "mapped attention");
  static_assert((GW * R::WT - Groups) * 16 * 128 <= (int)VBytes, "keys behind the last one lie outside");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");
};

/// Where a lane finds units of 16 bytes in swizzled boxes with rows of 128 bytes: in row `row`, unit `half` (0 or 1) of each
/// pair. The swizzle exchanges units by the last bits of the row, so that what is added to the row must be a multiple of eight.
struct SwizzledLane {
  unsigned row, flip;
  __device__ __forceinline__ SwizzledLane(unsigned boxes, int row, int half)
      : row(boxes + row * 128), flip(((row & 7) ^ half) << 4) {}
  /// The pair `pair` of a row that lies `down` rows further; boxes have `rows` rows.
  __device__ __forceinline__ unsigned at(int pair, int down, int rows) const {
    return row + (pair / 4 * rows + down) * 128 + (flip ^ (pair % 4 << 5));
  }
};

/// scores += Q K^T for sixteen rows and this warp's keys.
template <class C>
__device__ __forceinline__ void scoreKeys(float (&s)[MappedAttentionShape<C>::NF][4], unsigned q, unsigned k, int row0, int key0,
                                          int lane) {
  using A = MappedAttentionShape<C>;
  constexpr int Steps = (C::D + 15) / 16;
  SwizzledLane queries(q, row0 + (lane & 15), lane >> 4), keys(k, key0 + (lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    unsigned a[4], b[A::GW][4];
    loadMatrix4(a, queries.at(step, 0, A::BQ));
#pragma unroll
    for (int g = 0; g < A::GW; ++g)
      loadMatrix4(b[g], keys.at(step, g * 16, A::KeyRows));
#pragma unroll
    for (int g = 0; g < A::GW; ++g) {
      Mma<typename C::Element>::run(s[2 * g], a, b[g][0], b[g][1]);
      Mma<typename C::Element>::run(s[2 * g + 1], a, b[g][2], b[g][3]);
    }
  }
}

/// Scales, adds the bias, hides keys that do not exist or lie ahead; gives the maxima of the thread's two rows over the warp's
/// keys.
template <class C>
__device__ __forceinline__ void maskKeys(float (&s)[MappedAttentionShape<C>::NF][4], float (&top)[2],
                                         const ScoreBias<C, MappedAttentionShape<C>> &bias, float scale, int row0, int key0,
                                         int lane) {
  using A = MappedAttentionShape<C>;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int visible = visibleKeys<C>(row0 + (lane >> 2) + half * 8);
    top[half] = -__int_as_float(0x7f800000);
#pragma unroll
    for (int j = 0; j < A::NF; ++j)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        float &x = s[j][half * 2 + q];
        x *= scale;
        if constexpr (C::HasBias)
          x += bias.at(j, half, q);
        if (C::Causal || A::GW * A::WT * 16 != A::Keys)
          x = key0 + j * 8 + (lane & 3) * 2 + q < visible ? x : -__int_as_float(0x7f800000);
        top[half] = fmaxf(top[half], x);
      }
    top[half] = maxOfQuad(top[half]);
  }
}

/// Puts exp(score - top) into shared memory (at the thread's first row and key) and gives the sums of its two rows.
template <class C>
__device__ __forceinline__ void storeProbabilities(const float (&s)[MappedAttentionShape<C>::NF][4], const float (&top)[2],
                                                   float (&sum)[2], unsigned p) {
  using A = MappedAttentionShape<C>;
  const float log2e = 1.4426950408889634f;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float base = top[half] == -__int_as_float(0x7f800000) ? 0.f : top[half] * log2e; // no visible key
    sum[half] = 0.f;
#pragma unroll
    for (int j = 0; j < A::NF; ++j) {
      float x = exp2Fast(__fmaf_rn(s[j][half * 2], log2e, -base)), y = exp2Fast(__fmaf_rn(s[j][half * 2 + 1], log2e, -base));
      sum[half] += x + y;
      storeShared1(p + half * 8 * A::LdP + j * 16, Convert<typename C::Element>::pair(x, y));
    }
    sum[half] = sumOfQuad(sum[half]);
  }
}

/// out = P V for sixteen rows and this warp's columns. Operands are loaded two groups of keys ahead.
template <class C>
__device__ __forceinline__ void weighValues(float (&out)[MappedAttentionShape<C>::DW / 8][4], unsigned p, unsigned v, int wt,
                                            int lane) {
  using A = MappedAttentionShape<C>;
  constexpr int Tiles = A::DW / 16, Ahead = 3;
  unsigned a[Ahead][4], b[Ahead][Tiles][4];
  float odd[A::DW / 8][4] = {}; // a second set of sums: products need not wait for each other
  unsigned probabilities = p + (lane & 15) * A::LdP + (lane >> 4) * 16, columns[Tiles];
#pragma unroll
  for (int j = 0; j < Tiles; ++j)
    columns[j] = SwizzledLane(v, lane & 15, lane >> 4).at(wt * Tiles + j, 0, A::KeyRows);
  auto load = [&](int g) {
    loadMatrix4(a[g % Ahead], probabilities + g * 32);
#pragma unroll
    for (int j = 0; j < Tiles; ++j)
      loadMatrix4Transposed(b[g % Ahead][j], columns[j] + g * 16 * 128);
  };
#pragma unroll
  for (int g = 0; g < Ahead - 1 && g < A::Groups; ++g)
    load(g);
#pragma unroll
  for (int g = 0; g < A::Groups; ++g) {
    if (g + Ahead - 1 < A::Groups)
      load(g + Ahead - 1);
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
      auto &to = g % 2 ? odd : out;
      Mma<typename C::Element>::run(to[2 * j], a[g % Ahead], b[g % Ahead][j][0], b[g % Ahead][j][1]);
      Mma<typename C::Element>::run(to[2 * j + 1], a[g % Ahead], b[g % Ahead][j][2], b[g % Ahead][j][3]);
    }
  }
#pragma unroll
  for (int j = 0; j < A::DW / 8; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      out[j][q] += odd[j][q];
}

template <class C, class Epilogue>
__device__ __forceinline__ void mappedAttention(const TensorMap &queries, const TensorMap &keys, const TensorMap &values,
                                                const typename C::BiasElement *bias, float scale, const Epilogue &epilogue) {
  using A = MappedAttentionShape<C>;
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, wq = warp / A::WT, wt = warp % A::WT;
  int block = blockIdx.x, row0 = block % A::TilesQ * A::BQ;
  block /= A::TilesQ;
  int keyHead = block % C::HK, batch = block / C::HK;
  unsigned base = sharedAddress(sharedBase()), q = base, k = base + A::KOffset, v = base + A::VOffset,
           p = base + A::POffset + wq * 16 * A::LdP, arrived = base + A::BarrierOffset;
  if constexpr (C::Trigger == 0)
    launchDependents();
  if (tid == 0) {
    prefetchMap(queries);
    prefetchMap(keys);
    prefetchMap(values);
    barrierInit(arrived, 1);
    barrierInit(arrived + 8, 1);
    barrierInitDone();
    barrierExpect(arrived, A::QBytes + A::KBytes);
    barrierExpect(arrived + 8, A::VBytes);
  }
  __syncthreads();
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  if (tid == 0) {
#pragma unroll
    for (int span = 0; span < A::Spans; ++span) {
      copyBox(q + span * A::BQ * 128, queries, span * 64, keyHead * A::Group, row0 / A::Group, batch, arrived);
      copyBox(k + span * A::KeyRows * 128, keys, span * 64, keyHead, 0, batch, arrived);
    }
#pragma unroll
    for (int span = 0; span < A::SpansV; ++span)
      copyBox(v + span * A::KeyRows * 128, values, span * 64, keyHead, 0, batch, arrived + 8);
  }
  int key0 = wt * A::GW * 16, warpRow = row0 + wq * 16;
  ScoreBias<C, A> biases;
  biases.load(bias, batch, keyHead, warpRow, key0, lane);
  float s[A::NF][4] = {}, top[2], sum[2];
  barrierWait(arrived, 0);
  scoreKeys<C>(s, q, k, wq * 16, key0, lane);
  maskKeys<C>(s, top, biases, scale, warpRow, key0, lane);

  // maxima, then sums, of the warps that share the rows
  float *maxima = reinterpret_cast<float *>(sharedBase() + A::StatisticsOffset), *sums = maxima + A::BQ * A::WT;
  int row = wq * 16 + (lane >> 2);
  auto meet = [&] { asm volatile("bar.sync %0, %1;" ::"r"(wq + 1), "n"(32 * A::WT) : "memory"); };
  if ((lane & 3) == 0)
    maxima[row * A::WT + wt] = top[0], maxima[(row + 8) * A::WT + wt] = top[1];
  meet();
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int w = 0; w < A::WT; ++w)
      top[half] = fmaxf(top[half], maxima[(row + half * 8) * A::WT + w]);
  storeProbabilities<C>(s, top, sum, p + (lane >> 2) * A::LdP + (key0 + (lane & 3) * 2) * 2);
  if ((lane & 3) == 0)
    sums[row * A::WT + wt] = sum[0], sums[(row + 8) * A::WT + wt] = sum[1];
  meet();
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = 0.f;
#pragma unroll
    for (int w = 0; w < A::WT; ++w)
      total += sums[(row + half * 8) * A::WT + w];
    inverse[half] = inverseOf(total);
  }
  barrierWait(arrived + 8, 0);
  float out[A::DW / 8][4] = {};
  weighValues<C>(out, p, v, wt, lane);
  if constexpr (C::Trigger == 2)
    launchDependents();
  storeRows<C>(out, inverse, batch, keyHead, warpRow, wt * A::DW, epilogue);
}

} // namespace ogc

#endif
