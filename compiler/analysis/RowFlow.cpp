//===- RowFlow.cpp - how operations carry the positions of a symbol -------===//
#include "compiler/analysis/RowFlow.h"

#include "compiler/dialect/kern/Kern.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::rows {
namespace {

ArrayRef<int64_t> shapeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getShape() : ArrayRef<int64_t>();
}

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

} // namespace

LogicalResult RowFlow::fail(const Twine &reason) {
  why = reason.str();
  return failure();
}

bool RowFlow::varies(Value value, unsigned dim) const { return shapeOf(value)[dim] != shapeOf(values.lookup(value))[dim]; }

LogicalResult RowFlow::define(Value value, Value other, State state) {
  values[value] = other;
  ArrayRef<int64_t> a = shapeOf(value), b = shapeOf(other);
  state.dims.resize(a.size());
  if (a.size() != b.size() || getElementTypeOrSelf(value.getType()) != getElementTypeOrSelf(other.getType()))
    return fail("has another type for another size");
  for (unsigned dim = 0; dim < a.size(); ++dim) {
    std::optional<Factor> &factor = state.dims[dim];
    if (a[dim] == b[dim] ? factor.has_value() : !factor.has_value())
      return fail("has a size that does not follow from it");
    if (!factor)
      continue;
    // Sizes that are no multiples come from arithmetic on the size, such as a window.
    if (a[dim] % smallSize || b[dim] % largeSize || a[dim] / smallSize != b[dim] / largeSize)
      return fail("has a size that is no multiple of it");
    if (!factor->isAny && factor->outer * smallSize * factor->inner != a[dim])
      return fail("has a size that does not follow from it");
  }
  if (state.row >= 0 && !state.dims[state.row])
    return fail("mixes positions");
  states[value] = std::move(state);
  return success();
}

LogicalResult RowFlow::visitNest(Operation *a, Operation *b, const Nest &nest) {
  SmallVector<std::optional<Factor>> loops(nest.isReduction.size());
  int rowLoop = -1;
  for (const Read &read : nest.reads) {
    const State &state = stateOf(read.value);
    for (auto [dim, factor] : llvm::enumerate(state.dims)) {
      int loop = factor ? read.loops[dim] : -1;
      if (!factor)
        continue;
      if (loop < 0)
        return fail(nest.mixing);
      std::optional<Factor> common = loops[loop] ? meet(*loops[loop], *factor) : factor;
      if (!common)
        return fail("combines different positions");
      loops[loop] = common;
      if (static_cast<int>(dim) != state.row)
        continue;
      if (rowLoop >= 0 && rowLoop != loop)
        return fail("combines different positions");
      rowLoop = loop;
    }
  }
  for (auto [result, dims] : llvm::zip_equal(a->getResults(), nest.results)) {
    values[result] = b->getResult(result.getResultNumber());
    for (auto [dim, loop] : llvm::enumerate(dims))
      if (loop >= 0 && !loops[loop] && varies(result, dim))
        loops[loop] = Factor{1, 1, true};
  }
  for (unsigned loop = 0; loop < loops.size(); ++loop) {
    if (!loops[loop])
      continue;
    if (nest.isReduction[loop])
      return fail("reduces over it");
    if (!nest.indexed.contains(loop))
      continue;
    // An index means the same position for every size only where no other dimension lies outside of it.
    if (!loops[loop]->isAny && loops[loop]->outer != 1)
      return fail("computes with positions");
    if (loops[loop]->isAny)
      return fail("computes with positions");
  }
  for (auto [result, dims] : llvm::zip_equal(a->getResults(), nest.results)) {
    State state;
    state.dims.resize(shapeOf(result).size());
    for (auto [dim, loop] : llvm::enumerate(dims)) {
      if (loop < 0)
        continue;
      state.dims[dim] = loops[loop];
      if (loop == rowLoop)
        state.row = dim;
    }
    if (rowLoop >= 0 && state.row < 0)
      return fail("mixes positions");
    if (failed(define(result, b->getResult(result.getResultNumber()), state)))
      return failure();
  }
  return success();
}

