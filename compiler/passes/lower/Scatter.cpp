//===- Scatter.cpp - ScatterElements, ScatterND ---------------------------===//
//
// Updates of one element are applied in their order, on every target. A few updates are in pull form: each element looks at all
// of them. More are a program: the data are copied, then
//   - lanes: updates that can never meet (other slices, other lines) run side by side, the updates of one lane one by one; or,
//   where that leaves too little to do at once,
//   - sorted: updates are sorted by the element that they name, and each run of equal ones is applied by one thread.
// Indices wrap once when negative and are ignored outside the tensor.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/Sort.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

using Combine = Value (*)(Scalar &, Value old, Value update, bool isUnsigned);

/// How an update changes an element.
FailureOr<Combine> readReduction(Node &n) {
  StringRef name = n.op.getStr("reduction", "none");
  if (name == "none" || name.empty())
    return Combine([](Scalar &, Value, Value update, bool) { return update; });
  if (name == "add")
    return Combine([](Scalar &s, Value old, Value update, bool) { return s.add(old, update); });
  if (name == "mul")
    return Combine([](Scalar &s, Value old, Value update, bool) { return s.mul(old, update); });
  if (name == "max")
    return Combine([](Scalar &s, Value old, Value update, bool isUnsigned) { return s.max(old, update, isUnsigned); });
  if (name == "min")
    return Combine([](Scalar &s, Value old, Value update, bool isUnsigned) { return s.min(old, update, isUnsigned); });
  return n.fail("reduction is '" + name + "', expected none, add, mul, max or min");
}

//===----------------------------------------------------------------------===//
// Programs: input 0 is the data, 1 the indices, 2 the updates; output 0 the result
//===----------------------------------------------------------------------===//

/// Pull form up to so many updates for each element; lanes with at least so many lanes or at most so many steps.
constexpr int64_t fewUpdates = 4, manyLanes = 256, fewSteps = 512;

/// Where an update goes.
struct Target {
  Value row;    ///< of `inner` elements; any when not valid
  Value exists; ///< i1
};

/// Adds one index to a row number: row * extent + index.
void appendIndex(ProgramBody &p, Target &target, Value index, int64_t extent) {
  Value i = p.toIndex(index, false);
  Value wrapped = p.select(p.cmp(Compare::Less, i, p.index(0), false), p.plus(i, extent), i);
  Value inside = p.isLess(wrapped, p.index(extent));
  target.row = target.row ? p.plus(p.times(target.row, extent), wrapped) : wrapped;
  target.exists = target.exists ? p.both(target.exists, inside) : inside;
}

/// `count` updates of `inner` neighbouring elements each.
struct Updates {
  int64_t count, inner, lanes;
  llvm::function_ref<Target(ProgramBody &, Value update)> target;
  /// Step of a lane to the number of an update; null: lane = element of the slice, step = update.
  llvm::function_ref<Value(ProgramBody &, Value lane, Value step)> updateOf;
  Combine combine;
  bool isUnsigned;
};

void copyData(ProgramBody &p, int64_t elements) {
  p.parallel(elements, [&](Value i) { p.storeRaw(p.output(0), i, p.loadRaw(p.input(0), i)); });
}

void applyInLanes(ProgramBody &p, const Updates &updates, int64_t elements) {
  copyData(p, elements);
  int64_t steps = updates.count * updates.inner / updates.lanes;
  p.parallel(updates.lanes, [&](Value lane) {
    p.loop(p.index(0), p.index(steps), [&](Value step) {
      bool isSlice = updates.inner != 1 || !updates.updateOf;
      Value update = isSlice ? step : updates.updateOf(p, lane, step);
      Value offset = isSlice ? lane : p.index(0);
      Target target = updates.target(p, update);
      p.when(target.exists, [&] {
        Value at = p.plus(p.times(target.row, updates.inner), offset);
        Value value = p.load(p.input(2), p.plus(p.times(update, updates.inner), offset));
        p.store(p.output(0), at, updates.combine(p, p.load(p.output(0), at), value, updates.isUnsigned));
      });
    });
  });
}

