//===- MergeMatmuls.cpp - products of one value with several weights ------===//
#include "compiler/dialect/kern/RowNorm.h"
#include "compiler/passes/fuse/ConstantOps.h"
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace ogc {

#define GEN_PASS_DEF_MERGEMATMULS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using fuse::mapOf;
using fuse::typeOf;

int64_t lastExtent(Value value) { return typeOf(value).getShape().back(); }

/// The next operation of each branch, when they can be done as one over the joined last dimension: element-wise operations, or
/// reshapes that leave the last dimension alone.
struct Layer {
  SmallVector<linalg::GenericOp> ops; ///< one a branch; empty for reshapes
  SmallVector<Operation *> reshapes;  ///< one a branch; empty for element-wise operations
  SmallVector<int64_t> joinedDims;    ///< of each input the dimension to concatenate; -1: the same value in all branches
  unsigned position = 0;              ///< of the input that is the branch's value

  SmallVector<Operation *> all() const { return ops.empty() ? reshapes : SmallVector<Operation *>(ops.begin(), ops.end()); }
};

/// The groups of a reshape when its last dimension is a group by itself; else null.
ArrayAttr groupsBesideLast(Operation *op) {
  if (!fuse::isReshapeOp(op) || typeOf(op->getOperand(0)).getRank() == 0 || typeOf(op->getResult(0)).getRank() == 0 ||
      lastExtent(op->getOperand(0)) != lastExtent(op->getResult(0)))
    return {};
  auto groups = op->getAttrOfType<ArrayAttr>("reassociation");
  return groups && !groups.empty() && cast<ArrayAttr>(groups.getValue().back()).size() == 1 ? groups : ArrayAttr();
}

class Merger {
public:
  explicit Merger(func::FuncOp function) : block(function.getBody().front()), builder(function.getContext()), constants(block) {}

  void run() {
    // Products that could be one: equal left operand, panel width and rounding.
    using Key = std::tuple<Value, int64_t, Attribute>;
    llvm::MapVector<Key, SmallVector<kern::MatmulOp>> candidates;
    for (auto matmul : block.getOps<kern::MatmulOp>())
      if (matmul.getPacked() && !kern::rowNormOf(matmul) && constants.contains(matmul.getRhs()) &&
          !constants.contains(matmul.getLhs()) && lastExtent(matmul.getResult()) % lastExtent(matmul.getRhs()) == 0)
        candidates[{matmul.getLhs(), lastExtent(matmul.getRhs()), matmul.getMathAttr()}].push_back(matmul);
    for (auto &[key, matmuls] : candidates)
      if (matmuls.size() > 1 && !tryMerge(matmuls))
        mergeAllButOne(matmuls);
  }

private:
  /// What products have in common behind them, and the values that become slices.
  struct Plan {
    SmallVector<Layer> layers;
    SmallVector<Value> branches; ///< one a product
  };

  /// Nothing where slices would have to be copied.
  std::optional<Plan> planMerge(ArrayRef<kern::MatmulOp> matmuls) {
    Plan plan;
    for (kern::MatmulOp matmul : matmuls)
      plan.branches.push_back(matmul.getResult());
    while (std::optional<Layer> layer = nextLayer(plan.branches)) {
      plan.branches.clear();
      for (Operation *op : layer->all())
        plan.branches.push_back(op->getResult(0));
      plan.layers.push_back(std::move(*layer));
    }
    bool areSlices = llvm::all_of(plan.branches, [&](Value branch) { return mayBeSlice(branch); });
    return areSlices ? std::optional(std::move(plan)) : std::nullopt;
  }

  bool tryMerge(ArrayRef<kern::MatmulOp> matmuls) {
    std::optional<Plan> plan = planMerge(matmuls);
    if (plan)
      merge(matmuls, plan->layers, plan->branches);
    return plan.has_value();
  }

  /// Merges all products but one, those that have the most in common: where one of Q, K and V has no bias, the other two.
  void mergeAllButOne(ArrayRef<kern::MatmulOp> matmuls) {
    std::optional<Plan> best;
    SmallVector<kern::MatmulOp> merged;
    for (size_t left = 0; left < matmuls.size() && matmuls.size() > 2; ++left) {
      SmallVector<kern::MatmulOp> rest(matmuls.take_front(left));
      llvm::append_range(rest, matmuls.drop_front(left + 1));
      std::optional<Plan> plan = planMerge(rest);
      if (plan && (!best || plan->layers.size() > best->layers.size())) {
        best = std::move(plan);
        merged = rest;
      }
    }
    if (best)
      merge(merged, best->layers, best->branches);
  }

  /// A slice is read in place by anchors and pulled by generics, but a return would copy it, and an element-wise operation that
  /// was part of the product's region would be left outside of it, unless an anchor takes it in.
  bool mayBeSlice(Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp>(user))
        return false;
      auto generic = dyn_cast<linalg::GenericOp>(user);
      if (generic && fuse::isElementwise(generic) && mapOf(use).isIdentity() && !fuse::servesPulledOperand(generic))
        return false;
      if (isViewOp(user) && !mayBeSlice(user->getResult(0)))
        return false;
    }
    return true;
  }

  /// The reshapes that alone read `branches`, when they do the same to all dimensions but the last.
  std::optional<Layer> nextReshapes(ArrayRef<Value> branches) {
    Layer layer;
    for (Value branch : branches) {
      Operation *reshape = branch.hasOneUse() ? *branch.user_begin() : nullptr;
      ArrayAttr groups = reshape ? groupsBesideLast(reshape) : ArrayAttr();
      if (!groups)
        return std::nullopt;
      auto shape = [](Operation *op) { return typeOf(op->getResult(0)).getShape().drop_back(); };
      if (!layer.reshapes.empty() &&
          (reshape->getName() != layer.reshapes.front()->getName() || shape(reshape) != shape(layer.reshapes.front())))
        return std::nullopt;
      layer.reshapes.push_back(reshape);
    }
    return layer;
  }

  /// The operations that read `branches`, when they differ only in constants along the last dimension.
  std::optional<Layer> nextLayer(ArrayRef<Value> branches) {
    if (std::optional<Layer> reshapes = nextReshapes(branches))
      return reshapes;
    Layer layer;
    for (Value branch : branches) {
      auto generic = branch.hasOneUse() ? dyn_cast<linalg::GenericOp>(*branch.user_begin()) : linalg::GenericOp();
      OpOperand *use = branch.hasOneUse() ? &*branch.use_begin() : nullptr;
      if (!generic || !fuse::isElementwise(generic) || generic.hasIndexSemantics() || generic->getNumResults() != 1 ||
          use->getOwner() != generic || !generic.isDpsInput(use) || !mapOf(*use).isIdentity() ||
          !isa_and_nonnull<tensor::EmptyOp>(generic.getDpsInits()[0].getDefiningOp()))
        return std::nullopt;
      if (!layer.ops.empty() && !isAlike(layer.ops.front(), generic))
        return std::nullopt;
      if (!layer.ops.empty() && use->getOperandNumber() != layer.position)
        return std::nullopt;
      layer.position = use->getOperandNumber();
      layer.ops.push_back(generic);
    }
    for (int64_t input = 0; input < layer.ops.front().getNumDpsInputs(); ++input) {
      std::optional<int64_t> dim = joinedDim(layer, input);
      if (!dim)
        return std::nullopt;
      layer.joinedDims.push_back(*dim);
    }
    return layer;
  }

  static bool isAlike(linalg::GenericOp a, linalg::GenericOp b) {
    return a.getIndexingMaps() == b.getIndexingMaps() && a->getNumOperands() == b->getNumOperands() &&
           typeOf(a.getResult(0)).getElementType() == typeOf(b.getResult(0)).getElementType() &&
           OperationEquivalence::isRegionEquivalentTo(&a.getRegion(), &b.getRegion(), OperationEquivalence::IgnoreLocations);
  }

  /// Along which of its dimensions the values at `input` are concatenated; none when that is not possible.
  std::optional<int64_t> joinedDim(Layer &layer, int64_t input) {
    OpOperand &first = *layer.ops.front().getDpsInputOperand(input);
    AffineMap map = mapOf(first);
    unsigned last = map.getNumDims() - 1;
    if (input == static_cast<int64_t>(layer.position))
      return last;
    if (!map.isFunctionOfDim(last)) {
      bool isShared = llvm::all_of(layer.ops, [&](linalg::GenericOp op) { return op.getDpsInputs()[input] == first.get(); });
      return isShared ? std::optional<int64_t>(-1) : std::nullopt;
    }
    std::optional<unsigned> dim = map.getResultPosition(getAffineDimExpr(last, map.getContext()));
    bool isOther = dim && llvm::any_of(llvm::enumerate(map.getResults()),
                                       [&](auto entry) { return entry.index() != *dim && entry.value().isFunctionOfDim(last); });
    if (!dim || isOther ||
        !llvm::all_of(layer.ops, [&](linalg::GenericOp op) { return constants.contains(op.getDpsInputs()[input]); }))
      return std::nullopt;
    return *dim;
  }

  Value joinConstants(Location loc, ArrayRef<Value> values, int64_t dim) {
    SmallVector<Value> hoisted;
    for (Value value : values)
      hoisted.push_back(fuse::ConstantOps::hoist(builder, value));
    return tensor::ConcatOp::create(builder, loc, dim, hoisted);
  }

  void merge(ArrayRef<kern::MatmulOp> matmuls, MutableArrayRef<Layer> layers, ArrayRef<Value> branches) {
    builder.setInsertionPoint(matmuls.front());
    SmallVector<Location> locs;
    SmallVector<Value> weights;
    int64_t columns = 0;
    for (kern::MatmulOp matmul : matmuls) {
      locs.push_back(matmul.getLoc());
      weights.push_back(matmul.getRhs());
      columns += lastExtent(matmul.getResult());
    }
    Location loc = builder.getFusedLoc(locs);
    auto joinedType = [&](Value like) {
      SmallVector<int64_t> shape(typeOf(like).getShape());
      shape.back() = columns;
      return RankedTensorType::get(shape, typeOf(like).getElementType());
    };
    kern::MatmulOp first = matmuls.front();
    Value joined = kern::MatmulOp::create(builder, loc, joinedType(first.getResult()), first.getLhs(),
                                          joinConstants(loc, weights, 0), false, true, first.getMath());
    for (Layer &layer : layers)
      joined = mergeLayer(layer, joined, joinedType(layer.all().front()->getResult(0)));

    int64_t start = 0;
    for (Value branch : branches) {
      SmallVector<OpFoldResult> offsets(typeOf(branch).getRank(), builder.getIndexAttr(0)), sizes,
          strides(typeOf(branch).getRank(), builder.getIndexAttr(1));
      for (int64_t extent : typeOf(branch).getShape())
        sizes.push_back(builder.getIndexAttr(extent));
      offsets.back() = builder.getIndexAttr(start);
      start += lastExtent(branch);
      branch.replaceAllUsesWith(tensor::ExtractSliceOp::create(builder, branch.getLoc(), joined, offsets, sizes, strides));
    }
    for (Layer &layer : llvm::reverse(layers))
      for (Operation *op : layer.all())
        op->erase();
    for (kern::MatmulOp matmul : matmuls)
      matmul.erase();
  }

  Value mergeLayer(Layer &layer, Value joined, RankedTensorType type) {
    SmallVector<Operation *> all = layer.all();
    Operation *earliest = *llvm::min_element(all, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    builder.setInsertionPoint(earliest);
    if (layer.ops.empty()) {
      SmallVector<ReassociationIndices> groups;
      for (Attribute group : groupsBesideLast(earliest))
        groups.push_back(
            llvm::map_to_vector<2>(cast<ArrayAttr>(group), [](Attribute i) { return cast<IntegerAttr>(i).getInt(); }));
      if (isa<tensor::CollapseShapeOp>(earliest))
        return tensor::CollapseShapeOp::create(builder, earliest->getLoc(), type, joined, groups);
      return tensor::ExpandShapeOp::create(builder, earliest->getLoc(), type, joined, groups);
    }
    auto first = cast<linalg::GenericOp>(earliest);
    SmallVector<Location> locs;
    for (linalg::GenericOp op : layer.ops)
      locs.push_back(op.getLoc());
    Location loc = builder.getFusedLoc(locs);
    IRMapping mapping;
    for (auto [input, dim] : llvm::enumerate(layer.joinedDims)) {
      Value value = first.getDpsInputs()[input];
      if (input == layer.position) {
        mapping.map(value, joined);
      } else if (dim >= 0) {
        SmallVector<Value> values;
        for (linalg::GenericOp op : layer.ops)
          values.push_back(op.getDpsInputs()[input]);
        mapping.map(value, joinConstants(loc, values, dim));
      }
    }
    mapping.map(first.getDpsInits()[0],
                tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType()).getResult());
    Operation *copy = builder.clone(*first, mapping);
    copy->setLoc(loc);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }

  Block &block;
  OpBuilder builder;
  fuse::ConstantOps constants;
};

struct MergeMatmuls : impl::MergeMatmulsBase<MergeMatmuls> {
  void runOnOperation() override {
    if (!getOperation().isDeclaration() && getOperation().getBody().hasOneBlock())
      Merger(getOperation()).run();
  }
};

} // namespace
} // namespace ogc