/// Anchors as loop nests.
LogicalResult RowFlow::visitAnchor(Operation *a, Operation *b) {
  Nest nest;
  auto broadcast = [](Value value, unsigned dim, int loop) { return shapeOf(value)[dim] == 1 ? -1 : loop; };
  if (auto op = dyn_cast<kern::MatmulOp>(a)) {
    enum { B, M, N, K };
    nest.isReduction = {false, false, false, true};
    nest.mixing = "sums over it";
    nest.reads.push_back({op.getLhs(), {B, M, K}});
    int batch = broadcast(op.getRhs(), 0, B);
    if (op.getPacked())
      nest.reads.push_back({op.getRhs(), {-1, K, -1}});
    else if (op.getTransposeRhs())
      nest.reads.push_back({op.getRhs(), {batch, N, K}});
    else
      nest.reads.push_back({op.getRhs(), {batch, K, N}});
    nest.results = {{B, M, N}};
  } else if (auto op = dyn_cast<kern::AttentionOp>(a)) {
    enum { B, S, H };
    nest.isReduction = {false, false, false};
    nest.mixing = "attends from each position to all others";
    int heads = shapeOf(op.getKey())[2] == shapeOf(op.getQuery())[2] ? H : -1;
    nest.reads = {{op.getQuery(), {B, S, H, -1}}, {op.getKey(), {B, -1, heads, -1}}, {op.getValue(), {B, -1, heads, -1}}};
    if (Value bias = op.getBias())
      nest.reads.push_back({bias, {broadcast(bias, 0, B), broadcast(bias, 1, H), broadcast(bias, 2, S), -1}});
    if (op.getNewKey()) {
      nest.reads.push_back({op.getNewKey(), {B, -1, heads, -1}});
      nest.reads.push_back({op.getNewValue(), {B, -1, heads, -1}});
      nest.reads.push_back({op.getPosition(), {B}});
    }
    nest.results = {{B, S, H, -1}};
    // The diagonal moves with the number of queries.
    if (op.getCausal() && varies(op.getQuery(), 1))
      return fail(nest.mixing);
  } else if (isa<kern::ConvOp, kern::DepthwiseConvOp>(a)) {
    nest.isReduction = {false};
    nest.mixing = "slides a window over it";
    nest.reads = {{a->getOperand(0), {0, -1, -1, -1}},
                  {a->getOperand(1), SmallVector<int>(shapeOf(a->getOperand(1)).size(), -1)}};
    nest.results = {{0, -1, -1, -1}};
  } else {
    return visitUnknown(a, b);
  }
  return visitNest(a, b, nest);
}

LogicalResult RowFlow::visitCollapse(tensor::CollapseShapeOp a, Operation *b) {
  const State source = stateOf(a.getSrc());
  State state;
  for (auto [group, dims] : llvm::enumerate(a.getReassociationIndices())) {
    std::optional<Factor> &merged = state.dims.emplace_back();
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (!source.dims[dim])
        continue;
      if (merged)
        return fail("merges two dimensions that follow it");
      ArrayRef<int64_t> sizes = shapeOf(a.getSrc()).slice(dims.front(), dims.size());
      merged = source.dims[dim];
      merged->outer *= product(sizes.take_front(i));
      merged->inner *= product(sizes.drop_front(i + 1));
      if (source.row == dim)
        state.row = group;
    }
  }
  return define(a.getResult(), b->getResult(0), state);
}

LogicalResult RowFlow::visitExpand(tensor::ExpandShapeOp a, Operation *b) {
  const State source = stateOf(a.getSrc());
  State state;
  ArrayRef<int64_t> shape = shapeOf(a.getResult());
  state.dims.resize(shape.size());
  values[a.getResult()] = b->getResult(0);
  for (auto [group, dims] : llvm::enumerate(a.getReassociationIndices())) {
    if (!source.dims[group])
      continue;
    SmallVector<int64_t> varying;
    for (int64_t dim : dims)
      if (varies(a.getResult(), dim))
        varying.push_back(dim);
    if (varying.size() != 1)
      return fail("splits it");
    ArrayRef<int64_t> sizes = shape.slice(dims.front(), dims.size());
    size_t at = varying.front() - dims.front();
    int64_t before = product(sizes.take_front(at)), after = product(sizes.drop_front(at + 1));
    Factor factor = *source.dims[group];
    if (!factor.isAny) {
      if (before == 0 || after == 0 || factor.outer % before || factor.inner % after)
        return fail("splits it");
      factor.outer /= before;
      factor.inner /= after;
    }
    state.dims[varying.front()] = factor;
    if (source.row == static_cast<int>(group))
      state.row = varying.front();
  }
  return define(a.getResult(), b->getResult(0), state);
}

