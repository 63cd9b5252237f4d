//===- AnchorChoice.cpp - tiles of the hand-written templates -------------===//
#include "compiler/codegen/cuda/AnchorChoice.h"

#include "compiler/codegen/cuda/BoxTile.h"
#include "compiler/dialect/kern/Kern.h"

#include "llvm/ADT/STLExtras.h"
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

/// True for the ways to divide a sum among blocks: clusters of up to 8, which every machine that has clusters takes.
static bool isLegalSplit(int split, CudaArch arch) {
  return split >= 1 && split <= (arch.hasClusters() ? 8 : 1) && llvm::isPowerOf2_32(static_cast<uint32_t>(split));
}

/// True if a block may have `bytes` of shared memory, and what it asks for beyond its need.
static bool fitsShared(int64_t bytes, const LaunchPolicy &policy, CudaArch arch) {
  return std::max(bytes, policy.reservedBytes) <= mostSharedBytes(arch);
}

int TileChoice::sharedBytes(const TileProblem &problem) const {
  if (engine == Engine::TensorMaps)
    return mappedSharedBytes(*this, problem);
  if (engine == Engine::Boxes)
    return int(BoxGeometry(*this, *problem.boxes).sharedBytes);
  int a = bm * (bk * problem.bytes + 16);
  int b = problem.transposed ? bn * (bk * problem.bytes + 16) : bk * (bn + 8) * problem.bytes;
  if (engine == Engine::Warpgroups) {
    a = bm * 128;
    b = alignTo(bk * bn * 2, 1024);
  }
  int scratch = warpsK * bm * (bn + 8) * 4;
  int scales = problem.isScaled ? divideCeil(divideCeil(problem.k, bk), split) * bk * problem.bytes : 0;
  return std::max(stages * (a + b), scratch) + (split > 1 ? bm * (bn + 8) * 4 : 0) + scales;
}

static int64_t blocksOf(const TileChoice &t, const TileProblem &p) {
  return int64_t(divideCeil(p.m, t.bm) * divideCeil(p.n, t.bn)) * p.batch * t.split;
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
  double waits = t.engine == Engine::Warpgroups && slice > t.stages ? 1.5 : 1;
  double time = double(divideCeil(blocks, 132)) * (double(slice) * stage * waits + t.bm * t.bn * 0.000065);
  if (t.split > 1)
    time += t.split < 8 ? 0.8 : 1.4;
  if (t.stages == 2 && slice > 2)
    time += 1.5;
  return t.split >= 4 && blocks > 120 ? time + 0.9 : time;
}

/// False for combinations of form and split that the templates or the machine do not have.
static bool fitsForm(const TileForm &form, int split, const TileProblem &p, CudaArch arch) {
  bool hasWide = arch.major == 9 && arch.minor == 0;
  if (form.bytes != p.bytes || form.bn % p.wholeColumns != 0 || (form.isWide && (!hasWide || p.m <= 16)) ||
      (split > 1 && p.k / split < 128))
    return false;
  return !p.isNarrow || (!form.isWide && (p.m < 64 || form.bm == 64));
}

/// The ring of `tile` as deep as the block's slice of K and `limit` bytes of shared memory allow; false when two stages are too
/// many.
static bool setStages(TileChoice &tile, const TileProblem &problem, int64_t limit) {
  int64_t slice = divideCeil(divideCeil(problem.k, tile.bk), tile.split);
  tile.stages = std::clamp<int64_t>(slice, 2, 64);
  while (tile.stages > 2 && tile.sharedBytes(problem) > limit)
    --tile.stages;
  return tile.sharedBytes(problem) <= limit;
}