/// Output 1 holds the row of each update (the number of rows where it names none), 2 and 3 are the order and its spare.
void applySorted(ProgramBody &p, const Updates &updates, int64_t elements) {
  copyData(p, elements);
  Type i64 = p.b.getI64Type();
  int64_t rows = elements / updates.inner;
  p.parallel(updates.count, [&](Value update) {
    Target target = updates.target(p, update);
    p.storeRaw(p.output(1), update, p.select(target.exists, p.asI64(target.row), p.icst(i64, rows)));
  });
  auto rowOf = [&](Value update) { return p.loadRaw(p.output(1), update); };
  mergeSort(p, p.index(0), p.output(2), p.output(3), updates.count, updates.count,
            [&](ProgramBody &p, Value x, Value y) { return p.cmp(Compare::Less, rowOf(x), rowOf(y), false); });
  auto sorted = [&](Value i) -> Value { return arith::IndexCastOp::create(p.b, p.b.getIndexType(), p.loadRaw(p.output(2), i)); };
  p.parallel(updates.count * updates.inner, [&](Value item) {
    Value first = p.over(item, updates.inner), offset = p.rest(item, updates.inner), row = rowOf(sorted(first));
    auto isHead = [&] { return p.logicalNot(p.cmp(Compare::Equal, rowOf(sorted(p.minus(first, p.index(1)))), row, false)); };
    Value leads = p.choose(p.isLess(p.index(0), first), isHead, [&] { return p.icst(p.b.getI1Type(), 1); });
    p.when(p.both(leads, p.cmp(Compare::Less, row, p.icst(i64, rows), false)), [&] {
      Value at = p.plus(p.times(p.toIndex(row, false), updates.inner), offset);
      auto isSame = [&](ValueRange v) {
        auto equal = [&] { return p.cmp(Compare::Equal, rowOf(sorted(v[0])), row, false); };
        return p.choose(p.isLess(v[0], p.index(updates.count)), equal, [&] { return p.icst(p.b.getI1Type(), 0); });
      };
      SmallVector<Value> end = p.whileLoop({first, p.load(p.input(0), at)}, isSame, [&](ValueRange v) -> SmallVector<Value> {
        Value value = p.load(p.input(2), p.plus(p.times(sorted(v[0]), updates.inner), offset));
        return {p.plus(v[0], 1), updates.combine(p, v[1], value, updates.isUnsigned)};
      });
      p.store(p.output(0), at, end[1]);
    });
  });
}

Value scatterProgram(Node &n, const Updates &updates) {
  int64_t elements = numElements(n.outShape());
  SmallVector<Value> inputs{n.in(0), n.in(1), n.in(2)};
  int64_t steps = updates.count * updates.inner / updates.lanes;
  if (updates.lanes >= manyLanes || steps <= fewSteps)
    return program(n.b, inputs, {n.outType()}, 1, [&](ProgramBody &p) { applyInLanes(p, updates, elements); })[0];
  RankedTensorType rows = RankedTensorType::get({updates.count}, n.b.getI64Type()),
                   order = RankedTensorType::get({updates.count}, n.b.getI32Type());
  return program(n.b, inputs, {n.outType(), rows, order, order}, 1,
                 [&](ProgramBody &p) { applySorted(p, updates, elements); })[0];
}

//===----------------------------------------------------------------------===//
// Pull form
//===----------------------------------------------------------------------===//

AffineMap dimsMap(MLIRContext *context, unsigned numDims, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t d : dims)
    exprs.push_back(getAffineDimExpr(static_cast<unsigned>(d), context));
  return AffineMap::get(numDims, 0, exprs, context);
}

/// True when `index` (negative: from the end) is the position along dimension d.
Value hits(Scalar &s, Value index, int64_t d, int64_t extent) {
  Value i = s.toIndex(index, false), zero = s.icst(s.b.getIndexType(), 0);
  Value wrapped = s.select(s.cmp(Compare::Less, i, zero, false), s.add(i, s.icst(i.getType(), extent)), i);
  return s.cmp(Compare::Equal, wrapped, linalg::IndexOp::create(s.b, d), false);
}

