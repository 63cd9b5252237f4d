//===- MappedTile.cpp - tiles that tensor maps fill -----------------------===//
#include "compiler/codegen/cuda/MappedTile.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/MathExtras.h"

using llvm::alignTo;
using llvm::ArrayRef;
using llvm::divideCeil;

namespace ogc::codegen {

bool takesTensorMaps(const TileProblem &problem, CudaArch arch) {
  // Of eight rows and less B is the cost, and a line of less than a box is mostly zeros.
  return problem.isMappable && arch.major == 9 && arch.minor == 0 && problem.m > 8 && problem.k >= 64;
}

int mappedSharedBytes(const TileChoice &t) {
  int stage = (t.bm + t.bn) * t.bk * 2, sums = t.bm * (t.bn + 4) * 4;
  return std::max(t.stages * stage, t.warpsK * sums) + (t.split > 1 ? sums : 0) + 2 * t.stages * 8;
}

static int64_t sliceOf(const TileChoice &t, const TileProblem &p) { return divideCeil(divideCeil(p.k, t.bk), t.split); }

bool isLegalMapped(const TileChoice &t, const TileProblem &p, CudaArch arch) {
  bool hasShape = t.bm >= 8 && t.bm <= 256 && t.bm % 8 == 0 && t.bk >= 64 && t.bk <= 256 && t.bk % 64 == 0 && t.warpsM == 1;
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
  while (t.stages > 1 && mappedSharedBytes(t) > limit)
    --t.stages;
  return mappedSharedBytes(t) <= limit && isLegalMapped(t, p, arch);
}

/// Shared memory of a block where two share a multiprocessor.
static constexpr int64_t halfSharedBytes = 113 * 1024;

/// Estimated time. Fitted to 218 measured tiles of seventeen products in chains with programmatic edges (11 % rms): a fixed part,
/// the products of a multiprocessor, what all blocks together copy from L2, the exchange of a cluster, and the epilogue.
static double timeOf(const TileChoice &t, const TileProblem &p, int64_t blocks) {
  constexpr double cyclesPerMicrosecond = 1750;
  bool isShared = mappedSharedBytes(t) <= halfSharedBytes;
  double waves = isShared ? std::max(1., double(blocks) / 132) : double(divideCeil(blocks, 132));
  double slice = double(sliceOf(t, p));
  // One step of 16 k: the tensor cores', or the reads of both operands from shared memory.
  double product = slice * t.bk / 16 * std::max(t.bm / 2., 16 + t.bm / 4.) * t.warpsN / cyclesPerMicrosecond;
  bool turns = t.stages < slice;
  if (turns && t.stages * t.bk < 256) // too little on the way
    product *= 1.25;
  double megabytes = double(blocks) * slice * t.bk * 2 * (t.bm + t.bn) / (1 << 20);
  double time = 1.53 + waves * (0.98 * product + t.bm * t.bn * 0.000024 / (t.warpsN * t.warpsK) + (turns ? 0.4 : 0));
  time += 0.052 * megabytes + (t.warpsN == 2 ? 0.35 : 0);
  if (t.split > 1)
    time += t.split == 8 ? 1.85 : t.split == 4 ? 0.75 : 0.45;
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
      for (int bk : {192, 128, 256, 64}) // equal times stay in this order
        for (int split : {1, 2, 4, 8}) {
          TileChoice t{{}, bm, 64 * warpsN, bk, 1, warpsN, warpsK, Engine::TensorMaps};
          t.split = split;
          int64_t blocks = divideCeil(p.m, bm) * divideCeil(p.n, t.bn) * p.batch * split;
          if (split > 1 && (p.k / split < 256 || blocks > (split >= 4 ? 120 : 132)))
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