/// Estimates of tiles whose blocks come and go are made for one wave of them. Further ones begin with the loads and end with the
/// epilogue that nothing hides: 4 to 11 us a wave, measured in a network of 64 images.
static double withWaves(double time, const TileChoice &t, const TileProblem &p) {
  if (!p.boxes)
    return time;
  double further = std::max(0., double(blocksOf(t, p)) / 132 - 1);
  // What memory decides is no reason to take any tile.
  return std::max(time, 1.2 * movedTime(*p.boxes) + 0.1 * time) +
         further * (1.5 + t.bm * t.bn * (p.boxes->hasInputs ? 0.00025 : 0.00005));
}

std::vector<TileChoice> rankTiles(const TileProblem &problem, CudaArch arch) {
  std::vector<std::tuple<double, size_t, TileChoice>> ranked; // equal times stay in the order of the forms
  for (const TileForm &form : tileForms)
    for (int split = 1; split <= (arch.hasClusters() ? 8 : 1); split *= 2) {
      if (!fitsForm(form, split, problem, arch))
        continue;
      TileChoice tile{{},          form.bm,     form.bn,     form.bk,
                      form.warpsM, form.warpsN, form.warpsK, form.isWide ? Engine::Warpgroups : Engine::Warps};
      tile.split = split;
      int64_t blocks = blocksOf(tile, problem);
      if (split > 1 && blocks > 132)
        continue;
      // One block a multiprocessor, or room for two.
      bool isDeep = form.isWide || (problem.bytes == 4 && tile.bk == 64);
      int64_t limit = isDeep && blocks <= (split >= 4 ? 120 : 132) ? 227 * 1024 : 113 * 1024;
      int64_t slice = divideCeil(divideCeil(problem.k, tile.bk), split);
      if (setStages(tile, problem, std::min(limit, mostSharedBytes(arch))))
        ranked.emplace_back(withWaves(tileTime(tile, form.stage, blocks, slice), tile, problem), ranked.size(), tile);
    }
  for (const TimedTile &mapped : mappedTiles(problem, arch))
    ranked.emplace_back(withWaves(mapped.time, mapped.tile, problem), ranked.size(), mapped.tile);
  for (const TimedTile &boxes : boxTiles(problem, arch))
    ranked.emplace_back(boxes.time, ranked.size(), boxes.tile);
  llvm::sort(ranked, [](const auto &a, const auto &b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<TileChoice> tiles;
  for (auto &[time, order, tile] : ranked)
    tiles.push_back(tile);
  if (tiles.empty())
    tiles.emplace_back();
  return tiles;
}

TileChoice chooseTile(const TileProblem &problem, CudaArch arch, std::string name, Tuning &tuning) {
  std::vector<TileChoice> ranked = rankTiles(problem, arch);
  auto isLegal = [&](const TileChoice &t) {
    if (t.engine == Engine::TensorMaps)
      return isLegalMapped(t, problem, arch) && isLegalSplit(t.split, arch) && fitsShared(t.sharedBytes(problem), t, arch);
    if (t.engine == Engine::Boxes)
      return isLegalBox(t, problem, arch);
    bool exists = llvm::any_of(tileForms, [&](const TileForm &form) {
      return fitsForm(form, t.split, problem, arch) && form.bm == t.bm && form.bn == t.bn && form.bk == t.bk &&
             form.warpsM == t.warpsM && form.warpsN == t.warpsN && form.warpsK == t.warpsK &&
             t.engine == (form.isWide ? Engine::Warpgroups : Engine::Warps);
    });
    return exists && isLegalSplit(t.split, arch) && t.stages >= 2 && t.stages <= 64 &&
           fitsShared(t.sharedBytes(problem), t, arch);
  };
  auto candidates = [&] {
    constexpr size_t mostTiles = 8;
    constexpr size_t mostOfOther = 4; // estimates of boxes and of other tiles are not as close as those of each among themselves
    std::vector<TileChoice> all(ranked.begin(), ranked.begin() + std::min(ranked.size(), mostTiles));
    for (bool isBoxes : {false, true}) {
      auto belongs = [&](const TileChoice &t) { return (t.engine == Engine::Boxes) == isBoxes; };
      size_t known = llvm::count_if(all, belongs);
      for (const TileChoice &t : llvm::drop_begin(ranked, all.size() < mostTiles ? ranked.size() : mostTiles))
        if (belongs(t) && known < mostOfOther)
          all.push_back(t), ++known;
    }
    // A ring that leaves room for another block, or takes the whole multiprocessor.
    for (size_t i = 0, e = all.size(); i < e; ++i)
      for (int64_t limit : {113 * 1024, 227 * 1024}) {
        TileChoice other = all[i];
        if (!other.hasFeeder() && setStages(other, problem, std::min<int64_t>(limit, mostSharedBytes(arch))) &&
            other.stages != all[i].stages)
          all.push_back(other);
      }
    return all;
  };
  return choose(tuning, std::move(name), ranked.front(), isLegal, candidates);
}

int64_t GemvChoice::sharedBytes(const TileProblem &problem) const {
  int64_t stride = warps % 4 != 0 ? warps : (warps / 4 | 1) * 4; // of a column's partial sums
  int64_t rows = problem.m <= 2 ? 0 : alignTo(problem.m * divideCeil(problem.k, split) * 4, 16);
  int64_t columns = bn + problem.rowSums, sums = rows + problem.m * columns * stride * 4;
  return split == 1 ? sums : alignTo(sums + split * problem.m * columns * 4, 8) + 8;
}

int GemvChoice::residentBlocks(const TileProblem &problem) const {
  if (problem.m > 1)
    return 1;
  // A load in flight takes four registers, everything else of a single row some 30.
  int registers = depth <= 4 ? 42 : depth <= 8 ? 64 : 128;
  return std::max(1, 65536 / (32 * warps * registers));
}

/// Measured in the graph of a decoder with a billion weights, f16.
static GemvChoice gemvRule(const TileProblem &problem, int vecB, int64_t panel, CudaArch arch) {
  constexpr int64_t multiprocessors = 132, panelBytes = 256 * 1024;
  GemvChoice choice;
  choice.trigger = Trigger::Start;
  choice.bn = static_cast<int>(std::min<int64_t>({panel, 64, 32 * vecB}));
  auto blocks = [&] { return int64_t(divideCeil(problem.n, choice.bn)) * problem.batch * choice.split; };
  auto blockBytes = [&] { return problem.k * choice.bn * problem.bytes / choice.split; };
  // Whole panels are what memory likes best; small matrices rather have more blocks.
  while (choice.bn > 16 && choice.bn > vecB && blockBytes() <= panelBytes && blocks() < 32)
    choice.bn /= 2;
  // What one block streams while the others do as much: narrow ones come and go.
  bool isNarrow = choice.bn <= 16;
  int64_t mostBytes = isNarrow ? panelBytes / 2 : panelBytes;
  if (isNarrow)
    choice.warps = blocks() >= 4 * multiprocessors ? 8 : 16;
  if (isNarrow && blocks() <= multiprocessors) // one each, which has all of its threads and asks for everything at once
    choice.warps = 32, choice.depth = 4;
  if (blockBytes() > mostBytes && blocks() < 2 * multiprocessors && arch.hasClusters()) {
    while (choice.split < 8 && blockBytes() > panelBytes / 2)
      choice.split *= 2;
    choice.depth = isNarrow ? 16 : 4;
    choice.warps = isNarrow ? 8 : 16;
  }
  // Some steps a warp, and room for the rows and the sums.
  int64_t rowsOfWarp = 32 / (choice.bn / vecB);
  while (choice.warps > 4 && problem.k < choice.split * choice.warps * rowsOfWarp * 3)
    choice.warps /= 2;
  while (choice.warps > 8 && choice.sharedBytes(problem) > 100 * 1024)
    choice.warps /= 2;
  return choice;
}

bool takesGemv(const TileProblem &problem, int64_t rows, CudaArch arch) {
  return rows <= (problem.bytes == 4 ? 8 : 2) && !problem.transposed &&
         gemvRule(problem, 16 / problem.bytes, 64, arch).sharedBytes(problem) <=
             std::min<int64_t>(200 * 1024, mostSharedBytes(arch));
}

GemvChoice chooseGemv(const TileProblem &problem, int vecB, int64_t panel, CudaArch arch, std::string name, Tuning &tuning) {
  auto isLegal = [&](const GemvChoice &c) {
    bool hasColumns = c.bn >= vecB && c.bn <= 256 && c.bn % vecB == 0 && llvm::isPowerOf2_32(c.bn) && c.bn / vecB <= 32;
    return isLegalSplit(c.split, arch) && hasColumns && c.warps >= 1 && c.warps <= 32 && c.depth >= 1 && c.depth <= 16 &&
           fitsShared(c.sharedBytes(problem), c, arch);
  };
  auto candidates = [&] {
    std::vector<GemvChoice> all;
    auto add = [&](int bn, int warps, int depth, std::initializer_list<int> splits) {
      for (int split : splits) {
        GemvChoice choice{{}, bn, warps, depth, split};
        if (isLegal(choice) && (split == 1 || problem.k / split >= 128))
          all.push_back(choice);
      }
    };
    if (panel > 16) {
      add(64, 32, 8, {1, 2, 4, 8});
      add(64, 16, 8, {1, 2, 4});
      add(64, 16, 4, {1, 4, 8});
      add(32, 32, 4, {1, 2});
      add(32, 16, 8, {1, 2});
      add(32, 8, 8, {1, 4});
    }
    add(16, 32, 4, {1});
    add(16, 16, 8, {1, 2});
    add(16, 16, 4, {1, 2, 4});
    add(16, 8, 16, {1, 2});
    add(16, 8, 8, {1, 2});
    add(16, 4, 16, {1});
    return all;
  };
  return choose(tuning, std::move(name), gemvRule(problem, vecB, panel, arch), isLegal, candidates);
}

int64_t AttentionChoice::sharedBytes(const AttentionProblem &problem) const {
  int64_t dp = alignTo(problem.d, 16), dvp = alignTo(problem.dv, 16), rows = blockRows();
  int64_t tiles = rows * (dp * problem.bytes + 16) + stages * bt * ((dp * problem.bytes + 16) + (dvp * problem.bytes + 16));
  int64_t merge = warpsT * rows * (dvp + 8) * 4;
  return std::max(tiles, merge) + (split > 1 ? rows * (dvp + 8) * 4 : 0);
}

static AttentionChoice attentionRule(const AttentionProblem &problem, CudaArch arch) {
  AttentionChoice choice;
  auto blocks = [&](int64_t q) { return int64_t(divideCeil(problem.rows, q)) * problem.groups; };
  if (blocks(16) > 132) {
    bool isMedium = blocks(32) <= 264;
    choice.warpsQ = isMedium ? 2 : 4;
    choice.warpsT = isMedium ? 4 : 1;
    choice.bt = isMedium ? 128 : 64;
  } else if (arch.hasClusters() && blocks(16) < 64 && problem.keys >= 256) {
    for (choice.split = 2; choice.split < 8 && blocks(16) * choice.split < 96;)
      choice.split *= 2;
  }
  choice.stages = divideCeil(divideCeil(problem.keys, choice.bt), choice.split) <= 1 ? 1 : 2;
  auto tooLarge = [&] { return choice.sharedBytes(problem) > mostSharedBytes(arch); };
  if (tooLarge())
    choice.stages = 1;
  while (tooLarge() && choice.bt > 16 * choice.warpsT)
    choice.bt /= 2;
  while (tooLarge() && choice.warpsT > 1) {
    choice.warpsT /= 2;
    choice.bt = std::min(choice.bt, 64);
  }
  return choice;
}

std::optional<AttentionChoice> chooseAttention(const AttentionProblem &problem, CudaArch arch, std::string name, Tuning &tuning) {
  AttentionChoice rule = attentionRule(problem, arch);
  auto isLegal = [&](const AttentionChoice &c) {
    auto isPower = [](int value) { return value >= 1 && value <= 8 && llvm::isPowerOf2_32(value); };
    return isPower(c.warpsQ) && isPower(c.warpsT) && c.warpsQ * c.warpsT <= 16 && c.bt > 0 && c.bt % (16 * c.warpsT) == 0 &&
           (c.stages == 1 || c.stages == 2) && isLegalSplit(c.split, arch) && fitsShared(c.sharedBytes(problem), c, arch);
  };
  if (!isLegal(rule))
    return std::nullopt;
  auto candidates = [&] {
    std::vector<AttentionChoice> all;
    for (auto [warpsQ, warpsT, bt] :
         {std::array{1, 4, 64}, {1, 4, 128}, {2, 2, 64}, {2, 4, 64}, {2, 4, 128}, {4, 1, 64}, {4, 2, 64}})
      for (int split : {1, 2, 4, 8}) {
        int64_t blocks = int64_t(divideCeil(problem.rows, 16 * warpsQ)) * problem.groups * split;
        if (split > 1 && (blocks > 132 || problem.keys / split < 64))
          continue;
        AttentionChoice choice{{}, warpsQ, warpsT, bt, 1, split};
        choice.stages = divideCeil(divideCeil(problem.keys, bt), split) <= 1 ? 1 : 2;
        if (isLegal(choice))
          all.push_back(choice);
      }
    return all;
  };
  return choose(tuning, std::move(name), rule, isLegal, candidates);
}

int64_t MappedAttentionChoice::sharedBytes(const AttentionProblem &problem) const {
  constexpr int64_t span = 64; // columns of a box
  int64_t keyRows = alignTo(problem.keys, 16), held = alignTo(problem.keys, 16 * warpsT),
          columns = alignTo(problem.dv, 16 * warpsT);
  int64_t keyBytes = keyRows * divideCeil(problem.d, span) * 128, valueBytes = keyRows * divideCeil(columns, span) * 128;
  int64_t queryBytes = blockRows() * divideCeil(problem.d, span) * 128;
  return alignTo(alignTo(queryBytes, 1024) + keyBytes, 1024) + valueBytes + blockRows() * ((held + 8) * 2 + warpsT * 8) + 16;
}

static bool isLegal(const MappedAttentionChoice &c, const AttentionProblem &problem, CudaArch arch) {
  constexpr int64_t longestBox = 256;
  auto isPower = [](int value) { return value >= 1 && value <= 8 && llvm::isPowerOf2_32(value); };
  if (arch.major < 9 || !problem.isMappable || problem.bytes != 2 || problem.keys > longestBox || problem.d > 256 ||
      problem.dv > 256 || !isPower(c.warpsQ) || !isPower(c.warpsT) || c.blockRows() % problem.heads != 0)
    return false;
  // Keys that the last warps do not have are read from where values lie.
  int64_t columns = alignTo(problem.dv, 16 * c.warpsT), keyRows = alignTo(problem.keys, 16);
  return alignTo(problem.keys, 16 * c.warpsT) - keyRows <= keyRows * divideCeil(columns, 64) &&
         fitsShared(c.sharedBytes(problem), c, arch);
}

std::optional<MappedAttentionChoice> chooseMappedAttention(const AttentionProblem &problem, CudaArch arch, std::string name,
                                                           Tuning &tuning) {
  auto legal = [&](const MappedAttentionChoice &c) { return isLegal(c, problem, arch); };
  // One warp a row tile reads each key once: better where there is more to do than runs at once. Otherwise four share the keys.
  bool isLarge = divideCeil(problem.rows, 16) * problem.groups > 264;
  MappedAttentionChoice rule{{}, isLarge ? 4 : 1, isLarge ? (problem.keys <= 128 ? 1 : 2) : problem.keys <= 32 ? 2 : 4};
  while (rule.warpsQ < 4 && rule.blockRows() % problem.heads != 0)
    rule.warpsQ *= 2;
  while (rule.warpsT > 1 && !legal(rule))
    rule.warpsT /= 2;
  if (!legal(rule))
    return std::nullopt;
  auto candidates = [&] {
    std::vector<MappedAttentionChoice> all;
    for (auto [warpsQ, warpsT] : {std::array{1, 4}, {2, 4}, {1, 2}, {2, 2}, {4, 2}, {4, 1}, {1, 8}, {1, 1}})
      if (MappedAttentionChoice choice{{}, warpsQ, warpsT}; legal(choice))
        all.push_back(choice);
    return all;
  };
  return choose(tuning, std::move(name), rule, legal, candidates);
}

int DecodeChoice::threads(const AttentionProblem &problem, int64_t newRows) const {
  constexpr int64_t mostHelpers = 128;
  return 32 * warps + static_cast<int>(std::min<int64_t>(alignTo(newRows * 2 * problem.d, 32), mostHelpers));
}

int64_t DecodeChoice::sharedBytes(const AttentionProblem &problem, int64_t newRows) const {
  int64_t parts = (warps + (split > 1 ? split : 0)) * int64_t(alignTo(problem.rows * (problem.d + 2), 4));
  return (problem.rows * problem.d + newRows * 2 * problem.d + parts) * 4 + (split > 1 ? 8 : 0);
}

static DecodeChoice decodeRule(const AttentionProblem &problem, CudaArch arch) {
  DecodeChoice choice;
  constexpr int64_t fewestKeys = 128; // of a block: with fewer, more blocks cost more than they save
  if (arch.hasClusters())
    while (choice.split < 8 && problem.groups * choice.split * 2 <= 132 && problem.keys >= choice.split * 2 * fewestKeys)
      choice.split *= 2;
  return choice;
}

bool takesDecode(const AttentionProblem &problem, int64_t newRows, CudaArch arch) {
  constexpr int64_t mostRows = kern::fewAttentionRows; // held in registers
  return problem.rows <= mostRows && newRows <= mostRows && problem.d == problem.dv && problem.d % 8 == 0 && problem.d <= 256 &&
         llvm::isPowerOf2_64(static_cast<uint64_t>(problem.d)) &&
         decodeRule(problem, arch).sharedBytes(problem, newRows) <= mostSharedBytes(arch);
}

DecodeChoice chooseDecode(const AttentionProblem &problem, int64_t newRows, CudaArch arch, std::string name, Tuning &tuning) {
  auto isLegal = [&](const DecodeChoice &c) {
    return c.warps >= 1 && c.warps <= 8 && isLegalSplit(c.split, arch) && fitsShared(c.sharedBytes(problem, newRows), c, arch);
  };
  auto candidates = [&] {
    std::vector<DecodeChoice> all;
    for (int warps : {4, 8})
      for (int split : {1, 2, 4, 8})
        if (DecodeChoice choice{{}, warps, split}; isLegal(choice) && (split == 1 || problem.keys / split >= 16))
          all.push_back(choice);
    return all;
  };
  return choose(tuning, std::move(name), decodeRule(problem, arch), isLegal, candidates);
}

DepthwiseChoice chooseDepthwise(std::string name, Tuning &tuning) {
  auto isLegal = [](const DepthwiseChoice &c) { return c.threads >= 32 && c.threads <= 1024 && c.threads % 32 == 0; };
  auto candidates = [] {
    std::vector<DepthwiseChoice> all;
    for (int threads : {64, 128, 256})
      all.push_back({{}, threads});
    return all;
  };
  return choose(tuning, std::move(name), DepthwiseChoice(), isLegal, candidates);
}

} // namespace ogc::codegen