/// Each element goes over all updates in order and takes those that name it.
Value pullNd(Node &n, int64_t depth, int64_t count, Combine combine) {
  MLIRContext *context = n.b.getContext();
  int64_t rank = n.inRank(0);
  Shape updateShape{count};
  llvm::append_range(updateShape, n.inShape(0).drop_front(depth));
  Value indices = reshape(n.b, n.in(1), {count, depth}), updates = reshape(n.b, n.in(2), updateShape);
  // One update needs no loop.
  bool loops = count > 1;
  unsigned dims = static_cast<unsigned>(rank + (loops ? 1 : 0));
  AffineExpr update = loops ? getAffineDimExpr(static_cast<unsigned>(rank), context) : getAffineConstantExpr(0, context);
  SmallVector<AffineExpr> updateExprs{update};
  for (int64_t d = depth; d < rank; ++d)
    updateExprs.push_back(getAffineDimExpr(static_cast<unsigned>(d), context));
  SmallVector<Operand> operands;
  for (int64_t j = 0; j < depth; ++j)
    operands.push_back({indices, AffineMap::get(dims, 0, {update, getAffineConstantExpr(j, context)}, context)});
  operands.push_back({updates, AffineMap::get(dims, 0, updateExprs, context)});
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(dims, context).getMajorSubMap(static_cast<unsigned>(rank));
  auto body = [&](Scalar &s, ValueRange x) {
    Value takes = s.icst(s.b.getI1Type(), 1);
    for (int64_t j = 0; j < depth; ++j) {
      Value hit = hits(s, x[j], j, n.inShape(0)[j]);
      takes = j == 0 ? hit : arith::AndIOp::create(s.b, takes, hit).getResult();
    }
    return s.select(takes, combine(s, x[depth + 1], x[depth], n.isUnsignedIn(0)), x[depth + 1]);
  };
  if (!loops) {
    operands.push_back({n.in(0), outMap});
    return mapElements(n.b, n.outShape(), n.outElement(), operands, body);
  }
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  return reduceInto(n.b, {n.in(0), outMap}, operands, iterators, body);
}

