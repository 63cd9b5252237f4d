//===- AnchorChoice.cpp - tiles of the hand-written templates -------------===//
#include "compiler/codegen/cuda/AnchorChoice.h"

#include "llvm/Support/MathExtras.h"

using llvm::alignTo;
using llvm::divideCeil;

namespace ogc::codegen {

int64_t mostSharedBytes(CudaArch arch) {
  if (arch.major == 9 || arch.major == 10)
    return 227 * 1024;
  if (arch.major == 8 && (arch.minor == 0 || arch.minor == 7))
    return 163 * 1024;
  return 99 * 1024;
}

static int tileSharedBytes(const TileChoice &t, int bytes, bool transposed) {
  int a = t.bm * (t.bk * bytes + 16), b = transposed ? t.bn * (t.bk * bytes + 16) : t.bk * (t.bn + 8) * bytes;
  if (t.isWide) {
    a = t.bm * 128;
    b = alignTo(t.bk * t.bn * 2, 1024);
  }
  int scratch = t.warpsK * t.bm * (t.bn + 8) * 4;
  return std::max(t.stages * (a + b), scratch) + (t.split > 1 ? t.bm * (t.bn + 8) * 4 : 0);
}

namespace {

/// A form of the tile with the measured time of a stage, in microseconds.
struct TileForm {
  int bytes; // of an element
  int bm, bn, bk, warpsM, warpsN, warpsK;
  bool isWide;
  double stage;
};

} // namespace

static constexpr TileForm tileForms[] = {
    // warps
    {2, 128, 128, 64, 2, 4, 1, false, 1.30},
    {2, 128, 64, 64, 4, 2, 1, false, 0.70},
    {2, 64, 64, 64, 2, 2, 2, false, 0.35},
    {2, 32, 64, 64, 1, 2, 4, false, 0.20},
    {2, 32, 32, 64, 1, 2, 4, false, 0.17},
    {2, 16, 64, 64, 1, 2, 4, false, 0.17},
    {2, 16, 32, 64, 1, 2, 4, false, 0.15},
    // warpgroups
    {2, 64, 32, 64, 1, 1, 2, true, 0.13},
    {2, 64, 64, 64, 1, 1, 2, true, 0.15},
    {2, 64, 96, 64, 1, 1, 2, true, 0.18},
    {2, 64, 128, 64, 1, 1, 2, true, 0.21},
    {2, 128, 64, 64, 2, 1, 1, true, 0.26},
    {2, 128, 96, 64, 2, 1, 1, true, 0.33},
    {2, 128, 128, 64, 2, 1, 1, true, 0.40},
    // f32
    {4, 64, 64, 64, 1, 2, 4, false, 0.78},
    {4, 32, 64, 64, 1, 2, 4, false, 0.44},
    {4, 64, 64, 32, 2, 2, 2, false, 0.46},
    {4, 32, 64, 32, 1, 2, 4, false, 0.28},
    {4, 32, 32, 32, 1, 2, 4, false, 0.19},
    {4, 16, 64, 32, 1, 2, 4, false, 0.20},
    {4, 16, 32, 32, 1, 2, 4, false, 0.16}};

/// Estimated time of a product, in microseconds; `slice` stages a block.
static double tileTime(const TileChoice &t, double stage, int64_t blocks, int64_t slice) {
  double waits = t.isWide && slice > t.stages ? 1.5 : 1;
  double time = double(divideCeil(blocks, 132)) * (double(slice) * stage * waits + t.bm * t.bn * 0.000065);
  if (t.split > 1)
    time += t.split < 8 ? 0.8 : 1.4;
  if (t.stages == 2 && slice > 2)
    time += 1.5;
  return t.split >= 4 && blocks > 120 ? time + 0.9 : time;
}

TileChoice chooseTile(int64_t batch, int64_t m, int64_t n, int64_t k, int bytes, bool transposed, bool isNarrow, CudaArch arch) {
  TileChoice best;
  double least = 0;
  bool hasWide = arch.major == 9 && arch.minor == 0;
  for (const TileForm &form : tileForms)
    for (int split = 1; split <= (arch.hasClusters() ? 8 : 1); split *= 2) {
      if (form.bytes != bytes || (form.isWide && (!hasWide || m <= 16)) || (split > 1 && k / split < 128))
        continue;
      if (isNarrow && (form.isWide || (m >= 64 && form.bm != 64)))
        continue;
      TileChoice tile{form.bm, form.bn, form.bk, form.warpsM, form.warpsN, form.warpsK, form.isWide};
      tile.split = split;
      int64_t blocks = int64_t(divideCeil(m, tile.bm) * divideCeil(n, tile.bn)) * batch * split;
      if (split > 1 && blocks > 132)
        continue;
      int64_t slice = divideCeil(divideCeil(k, tile.bk), split);
      // One block a multiprocessor, or room for two.
      bool isDeep = tile.isWide || (bytes == 4 && tile.bk == 64);
      int64_t limit = isDeep && blocks <= (split >= 4 ? 120 : 132) ? 227 * 1024 : 113 * 1024;
      limit = std::min(limit, mostSharedBytes(arch));
      tile.stages = std::clamp<int64_t>(slice, 2, 64);
      while (tile.stages > 2 && tileSharedBytes(tile, bytes, transposed) > limit)
        --tile.stages;
      tile.sharedBytes = tileSharedBytes(tile, bytes, transposed);
      double time = tileTime(tile, form.stage, blocks, slice);
      if (tile.sharedBytes <= limit && (least == 0 || time < least)) {
        least = time;
        best = tile;
      }
    }
  return best;
}

GemvChoice chooseGemv(int64_t batch, int64_t m, int64_t n, int64_t k, CudaArch arch) {
  GemvChoice choice;
  int64_t blocks = divideCeil(n, choice.bn) * batch;
  if (arch.hasClusters())
    for (int split = 2; split <= 8 && blocks * choice.split < 128; split *= 2)
      if (k / split >= 256)
        choice.split = split;
  choice.sharedBytes = alignTo(m * divideCeil(k, choice.split) * 4, 16) + choice.warps * m * choice.bn * 4 +
                       (choice.split > 1 ? choice.split * m * choice.bn * 4 : 0);
  return choice;
}

static int64_t attentionSharedBytes(const AttentionChoice &c, int64_t d, int64_t dv, int bytes) {
  int64_t dp = alignTo(d, 16), dvp = alignTo(dv, 16);
  int64_t tiles = c.rows() * (dp * bytes + 16) + c.stages * c.bt * ((dp * bytes + 16) + (dvp * bytes + 16));
  int64_t merge = c.warpsT * c.rows() * (dvp + 8) * 4;
  return std::max(tiles, merge) + (c.split > 1 ? c.rows() * (dvp + 8) * 4 : 0);
}

AttentionChoice chooseAttention(int64_t rows, int64_t groups, int64_t keys, int64_t d, int64_t dv, int bytes, CudaArch arch,
                                bool &fits) {
  AttentionChoice choice;
  auto blocks = [&](int64_t q) { return int64_t(divideCeil(rows, q)) * groups; };
  if (blocks(16) > 132) {
    bool isMedium = blocks(32) <= 264;
    choice.warpsQ = isMedium ? 2 : 4;
    choice.warpsT = isMedium ? 4 : 1;
    choice.bt = isMedium ? 128 : 64;
  } else if (arch.hasClusters() && blocks(16) < 64 && keys >= 256) {
    for (choice.split = 2; choice.split < 8 && blocks(16) * choice.split < 96;)
      choice.split *= 2;
  }
  choice.stages = divideCeil(divideCeil(keys, choice.bt), choice.split) <= 1 ? 1 : 2;
  auto tooLarge = [&] { return attentionSharedBytes(choice, d, dv, bytes) > mostSharedBytes(arch); };
  if (tooLarge())
    choice.stages = 1;
  while (tooLarge() && choice.bt > 16 * choice.warpsT)
    choice.bt /= 2;
  while (tooLarge() && choice.warpsT > 1) {
    choice.warpsT /= 2;
    choice.bt = std::min(choice.bt, 64);
  }
  choice.sharedBytes = attentionSharedBytes(choice, d, dv, bytes);
  fits = !tooLarge();
  return choice;
}

} // namespace ogc::codegen
