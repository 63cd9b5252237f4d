//===- LayoutGeneric.cpp - generics in the layout of their operands -------===//
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/LayoutPropagator.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace ogc::fuse {

static Permutation identity(size_t rank) { return llvm::to_vector(llvm::seq<int64_t>(0, rank)); }

/// A map that gives the dimensions of a value, as one that gives those of its source.
static AffineMap toSource(AffineMap map, ArrayRef<int64_t> permutation) {
  SmallVector<AffineExpr> exprs(map.getNumResults());
  for (auto [i, target] : llvm::enumerate(permutation))
    exprs[target] = map.getResult(i);
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

/// Results are written at plain loop indices into tensors whose first contents do not matter or are the same everywhere.
bool LayoutPropagator::canWriteLayout(linalg::GenericOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (!mapOf(init).isProjectedPermutation() || mapOf(init) != mapOf(op.getDpsInitsMutable()[0]))
      return false;
    Operation *def = init.get().getDefiningOp();
    if (!isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(def) ||
        (isa<linalg::FillOp>(def) && !isa_and_nonnull<tensor::EmptyOp>(def->getOperand(1).getDefiningOp())))
      return false;
  }
  return true;
}

/// The layout for the results: that of the operands that run along with them, the bigger ones deciding.
Permutation LayoutPropagator::chooseLayout(linalg::GenericOp op) {
  AffineMap outMap = mapOf(op.getDpsInitsMutable()[0]);
  Permutation none = identity(outMap.getNumResults());
  if (!canWriteLayout(op))
    return none;
  SmallVector<std::pair<Permutation, int64_t>> votes;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto type = dyn_cast<RankedTensorType>(input->get().getType());
    AffineMap map = mapOf(*input);
    if (!type || isConstant(input->get()) || map.getNumResults() != outMap.getNumResults())
      continue;
    bool runsAlong = true;
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      runsAlong &= isa<AffineConstantExpr>(map.getResult(i)) || map.getResult(i).isFunctionOfDim(outMap.getDimPosition(i));
    if (!runsAlong)
      continue;
    Layouted layout = get(input->get());
    auto *vote = llvm::find_if(votes, [&](auto &entry) { return entry.first == layout.permutation; });
    if (vote == votes.end())
      votes.push_back({layout.permutation, 0}), vote = &votes.back();
    vote->second += type.getNumElements();
  }
  // A tie is decided for the moved layout: the transposition may meet its inverse further down.
  auto *best = llvm::max_element(votes, [](auto &a, auto &b) {
    return std::pair(a.second, !isIdentityPermutation(a.first)) < std::pair(b.second, !isIdentityPermutation(b.first));
  });
  return best == votes.end() ? none : best->first;
}

linalg::GenericOp LayoutPropagator::createGeneric(linalg::GenericOp op, ValueRange inputs, SmallVector<AffineMap> maps,
                                                  ArrayRef<int64_t> permutation) {
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = mapOf(init);
    Value value = init.get();
    if (isIdentityPermutation(permutation)) {
      value = materialize(value);
    } else {
      SmallVector<int64_t> inverse = invertPermutationVector(permutation);
      value = permutedSplat(value, inverse);
      map = toSource(map, permutation);
    }
    inits.push_back(value);
    types.push_back(value.getType());
    maps.push_back(map);
  }

  // Loops in the order of the first result's dimensions, reduced loops behind: the map of an element-wise result is then the
  // identity.
  unsigned numLoops = op.getNumLoops();
  AffineMap outMap = maps[inputs.size()];
  SmallVector<int64_t> order;
  if (outMap.isProjectedPermutation())
    for (AffineExpr expr : outMap.getResults())
      order.push_back(cast<AffineDimExpr>(expr).getPosition());
  for (unsigned loop = 0; loop < numLoops; ++loop)
    if (!llvm::is_contained(order, loop))
      order.push_back(loop);
  SmallVector<int64_t> position = invertPermutationVector(order);
  SmallVector<AffineExpr> renamed;
  for (int64_t target : position)
    renamed.push_back(builder.getAffineDimExpr(target));
  for (AffineMap &map : maps)
    map = map.replaceDimsAndSymbols(renamed, {}, numLoops, 0);
  SmallVector<utils::IteratorType> iterators = applyPermutation(op.getIteratorTypesArray(), order);

  // What the body reads from outside must stand before the operation.
  IRMapping mapping;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    mapping.map(value, materialize(value));
  auto result = linalg::GenericOp::create(builder, op.getLoc(), types, inputs, inits, maps, iterators, nullptr,
                                          op->getDiscardableAttrDictionary().getValue());
  op.getRegion().cloneInto(&result.getRegion(), mapping);
  result.getRegion().walk([&](linalg::IndexOp index) { index.setDim(position[index.getDim()]); });
  return result;
}

