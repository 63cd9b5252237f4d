//===- WideAttention.cpp - forms of attention over many keys --------------===//
#include "compiler/codegen/cuda/AnchorChoice.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

using llvm::alignTo;
using llvm::divideCeil;

namespace ogc::codegen {

static constexpr int64_t multiprocessors = 132;
static constexpr int64_t boxColumns = 64; // a line of the swizzle
static constexpr int longestBox = 256;

int64_t WideAttentionChoice::sharedBytes(const AttentionProblem &problem) const {
  int64_t spans = divideCeil(problem.d, boxColumns), spansV = divideCeil(problem.dv, boxColumns);
  int64_t queries = blockRows() * spans * 128, ring = stages * bt * (spans + spansV) * 128,
          row = (alignTo(problem.dv, 16) + 8) * 4;
  int64_t merge = groupsT > 1 ? groupsT * blockRows() * row : 0;
  int64_t receive = split > 1 ? split * divideCeil(blockRows(), split) * row : 0;
  return std::max(queries + ring, merge) + receive + (4 * stages + 1) * 8;
}

/// Keys that a warpgroup multiplies at a time.
static int64_t keysOf(const WideAttentionChoice &c) { return c.bt / c.groupsT; }

static int64_t stepsOf(const WideAttentionChoice &c, const AttentionProblem &problem) {
  return divideCeil(divideCeil(problem.keys, c.bt), c.split);
}

static int64_t blocksOf(const WideAttentionChoice &c, const AttentionProblem &problem) {
  return int64_t(divideCeil(problem.rows, c.blockRows())) * problem.groups * c.split;
}

/// What a thread holds: scores, probabilities in halves, results, biases on their way; and addresses.
static int64_t registersOf(const WideAttentionChoice &c, const AttentionProblem &problem) {
  int64_t keys = keysOf(c);
  return keys / 2 + keys / 4 + alignTo(problem.dv, 16) / 2 + (problem.hasBias ? keys / 2 : 0) + 28;
}

static bool isLegal(const WideAttentionChoice &c, const AttentionProblem &problem, CudaArch arch) {
  if (arch.major != 9 || arch.minor != 0 || !problem.isMappable || !problem.hasPositiveScale || problem.bytes != 2 ||
      problem.d > 128 || problem.dv > 128 || c.groupsQ < 1 || c.groupsT < 1 || c.groupsQ * c.groupsT > 4 || c.bt < 1 ||
      c.bt % (16 * c.groupsT) != 0 || c.bt > longestBox || c.split < 1 || c.split > 8 || c.blockRows() % problem.heads != 0)
    return false;
  int64_t registers = std::min(255, 65536 / c.threads() / 8 * 8); // that so many threads leave each
  return c.stages >= (stepsOf(c, problem) > 1 ? 2 : 1) && c.stages <= 16 && registersOf(c, problem) <= registers &&
         std::max(c.sharedBytes(problem), c.reservedBytes) <= mostSharedBytes(arch);
}

/// Estimated time in microseconds, fitted to measurements: steps, each of which takes the longer the more warpgroups share a
/// multiprocessor, and the merge of parts.
static double timeOf(const WideAttentionChoice &c, const AttentionProblem &problem) {
  double keys = double(keysOf(c)), depth = double(alignTo(problem.d, 32) + alignTo(problem.dv, 32));
  double alone = 0.0014 + 0.0000047 * depth, shared = 0.0004 + 0.00002 * depth, bias = problem.hasBias ? 0.0025 : 0;
  int64_t registers = c.threads() * alignTo(registersOf(c, problem), 8),
          bytes = std::max(c.sharedBytes(problem), c.reservedBytes);
  int64_t resident = std::max<int64_t>(1, std::min(65536 / registers, 227 * 1024 / (bytes + 1024)));
  int64_t blocks = blocksOf(c, problem), left = divideCeil(blocks, multiprocessors);
  double steps = double(stepsOf(c, problem));
  if (problem.isCausal && left > 1) // half of the tiles are hidden; blocks with few fill the gaps
    steps = steps * 0.6 + 1;
  // Two warpgroups that take turns lose less of the time that products of large heads take.
  double turns = c.groupsQ == 2 && c.groupsT == 1 && depth > 128 ? 0.88 : 1;
  auto waveTime = [&](int64_t blocksOfOne) {
    double groups = double(blocksOfOne * c.groupsQ * c.groupsT);
    return 1 + steps * turns * (0.27 + 0.03 * groups + keys * (alone + groups * shared + bias));
  };
  double time = 1;
  if (left > 2 * resident)
    time += double(blocks) / double(multiprocessors * resident) * waveTime(resident);
  else
    for (bool isTight = left > 1 && double(blocks) > 0.9 * double(left * multiprocessors); left > 0; left -= resident)
      time += waveTime(std::min(left + isTight, resident)); // where there is room for more, some multiprocessors get more
  if (c.groupsT > 1)
    time += 0.3 * c.groupsQ * c.groupsT;
  if (c.split > 1)
    time += 0.9 + 0.25 * c.groupsQ * c.split;
  // What all blocks copy: lines that are not whole ones take longer.
  int64_t lines = divideCeil(problem.d, boxColumns) + divideCeil(problem.dv, boxColumns);
  double copied = double(blocks) * stepsOf(c, problem) * c.bt * lines * 128 * (problem.isCausal ? 0.6 : 1);
  bool isWhole = problem.d % boxColumns == 0 && problem.dv % boxColumns == 0;
  return std::max(time, copied / (isWhole ? 7.5e6 : 4e6)) * (keysOf(c) % 64 == 0 ? 1 : 1.04);
}

/// Legal forms, the one of the least estimated time first; of equal ones the first here.
static std::vector<WideAttentionChoice> rankForms(const AttentionProblem &problem, CudaArch arch) {
  std::vector<std::tuple<double, size_t, WideAttentionChoice>> ranked;
  for (auto [groupsQ, groupsT] : {std::array{1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 4}})
    for (int keys = 144; keys >= 64; keys -= 16)
      for (int split = 1; split <= 8; ++split)
        for (int stages : {3, 2, 1}) { // fewer leave room for other blocks
          WideAttentionChoice choice{{}, groupsQ, groupsT, keys * groupsT, stages, split};
          if (isLegal(choice, problem, arch) && (split == 1 || blocksOf(choice, problem) <= multiprocessors))
            ranked.emplace_back(timeOf(choice, problem), ranked.size(), choice);
        }
  llvm::sort(ranked, [](const auto &a, const auto &b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<WideAttentionChoice> forms;
  for (const auto &[time, index, choice] : ranked)
    forms.push_back(choice);
  return forms;
}

bool prefersWideAttention(const AttentionProblem &problem) {
  constexpr int64_t manyRows = 8192; // of all heads: several rounds of blocks
  return problem.rows * problem.groups >= manyRows;
}

std::optional<WideAttentionChoice> chooseWideAttention(const AttentionProblem &problem, CudaArch arch, std::string name,
                                                       Tuning &tuning) {
  constexpr int64_t fewestRows = 17, fewestKeys = 128; // below, the template for all machines is as fast
  if (problem.rows < fewestRows || problem.keys < fewestKeys)
    return std::nullopt;
  std::vector<WideAttentionChoice> forms = rankForms(problem, arch);
  if (forms.empty())
    return std::nullopt;
  auto legal = [&](const WideAttentionChoice &c) { return isLegal(c, problem, arch); };
  auto candidates = [&] {
    constexpr size_t most = 10;
    return std::vector<WideAttentionChoice>(forms.begin(), forms.begin() + std::min(forms.size(), most));
  };
  return choose(tuning, std::move(name), forms.front(), legal, candidates);
}

} // namespace ogc::codegen
