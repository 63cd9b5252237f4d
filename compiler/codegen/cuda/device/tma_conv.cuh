//===- tma_conv.cuh - convolution over boxes of pixels (sm_90a) -----------===//
//
// Engine 3, for many pixels: blocks stay and compute tile after tile. A tile is some boxes of output pixels by columns (filters)
// in panels of 64. One thread copies boxes of the input and panels of the filter through tensor maps into two rings, as far ahead
// as these have room, beyond the end of a tile too; so while some warps finish a tile, what the next one needs is on its way, and
// other warps multiply it, in this block (Turns) or in another one of the multiprocessor.
//
// wgmma's 64 rows are columns of the result, its columns are pixels, as in tma.cuh. The rows of a box lie in shared memory as the
// input has them, 128 bytes (a line of 64 or 32 channels) a pixel. What a tap of the filter reads of a box with a border (Halo)
// is the same box, some rows and pixels further on: eight pixels side by side are one group of the operand, and the distance of
// groups is that of the box's rows. So a box is copied once for all taps that meet it, not once a tap. Borders outside of the
// image are filled with zeros by the copy. Strides make phases: every StrideH-th row and StrideW-th pixel is an image of its own,
// with its own map and its own taps.
//
// Filters that fit (ResidentB) stay in shared memory; a block then keeps to its columns. f16, bf16, and f32 by tf32, whose
// filters go through registers, since their panels are not K-major.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_TMA_CONV_CUH
#define OGC_DEVICE_TMA_CONV_CUH

#include "ogc/conv.cuh"
#include "ogc/tma.cuh"

