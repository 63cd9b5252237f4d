//===- AnchorChoice.h - tiles of the hand-written templates ---------------===//
//
// The rules of device/README.md, from shapes and the architecture alone, and what a tuner should try besides.
//
#ifndef OGC_CODEGEN_CUDA_ANCHORCHOICE_H
#define OGC_CODEGEN_CUDA_ANCHORCHOICE_H

#include "compiler/codegen/cuda/Schedules.h"
#include "compiler/codegen/cuda/Tuning.h"
#include <array>

namespace ogc::codegen {

/// A convolution in boxes of output pixels (BoxTile.h).
struct BoxProblem {
  int64_t images = 1, height = 1, width = 1; ///< of the result
  int64_t inputHeight = 1, inputWidth = 1;
  int64_t channels = 1, filters = 1;
  std::array<int64_t, 2> kernel = {1, 1}, strides = {1, 1}, dilations = {1, 1};
  std::array<int64_t, 2> pads = {0, 0}; ///< top and left
  /// Distances of images, rows and pixels of the input, in elements. Pixels may overlap: the taps of a row of the filter that lie
  /// side by side in memory are the channels of one tap.
  int64_t imageStride = 0, rowStride = 0, pixelStride = 0;
  int bytes = 2;          ///< of an element
  bool isFlat = false;    ///< one tap, and the pixels of all images are rows of one matrix
  bool hasInputs = false; ///< the epilogue reads as many elements as it writes
};

/// A product of `batch` times M x N x K.
struct TileProblem {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int bytes = 2;                                  ///< of an element
  bool transposed = false;                        ///< B is stored [N, K]
  bool isNarrow = false;                          ///< A is loaded in pieces below four bytes
  bool isScaled = false;                          ///< A is multiplied by factors that lie in shared memory
  bool isMappable = false;                        ///< tensor maps can describe A and B
  int rowSums = 0;                                ///< sums of each row of A that are taken for its norm
  int rowBytes = 0;                               ///< what the epilogue keeps of a row
  int wholeColumns = 1;                           ///< columns that a tile has together
  std::optional<BoxProblem> boxes = std::nullopt; ///< of a convolution whose input tensor maps can describe
};

/// What multiplies and who loads; numbers of the templates' `Engine`.
enum class Engine {
  Warps = 0,      ///< mma.sync, cp.async by all threads
  Warpgroups = 1, ///< wgmma, which exists on sm_90a alone
  TensorMaps = 2, ///< wgmma, copies through tensor maps by a warp of its own
  Boxes = 3,      ///< as TensorMaps, for convolutions of many pixels: blocks that stay
};

/// What Engine::Boxes has besides the numbers of every tile. A tile is `count` boxes of x by y pixels.
struct BoxShape {
  int x = 8, y = 1, count = 1;
  int hasBorder = 0;    ///< a box is copied with what the taps around need, not once a tap
  int filterStages = 2; ///< places for 64 channels of a tap each
  int keepsFilter = 0;  ///< the filter stays in shared memory
  int blocks = 1;       ///< of a multiprocessor
};

/// `ogc::gemm` and `ogc::conv`.
struct TileChoice : LaunchPolicy {
  int bm = 64, bn = 64, bk = 64;          ///< block tile
  int warpsM = 2, warpsN = 2, warpsK = 1; ///< warpgroups but with Engine::Warps
  Engine engine = Engine::Warps;
  int stages = 2, split = 1;
  BoxShape box = {}; ///< of Engine::Boxes, whose warpsM are sets of warpgroups that take turns

  bool hasFeeder() const { return engine == Engine::TensorMaps || engine == Engine::Boxes; }
  int threads() const {
    int warps = warpsM * warpsN * warpsK * (engine == Engine::Warps ? 1 : 4);
    return 32 * (hasFeeder() ? warps + 1 : warps);
  }
  int sharedBytes(const TileProblem &problem) const;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("bm", bm), visit("bn", bn), visit("bk", bk), visit("wm", warpsM), visit("wn", warpsN), visit("wk", warpsK);
    visit("wide", engine), visit("stages", stages), visit("split", split);
    if (engine == Engine::Boxes) {
      visit("bx", box.x), visit("by", box.y), visit("boxes", box.count), visit("border", box.hasBorder);
      visit("filters", box.filterStages), visit("keep", box.keepsFilter), visit("blocks", box.blocks);
    }
    visitPolicy(visit);
  }
};

/// All tiles that the templates can run, by estimated time; never empty.
std::vector<TileChoice> rankTiles(const TileProblem &problem, CudaArch arch);
/// The rule's tile, unless the tuning knows a better one for `name`, which is the problem in words.
TileChoice chooseTile(const TileProblem &problem, CudaArch arch, std::string name, Tuning &tuning);

/// `ogc::gemv`.
struct GemvChoice : LaunchPolicy {
  int bn = 64, warps = 32, depth = 8, split = 1; ///< depth: loads that a lane has in flight

