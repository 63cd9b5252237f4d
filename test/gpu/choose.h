//===- choose.h - the tile rule of the device README, at compile time -----===//
#ifndef OGC_TEST_GPU_CHOOSE_H
#define OGC_TEST_GPU_CHOOSE_H

namespace bench {

struct Choice {
  int BM, BN, BK, WM, WN, WK, Stages, Split;
};

constexpr int ceilDiv(long long a, long long b) { return (int)((a + b - 1) / b); }

constexpr int sharedBytes(Choice c, int E, bool transposed) {
  int a = c.BM * (c.BK * E + 16), b = transposed ? c.BN * (c.BK * E + 16) : c.BK * (c.BN + 8) * E;
  int loop = c.Stages * (a + b), scratch = c.WK * c.BM * (c.BN + 8) * 4;
  return (loop > scratch ? loop : scratch) + (c.Split > 1 ? c.BM * (c.BN + 8) * 4 : 0);
}

/// Tile of a product with M rows a batch, N columns, depth K and elements of E bytes.
constexpr Choice chooseTile(long long batch, long long M, long long N, long long K, int E, bool transposed = false) {
  constexpr Choice all[] = {{128, 128, 64, 2, 4, 1, 3, 1}, {128, 64, 64, 4, 2, 1, 3, 1}, {64, 64, 64, 2, 2, 2, 3, 1}, {32, 64, 64, 1, 2, 4, 3, 1},
                            {32, 32, 64, 1, 2, 4, 3, 1},   {16, 64, 64, 1, 2, 4, 3, 1}, {16, 32, 64, 1, 2, 4, 3, 1}};
  Choice pick = M <= 16 ? all[5] : all[3];
  bool found = false;
  for (const Choice &c : all) {
    if (found || (M <= 16) != (c.BM == 16) || c.BM >= 2 * M || (E == 4 && c.BM * c.BN > 64 * 64))
      continue;
    if (ceilDiv(M, c.BM) * (long long)ceilDiv(N, c.BN) * batch >= 96)
      pick = c, found = true;
  }
  if (!found) {
    long long blocks = ceilDiv(M, pick.BM) * (long long)ceilDiv(N, pick.BN) * batch;
    for (int split = 2; split <= 8; split *= 2)
      if (blocks * pick.Split < 96 && K / split >= 128)
        pick.Split = split;
  }
  pick.BK = E == 4 || K <= 32 ? 32 : 64;
  if (pick.WK * (E == 4 ? 8 : 16) > pick.BK)
    pick.WK = pick.BK / (E == 4 ? 8 : 16);
  int depth = ceilDiv(ceilDiv(K, pick.BK), pick.Split);
  pick.Stages = depth < 2 ? 2 : depth > 16 ? 16 : depth;
  while (pick.Stages > 2 && sharedBytes(pick, E, transposed) > 112 * 1024)
    --pick.Stages;
  return pick;
}

} // namespace bench

#endif
