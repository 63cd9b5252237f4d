//===- VectorChain.cpp - stages that each need all of a vector ------------===//
#include "compiler/analysis/VectorChain.h"

#include "compiler/analysis/Combiner.h"
#include "compiler/dialect/kern/RowNorm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ogc {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isRealFloat(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

int64_t VectorStage::weightBytes() const {
  if (!isProduct)
    return 0;
  RankedTensorType type = tensorType(weights());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// True for a tensor whose elements are all one constant.
static bool isUniform(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_Constant());
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat();
}

/// `[images, pixels…, channels]` reduced to `[images, channels]`.
static std::optional<VectorStage> reductionStage(linalg::GenericOp op) {
  unsigned loops = op.getNumLoops();
  if (op.getNumReductionLoops() == 0 || op.getNumParallelLoops() != 2 || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      !isRealFloat(tensorType(op.getInputs()[0]).getElementType()) || !tensorType(op.getResult(0)).getElementType().isF32())
    return std::nullopt;
  MLIRContext *context = op.getContext();
  SmallVector<unsigned> order{0};
  for (unsigned loop = 2; loop < loops; ++loop)
    order.push_back(loop);
  order.push_back(1);
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  bool computesTensors = llvm::any_of(captured, [](Value value) { return isa<ShapedType>(value.getType()); }) ||
                         !op.getBody()->getOps<linalg::IndexOp>().empty();
  if (kinds[0] != utils::IteratorType::parallel || kinds[1] != utils::IteratorType::parallel || computesTensors ||
      op.getMatchingIndexingMap(op.getDpsInputOperand(0)) != AffineMap::getPermutationMap(order, context) ||
      op.getMatchingIndexingMap(op.getDpsInitOperand(0)) != AffineMap::getMultiDimIdentityMap(loops, context).getMajorSubMap(2) ||
      !findCombiner(op, 0) || !isUniform(op.getDpsInits()[0]))
    return std::nullopt;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  VectorStage stage{op, /*isProduct=*/false, ranges[0], ranges[1], 1};
  for (int64_t range : ArrayRef(ranges).drop_front(2))
    stage.depth *= range;
  return stage;
}

std::optional<VectorStage> vectorStageOf(Operation *op) {
  std::optional<VectorStage> stage;
  if (auto conv = dyn_cast<kern::ConvOp>(op)) {
    ArrayRef<int64_t> in = tensorType(conv.getInput()).getShape(), out = tensorType(conv.getResult()).getShape();
    auto isOne = [](int64_t extent) { return extent == 1; };
    if (op->getNumOperands() == 2 && llvm::all_of(conv.getKernel(), isOne) && llvm::all_of(in.slice(1, 2), isOne) &&
        llvm::all_of(out.slice(1, 2), isOne))
      stage = VectorStage{op, /*isProduct=*/true, in[0], out[3], in[3]};
  } else if (auto matmul = dyn_cast<kern::MatmulOp>(op)) {
    ArrayRef<int64_t> in = tensorType(matmul.getLhs()).getShape();
    if (matmul.getPacked() && !kern::rowNormOf(matmul))
      stage = VectorStage{op, /*isProduct=*/true, in[0] * in[1], tensorType(matmul.getResult()).getDimSize(2), in[2]};
  } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    stage = reductionStage(generic);
  }
  return stage && stage->images > 0 && stage->length > 0 && stage->depth > 0 ? stage : std::nullopt;
}

namespace {

class ChainFinder {
public:
  FailureOr<VectorChain> run(Block &body) {
    for (Operation &op : body.without_terminator())
      if (!visit(&op))
        return failure();
    for (auto [number, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
      if (stagesOf(value).empty())
        return failure();
      chain.results.push_back({value, llvm::to_vector(stagesOf(value)), static_cast<unsigned>(number)});
    }
    if (chain.stages.empty() || (chain.stages.size() == 1 && chain.stages.front().isProduct))
      return failure(); // one product by itself has a schedule of its own
    bool isUneven =
        llvm::any_of(chain.stages, [&](const VectorStage &stage) { return stage.length != chain.stages.front().length; });
    if (!chain.hasProduct() && isUneven)
      return failure();
    return std::move(chain);
  }

private:
  ArrayRef<unsigned> stagesOf(Value value) {
    auto it = derived.find(value);
    return it == derived.end() ? ArrayRef<unsigned>() : ArrayRef<unsigned>(it->second);
  }

  bool visit(Operation *op) {
    if (std::optional<VectorStage> stage = vectorStageOf(op))
      return addStage(*stage);
    if (kern::isAnchor(op))
      return false;
    SmallVector<unsigned> stages;
    for (Value operand : op->getOperands())
      llvm::append_range(stages, stagesOf(operand));
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    if (llvm::any_of(captured, [&](Value value) { return !stagesOf(value).empty(); }))
      return false;
    if (stages.empty())
      return true;
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) && !isAlong(op))
      return false;
    llvm::sort(stages);
    stages.erase(llvm::unique(stages), stages.end());
    for (Value result : op->getResults())
      derived[result] = stages;
    return true;
  }

  /// True for element-wise operations that read what stages computed at the element that they compute.
  bool isAlong(Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return generic && generic.getNumReductionLoops() == 0 && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
             bool follows = generic.isDpsInit(&operand) || !stagesOf(operand.get()).empty();
             return !follows || generic.getMatchingIndexingMap(&operand).isIdentity();
           });
  }

  bool addStage(const VectorStage &stage) {
    if (chain.stages.empty())
      chain.images = stage.images;
    Value source = stage.input();
    while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(source.getDefiningOp()) && !stagesOf(source).empty())
      source = source.getDefiningOp()->getOperand(0);
    ArrayRef<unsigned> stages = stagesOf(source);
    bool isOutside = stages.empty();
    if (stage.images != chain.images || (!stage.isProduct && !isa<BlockArgument>(source)) ||
        (stage.isProduct && !isa<BlockArgument>(stage.weights())))
      return false;
    int vector = -1;
    if (!isOutside) {
      auto known = llvm::find_if(chain.vectors, [&](const ChainValue &value) { return value.value == source; });
      vector = static_cast<int>(known - chain.vectors.begin());
      if (known == chain.vectors.end())
        chain.vectors.push_back({source, llvm::to_vector(stages)});
    }
    chain.vectorOf.push_back(vector);
    derived[stage.op->getResult(0)] = {static_cast<unsigned>(chain.stages.size())};
    chain.stages.push_back(stage);
    return true;
  }

  VectorChain chain;
  DenseMap<Value, SmallVector<unsigned>> derived; ///< values computed from stages, and from which
};

} // namespace

FailureOr<VectorChain> VectorChain::analyze(Block &body) { return ChainFinder().run(body); }

} // namespace ogc