bool LayoutPropagator::visitGeneric(linalg::GenericOp op) {
  if (op.getNumDpsInits() == 0 || op->getNumResults() == 0)
    return false;
  AffineMap outMap = mapOf(op.getDpsInitsMutable()[0]);
  bool isInOrder =
      outMap == AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext()).getMajorSubMap(outMap.getNumResults());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  bool isTouched = llvm::any_of(op->getOperands(), [&](Value value) { return layouts.contains(value); }) ||
                   llvm::any_of(captured, [&](Value value) { return layouts.contains(value); });
  if (!isTouched && (isInOrder || !outMap.isProjectedPermutation()))
    return true;

  Permutation permutation = chooseLayout(op);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Value input = operand->get();
    AffineMap map = mapOf(*operand);
    if (!isa<RankedTensorType>(input.getType())) {
      inputs.push_back(get(input).source);
      maps.push_back(map);
      continue;
    }
    // A big constant is transposed at compile time, so that it is read along with the others.
    Layouted layout = get(input);
    if (isConstant(input) && map == outMap && op.getNumReductionLoops() == 0 &&
        ArrayRef(layout.permutation) != ArrayRef(permutation)) {
      layout.source = inLayout(input, permutation);
      layout.permutation = permutation;
    }
    inputs.push_back(layout.source);
    maps.push_back(toSource(map, layout.permutation));
  }
  linalg::GenericOp copy = createGeneric(op, inputs, maps, permutation);
  for (auto [result, source] : llvm::zip_equal(op->getResults(), copy->getResults()))
    set(result, source, permutation);
  return true;
}

/// True for the conversion of an argument that attention reads through the transpose: it converts what it loads, through strides,
/// so that nothing is left to compute.
static bool isReadByAttention(linalg::GenericOp conversion, linalg::TransposeOp transpose) {
  return isConversion(conversion) && isa<BlockArgument>(conversion.getInputs().front()) &&
         llvm::all_of(transpose->getUses(), [](OpOperand &use) { return kern::isStoredOperand(use); });
}

void LayoutPropagator::foldTransposesIntoProducers(MutableArrayRef<Value> results) {
  llvm::SetVector<Operation *> live = liveOps(results);
  auto isOnlyUse = [&](Value value, Operation *user) {
    return !llvm::is_contained(results, value) && llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *owner = block.findAncestorOpInBlock(*use.getOwner());
      return owner == user || !live.contains(owner);
    });
  };
  for (Operation *op : llvm::to_vector(live)) {
    auto transpose = dyn_cast<linalg::TransposeOp>(op);
    if (!transpose || isConstant(transpose->getResult(0)))
      continue;
    auto producer = transpose.getInput().getDefiningOp<linalg::GenericOp>();
    if (!producer || producer->getNumResults() != 1 || !isOnlyUse(transpose.getInput(), transpose) || !canWriteLayout(producer) ||
        isReadByAttention(producer, transpose))
      continue;
    builder.setInsertionPoint(producer);
    SmallVector<AffineMap> maps;
    for (OpOperand *input : producer.getDpsInputOperands())
      maps.push_back(mapOf(*input));
    SmallVector<int64_t> inverse = invertPermutationVector(transpose.getPermutation());
    linalg::GenericOp copy = createGeneric(producer, producer.getInputs(), maps, inverse);
    transpose->getResult(0).replaceAllUsesWith(copy->getResult(0));
    for (Value &result : results)
      if (result == transpose->getResult(0))
        result = copy->getResult(0);
    live.insert(copy);
  }
}

} // namespace ogc::fuse
