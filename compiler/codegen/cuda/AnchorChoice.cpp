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
  int scratch = t.warpsK * t.bm * (t.bn + 8) * 4;
  return std::max(t.stages * (a + b), scratch) + (t.split > 1 ? t.bm * (t.bn + 8) * 4 : 0);
}

TileChoice chooseTile(int64_t batch, int64_t m, int64_t n, int64_t k, int bytes, bool transposed, CudaArch arch) {
  constexpr int64_t enoughBlocks = 96; // of 132 multiprocessors
  const TileChoice forms[] = {{128, 128, 64, 2, 4, 1}, {128, 64, 64, 4, 2, 1}, {64, 64, 64, 2, 2, 2}, {32, 64, 64, 1, 2, 4},
                              {32, 32, 64, 1, 2, 4},   {16, 64, 64, 1, 2, 4},  {16, 32, 64, 1, 2, 4}};
  auto blocks = [&](const TileChoice &t) { return int64_t(divideCeil(m, t.bm) * divideCeil(n, t.bn)) * batch; };
  TileChoice pick = m <= 16 ? forms[5] : forms[3];
  const TileChoice *full = llvm::find_if(forms, [&](const TileChoice &t) {
    bool isCandidate = (m <= 16) == (t.bm == 16) && t.bm < 2 * m && !(bytes == 4 && t.bm * t.bn > 64 * 64);
    return isCandidate && blocks(t) >= enoughBlocks;
  });
  if (full != std::end(forms))
    pick = *full;
  else if (arch.hasClusters())
    for (int split = 2; split <= 8 && blocks(pick) * pick.split < enoughBlocks; split *= 2)
      if (k / split >= 128)
        pick.split = split;
  int step = bytes == 4 ? 8 : 16; // depth of one mma
  pick.bk = bytes == 4 || k <= 32 ? 32 : 64;
  pick.warpsK = std::min(pick.warpsK, pick.bk / step);
  int64_t depth = divideCeil(divideCeil(k, pick.bk), pick.split);
  pick.stages = std::clamp<int64_t>(depth, 2, 16);
  int64_t limit = std::min<int64_t>(112 * 1024, mostSharedBytes(arch));
  while (pick.stages > 2 && tileSharedBytes(pick, bytes, transposed) > limit)
    --pick.stages;
  pick.sharedBytes = tileSharedBytes(pick, bytes, transposed);
  return pick;
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

AttentionChoice chooseAttention(int64_t rows, int64_t groups, int64_t keys, int64_t d, int64_t dv, int bytes, CudaArch arch, bool &fits) {
  AttentionChoice choice;
  auto blocks = [&](int64_t q) { return int64_t(divideCeil(rows, q)) * groups; };
  if (blocks(64) >= 128) {
    choice.warpsQ = 4;
    choice.warpsT = 1;
  } else if (blocks(32) >= 96) {
    choice.warpsQ = 2;
    choice.warpsT = 2;
  } else if (arch.hasClusters() && blocks(16) < 64 && keys >= 256) {
    for (choice.split = 2; choice.split < 8 && blocks(16) * choice.split < 96;)
      choice.split *= 2;
  }
  auto setStages = [&] { choice.stages = divideCeil(divideCeil(keys, choice.bt), choice.split) <= 1 ? 1 : 2; };
  setStages();
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
