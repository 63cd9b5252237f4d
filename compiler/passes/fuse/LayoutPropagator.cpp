//===- LayoutPropagator.cpp - values in the layout that their source has --===//
#include "compiler/passes/fuse/LayoutPropagator.h"

#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/fuse/Reshape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::fuse {

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static Permutation identity(size_t rank) { return llvm::to_vector(llvm::seq<int64_t>(0, rank)); }

/// Values that `op` reads, captured ones included.
static SmallVector<Value> inputsOf(Operation *op) {
  SmallVector<Value> inputs(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  inputs.append(captured.begin(), captured.end());
  return inputs;
}

/// The list whose entry `permutation[i]` is `values[i]`: attributes of a value's dimensions, in the order of its source's
/// dimensions.
template <typename T> static SmallVector<T> toSource(ArrayRef<T> values, ArrayRef<int64_t> permutation) {
  SmallVector<T> result(values.size());
  for (auto [i, target] : llvm::enumerate(permutation))
    result[target] = values[i];
  return result;
}

LayoutPropagator::LayoutPropagator(func::FuncOp function) : block(function.getBody().front()), builder(function.getContext()) {
  for (Operation &op : block.without_terminator())
    if (llvm::all_of(inputsOf(&op), [&](Value input) { return constants.contains(input); }))
      constants.insert(op.result_begin(), op.result_end());
}

//===----------------------------------------------------------------------===//
// The map from old to new values
//===----------------------------------------------------------------------===//

Layouted LayoutPropagator::get(Value value) {
  if (auto it = layouts.find(value); it != layouts.end())
    return it->second;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return {value, identity(type ? type.getRank() : 0)};
}

bool LayoutPropagator::isMoved(Value value) {
  auto it = layouts.find(value);
  return it != layouts.end() && !isIdentityPermutation(it->second.permutation);
}

void LayoutPropagator::set(Value value, Value source, Permutation permutation) {
  if (isConstant(value))
    constants.insert(source);
  int64_t last = -1;
  bool isReshape = !isIdentityPermutation(permutation);
  for (auto [i, target] : llvm::enumerate(permutation)) {
    if (shapeOf(value)[i] == 1)
      continue;
    isReshape &= target > last;
    last = target;
  }
  if (isReshape) { // only dimensions of extent one change places
    source = createReshape(builder, value.getLoc(), source, shapeOf(value));
    if (isConstant(value))
      constants.insert(source);
    permutation = identity(permutation.size());
  }
  layouts[value] = {source, std::move(permutation)};
}

Value LayoutPropagator::materialize(Value value) {
  return isa<RankedTensorType>(value.getType()) ? inLayout(value, identity(shapeOf(value).size())) : get(value).source;
}

Value LayoutPropagator::inLayout(Value value, ArrayRef<int64_t> permutation) {
  Layouted layout = get(value);
  if (ArrayRef(layout.permutation) == permutation)
    return layout.source;
  if (Value splat = permutedSplat(layout.source, toSource(ArrayRef(layout.permutation), permutation)))
    return splat;
  return createTranspose(value.getLoc(), layout.source, toSource(ArrayRef(layout.permutation), permutation));
}

Value LayoutPropagator::createTranspose(Location loc, Value source, ArrayRef<int64_t> permutation) {
  Value &known = transposes[{source, builder.getDenseI64ArrayAttr(permutation)}];
  if (known)
    return known;
  SmallVector<int64_t> shape = applyPermutation(shapeOf(source), permutation);
  // Dimensions of extent one may move freely.
  int64_t last = -1;
  bool isReshape = true;
  for (int64_t from : permutation) {
    if (shapeOf(source)[from] == 1)
      continue;
    isReshape &= from > last;
    last = from;
  }
  if (isReshape) {
    known = createReshape(builder, loc, source, shape);
  } else {
    Value empty = tensor::EmptyOp::create(builder, loc, shape, getElementTypeOrSelf(source.getType()));
    known = linalg::TransposeOp::create(builder, loc, source, empty, permutation)->getResult(0);
  }
  if (isConstant(source))
    constants.insert(known);
  return known;
}

Value LayoutPropagator::createEmpty(Location loc, Type likeType, ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(likeType);
  return tensor::EmptyOp::create(builder, loc, toSource(type.getShape(), permutation), type.getElementType());
}

Value LayoutPropagator::permutedSplat(Value value, ArrayRef<int64_t> permutation) {
  Operation *def = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!def || !type)
    return {};
  SmallVector<int64_t> shape = applyPermutation(type.getShape(), permutation);
  if (isa<tensor::EmptyOp>(def))
    return tensor::EmptyOp::create(builder, def->getLoc(), shape, type.getElementType());
  if (auto constant = dyn_cast<arith::ConstantOp>(def)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || !elements.isSplat())
      return {};
    Value result = arith::ConstantOp::create(builder, def->getLoc(), elements.resizeSplat(type.clone(shape)));
    constants.insert(result);
    return result;
  }
  auto fill = dyn_cast<linalg::FillOp>(def);
  if (!fill || !isa_and_nonnull<tensor::EmptyOp>(fill.getOutputs()[0].getDefiningOp()))
    return {};
  Value empty = tensor::EmptyOp::create(builder, def->getLoc(), shape, type.getElementType());
  Value result = linalg::FillOp::create(builder, def->getLoc(), fill.getInputs(), empty).getResult(0);
  if (isConstant(value))
    constants.insert(result);
  return result;
}

