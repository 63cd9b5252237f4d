//===- BoxTile.cpp - tiles of boxes of pixels -----------------------------===//
#include "compiler/codegen/cuda/BoxTile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using llvm::alignTo;
using llvm::divideCeil;

namespace ogc::codegen {

static constexpr int64_t multiprocessors = 132;
/// Registers of a thread besides accumulators: places, addresses, inputs of the epilogue on their way.
static constexpr int64_t otherRegisters = 40;
/// And those that two sets of filters of f32 take while they are multiplied, as ptxas has them.
static int64_t filterRegisters(int bytes) { return bytes == 4 ? 32 : 0; }

TapPhases::TapPhases(int64_t taps, int64_t stride, int64_t dilation) {
  int64_t common = std::gcd(stride, dilation);
  phases = std::min(taps, stride / common);
  shift = dilation / common;
  most = divideCeil(taps, phases);
}

BoxGeometry::BoxGeometry(const TileChoice &t, const BoxProblem &p)
    : tapsY(p.kernel[0], p.strides[0], p.dilations[0]), tapsX(p.kernel[1], p.strides[1], p.dilations[1]) {
  const BoxShape &box = t.box;
  pitch = box.x + (box.hasBorder ? (tapsX.most - 1) * tapsX.shift : 0);
  rows = box.y + (box.hasBorder ? (tapsY.most - 1) * tapsY.shift : 0);
  int64_t boxGroups = divideCeil(box.x * box.y, 8), lines = divideCeil(divideCeil(p.channels, mappedLine(p.bytes)), t.split);
  groups = box.count * boxGroups;
  loadBytes = box.count * int64_t(alignTo(std::max(pitch * rows, boxGroups * 8) * 128, 1024));
  filterBytes = t.bn * 128;
  taps = lines * p.kernel[0] * p.kernel[1];
  loads = box.hasBorder ? lines * tapsY.phases * tapsX.phases : taps;
  constexpr int64_t rowBytes = (64 + 4) * 4; // of sums, which pass through two buffers of 16 rows
  int64_t sums = t.warpsM * t.warpsN * 2 * std::min<int64_t>(groups, 2) * 8 * rowBytes;
  int64_t rings = t.stages * loadBytes + box.filterStages * filterBytes;
  if (t.split > 1) { // sums of all ranks for the rows that a block finishes; its own take the place of the rings
    sums = t.warpsN * t.split * int64_t(divideCeil(groups, t.split)) * 8 * rowBytes;
    rings = std::max(rings, sums);
  }
  sharedBytes = rings + sums + (2 * (t.stages + box.filterStages) + t.warpsM) * 8;
  int64_t images = p.isFlat ? 1 : p.images, height = p.isFlat ? 1 : p.height,
          width = p.isFlat ? p.images * p.height * p.width : p.width;
  tilesM = divideCeil(images * int64_t(divideCeil(width, box.x)) * int64_t(divideCeil(height, box.y)), box.count);
  tilesN = divideCeil(p.filters, t.bn);
}

int64_t BoxGeometry::grid(const TileChoice &tile, int64_t count) const {
  if (tile.split > 1)
    return tilesM * tilesN * tile.split;
  int64_t blocks = std::min(tilesM * tilesN, count * tile.box.blocks);
  // A block that keeps its filter keeps to its columns.
  return blocks > tilesN ? blocks / tilesN * tilesN : blocks;
}

bool takesBoxes(const TileProblem &problem, CudaArch arch) {
  if (!problem.boxes || arch.major != 9 || arch.minor != 0)
    return false;
  const BoxProblem &p = *problem.boxes;
  TapPhases y(p.kernel[0], p.strides[0], p.dilations[0]), x(p.kernel[1], p.strides[1], p.dilations[1]);
  // A line of less than half a box is mostly zeros; a map for each phase.
  return 2 * p.channels >= mappedLine(p.bytes) && y.phases * x.phases <= 4;
}

/// Registers of a thread of `blocks` blocks a multiprocessor; its warps are spread over four schedulers, each with its own.
static int64_t registersOf(const TileChoice &t) {
  constexpr int64_t registers = 64 * 1024;
  int64_t warps = t.threads() / 32 * t.box.blocks;
  return std::min<int64_t>(255, registers / 4 / (divideCeil(warps, 4) * 32) / 8 * 8);
}

/// True where registers and shared memory let as many blocks as it wants share a multiprocessor.
static bool fitsMultiprocessor(const TileChoice &t, const BoxGeometry &g, int bytes) {
  constexpr int64_t sharedBytes = 228 * 1024, ownBytes = 1024;
  return t.threads() <= 1024 && t.threads() * t.box.blocks <= 2048 &&
         4 * g.groups + otherRegisters + filterRegisters(bytes) <= registersOf(t) &&
         t.box.blocks * (std::max<int64_t>(g.sharedBytes, t.reservedBytes) + ownBytes) <= sharedBytes;
}

bool isLegalBox(const TileChoice &t, const TileProblem &problem, CudaArch arch) {
  const BoxShape &box = t.box;
  bool hasShape = box.x >= 1 && box.y >= 1 && box.count >= 1 && box.x <= 256 && box.y <= 256 && box.count <= 32 &&
                  int64_t(box.x) * box.y <= 256 && t.bk == mappedLine(problem.bytes) && t.warpsK == 1 && t.warpsM >= 1 &&
                  t.warpsN >= 1 && t.warpsM <= 7 && t.warpsN <= 7 && t.bn == 64 * t.warpsN && t.bm == box.x * box.y * box.count;
  if (!takesBoxes(problem, arch) || !hasShape || box.blocks < 1 || box.blocks > 8)
    return false;
  const BoxProblem &p = *problem.boxes;
  // A cluster computes one tile, each rank some lines of its channels.
  int64_t lines = divideCeil(p.channels, mappedLine(p.bytes));
  if (t.split != 1 && (t.split < 1 || t.split > 8 || !llvm::isPowerOf2_32(uint32_t(t.split)) || t.split > lines ||
                       t.warpsM != 1 || box.keepsFilter))
    return false;
  bool isOneTap = p.kernel[0] * p.kernel[1] == 1;
  if ((box.hasBorder != 0 && box.hasBorder != 1) || (box.keepsFilter != 0 && box.keepsFilter != 1) ||
      (box.hasBorder && (isOneTap || box.x != 8)) || (p.isFlat && (box.y != 1 || box.count != 1)))
    return false;
  BoxGeometry g(t, p);
  if (t.stages < 2 || t.stages > 64 || box.filterStages < 2 - box.keepsFilter || box.filterStages > 256 ||
      (box.keepsFilter && box.filterStages < g.taps))
    return false;
  return g.pitch <= 256 && g.rows <= 256 && g.groups <= 32 && fitsMultiprocessor(t, g, p.bytes);
}

double movedTime(const BoxProblem &p) {
  double pixels = double(p.images) * p.height * p.width, results = p.bytes * pixels * p.filters;
  double inputs = p.bytes * std::min(double(p.images) * p.imageStride, pixels * p.strides[0] * p.strides[1] * p.channels);
  if (p.kernel[0] * p.kernel[1] == 1)
    inputs = std::min(inputs, p.bytes * pixels * p.channels);
  return (results * (p.hasInputs ? 2 : 1) + inputs) / 3.39e6;
}

/// Three times, of which the longest decides, and those near it add to it.
static double together(double a, double b, double c = 0) {
  constexpr double power = 2;
  return std::pow(std::pow(a, power) + std::pow(b, power) + std::pow(c, power), 1 / power);
}

/// The products of a tile, what its copies take from L2, and the thread that asks for them: it takes some time for each, and a
/// place of a ring is away for the latency of memory.
static double mainLoop(const TileChoice &t, const BoxProblem &p, const BoxGeometry &g, double blocks) {
  constexpr double cyclesPerMicrosecond = 1750, bytesPerMicrosecond = 97e3, asking = 0.2, latency = 0.75;
  double steps = double(g.taps) * 4 * std::max(g.groups * 4., t.box.count * 16 + g.groups * 2.) * t.warpsN;
  double product = (p.bytes == 4 ? 1.15 : 0.96) * steps / cyclesPerMicrosecond;
  double bytes = double(g.loads) * g.loadBytes + (t.box.keepsFilter ? 0. : double(g.taps) * g.filterBytes);
  double filters = t.box.keepsFilter ? 0 : double(g.taps) * std::max(asking, latency / t.box.filterStages);
  double boxes = double(g.loads) * std::max(asking, (0.59 + 0.024 * double(g.loadBytes) / 1000) / t.stages);
  double time = together(product, bytes / bytesPerMicrosecond, std::max(filters, boxes) / blocks);
  // Windows whose filters stay were up to a third slower.
  return t.box.keepsFilter && p.kernel[0] * p.kernel[1] > 1 ? 1.25 * time : time;
}

/// Estimated time. Fitted to 207 measured tiles of twenty convolutions of 8 and 64 images in 16 bits and tf32 (13 % rms): the
/// tiles of a multiprocessor, whose epilogues only other warps or another block hide, and what all blocks move.
static double timeOf(const TileChoice &t, const BoxProblem &p) {
  constexpr double bytesPerMicrosecond = 97e3;
  BoxGeometry g(t, p);
  int64_t blocks = g.grid(t), rounds = divideCeil(g.tilesM * g.tilesN * t.split, blocks);
  double shared = std::min<double>(t.box.blocks, divideCeil(blocks, multiprocessors));
  double vectors = t.bm / 16. / t.split, epilogue = vectors * (p.hasInputs ? 0.65 : 0.31) * (p.bytes == 4 ? 1.1 : 1);
  int64_t missing = 4 * g.groups + (p.hasInputs ? 43 : 4) - registersOf(t);
  if (missing > 0) // spilled
    epilogue += vectors * 0.09 * double(missing);
  double loop = mainLoop(t, p, g, shared), alone = loop + epilogue, tile = std::max(loop, alone / (shared * t.warpsM));
  double copied =
      (double(g.loads) * g.loadBytes + (t.box.keepsFilter ? 0. : double(g.taps) * g.filterBytes)) / bytesPerMicrosecond;
  double time = together(rounds * shared * tile + alone - tile, 0.67 * movedTime(p)) + 0.022 * rounds * shared * copied;
  if (t.box.keepsFilter)
    time += double(g.taps) * g.filterBytes / bytesPerMicrosecond;
  if (t.split > 1) // the exchange of sums
    time += 0.36 * llvm::Log2_32(uint32_t(t.split)) + 0.09 * double(g.groups) * t.warpsN;
  // The estimates of the other engines leave out the fixed part, and are low by a seventh.
  return (time + 0.71 - 1.5) / 1.15;
}

/// The widths and heights of a box for images of `width` x `height`: whole rows, or eight pixels of some with their border.
static std::vector<std::array<int, 2>> boxSizes(const BoxProblem &p, bool hasBorder) {
  std::vector<std::array<int, 2>> sizes;
  if (p.isFlat) {
    for (int pixels : {64, 96, 128, 192, 224, 256})
      sizes.push_back({pixels, 1});
    return sizes;
  }
  int64_t width = hasBorder ? 8 : std::min<int64_t>(p.width, 128);
  if (!hasBorder && p.width > 128)
    width = divideCeil(p.width, divideCeil(p.width, 128));
  int64_t last = 0;
  for (int64_t parts = 1; parts <= p.height; ++parts) {
    int64_t height = divideCeil(p.height, parts);
    if (width * height <= 256 && height != last)
      sizes.push_back({int(width), int(height)});
    last = height;
    if (width * height <= 32)
      break;
  }
  return sizes;
}

/// The deepest ring of boxes that leaves room for the other blocks.
static bool setStages(TileChoice &t, const TileProblem &problem, CudaArch arch) {
  for (t.stages = 8; t.stages >= 2; --t.stages)
    if (isLegalBox(t, problem, arch))
      return true;
  return false;
}

/// Both rings: a box with its border lasts for all taps, others for one.
static bool setRings(TileChoice &t, const TileProblem &problem, CudaArch arch) {
  for (int filters : {8, 6, 4, 3, 2}) {
    t.box.filterStages = filters;
    if (setStages(t, problem, arch) && (filters == 2 || t.stages >= (t.box.hasBorder ? 2 : std::min(filters, 4))))
      return true;
  }
  return false;
}

std::vector<TimedTile> boxTiles(const TileProblem &problem, CudaArch arch) {
  std::vector<TimedTile> tiles;
  if (!takesBoxes(problem, arch))
    return tiles;
  const BoxProblem &p = *problem.boxes;
  int64_t line = mappedLine(p.bytes), taps = p.kernel[0] * p.kernel[1], resident = taps * divideCeil(p.channels, line);
  auto add = [&](std::array<int, 2> size, int count, bool hasBorder, int sets, int warpsN, int blocks, int kept, int split) {
    TileChoice t{{}, size[0] * size[1] * count, 64 * warpsN, int(line), sets, warpsN, 1, Engine::Boxes};
    t.box = {size[0], size[1], count, hasBorder, kept, kept > 0, blocks};
    t.split = split;
    // Not all multiprocessors find neighbours for a cluster of four.
    if (split > 1 && BoxGeometry(t, p).grid(t) > (split >= 4 ? 120 : multiprocessors))
      return;
    if (kept > 0 ? setStages(t, problem, arch) : setRings(t, problem, arch))
      tiles.push_back({timeOf(t, p), t});
  };
  for (bool hasBorder : {false, true}) {
    if (hasBorder && taps == 1)
      continue;
    for (std::array<int, 2> size : boxSizes(p, hasBorder))
      for (int count : {1, 2, 3, 4}) {
        if (count > 1 && (p.isFlat || size[0] * size[1] * count > 256))
          continue;
        for (auto [sets, warpsN] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 4}})
          for (int blocks : {1, 2, 3, 4}) {
            if (64 * warpsN >= 2 * p.filters && warpsN > 1)
              continue;
            for (int split : {1, 2, 4, 8})
              if (split == 1 || (sets == 1 && blocks == 1))
                add(size, count, hasBorder, sets, warpsN, blocks, 0, split);
            if (resident * warpsN <= 18)
              add(size, count, hasBorder, sets, warpsN, blocks, int(resident), 1);
          }
      }
  }
  return tiles;
}

} // namespace ogc::codegen