Value pullElements(Node &n, int64_t axis, Combine combine) {
  int64_t rank = n.inRank(0);
  // Positions without an update get an index that names nothing.
  Shape low(rank, 0), high(rank, 0);
  for (int64_t d = 0; d < rank; ++d)
    high[d] = d == axis ? 0 : n.inShape(0)[d] - n.inShape(1)[d];
  Scalar s(n.b, n.op.getLoc());
  Value indices = pad(n.b, n.in(1), low, high, s.highest(n.inElement(1), false));
  Value updates = pad(n.b, n.in(2), low, high, s.icst(n.outElement(), 0));
  MLIRContext *context = n.b.getContext();
  unsigned dims = static_cast<unsigned>(rank + 1);
  auto all = llvm::seq<int64_t>(0, rank);
  Shape here(all.begin(), all.end()), source = here;
  source[axis] = rank;
  AffineMap map = dimsMap(context, dims, source), outMap = dimsMap(context, dims, here);
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  return reduceInto(n.b, {n.in(0), outMap}, {{indices, map}, {updates, map}}, iterators, [&](Scalar &s, ValueRange x) {
    Value takes = hits(s, x[0], axis, n.inShape(0)[axis]);
    return s.select(takes, combine(s, x[2], x[1], n.isUnsignedIn(0)), x[2]);
  });
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// True for a state of the function, as it came in or updated since.
bool isState(Value data) {
  while (Operation *op = data.getDefiningOp()) {
    if (!isa<tensor::ScatterOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return false;
    data = isa<tensor::ScatterOp>(op) ? cast<tensor::ScatterOp>(op).getDest() : op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(data);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function && function.getArgAttr(argument.getArgNumber(), "ogc.state");
}

/// A scatter that stays one, to be done in place: `indices` [count, depth] and `updates` [count, …].
Value updateState(Node &n, int64_t depth, int64_t count) {
  auto range = llvm::seq<int64_t>(0, depth);
  Shape updateShape{count}, dims(range.begin(), range.end());
  llvm::append_range(updateShape, n.inShape(0).drop_front(static_cast<size_t>(depth)));
  Value given = reshape(n.b, n.in(1), {count, depth}), updates = reshape(n.b, n.in(2), updateShape);
  // Negative indices count from the end.
  Value indices =
      mapElements(n.b, {count, depth}, n.inElement(1), {{given, AffineMap::getMultiDimIdentityMap(2, n.b.getContext())}},
                  [&](Scalar &s, ValueRange x) {
                    Value extent = s.icst(x[0].getType(), n.inShape(0)[0]);
                    for (int64_t d = 1; d < depth; ++d) {
                      Value isHere = s.cmp(Compare::Equal, linalg::IndexOp::create(s.b, 1), s.icst(s.b.getIndexType(), d), false);
                      extent = s.select(isHere, s.icst(x[0].getType(), n.inShape(0)[static_cast<size_t>(d)]), extent);
                    }
                    return s.select(s.cmp(Compare::Less, x[0], s.icst(x[0].getType(), 0), false), s.add(x[0], extent), x[0]);
                  });
  return tensor::ScatterOp::create(n.b, n.in(0).getType(), updates, n.in(0), indices, n.b.getDenseI64ArrayAttr(dims),
                                   n.b.getUnitAttr());
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

LogicalResult scatterNd(Node &n) {
  FailureOr<Combine> combine = readReduction(n);
  if (failed(combine))
    return failure();
  if (n.inRank(1) < 1 || n.inShape(1).back() > n.inRank(0))
    return n.fail("indices do not fit data of rank " + Twine(n.inRank(0)));
  int64_t depth = n.inShape(1).back(), count = numElements(n.inShape(1).drop_back());
  Shape expected(n.inShape(1).drop_back());
  llvm::append_range(expected, n.inShape(0).drop_front(depth));
  if (n.inShape(2) != ArrayRef(expected))
    return n.fail("updates do not have the shape that indices and data ask for");
  if (count == 0 || numElements(n.outShape()) == 0)
    return n.result(n.in(0));
  if (depth > 0 && n.op.getStr("reduction", "none") == "none" && isState(n.in(0)))
    return n.result(updateState(n, depth, count));
  if (count <= fewUpdates || depth == 0)
    return n.result(pullNd(n, depth, count, *combine));
  int64_t inner = numElements(n.inShape(0).drop_front(depth));
  auto target = [&](ProgramBody &p, Value update) {
    Target target;
    for (int64_t j = 0; j < depth; ++j)
      appendIndex(p, target, p.loadRaw(p.input(1), p.plus(p.times(update, depth), j)), n.inShape(0)[j]);
    return target;
  };
  Updates updates{count, inner, inner, target, nullptr, *combine, n.isUnsignedIn(0)};
  return n.result(scatterProgram(n, updates));
}

LogicalResult scatterElements(Node &n) {
  FailureOr<Combine> combine = readReduction(n);
  if (failed(combine))
    return failure();
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("axis"), rank);
  if (n.inRank(1) != rank || n.inShape(1) != n.inShape(2))
    return n.fail("indices and updates do not have one shape of rank " + Twine(rank));
  if (axis < 0 || axis >= rank)
    return n.fail("axis is out of range for rank " + Twine(rank));
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis && n.inShape(1)[d] > n.inShape(0)[d])
      return n.fail("indices have extent " + Twine(n.inShape(1)[d]) + " in dimension " + Twine(d) + ", expected at most " +
                    Twine(n.inShape(0)[d]));
  if (numElements(n.inShape(1)) == 0 || numElements(n.outShape()) == 0)
    return n.result(n.in(0));
  Lines lines(n.inShape(1), axis);
  if (lines.length <= fewUpdates)
    return n.result(pullElements(n, axis, *combine));
  auto target = [&](ProgramBody &p, Value update) {
    SmallVector<Value> position = p.split(update, n.inShape(1));
    Target target;
    for (int64_t d = 0; d < rank; ++d)
      if (d == axis)
        appendIndex(p, target, p.loadRaw(p.input(1), update), n.inShape(0)[d]);
      else
        target.row = target.row ? p.plus(p.times(target.row, n.inShape(0)[d]), position[d]) : position[d];
    return target;
  };
  auto updateOf = [&](ProgramBody &p, Value lane, Value step) {
    return p.plus(lines.start(p, lane), p.times(step, lines.stride));
  };
  Updates updates{numElements(n.inShape(1)), 1, lines.count(), target, updateOf, *combine, n.isUnsignedIn(0)};
  return n.result(scatterProgram(n, updates));
}

} // namespace

void registerScatter(Table &t) {
  t.add("ScatterND", scatterNd);
  t.add("ScatterElements", scatterElements);
}

} // namespace ogc::lower