//===----------------------------------------------------------------------===//
// Operations that move data
//===----------------------------------------------------------------------===//

bool LayoutPropagator::visitTranspose(linalg::TransposeOp op) {
  Layouted input = get(op.getInput());
  set(op->getResult(0), input.source, applyPermutation(input.permutation, op.getPermutation()));
  return true;
}

bool LayoutPropagator::visitSlice(tensor::ExtractSliceOp op) {
  auto [source, permutation] = get(op.getSource());
  if (!isMoved(op.getSource()) || !op.getOffsets().empty() || !op.getSizes().empty() || !op.getStrides().empty())
    return false;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<OpFoldResult> offsets = toSource(ArrayRef(op.getMixedOffsets()), permutation),
                            sizes = toSource(ArrayRef(op.getMixedSizes()), permutation),
                            strides = toSource(ArrayRef(op.getMixedStrides()), permutation);
  SmallVector<int64_t> place(permutation.size(), -1), shape;
  for (size_t dim = 0; dim < permutation.size(); ++dim) {
    size_t valueDim = std::distance(permutation.begin(), llvm::find(permutation, static_cast<int64_t>(dim)));
    if (dropped.test(valueDim))
      continue;
    place[dim] = shape.size();
    shape.push_back(op.getStaticSizes()[valueDim]);
  }
  Permutation result;
  for (auto [valueDim, dim] : llvm::enumerate(permutation))
    if (!dropped.test(valueDim))
      result.push_back(place[dim]);
  auto type = RankedTensorType::get(shape, op.getType().getElementType());
  set(op, tensor::ExtractSliceOp::create(builder, op.getLoc(), type, source, offsets, sizes, strides), result);
  return true;
}

bool LayoutPropagator::visitInsert(tensor::InsertSliceOp op) {
  if (op.getSourceType().getRank() != op.getDestType().getRank() || !op.getOffsets().empty() || !op.getSizes().empty() ||
      !op.getStrides().empty())
    return false;
  if (!isMoved(op.getDest()) && !isMoved(op.getSource()))
    return false;
  Permutation permutation = get(isMoved(op.getDest()) ? op.getDest() : op.getSource()).permutation;
  Value source = inLayout(op.getSource(), permutation), dest = inLayout(op.getDest(), permutation);
  SmallVector<OpFoldResult> offsets = toSource(ArrayRef(op.getMixedOffsets()), permutation),
                            sizes = toSource(ArrayRef(op.getMixedSizes()), permutation),
                            strides = toSource(ArrayRef(op.getMixedStrides()), permutation);
  set(op, tensor::InsertSliceOp::create(builder, op.getLoc(), source, dest, offsets, sizes, strides), permutation);
  return true;
}