  int64_t sharedBytes(const TileProblem &problem) const;
  /// Blocks that shall find room on a multiprocessor: bounds the registers of a thread.
  int residentBlocks(const TileProblem &problem) const;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("bn", bn), visit("warps", warps), visit("depth", depth), visit("split", split);
    visitPolicy(visit);
  }
};

/// True for products of few rows, which stream the matrix: with 16-bit elements tensor cores are faster from three rows on.
/// `rows` are those that meet one matrix.
bool takesGemv(const TileProblem &problem, int64_t rows, CudaArch arch);
/// `vecB` elements of B are one load; `panel` columns of a row lie side by side.
GemvChoice chooseGemv(const TileProblem &problem, int vecB, int64_t panel, CudaArch arch, std::string name, Tuning &tuning);

/// `rows` query rows (queries times heads of a group) for each of `groups` key heads; `keys` keys.
struct AttentionProblem {
  int64_t rows = 1, groups = 1, keys = 1, d = 64, dv = 64;
  int bytes = 2;
  int64_t heads = 1;       ///< query heads of a group
  bool isMappable = false; ///< tensor maps can describe Q, K and V
  bool hasBias = false, isCausal = false, hasPositiveScale = true;
};

/// `ogc::attention`.
struct AttentionChoice : LaunchPolicy {
  int warpsQ = 1, warpsT = 4, bt = 64, stages = 2, split = 1;

  int blockRows() const { return 16 * warpsQ; }
  int threads() const { return 32 * warpsQ * warpsT; }
  int64_t sharedBytes(const AttentionProblem &problem) const;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("wq", warpsQ), visit("wt", warpsT), visit("bt", bt), visit("stages", stages), visit("split", split);
    visitPolicy(visit);
  }
};

/// Nothing when no form has enough shared memory.
std::optional<AttentionChoice> chooseAttention(const AttentionProblem &problem, CudaArch arch, std::string name, Tuning &tuning);

/// `ogc::mappedAttention`.
struct MappedAttentionChoice : LaunchPolicy {
  int warpsQ = 1, warpsT = 4;

  int blockRows() const { return 16 * warpsQ; }
  int threads() const { return 32 * warpsQ * warpsT; }
  int64_t sharedBytes(const AttentionProblem &problem) const;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("wq", warpsQ), visit("wt", warpsT);
    visitPolicy(visit);
  }
};

/// Nothing where tensor maps do not exist or cannot describe the operands, or the keys do not fit into shared memory.
std::optional<MappedAttentionChoice> chooseMappedAttention(const AttentionProblem &problem, CudaArch arch, std::string name,
                                                           Tuning &tuning);

/// `ogc::wideAttention`.
struct WideAttentionChoice : LaunchPolicy {
  int groupsQ = 2, groupsT = 1, bt = 128, stages = 2, split = 1; ///< groups of four warps

  int blockRows() const { return 64 * groupsQ; }
  int threads() const { return 128 * groupsQ * groupsT; }
  int64_t sharedBytes(const AttentionProblem &problem) const;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("wq", groupsQ), visit("wt", groupsT), visit("bt", bt), visit("stages", stages), visit("split", split);
    visitPolicy(visit);
  }
};

/// True where wide attention is the faster form for keys that mapped attention takes, too.
bool prefersWideAttention(const AttentionProblem &problem);

/// Nothing where the machine has no products of four warps, tensor maps cannot describe the operands, or heads are too large.
std::optional<WideAttentionChoice> chooseWideAttention(const AttentionProblem &problem, CudaArch arch, std::string name,
                                                       Tuning &tuning);

/// `ogc::decode`.
struct DecodeChoice : LaunchPolicy {
  int warps = 8, split = 1;

  /// `newRows` of the caches are computed in the kernel, by warps of their own.
  int threads(const AttentionProblem &problem, int64_t newRows) const;
  int64_t sharedBytes(const AttentionProblem &problem, int64_t newRows) const;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("warps", warps), visit("split", split);
    visitPolicy(visit);
  }
};

/// True for few query rows with heads of 8, 16, … 256 elements: cheaper by lanes that hold keys than by tiles of 16 rows.
bool takesDecode(const AttentionProblem &problem, int64_t newRows, CudaArch arch);
DecodeChoice chooseDecode(const AttentionProblem &problem, int64_t newRows, CudaArch arch, std::string name, Tuning &tuning);

/// `ogc::depthwise`.
struct DepthwiseChoice : LaunchPolicy {
  int threads = 128;
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("threads", threads);
    visitPolicy(visit);
  }
};

DepthwiseChoice chooseDepthwise(std::string name, Tuning &tuning);

/// Shared memory that a block may have, in bytes.
int64_t mostSharedBytes(CudaArch arch);

} // namespace ogc::codegen

#endif
