//===- choose.h - the tile rule of the device README, at compile time -----===//
//
// Of Engine 0 and 1; what tensor maps fill is chosen by the compiler alone (MappedTile.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef OGC_TEST_GPU_CHOOSE_H
#define OGC_TEST_GPU_CHOOSE_H

namespace bench {

struct Choice {
  int BM, BN, BK, WM, WN, WK, Engine;
  float stage; ///< microseconds a stage costs a multiprocessor
  int Stages, Split;
};

constexpr int ceilDiv(long long a, long long b) { return (int)((a + b - 1) / b); }

constexpr int sharedBytes(Choice c, int E, bool transposed) {
  int a = c.BM * (c.BK * E + 16), b = transposed ? c.BN * (c.BK * E + 16) : c.BK * (c.BN + 8) * E;
  if (c.Engine)
    a = c.BM * 128, b = (c.BK * c.BN * 2 + 1023) / 1024 * 1024;
  int loop = c.Stages * (a + b), scratch = c.WK * c.BM * (c.BN + 8) * 4;
  return (loop > scratch ? loop : scratch) + (c.Split > 1 ? c.BM * (c.BN + 8) * 4 : 0);
}

/// Tile of a product with M rows a batch, N columns, depth K and elements of E bytes: the least estimated time of all forms and
/// splits. narrow: A is loaded in pieces of less than four bytes.
constexpr Choice chooseTile(long long batch, long long M, long long N, long long K, int E, bool transposed = false,
                            bool narrow = false, bool warpgroups = true) {
  constexpr Choice forms[] = {// f16, bf16: warps
                              {128, 128, 64, 2, 4, 1, 0, 1.30f, 0, 1},
                              {128, 64, 64, 4, 2, 1, 0, 0.70f, 0, 1},
                              {64, 64, 64, 2, 2, 2, 0, 0.35f, 0, 1},
                              {32, 64, 64, 1, 2, 4, 0, 0.20f, 0, 1},
                              {32, 32, 64, 1, 2, 4, 0, 0.17f, 0, 1},
                              {16, 64, 64, 1, 2, 4, 0, 0.17f, 0, 1},
                              {16, 32, 64, 1, 2, 4, 0, 0.15f, 0, 1},
                              // f16, bf16: warpgroups
                              {64, 32, 64, 1, 1, 2, 1, 0.13f, 0, 1},
                              {64, 64, 64, 1, 1, 2, 1, 0.15f, 0, 1},
                              {64, 96, 64, 1, 1, 2, 1, 0.18f, 0, 1},
                              {64, 128, 64, 1, 1, 2, 1, 0.21f, 0, 1},
                              {128, 64, 64, 2, 1, 1, 1, 0.26f, 0, 1},
                              {128, 96, 64, 2, 1, 1, 1, 0.33f, 0, 1},
                              {128, 128, 64, 2, 1, 1, 1, 0.40f, 0, 1},
                              // f32
                              {64, 64, 64, 1, 2, 4, 0, 0.78f, 0, 1},
                              {32, 64, 64, 1, 2, 4, 0, 0.44f, 0, 1},
                              {64, 64, 32, 2, 2, 2, 0, 0.46f, 0, 1},
                              {32, 64, 32, 1, 2, 4, 0, 0.28f, 0, 1},
                              {32, 32, 32, 1, 2, 4, 0, 0.19f, 0, 1},
                              {16, 64, 32, 1, 2, 4, 0, 0.20f, 0, 1},
                              {16, 32, 32, 1, 2, 4, 0, 0.16f, 0, 1}};
  constexpr int FirstSingle = 14; // the forms of f32 begin there
  Choice best = {};
  float least = 1e30f;
  for (int i = 0; i < (int)(sizeof forms / sizeof forms[0]); ++i)
    for (int split = 1; split <= 8; split *= 2) {
      Choice c = forms[i];
      c.Split = split;
      if ((i >= FirstSingle) != (E == 4) || (c.Engine && (!warpgroups || M <= 16)) || (narrow && M >= 64 && c.BM != 64) ||
          (narrow && c.Engine) || (split > 1 && K / split < 128))
        continue;
      long long blocks = ceilDiv(M, c.BM) * (long long)ceilDiv(N, c.BN) * batch * split;
      if (split > 1 && blocks > 132)
        continue;
      int slice = ceilDiv(ceilDiv(K, c.BK), split);
      c.Stages = slice < 2 ? 2 : slice;
      int limit = (c.Engine || (E == 4 && c.BK == 64)) && blocks <= (split >= 4 ? 120 : 132) ? 227 * 1024 : 113 * 1024;
      while (c.Stages > 2 && sharedBytes(c, E, transposed) > limit)
        --c.Stages;
      if (sharedBytes(c, E, transposed) > limit)
        continue;
      float cost =
          ceilDiv(blocks, 132) * (slice * c.stage * (slice <= c.Stages || !c.Engine ? 1.f : 1.5f) + c.BM * c.BN * 0.000065f) +
          (split == 1  ? 0.f
           : split < 8 ? 0.8f
                       : 1.4f) +
          (c.Stages == 2 && slice > 2 ? 1.5f : 0.f) + (split >= 4 && blocks > 120 ? 0.9f : 0.f);
      if (cost < least)
        least = cost, best = c;
    }
  return best;
}

} // namespace bench

#endif
