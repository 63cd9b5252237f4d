//===- GrowVectorChains.cpp - small per-image vectors, stage by stage -----===//
//
// Squeeze and excitation, pooled heads: sums over pixels and products with one row, each too little work for a kernel. Where one
// product's row is computed, element by element, from the results of other such stages, they become one group.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/InterleavedParts.h"
#include "compiler/analysis/VectorChain.h"
#include "compiler/passes/fuse/Grouping.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ogc::fuse {

namespace {

/// A chain is computed by one cluster of blocks an image, which reads all weights by itself. With more images than clusters run
/// side by side (132 multiprocessors, clusters of 8), products of many rows read them less often.
constexpr int64_t mostImages = 16;
/// Weights that the blocks of a cluster hold, about; more are streamed faster by the whole machine.
constexpr int64_t mostWeightBytes = int64_t(2) << 20;
/// Weights of one product. A head of 440 rows and 1000 columns in a chain took 6.2 us on an H200, one of 768 rows 30 us (its
/// share of the weights does not fit in shared memory); with a kernel of its own such a product takes 1.5 to 3 us, the mean in
/// front of it 1. The largest of mobilenet_v3_large, 960 by 240, gains.
constexpr int64_t mostProductWeights = int64_t(1) << 18;
/// Elements of all vectors that stages read and give, and of those that products give: each block has room for them as f32, and
/// the latter for a part of each block of the cluster.
constexpr int64_t mostElements = 10240, mostProductElements = 4096;

/// What the members of a chain take of these limits.
struct Size {
  int64_t weightBytes = 0, elements = 0, productElements = 0;

  void add(const VectorStage &stage) {
    weightBytes += stage.weightBytes();
    elements += stage.length + (stage.isProduct ? stage.depth : 0);
    productElements += stage.isProduct ? stage.length : 0;
  }
  bool fits() const {
    return weightBytes <= mostWeightBytes && elements <= mostElements && productElements <= mostProductElements;
  }
};

/// What a product's row is computed from.
struct Upstream {
  llvm::SetVector<Operation *> ops; ///< stages and element-wise operations between
  bool hasStage = false;
};

class ChainGrower {
public:
  explicit ChainGrower(Grouping &grouping) : grouping(grouping) {}

  void run(bool epilogues) {
    for (Operation *op : grouping.getOps())
      if (std::optional<VectorStage> stage = freeStage(op); stage && stage->isProduct)
        join(*stage);
    for (auto &[id, size] : epilogues ? chains : llvm::MapVector<int, Size>())
      growEpilogue(grouping, id);
  }

private:
  /// A product whose columns are read in parts has elements of two columns to compute with: no vector.
  static std::optional<VectorStage> stageOf(Operation *op) {
    std::optional<VectorStage> stage = vectorStageOf(op);
    return stage && stage->isProduct && !interleavedParts(op->getResult(0)).parts.empty() ? std::nullopt : stage;
  }

  /// The stage that `op` may become in a chain.
  std::optional<VectorStage> freeStage(Operation *op) {
    if (!grouping.isFree(op) || grouping.info(op).isConstant)
      return std::nullopt;
    std::optional<VectorStage> stage = stageOf(op);
    bool fits = stage && stage->images <= mostImages && (!stage->isProduct || stage->length * stage->depth <= mostProductWeights);
    return fits ? stage : std::nullopt;
  }

  /// True for members of a chain and for what could become one.
  bool isAvailable(Operation *op) {
    return chains.contains(grouping.info(op).group) || (grouping.isFree(op) && !grouping.info(op).isConstant);
  }

  /// Collects what `value` is computed from; true when a stage is among it.
  bool collect(Value value, const VectorStage &reader, Upstream &upstream) {
    Value source = stripReshapes(value);
    Operation *def = source.getDefiningOp();
    if (!def || !isAvailable(def) || elementsOf(source) != reader.images * reader.depth)
      return false;
    if (upstream.ops.contains(def))
      return true;
    if (std::optional<VectorStage> stage = stageOf(def)) {
      if (stage->images != reader.images)
        return false;
      upstream.ops.insert(def);
      return upstream.hasStage = true;
    }
    auto generic = dyn_cast<linalg::GenericOp>(def);
    if (!generic || !isElementwise(generic))
      return false;
    bool isDerived = false;
    for (Value input : grouping.inputsOf(def))
      isDerived |= collect(input, reader, upstream);
    if (isDerived)
      upstream.ops.insert(def);
    return isDerived;
  }

  void join(const VectorStage &product) {
    Upstream upstream;
    if (grouping.absorbedView(product.op->getOpOperand(0)) || !collect(product.input(), product, upstream))
      return;
    upstream.ops.insert(product.op);
    SmallVector<Operation *> added;
    int id = -1;
    Size size;
    for (Operation *op : upstream.ops) {
      int group = grouping.info(op).group;
      if (group >= 0 && id >= 0 && group != id)
        return; // would join two chains
      if (group >= 0) {
        id = group;
        continue;
      }
      added.push_back(op);
    }
    if (id >= 0)
      size = chains[id];
    for (Operation *op : added)
      if (std::optional<VectorStage> stage = vectorStageOf(op))
        size.add(*stage);
    if (!size.fits())
      return grouping.noteMiss(product.op, -1, "into a vector chain: weights or vectors are too large for one cluster");
    llvm::sort(added, [&](Operation *a, Operation *b) { return grouping.info(a).index < grouping.info(b).index; });
    for (Operation *op : added) {
      if (id < 0)
        id = grouping.addGroup(GroupKind::Anchor, op);
      else if (grouping.wouldFormCycle(id, op) || !readsAlong(id, op))
        return grouping.noteMiss(op, id, "into a vector chain: depends on it on a way outside, or reads it at other positions");
      else
        grouping.addToGroup(id, op);
      if (std::optional<VectorStage> stage = vectorStageOf(op))
        chains[id].add(*stage);
    }
  }

  bool readsAlong(int id, Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return vectorStageOf(op) || (generic && !whyNotEpilogue(grouping, id, generic));
  }

  Grouping &grouping;
  llvm::MapVector<int, Size> chains; ///< the groups that are chains
};

} // namespace

void growVectorChains(Grouping &grouping, bool epilogues) { ChainGrower(grouping).run(epilogues); }

} // namespace ogc::fuse