LogicalResult RowFlow::visitSlice(tensor::ExtractSliceOp a, tensor::ExtractSliceOp b) {
  const State source = stateOf(a.getSource());
  llvm::SmallBitVector dropped = a.getDroppedDims();
  State state;
  for (unsigned dim = 0; dim < source.dims.size(); ++dim) {
    int64_t size = a.getStaticSizes()[dim], offset = a.getStaticOffsets()[dim], stride = a.getStaticStrides()[dim];
    bool isWhole = offset == 0 && stride == 1 && size == shapeOf(a.getSource())[dim];
    std::optional<Factor> factor = source.dims[dim];
    if (factor && (!isWhole || b.getStaticSizes()[dim] != shapeOf(b.getSource())[dim]))
      return fail("takes some positions out");
    // A part of a table whose length follows the symbol: position i is entry i for every size.
    if (!factor && size != b.getStaticSizes()[dim]) {
      if (size % smallSize)
        return fail("has a size that is no multiple of it");
      factor = Factor{1, size / smallSize};
    }
    if (dropped[dim]) {
      if (factor)
        return fail("takes some positions out");
      continue;
    }
    if (source.row == static_cast<int>(dim))
      state.row = state.dims.size();
    state.dims.push_back(factor);
  }
  return define(a.getResult(), b.getResult(), state);
}

LogicalResult RowFlow::visitConcat(tensor::ConcatOp a, Operation *b) {
  Nest nest;
  unsigned rank = shapeOf(a.getResult()).size();
  SmallVector<int> loops;
  for (unsigned dim = 0; dim < rank; ++dim)
    loops.push_back(dim == a.getDim() ? -1 : static_cast<int>(dim));
  nest.isReduction.resize(rank, false);
  nest.mixing = "joins other positions to it";
  for (Value input : a.getInputs())
    nest.reads.push_back({input, loops});
  nest.results = {loops};
  return visitNest(a, b, nest);
}

bool RowFlow::haveSameRegions(Operation *a, Operation *b) {
  llvm::DenseMap<Value, Value> inside;
  bool isVarying = false;
  auto check = [&](Value x, Value y) {
    if (Value pair = inside.lookup(x))
      return success(pair == y);
    auto constant = x.getDefiningOp<arith::ConstantOp>(), pair = y.getDefiningOp<arith::ConstantOp>();
    if (constant && pair && failed(visitConstant(constant, pair)))
      return failure();
    auto state = states.find(x);
    isVarying |= state == states.end() || state->second.varies();
    return success(counterpart(x) == y);
  };
  auto mark = [&](Value x, Value y) { inside[x] = y; };
  return llvm::all_of(llvm::zip_equal(a->getRegions(), b->getRegions()),
                      [&](auto pair) {
                        return OperationEquivalence::isRegionEquivalentTo(&std::get<0>(pair), &std::get<1>(pair), check, mark,
                                                                          OperationEquivalence::IgnoreLocations);
                      }) &&
         !isVarying;
}

/// Padding in dimensions that do not follow the symbol. (That of the model's own; the symbol's is what all this is about.)
LogicalResult RowFlow::visitPad(tensor::PadOp a, tensor::PadOp b) {
  State state = stateOf(a.getSource());
  for (auto [dim, factor] : llvm::enumerate(state.dims))
    if (factor && (a.getStaticLow()[dim] != 0 || a.getStaticHigh()[dim] != 0))
      return fail("joins other positions to it");
  if (!haveSameRegions(a, b))
    return fail("is another computation for another size");
  return define(a.getResult(), b.getResult(), state);
}

LogicalResult RowFlow::visitUnknown(Operation *a, Operation *b) {
  for (Value operand : a->getOperands())
    if (stateOf(operand).varies())
      return fail("is not known to keep positions apart");
  if (!haveSameRegions(a, b))
    return fail("is not known to keep positions apart");
  for (auto [result, other] : llvm::zip_equal(a->getResults(), b->getResults()))
    if (failed(define(result, other, {})))
      return failure();
  return success();
}

LogicalResult RowFlow::visit(Operation *a, Operation *b) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(a)
      .Case([&](arith::ConstantOp op) { return visitConstant(op, cast<arith::ConstantOp>(b)); })
      .Case([&](linalg::LinalgOp op) { return visitLinalg(op, cast<linalg::LinalgOp>(b)); })
      .Case([&](tensor::CollapseShapeOp op) { return visitCollapse(op, b); })
      .Case([&](tensor::ExpandShapeOp op) { return visitExpand(op, b); })
      .Case([&](tensor::ExtractSliceOp op) { return visitSlice(op, cast<tensor::ExtractSliceOp>(b)); })
      .Case([&](tensor::PadOp op) { return visitPad(op, cast<tensor::PadOp>(b)); })
      .Case([&](tensor::ConcatOp op) { return visitConcat(op, b); })
      .Case([&](tensor::EmptyOp op) {
        State state;
        values[op.getResult()] = b->getResult(0);
        for (unsigned dim = 0; dim < shapeOf(op.getResult()).size(); ++dim)
          state.dims.push_back(varies(op.getResult(), dim) ? std::optional(Factor{1, 1, true}) : std::nullopt);
        return define(op.getResult(), b->getResult(0), state);
      })
      .Default([&](Operation *op) { return visitAnchor(op, b); });
}

} // namespace ogc::rows