namespace ogc {

__device__ constexpr int greatestDivisor(int a, int b) { return b == 0 ? a : greatestDivisor(b, a % b); }

/// The taps along one dimension: phase p has the taps p, p + Phases, p + 2 Phases, … each Shift elements of the phase further on.
template <int Taps_, int Stride, int Dilation, int Pad> struct TapPhases {
  enum {
    Taps = Taps_,
    Phases = least(Taps, Stride / greatestDivisor(Stride, Dilation)),
    Shift = Dilation / greatestDivisor(Stride, Dilation),
    Most = divUp(Taps, Phases), // taps of a phase
  };
  static __device__ __forceinline__ int count(int phase) { return (Taps - phase + Phases - 1) / Phases; }
  /// Where the first tap of a phase is, for the output at zero, in elements of the phase.
  static __device__ __forceinline__ int first(int phase) {
    int at = phase * Dilation - Pad;
    return (at - (at % Stride + Stride) % Stride) / Stride;
  }
};

/// BX x BY output pixels are a box, Boxes of them a tile. Flat: all pixels of all images are one row (1x1, stride 1, dense).
template <class C> struct BoxTile {
  using T = typename C::Element;
  using TapsY = TapPhases<C::KH, C::StrideH, C::DilationH, C::PadTop>;
  using TapsX = TapPhases<C::KW, C::StrideW, C::DilationW, C::PadLeft>;
  enum {
    Images = C::Flat ? 1 : (int)C::Batch,
    OH = C::Flat ? 1 : (int)C::OH,
    OW = C::Flat ? C::Batch * C::OH * C::OW : (int)C::OW,
    N = C::F,
    V = C::V,
    BX = C::BX,
    BY = C::BY,
    Boxes = C::Boxes,
    BN = 64 * C::WN,
    BK = 128 / (int)sizeof(T), // channels of a line
    KS = 32 / (int)sizeof(T),  // depth of one product
    WN = C::WN,
    Turns = C::Turns,
    Split = C::Split,
    Set = 128 * WN, // threads that multiply one tile
    Consumers = Set * Turns,
    Threads = Consumers + 32,
    NI = divUp(BX * BY, 8), // groups of eight pixels
    Groups = Boxes * NI,
    Phases = (int)TapsY::Phases * (int)TapsX::Phases,
    ExtraX = C::Halo ? (TapsX::Most - 1) * TapsX::Shift : 0,
    ExtraY = C::Halo ? (TapsY::Most - 1) * TapsY::Shift : 0,
    Pitch = BX + ExtraX,
    BoxBytes = Pitch * (BY + ExtraY) * 128,
    BoxSpan = roundUp(NI * 8 * 128 > BoxBytes ? NI * 8 * 128 : BoxBytes, 1024),
    GroupStride = C::Halo ? Pitch * 128 : 1024,
    ABytes = Boxes * BoxSpan,
    BBytes = BN * 128,
    Blocks = divUp(C::C, BK), // of channels
    // Products of a line; of f32 an even number, since two sets of registers take turns.
    KSteps = Blocks > 1       ? 4
             : sizeof(T) == 2 ? divUp(C::C, KS)
                              : 2 * divUp(C::C, 2 * KS),
    Loads = C::Halo ? (int)Phases : C::KH * C::KW, // boxes of the input for each line of channels
    Slice = divUp(Blocks, Split),                  // of a rank of the cluster
    TileLoads = Slice * Loads,
    TileTaps = Slice * C::KH * C::KW,
    AStages = C::AStages,
    BStages = C::BStages,
    ChunkGroups = Groups < 2 ? (int)Groups : 2,
    ChunkRows = 8 * ChunkGroups,
    Chunks = divUp(Groups, ChunkGroups),
    LdR = 64 + 4, // consecutive rows of a fragment lie in different banks
    ChunkBytes = ChunkRows * LdR * 4,
    GroupsOut = divUp(Groups, Split), // that a rank finishes
    RowsOut = 8 * GroupsOut,
    PartBytes = Split * RowsOut * LdR * 4,
    BOffset = AStages * ABytes,
    RingBytes = BOffset + BStages * BBytes,
    SumOffset = Split > 1 && WN *PartBytes > RingBytes ? WN *PartBytes : (int)RingBytes,
    BarrierOffset = SumOffset + (Split > 1 ? WN * PartBytes : WN * Turns * 2 * ChunkBytes),
    Bytes = BarrierOffset + (2 * (AStages + BStages) + Turns) * 8,
    TilesX = divUp(OW, BX),
    TilesY = divUp(OH, BY),
    TilesM = divUp(Images * TilesX * TilesY, Boxes),
    TilesN = divUp(N, BN),
    Tiles = TilesM * TilesN,
    PerRow = 64 / V,
    Passes = divUp(ChunkRows * PerRow, 128), // vectors of a thread in a chunk
    Steps = divUp(RowsOut * PerRow, 128)     // and of all that a rank finishes
  };
  static_assert(C::P % BK == 0 && (C::P % BN == 0 || BN % C::P == 0) && Phases <= 4 && NI <= 32 && Groups <= 32,
                "shape of a tile of boxes");
  static_assert(!C::Halo || BX == 8, "a row of a box with a border is one group of pixels");
  static_assert(AStages >= 2 && BStages >= (C::ResidentB ? (int)TileTaps : 2), "a place is free when the next one is multiplied");
  static_assert(Split == 1 || Turns == 1, "a cluster computes one tile");
  static_assert(N % V == 0 && 64 % V == 0, "tile does not divide into epilogue vectors");
  static_assert((int)C::SharedBytes >= (int)Bytes, "SharedBytes is smaller than the tile needs");

  /// The place of a box in its image: box `g` of the tiles that cover all pixels.
  struct Place {
    int image, x, y;
  };
  static __device__ __forceinline__ Place place(int tileM, int g) {
    int box = tileM * Boxes + g;
    return Place{box / (TilesX * TilesY), box % TilesX * BX, box / TilesX % TilesY * BY};
  }
};

struct BoxConvDefaults : ConvDefaults {
  enum { Flat = 0, Halo = 0, BX = 128, BY = 1, Boxes = 1, WN = 1, Turns = 2, AStages = 3, BStages = 3, ResidentB = 0 };
};

/// One map for each phase; those that a configuration has not are the first one.
struct PhaseMaps {
  const TensorMap *phase0, *phase1, *phase2, *phase3;
  __device__ __forceinline__ const TensorMap &operator[](int phase) const {
    return *(phase == 0 ? phase0 : phase == 1 ? phase1 : phase == 2 ? phase2 : phase3);
  }
};

/// The barriers and places of both rings.
template <class S> struct BoxRings {
  unsigned base;
  __device__ __forceinline__ unsigned fullA(int stage) const { return base + S::BarrierOffset + stage * 8; }
  __device__ __forceinline__ unsigned emptyA(int stage) const { return fullA(S::AStages + stage); }
  __device__ __forceinline__ unsigned fullB(int stage) const { return fullA(2 * S::AStages + stage); }
  __device__ __forceinline__ unsigned emptyB(int stage) const { return fullB(S::BStages + stage); }
  /// Where a set of warps waits for its turn.
  __device__ __forceinline__ unsigned turn(int set) const { return emptyB(S::BStages + set); }
  __device__ __forceinline__ unsigned placeA(int stage) const { return base + stage * S::ABytes; }
  __device__ __forceinline__ unsigned placeB(int stage) const { return base + S::BOffset + stage * S::BBytes; }
};

/// Calls load(block, phaseY, phaseX, firstY, firstX), then tap(block, tap, down, right) for each tap of that load, in the order
/// of the rings: a line of channels after the other, from `first` on, each box with all taps that meet it.
template <class C, class S, class Load, class Tap>
__device__ __forceinline__ void forTaps(int first, const Load &load, const Tap &tap) {
#pragma unroll 1
  for (int block = first; block < first + S::Slice; ++block)
#pragma unroll 1
    for (int py = 0; py < S::TapsY::Phases; ++py)
#pragma unroll 1
      for (int px = 0; px < S::TapsX::Phases; ++px) {
        int countY = S::TapsY::count(py), countX = S::TapsX::count(px);
        if constexpr (C::Halo)
          load(block, py, px, 0, 0);
#pragma unroll 1
        for (int iy = 0; iy < countY; ++iy)
#pragma unroll 1
          for (int ix = 0; ix < countX; ++ix) {
            if constexpr (!C::Halo)
              load(block, py, px, iy, ix);
            bool isLast = !C::Halo || (iy == countY - 1 && ix == countX - 1);
            tap(block, (py + iy * S::TapsY::Phases) * C::KW + px + ix * S::TapsX::Phases,
                C::Halo ? (iy * S::TapsY::Shift * S::Pitch + ix * S::TapsX::Shift) * 128 : 0, isLast);
          }
      }
}

/// A place of a ring of N, and the parity of its turns.
template <int N> struct RingPlace {
  int stage, parity;
  __device__ __forceinline__ explicit RingPlace(int number) : stage(number % N), parity(number / N & 1) {}
  __device__ __forceinline__ void operator++() {
    if (++stage == N)
      stage = 0, parity ^= 1;
  }
};

/// The thread that copies. It has some 200 cycles for each tap, which is a short time for one thread: no division, one copy.
template <class C, class S> struct BoxFeeder {
  const PhaseMaps &images;
  const TensorMap &filter;
  BoxRings<S> rings;
  int first; ///< line of channels

  __device__ __forceinline__ void loadB(int stage, int block, int tap, int n0) const {
    barrierExpect(rings.fullB(stage), S::BBytes);
    copyBox(rings.placeB(stage), filter, 0, block * S::BK, n0 % C::P / S::BK, tap, n0 / C::P, rings.fullB(stage));
  }
  __device__ __forceinline__ void loadA(int stage, int tileM, int block, int py, int px, int iy, int ix) const {
    const TensorMap &map = images[py * S::TapsX::Phases + px];
    int top = S::TapsY::first(py) + iy * S::TapsY::Shift, left = S::TapsX::first(px) + ix * S::TapsX::Shift;
    barrierExpect(rings.fullA(stage), S::Boxes * S::BoxBytes);
#pragma unroll
    for (int g = 0; g < S::Boxes; ++g) {
      typename S::Place at = S::place(tileM, g);
      copyBox(rings.placeA(stage) + g * S::BoxSpan, map, block * S::BK, at.x + left, at.y + top, at.image, rings.fullA(stage));
    }
  }

  /// The filter of the first tile, as far as it finds room; may run before the wait.
  __device__ __forceinline__ void start(int n0) const {
    int taken = 0;
    forTaps<C, S>(
        first, [](int, int, int, int, int) {},
        [&](int block, int tap, int, bool) {
          if (taken < S::BStages)
            loadB(taken, block, tap, n0);
          ++taken;
        });
  }
  __device__ __forceinline__ void run() const {
    int ahead = least(S::TileTaps, S::BStages); // taps that start() has asked for
    RingPlace<S::AStages> a(0);
    RingPlace<S::BStages> b(0);
#pragma unroll 1
    for (int tile = blockIdx.x / S::Split; tile < S::Tiles; tile += gridDim.x / S::Split) {
      int n0 = tile % S::TilesN * S::BN, tileM = tile / S::TilesN;
      // A place that nothing has been copied to yet is free: its barrier takes the parity before the first for over.
      forTaps<C, S>(
          first,
          [&](int block, int py, int px, int iy, int ix) {
            barrierWait(rings.emptyA(a.stage), a.parity ^ 1);
            loadA(a.stage, tileM, block, py, px, iy, ix);
            ++a;
          },
          [&](int block, int tap, int, bool) {
            if constexpr (C::ResidentB)
              return;
            if (ahead > 0)
              --ahead;
            else {
              barrierWait(rings.emptyB(b.stage), b.parity ^ 1);
              loadB(b.stage, block, tap, n0);
            }
            ++b;
          });
    }
  }
};

/// The warps that multiply: `set` of Turns, and which 64 columns in it.
template <class C, class S, class Epilogue> struct BoxConsumer {
  using T = typename C::Element;
  using E = Early<Epilogue>;
  // Chunks whose inputs are asked for before they are used: what registers hold.
  enum { Ahead = least(S::Chunks, 8 / (int)sizeof(T)) };
  enum { NextColumn = sizeof(T) == 2 ? 8 : 1 }; // from a thread's column of a product to its other one (see columnOf)
  const Epilogue &epilogue;
  BoxRings<S> rings;
  float *sums; // of this warpgroup
  int group, wn, thread, rank;

  /// Products of one line of channels of a tap. Calls release when the products before these are done.
  template <class Release>
  __device__ __forceinline__ void multiplyLine(float (&acc)[S::Boxes][S::NI][4], unsigned pixels, unsigned filter,
                                               const Release &release) const {
    auto pixelsAt = [&](int g, int k) { return wideDescriptor(pixels + g * S::BoxSpan + k * 32, 16, S::GroupStride, 128); };
    if constexpr (sizeof(T) == 2) {
      wideFence();
#pragma unroll
      for (int k = 0; k < S::KSteps; ++k)
#pragma unroll
        for (int g = 0; g < S::Boxes; ++g)
          WideMma<T, S::NI, 1, 0>::run(acc[g], wideDescriptor(filter + k * 2048, 16, 1024, 128), pixelsAt(g, k));
      wideCommit();
      wideWait<1>();
      release();
    } else {
      // One set of registers is loaded while the other is multiplied, as in multiplyStages.
      constexpr int Group = S::KSteps / 2;
      unsigned fragments[2][Group][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < Group; ++i)
          loadFragment<S>(fragments[half][i], filter, (half * Group + i) * S::KS);
        wideFence();
#pragma unroll
        for (int i = 0; i < Group; ++i)
#pragma unroll
          for (int g = 0; g < S::Boxes; ++g)
            WideMma<float, S::NI, 0, 0>::run(acc[g], fragments[half][i], pixelsAt(g, half * Group + i));
        wideCommit();
        wideWait<1>();
        if (half == 0)
          release();
      }
    }
  }