bool LayoutPropagator::visitPad(tensor::PadOp op) {
  Value padding = op.getConstantPaddingValue();
  if (!isMoved(op.getSource()) || !padding || !op.getLow().empty() || !op.getHigh().empty())
    return false;
  auto [source, permutation] = get(op.getSource());
  // The padding scalar may stand inside the pad's body.
  if (padding.getParentBlock() != &block)
    padding = builder.clone(*padding.getDefiningOp())->getResult(0);
  SmallVector<int64_t> low = toSource(op.getStaticLow(), permutation), high = toSource(op.getStaticHigh(), permutation),
                       shape = toSource(op.getResultType().getShape(), permutation);
  auto pad = tensor::PadOp::create(builder, op.getLoc(), op.getResultType().clone(shape), source,
                                   getAsIndexOpFoldResult(op.getContext(), low), getAsIndexOpFoldResult(op.getContext(), high),
                                   padding, op.getNofold());
  set(op, pad, permutation);
  return true;
}

bool LayoutPropagator::visitConcat(tensor::ConcatOp op) {
  // The layout in which most of the elements are.
  SmallVector<std::pair<Permutation, int64_t>> votes;
  for (Value input : op.getInputs()) {
    Layouted layout = get(input);
    auto *vote = llvm::find_if(votes, [&](auto &entry) { return entry.first == layout.permutation; });
    if (vote == votes.end())
      votes.push_back({layout.permutation, 0}), vote = &votes.back();
    vote->second += cast<RankedTensorType>(input.getType()).getNumElements();
  }
  auto *best = llvm::max_element(votes, [](auto &a, auto &b) { return a.second < b.second; });
  if (best == votes.end() || isIdentityPermutation(best->first))
    return false;
  SmallVector<Value> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(inLayout(input, best->first));
  set(op, tensor::ConcatOp::create(builder, op.getLoc(), best->first[op.getDim()], inputs), best->first);
  return true;
}

/// Chains of reshapes become the one with the finest groups, through which strides can be seen.
bool LayoutPropagator::visitReshape(Operation *op, Value source) {
  Value result = op->getResult(0), reshaped = createReshape(builder, op->getLoc(), source, shapeOf(result));
  set(result, reshaped, identity(shapeOf(result).size()));
  return true;
}

bool LayoutPropagator::visitExpand(tensor::ExpandShapeOp op) {
  auto [source, permutation] = get(op.getSrc());
  if (!isMoved(op.getSrc()))
    return visitReshape(op, source);
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  SmallVector<ReassociationIndices> sourceGroups(groups.size());
  SmallVector<int64_t> shape, firstOfGroup(groups.size());
  for (size_t dim = 0; dim < permutation.size(); ++dim) {
    size_t valueDim = std::distance(permutation.begin(), llvm::find(permutation, static_cast<int64_t>(dim)));
    firstOfGroup[valueDim] = shape.size();
    for (int64_t i : groups[valueDim]) {
      sourceGroups[dim].push_back(shape.size());
      shape.push_back(op.getResultType().getDimSize(i));
    }
  }
  Permutation result;
  for (auto [valueDim, group] : llvm::enumerate(groups))
    for (size_t i = 0; i < group.size(); ++i)
      result.push_back(firstOfGroup[valueDim] + i);
  auto type = RankedTensorType::get(shape, op.getResultType().getElementType());
  set(op, tensor::ExpandShapeOp::create(builder, op.getLoc(), type, source, sourceGroups), result);
  return true;
}

