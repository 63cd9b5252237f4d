//===- MappedTile.cpp - tiles that tensor maps fill -----------------------===//
#include "compiler/codegen/cuda/MappedTile.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MathExtras.h"
#include <array>

using llvm::alignTo;
using llvm::ArrayRef;
using llvm::divideCeil;

namespace ogc::codegen {

bool takesTensorMaps(const TileProblem &problem, CudaArch arch) {
  // Of eight rows and less B is the cost, and a line of less than a box is mostly zeros.
  return problem.isMappable && arch.major == 9 && arch.minor == 0 && problem.m > 8 && problem.k >= mappedLine(problem.bytes);
}

/// Depth of one product of wgmma.
static int stepOf(int bytes) { return 32 / bytes; }

int mappedSharedBytes(const TileChoice &t, const TileProblem &p) {
  int stage = (t.bm + t.bn) * t.bk * p.bytes, sums = t.bm * (t.bn + 4) * 4;
  return std::max(t.stages * stage, t.warpsK * sums) + (t.split > 1 ? sums : 0) + 2 * t.stages * 8 + t.bm / t.split * p.rowBytes;
}

static int64_t sliceOf(const TileChoice &t, const TileProblem &p) { return divideCeil(divideCeil(p.k, t.bk), t.split); }

bool isLegalMapped(const TileChoice &t, const TileProblem &p, CudaArch arch) {
  int64_t line = mappedLine(p.bytes);
  bool hasShape = t.bm >= 8 && t.bm <= 256 && t.bm % 8 == 0 && t.bk >= line && t.bk <= 256 && t.bk % line == 0 && t.warpsM == 1;
  bool hasWarps = t.warpsN >= 1 && t.warpsK >= 1 && t.warpsN * t.warpsK <= 2 && t.bn == 64 * t.warpsN;
  if (!takesTensorMaps(p, arch) || !hasShape || !hasWarps || t.split < 1 || t.bm % t.split != 0)
    return false;
  // A ring that turns refills the stage before the one that is multiplied.
  return t.stages >= (sliceOf(t, p) > t.stages ? 3 : 1) && t.stages <= 64;
}

/// The rows of a tile where `m` rows are divided into `tiles`.
static int rowsOf(int64_t m, int64_t tiles) { return int(alignTo(divideCeil(m, tiles), 8)); }

/// As many stages as the slice has and `limit` bytes of shared memory allow.
static bool setStages(TileChoice &t, const TileProblem &p, int64_t limit, CudaArch arch) {
  t.stages = int(std::clamp<int64_t>(sliceOf(t, p), 1, 64));
  while (t.stages > 1 && mappedSharedBytes(t, p) > limit)
    --t.stages;
  return mappedSharedBytes(t, p) <= limit && isLegalMapped(t, p, arch);
}

/// Shared memory of a block where two share a multiprocessor.
static constexpr int64_t halfSharedBytes = 113 * 1024;

namespace {

/// What parts of the estimated time cost, in microseconds or as factors.
struct TimeParts {
  double fixed, product, element, turn, megabyte, wide, split2, split4, split8;
};

} // namespace

/// Fitted to measured tiles in chains with programmatic edges: of 16 bits 218 of seventeen products (11 % rms), of f32 126 of
/// fourteen (15 %).
static constexpr TimeParts partsOf16Bits = {1.53, 0.98, 0.000024, 0.4, 0.052, 0.35, 0.45, 0.75, 1.85},
                           partsOfF32 = {1.50, 0.40, 0.00027, 1.2, 0.091, 0, 0.46, 0.61, 1.85};

/// Estimated time: a fixed part, the products of a multiprocessor, what all blocks together copy from L2, the exchange of a
/// cluster, and the epilogue.
static double timeOf(const TileChoice &t, const TileProblem &p, int64_t blocks) {
  constexpr double cyclesPerMicrosecond = 1750;
  const TimeParts &parts = p.bytes == 4 ? partsOfF32 : partsOf16Bits;
  bool isShared = mappedSharedBytes(t, p) <= halfSharedBytes;
  double waves = isShared ? std::max(1., double(blocks) / 132) : double(divideCeil(blocks, 132));
  double slice = double(sliceOf(t, p));
  // One step of 32 bytes of k: the tensor cores', or the reads of both operands from shared memory.
  double product = slice * t.bk / stepOf(p.bytes) * std::max(t.bm / 2., 16 + t.bm / 4.) * t.warpsN / cyclesPerMicrosecond;
  bool turns = t.stages < slice;
  if (turns && t.stages * t.bk * p.bytes < 512) // too little on the way
    product *= 1.25;
  double megabytes = double(blocks) * slice * t.bk * p.bytes * (t.bm + t.bn) / (1 << 20);
  double epilogue = t.bm * t.bn * parts.element / (t.warpsN * t.warpsK);
  double time = parts.fixed + waves * (parts.product * product + epilogue + (turns ? parts.turn : 0));
  time += parts.megabyte * megabytes + (t.warpsN == 2 ? parts.wide : 0);
  if (t.split > 1)
    time += t.split == 8 ? parts.split8 : t.split == 4 ? parts.split4 : parts.split2;
  // The estimates of the other engines leave out the fixed part, and are low by a seventh.
  return (time - 1.5) / 1.15;
}

std::vector<TimedTile> mappedTiles(const TileProblem &p, CudaArch arch) {
  std::vector<TimedTile> tiles;
  if (!takesTensorMaps(p, arch))
    return tiles;
  int last = 0;
  int64_t fewest = divideCeil(p.m, 256), most = divideCeil(p.m, 16);
  for (int64_t rowTiles = fewest; rowTiles <= most; ++rowTiles) {
    int bm = rowsOf(p.m, rowTiles);
    if (std::exchange(last, bm) == bm)
      continue;
    for (auto [warpsN, warpsK] : {std::pair{1, 1}, {1, 2}, {2, 1}})
      for (int lines : p.bytes == 4 ? std::array{2, 3, 4, 1} : std::array{3, 2, 4, 1}) // equal times stay in this order
        for (int split : {1, 2, 4, 8}) {
          int bk = int(lines * mappedLine(p.bytes));
          TileChoice t{{}, bm, 64 * warpsN, bk, 1, warpsN, warpsK, Engine::TensorMaps};
          t.split = split;
          int64_t blocks = divideCeil(p.m, bm) * divideCeil(p.n, t.bn) * p.batch * split;
          if (split > 1 && (p.k * p.bytes / split < 512 || blocks > (split >= 4 ? 120 : 132)))
            continue;
          int64_t limits[] = {mostSharedBytes(arch), halfSharedBytes};
          for (int64_t limit : ArrayRef(limits).take_front(blocks > 132 ? 2 : 1))
            if (setStages(t, p, limit, arch))
              tiles.push_back({timeOf(t, p, blocks), t});
        }
  }
  return tiles;
}

} // namespace ogc::codegen