  /// Sums over all taps and channels of the tile with this number (of those that this block computes).
  __device__ __forceinline__ void multiply(float (&acc)[S::Boxes][S::NI][4], int number) const {
    int a = number * S::TileLoads, b = C::ResidentB ? 0 : number * S::TileTaps, stageA = 0, doneA = -1, doneB = -1;
    bool signals = (thread & 31) == 0;
    auto release = [&] {
      if (signals && doneA >= 0)
        barrierArrive(rings.emptyA(doneA));
      if (!C::ResidentB && signals && doneB >= 0)
        barrierArrive(rings.emptyB(doneB));
      doneA = doneB = -1;
    };
    // Whoever waits for a place of a ring knows only whether an even or odd number of copies have gone there: it must have seen,
    // or know to be over, all that went before.
    int set = group / S::WN;
    if (S::Turns > 1 && number > 0)
      barrierWait(rings.turn(set), (number / S::Turns - (set == 0 ? 1 : 0)) & 1);
    forTaps<C, S>(
        rank * S::Slice,
        [&](int, int, int, int, int) {
          stageA = a % S::AStages;
          barrierWait(rings.fullA(stageA), a / S::AStages & 1);
          ++a;
        },
        [&](int, int, int offset, bool isLast) {
          int stageB = b % S::BStages;
          barrierWait(rings.fullB(stageB), C::ResidentB ? 0 : b / S::BStages & 1);
          unsigned pixels = rings.placeA(stageA) + offset, filter = rings.placeB(stageB) + wn * 8192;
          multiplyLine(acc, pixels, filter, release);
          doneB = stageB;
          if (isLast)
            doneA = stageA;
          ++b;
        });
    if (S::Turns > 1 && signals)
      barrierArrive(rings.turn((set + 1) % S::Turns));
#pragma unroll
    for (int g = 0; g < S::Boxes; ++g)
      wideFinish(acc[g]);
    release();
  }