bool LayoutPropagator::visitCollapse(tensor::CollapseShapeOp op) {
  auto [source, permutation] = get(op.getSrc());
  if (!isMoved(op.getSrc()))
    return visitReshape(op, source);
  ArrayRef<int64_t> sourceShape = shapeOf(source);
  // Places among the source's dimensions of extents other than one.
  SmallVector<int64_t> place(sourceShape.size(), -1);
  int64_t numPlaces = 0;
  for (size_t dim = 0; dim < sourceShape.size(); ++dim)
    if (sourceShape[dim] != 1)
      place[dim] = numPlaces++;

  // A group stays together when its dimensions follow each other in the source; groups are then ordered as they lie there.
  SmallVector<std::pair<int64_t, int64_t>> order; // first dimension in the source, group
  for (auto [groupIndex, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t first = permutation[group.front()], last = -1;
    for (int64_t i : group) {
      int64_t dim = permutation[i];
      if (place[dim] < 0)
        continue;
      if (last >= 0 && place[dim] != last + 1)
        return false;
      if (last < 0)
        first = dim;
      last = place[dim];
    }
    order.push_back({first, groupIndex});
  }
  llvm::sort(order);
  SmallVector<int64_t> shape;
  Permutation result(order.size());
  for (auto [position, entry] : llvm::enumerate(order)) {
    shape.push_back(op.getResultType().getDimSize(entry.second));
    result[entry.second] = position;
  }
  set(op, createReshape(builder, op.getLoc(), source, shape), result);
  return true;
}

bool LayoutPropagator::visitMatmul(Operation *op) {
  auto matmul = cast<kern::MatmulOp>(op);
  Layouted rhs = get(matmul.getRhs());
  if (matmul.getPacked() || ArrayRef(rhs.permutation) != ArrayRef<int64_t>{0, 2, 1})
    return false;
  // The copy reads the source, which is the transposed right operand. Both operands may be one value, in two layouts.
  Value lhs = materialize(matmul.getLhs());
  auto clone = cast<kern::MatmulOp>(builder.clone(*op));
  clone.getLhsMutable().assign(lhs);
  clone.getRhsMutable().assign(rhs.source);
  clone.setTransposeRhs(!matmul.getTransposeRhs());
  set(matmul.getResult(), clone.getResult(), identity(3));
  return true;
}

void LayoutPropagator::visitOther(Operation *op) {
  SmallVector<Value> inputs = inputsOf(op);
  if (llvm::none_of(inputs, [&](Value input) { return layouts.contains(input); }))
    return;
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, materialize(input));
  Operation *clone = builder.clone(*op, mapping);
  for (auto [result, copy] : llvm::zip_equal(op->getResults(), clone->getResults())) {
    if (isConstant(result))
      constants.insert(copy);
    layouts[result] = get(copy);
  }
}

void LayoutPropagator::visit(Operation *op) {
  builder.setInsertionPoint(op);
  bool done = llvm::TypeSwitch<Operation *, bool>(op)
                  .Case([&](linalg::TransposeOp transpose) { return visitTranspose(transpose); })
                  .Case([&](linalg::GenericOp generic) { return visitGeneric(generic); })
                  .Case([&](tensor::ExtractSliceOp slice) { return visitSlice(slice); })
                  .Case([&](tensor::InsertSliceOp insert) { return visitInsert(insert); })
                  .Case([&](tensor::PadOp pad) { return visitPad(pad); })
                  .Case([&](tensor::ConcatOp concat) { return visitConcat(concat); })
                  .Case([&](tensor::ExpandShapeOp expand) { return visitExpand(expand); })
                  .Case([&](tensor::CollapseShapeOp collapse) { return visitCollapse(collapse); })
                  .Case([&](kern::MatmulOp matmul) { return visitMatmul(matmul); })
                  .Default([](Operation *) { return false; });
  if (!done)
    visitOther(op);
}

//===----------------------------------------------------------------------===//
// The whole function
//===----------------------------------------------------------------------===//

llvm::SetVector<Operation *> LayoutPropagator::liveOps(ValueRange results) {
  llvm::SetVector<Operation *> live;
  SmallVector<Value> work(results);
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (def && live.insert(def))
      work.append(inputsOf(def));
  }
  return live;
}

unsigned LayoutPropagator::countTransposes(ValueRange results) {
  return llvm::count_if(liveOps(results),
                        [&](Operation *op) { return isa<linalg::TransposeOp>(op) && !isConstant(op->getResult(0)); });
}

void LayoutPropagator::run() {
  SmallVector<Operation *> ops = llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  for (Operation *op : ops)
    visit(op);
  Operation *terminator = block.getTerminator();
  builder.setInsertionPoint(terminator);
  SmallVector<Value> results;
  for (Value result : terminator->getOperands())
    results.push_back(materialize(result));
  foldTransposesIntoProducers(results);
  if (countTransposes(results) <= countTransposes(terminator->getOperands()))
    terminator->setOperands(results);
  ops = llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

} // namespace ogc::fuse