  /// Which vector of the result is the i-th of `Rows` rows of the tile, from those of `firstGroup` on; false where it is none.
  template <int Rows>
  __device__ __forceinline__ bool locate(int tileM, int n0, int firstGroup, int i, int &b, int &pixel, int &n) const {
    int row = i / S::PerRow, q = firstGroup + row / 8;
    int g = S::Boxes == 1 ? 0 : q / S::NI, slot = (q - g * S::NI) * 8 + row % 8;
    typename S::Place at = S::place(tileM, g);
    int x = at.x + slot % S::BX, y = at.y + slot / S::BX;
    n = n0 + wn * 64 + i % S::PerRow * S::V;
    b = C::Flat ? x / (C::OH * C::OW) : at.image;
    pixel = C::Flat ? x % (C::OH * C::OW) : y * S::OW + x;
    return row < Rows && q < S::Groups && slot < S::BX * S::BY && x < S::OW && y < S::OH && at.image < S::Images && n < S::N;
  }
  template <class Part> __device__ __forceinline__ void load(int tileM, int n0, int chunk, Part *to) const {
#pragma unroll
    for (int pass = 0; pass < S::Passes; ++pass) {
      int b, pixel, n;
      if (locate<S::ChunkRows>(tileM, n0, chunk * S::ChunkGroups, pass * 128 + thread, b, pixel, n))
        E::load(epilogue, b, pixel, n, to[pass]);
    }
  }
  __device__ __forceinline__ void meetGroup() const { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

  /// One tile, from zero to the epilogue.
  __device__ __forceinline__ void compute(int tile, int number) const {
    int n0 = tile % S::TilesN * S::BN, tileM = tile / S::TilesN;
    typename E::Inputs inputs[Ahead * S::Passes];
#pragma unroll
    for (int chunk = 0; chunk < Ahead; ++chunk)
      load(tileM, n0, chunk, inputs + chunk * S::Passes);
    float acc[S::Boxes][S::NI][4] = {};
    multiply(acc, number);
    int lane = thread & 31;
    float *mine = sums + columnOf<T>(thread / 32, lane / 4) + lane % 4 * 2 * S::LdR;
#pragma unroll
    for (int chunk = 0; chunk < S::Chunks; ++chunk) {
      asm volatile("" : "+r"(tileM)); // places are computed when they are used, not kept
      int first = chunk % Ahead * S::Passes, half = (chunk & 1) * (S::ChunkBytes / 4);
      typename E::Constants constants[S::Passes];
      load(tileM, n0, chunk, constants);
#pragma unroll
      for (int j = 0; j < S::ChunkGroups; ++j) {
        int q = chunk * S::ChunkGroups + j;
        if (q < S::Groups)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            mine[half + (j * 8 + (e & 1)) * S::LdR + (e >> 1) * NextColumn] = acc[q / S::NI][q % S::NI][e];
      }
      meetGroup(); // the other half was read before the last meeting
#pragma unroll
      for (int pass = 0; pass < S::Passes; ++pass) {
        int b, pixel, n, i = pass * 128 + thread;
        float sum[S::V];
        if (!locate<S::ChunkRows>(tileM, n0, chunk * S::ChunkGroups, i, b, pixel, n))
          continue;
        loadRaw<S::V>(sum, sums + half + i / S::PerRow * S::LdR + i % S::PerRow * S::V);
        E::finish(epilogue, b, pixel, n, constants[pass], inputs[first + pass], sum);
      }
      if (chunk + Ahead < S::Chunks)
        load(tileM, n0, chunk + Ahead, inputs + first);
    }
    if (S::Chunks % 2 == 1)
      meetGroup(); // the next tile begins with the first half again
  }

  /// This rank's part of all sums of the tile goes to the ranks that finish them.
  __device__ __forceinline__ void sendSums(const float (&acc)[S::Boxes][S::NI][4], float *slot) const {
    int lane = thread & 31;
    float *mine = slot + columnOf<T>(thread / 32, lane / 4) + lane % 4 * 2 * S::LdR;
#pragma unroll
    for (int q = 0; q < S::Groups; ++q)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        mine[(q * 8 + (e & 1)) * S::LdR + (e >> 1) * NextColumn] = acc[q / S::NI][q % S::NI][e];
    meetGroup();
    clusterWait(); // all ranks run
#pragma unroll 1
    for (int i = thread; i < S::Groups * 8 * 16; i += 128) {
      int row = i / 16, column = i % 16 * 4;
      float4 sum = *reinterpret_cast<const float4 *>(slot + row * S::LdR + column);
      unsigned local =
          rings.base + S::SumOffset + wn * S::PartBytes + ((rank * S::RowsOut + row % S::RowsOut) * S::LdR + column) * 4;
      storeCluster4(clusterAddress(local, row / S::RowsOut), sum.x, sum.y, sum.z, sum.w);
    }
    clusterArrive();
    clusterWait();
  }

  /// One tile by all ranks of a cluster: each sums its lines of channels, and finishes its rows.
  __device__ __forceinline__ void computeShared(int tile, unsigned char *shared) const {
    int n0 = tile % S::TilesN * S::BN, tileM = tile / S::TilesN;
    typename E::Constants constants[S::Steps];
    typename E::Inputs inputs[S::Steps];
#pragma unroll
    for (int step = 0; step < S::Steps; ++step) {
      int b, pixel, n;
      if (locate<S::RowsOut>(tileM, n0, rank * S::GroupsOut, step * 128 + thread, b, pixel, n)) {
        E::load(epilogue, b, pixel, n, constants[step]);
        E::load(epilogue, b, pixel, n, inputs[step]);
      }
    }
    float acc[S::Boxes][S::NI][4] = {};
    multiply(acc, 0);
    if constexpr (C::Trigger == 2)
      launchDependents();
    consumersMeet<S::Consumers>(); // all have read the rings, whose memory takes the sums now
    sendSums(acc, reinterpret_cast<float *>(shared) + wn * (S::PartBytes / 4));
#pragma unroll
    for (int step = 0; step < S::Steps; ++step) {
      int b, pixel, n, i = step * 128 + thread;
      float sum[S::V] = {};
      if (!locate<S::RowsOut>(tileM, n0, rank * S::GroupsOut, i, b, pixel, n))
        continue;
#pragma unroll
      for (int part = 0; part < S::Split; ++part) {
        float more[S::V];
        loadRaw<S::V>(more, sums + (part * S::RowsOut + i / S::PerRow) * S::LdR + i % S::PerRow * S::V);
#pragma unroll
        for (int v = 0; v < S::V; ++v)
          sum[v] += more[v];
      }
      E::finish(epilogue, b, pixel, n, constants[step], inputs[step], sum);
    }
  }
};

/// acc[b, pixel, f] of the convolution of x with the filter; calls the epilogue once for each V filters of a pixel.
template <class C, class Epilogue>
__device__ __forceinline__ void convBoxes(const PhaseMaps &images, const TensorMap &filter, const Epilogue &epilogue) {
  using S = BoxTile<C>;
  unsigned char *shared = sharedBase();
  BoxRings<S> rings{sharedAddress(shared)};
  int rank = S::Split == 1 ? 0 : blockIdx.x % S::Split, first = blockIdx.x / S::Split;
  BoxFeeder<C, S> feeder{images, filter, rings, rank * S::Slice};
  int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  bool feeds = warp == S::Consumers / 32 && electOne();
  if constexpr (C::Trigger == 0)
    launchDependents();
  if (feeds) {
    prefetchMap(filter);
#pragma unroll
    for (int phase = 0; phase < S::Phases; ++phase)
      prefetchMap(images[phase]);
    for (int s = 0; s < S::AStages; ++s) {
      barrierInit(rings.fullA(s), 1);
      barrierInit(rings.emptyA(s), S::Set / 32);
    }
    for (int s = 0; s < S::BStages; ++s) {
      barrierInit(rings.fullB(s), 1);
      barrierInit(rings.emptyB(s), S::Set / 32);
    }
    for (int set = 0; set < S::Turns; ++set)
      barrierInit(rings.turn(set), S::Set / 32);
    barrierInitDone();
    if constexpr (C::WeightsConstant)
      feeder.start(first % S::TilesN * S::BN);
  }
  __syncthreads();
  if constexpr (S::Split > 1)
    clusterArriveRelaxed();
  wait();
  if constexpr (C::Trigger == 1)
    launchDependents();
  if (warp == S::Consumers / 32) {
    if (electOne()) {
      if constexpr (!C::WeightsConstant)
        feeder.start(first % S::TilesN * S::BN);
      feeder.run();
    }
    __syncwarp();
    if constexpr (S::Split > 1) { // a barrier of a cluster counts all its threads
      clusterWait();
      clusterArrive();
      clusterWait();
    }
  } else {
    int group = warp / 4, sumBytes = S::Split > 1 ? S::PartBytes : 2 * S::ChunkBytes;
    BoxConsumer<C, S, Epilogue> consumer{
        epilogue, rings,         reinterpret_cast<float *>(shared + S::SumOffset) + group * (sumBytes / 4),
        group,    group % S::WN, (int)threadIdx.x % 128,
        rank};
    if constexpr (S::Split > 1)
      consumer.computeShared(first, shared);
    else {
      int number = group / S::WN;
#pragma unroll 1
      for (int tile = blockIdx.x + number * gridDim.x; tile < S::Tiles; tile += S::Turns * gridDim.x, number += S::Turns)
        consumer.compute(tile, number);
    }
  }
  if constexpr (C::Trigger == 2)
    launchDependents();
}

} // namespace ogc

#endif
