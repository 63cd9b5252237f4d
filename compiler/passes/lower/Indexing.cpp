//===- Indexing.cpp - gathers, scatters, sorting --------------------------===//
//
// Everything is in pull form: a body computes one element of the result. Indices wrap once when negative and are clamped
// (gathers) or ignored (scatters) outside the tensor, so no input makes a kernel read or write foreign memory.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

AffineMap dimsMap(MLIRContext *context, unsigned numDims, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t d : dims)
    exprs.push_back(getAffineDimExpr(static_cast<unsigned>(d), context));
  return AffineMap::get(numDims, 0, exprs, context);
}

Shape iota(int64_t begin, int64_t end) {
  auto range = llvm::seq<int64_t>(begin, end);
  return Shape(range.begin(), range.end());
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// Data and indices of one rank, the axis inside it, and no extent of the indices beyond that of the data but along the axis.
LogicalResult checkSameRank(Node &n, int64_t axis) {
  if (n.inRank(0) != n.inRank(1))
    return n.fail("data has rank " + Twine(n.inRank(0)) + " and indices have rank " + Twine(n.inRank(1)) +
                  ", expected equal ranks");
  if (axis < 0 || axis >= n.inRank(0))
    return n.fail("axis is out of range for rank " + Twine(n.inRank(0)));
  for (int64_t d = 0; d < n.inRank(0); ++d)
    if (d != axis && n.inShape(1)[d] > n.inShape(0)[d])
      return n.fail("indices have extent " + Twine(n.inShape(1)[d]) + " in dimension " + Twine(d) + ", expected at most " +
                    Twine(n.inShape(0)[d]));
  return success();
}

/// The common step of constant indices in [0, extent), or nothing when they are no arithmetic sequence. A single index has
/// step 1.
std::optional<int64_t> constantStep(const Shape &indices) {
  int64_t step = indices.size() > 1 ? indices[1] - indices[0] : 1;
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != step)
      return std::nullopt;
  return step == 0 ? std::nullopt : std::optional<int64_t>(step);
}

/// Constant indices in an arithmetic sequence are a slice. Null when they are not.
Value gatherAsSlice(Node &n, int64_t axis) {
  std::optional<Shape> indices = n.constInts(1);
  if (!indices || indices->empty() || n.inRank(1) > 1)
    return {};
  int64_t extent = n.inShape(0)[axis];
  for (int64_t &index : *indices) {
    index = wrapAxis(index, extent);
    if (index < 0 || index >= extent)
      return {};
  }
  std::optional<int64_t> step = constantStep(*indices);
  if (!step)
    return {};
  Shape offsets(n.inRank(0), 0), sizes(n.inShape(0)), steps(n.inRank(0), 1);
  offsets[axis] = indices->front();
  sizes[axis] = static_cast<int64_t>(indices->size());
  steps[axis] = *step;
  return reshape(n.b, stridedRead(n.b, n.in(0), offsets, sizes, steps), n.outShape());
}

LogicalResult gather(Node &n) {
  int64_t axis = wrapAxis(n.op.getI64("axis"), n.inRank(0));
  if (axis < 0 || axis >= n.inRank(0))
    return n.fail("axis is out of range");
  if (Value v = gatherAsSlice(n, axis))
    return n.result(v);
  int64_t extent = n.inShape(0)[axis], indexRank = n.inRank(1), outRank = static_cast<int64_t>(n.outShape().size());
  if (extent == 0 && numElements(n.outShape()) != 0)
    return n.fail("gathers from an axis without elements");
  Value data = n.in(0);
  AffineMap indexMap = dimsMap(n.b.getContext(), static_cast<unsigned>(outRank), iota(axis, axis + indexRank));
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), {{n.in(1), indexMap}},
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < outRank; ++d) {
          if (d == axis)
            position.push_back(s.wrapIndex(x[0], extent, n.isUnsignedIn(1)));
          if (d < axis || d >= axis + indexRank)
            position.push_back(linalg::IndexOp::create(s.b, d));
        }
        if (axis == outRank) // a scalar index into the last axis
          position.push_back(s.wrapIndex(x[0], extent, n.isUnsignedIn(1)));
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

LogicalResult gatherElements(Node &n) {
  int64_t axis = wrapAxis(n.op.getI64("axis"), n.inRank(0));
  if (failed(checkSameRank(n, axis)))
    return failure();
  if (n.inShape(0)[axis] == 0 && numElements(n.outShape()) != 0)
    return n.fail("gathers from an axis without elements");
  Value data = n.in(0);
  return n.result(elementwise(
      n.b, n.outShape(), n.outElement(), n.in(1),
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < n.inRank(0); ++d)
          position.push_back(d == axis ? s.wrapIndex(x[0], shapeOf(data)[d], false)
                                       : linalg::IndexOp::create(s.b, d).getResult());
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

/// out[batch..., i..., slice...] = data[batch..., indices[batch..., i..., :]..., slice...].
LogicalResult gatherNd(Node &n) {
  if (n.inRank(1) < 1)
    return n.fail("indices are a scalar");
  int64_t batch = n.op.getI64("batch_dims"), depth = n.inShape(1).back(), indexDims = n.inRank(1) - 1;
  if (batch + depth > n.inRank(0) || batch > indexDims)
    return n.fail("indices of depth " + Twine(depth) + " with " + Twine(batch) + " batch dimensions do not fit data of rank " +
                  Twine(n.inRank(0)));
  unsigned outRank = static_cast<unsigned>(n.outShape().size());
  Value data = n.in(0);
  for (int64_t j = 0; j < depth; ++j)
    if (n.inShape(0)[batch + j] == 0 && numElements(n.outShape()) != 0)
      return n.fail("gathers from an axis without elements");
  MLIRContext *context = n.b.getContext();
  SmallVector<Operand> operands;
  for (int64_t j = 0; j < depth; ++j) {
    SmallVector<AffineExpr> exprs(dimsMap(context, outRank, iota(0, indexDims)).getResults());
    exprs.push_back(getAffineConstantExpr(j, context));
    operands.push_back({n.in(1), AffineMap::get(outRank, 0, exprs, context)});
  }
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), operands,
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < batch; ++d)
          position.push_back(linalg::IndexOp::create(s.b, d));
        for (int64_t j = 0; j < depth; ++j)
          position.push_back(s.wrapIndex(x[j], shapeOf(data)[batch + j], false));
        for (int64_t d = batch + depth; d < static_cast<int64_t>(shapeOf(data).size()); ++d)
          position.push_back(linalg::IndexOp::create(s.b, indexDims + d - batch - depth));
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

LogicalResult reverseSequence(Node &n) {
  int64_t batchAxis = n.op.getI64("batch_axis", 1), timeAxis = n.op.getI64("time_axis", 0);
  if (batchAxis == timeAxis || batchAxis < 0 || timeAxis < 0)
    return n.fail("batch_axis is " + Twine(batchAxis) + " and time_axis is " + Twine(timeAxis) +
                  ", expected 0 and 1 in some order");
  Value data = n.in(0);
  AffineMap map = dimsMap(n.b.getContext(), static_cast<unsigned>(n.inRank(0)), {batchAxis});
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), {{n.in(1), map}},
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < n.inRank(0); ++d)
          position.push_back(linalg::IndexOp::create(s.b, d));
        Value time = position[timeAxis], length = s.toIndex(x[0], false);
        Value mirrored = s.sub(s.sub(length, s.icst(time.getType(), 1)), time);
        Value source = s.select(s.cmp(Compare::Less, time, length, false), mirrored, time);
        position[timeAxis] = s.wrapIndex(source, shapeOf(data)[timeAxis], false);
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

LogicalResult oneHot(Node &n) {
  int64_t rank = static_cast<int64_t>(n.outShape().size()), axis = wrapAxis(n.op.getI64("axis", -1), rank),
          depth = n.outShape()[axis];
  MLIRContext *context = n.b.getContext();
  Shape dims = iota(0, rank);
  dims.erase(dims.begin() + axis);
  unsigned numDims = static_cast<unsigned>(rank);
  auto constant = [&](int64_t i) { return AffineMap::get(numDims, 0, getAffineConstantExpr(i, context), context); };
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(),
      {{n.in(0), dimsMap(context, numDims, dims)}, {n.in(2), constant(0)}, {n.in(2), constant(1)}},
      [&](Scalar &s, ValueRange x) -> Value {
        Type i64 = s.b.getI64Type();
        Value index = s.cast(x[0], n.isUnsignedIn(0), i64, false);
        index = s.select(s.cmp(Compare::Less, index, s.icst(i64, 0), false), s.add(index, s.icst(i64, depth)), index);
        Value here = arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, axis));
        return s.select(s.cmp(Compare::Equal, index, here, false), x[2], x[1]);
      },
      /*widen=*/false));
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// How an update changes an element.
FailureOr<Value (*)(Scalar &, Value, Value, bool)> readReduction(Node &n) {
  using Fn = Value (*)(Scalar &, Value, Value, bool);
  StringRef name = n.op.getStr("reduction", "none");
  if (name == "none" || name.empty())
    return Fn([](Scalar &, Value, Value update, bool) { return update; });
  if (name == "add")
    return Fn([](Scalar &s, Value old, Value update, bool) { return s.add(old, update); });
  if (name == "mul")
    return Fn([](Scalar &s, Value old, Value update, bool) { return s.mul(old, update); });
  if (name == "max")
    return Fn([](Scalar &s, Value old, Value update, bool isUnsigned) { return s.max(old, update, isUnsigned); });
  if (name == "min")
    return Fn([](Scalar &s, Value old, Value update, bool isUnsigned) { return s.min(old, update, isUnsigned); });
  return n.fail("reduction is '" + name + "', expected none, add, mul, max or min");
}

/// True when `index` (negative: from the end) is the position along dimension d.
Value hits(Scalar &s, Value index, int64_t d, int64_t extent) {
  Value i = s.toIndex(index, false), zero = s.icst(s.b.getIndexType(), 0);
  Value wrapped = s.select(s.cmp(Compare::Less, i, zero, false), s.add(i, s.icst(i.getType(), extent)), i);
  return s.cmp(Compare::Equal, wrapped, linalg::IndexOp::create(s.b, d), false);
}

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
  Shape updateShape{count}, dims = iota(0, depth);
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

/// Each element goes over all updates in order and takes those that name it.
LogicalResult scatterNd(Node &n) {
  auto combine = readReduction(n);
  if (failed(combine))
    return failure();
  if (n.inRank(1) < 1 || n.inShape(1).back() > n.inRank(0))
    return n.fail("indices do not fit data of rank " + Twine(n.inRank(0)));
  int64_t depth = n.inShape(1).back(), count = numElements(n.inShape(1).drop_back()), rank = n.inRank(0);
  if (count == 0 || numElements(n.outShape()) == 0)
    return n.result(n.in(0));
  if (depth > 0 && n.op.getStr("reduction", "none") == "none" && isState(n.in(0)))
    return n.result(updateState(n, depth, count));
  MLIRContext *context = n.b.getContext();
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
    return s.select(takes, (*combine)(s, x[depth + 1], x[depth], n.isUnsignedIn(0)), x[depth + 1]);
  };
  if (!loops) {
    operands.push_back({n.in(0), outMap});
    return n.result(mapElements(n.b, n.outShape(), n.outElement(), operands, body));
  }
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  return n.result(reduceInto(n.b, {n.in(0), outMap}, operands, iterators, body));
}

LogicalResult scatterElements(Node &n) {
  auto combine = readReduction(n);
  if (failed(combine))
    return failure();
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("axis"), rank);
  if (failed(checkSameRank(n, axis)))
    return failure();
  if (numElements(n.inShape(1)) == 0)
    return n.result(n.in(0));
  // Positions without an update get an index that names nothing.
  Shape low(rank, 0), high(rank, 0);
  for (int64_t d = 0; d < rank; ++d)
    high[d] = d == axis ? 0 : n.inShape(0)[d] - n.inShape(1)[d];
  Scalar s(n.b, n.op.getLoc());
  Value indices = pad(n.b, n.in(1), low, high, s.highest(n.inElement(1), false));
  Value updates = pad(n.b, n.in(2), low, high, s.icst(n.outElement(), 0));
  MLIRContext *context = n.b.getContext();
  unsigned dims = static_cast<unsigned>(rank + 1);
  Shape source = iota(0, rank);
  source[axis] = rank;
  AffineMap map = dimsMap(context, dims, source), outMap = dimsMap(context, dims, iota(0, rank));
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  return n.result(reduceInto(n.b, {n.in(0), outMap}, {{indices, map}, {updates, map}}, iterators, [&](Scalar &s, ValueRange x) {
    Value takes = hits(s, x[0], axis, n.inShape(0)[axis]);
    return s.select(takes, (*combine)(s, x[2], x[1], n.isUnsignedIn(0)), x[2]);
  }));
}

//===----------------------------------------------------------------------===//
// TopK
//===----------------------------------------------------------------------===//

/// True when element `a` comes before `b`. NaN counts as larger than every number.
Value comesBefore(Scalar &s, Value a, Value b, bool largest, bool isUnsigned) {
  Value before = s.cmp(largest ? Compare::Greater : Compare::Less, a, b, isUnsigned);
  if (!isa<FloatType>(a.getType()))
    return before;
  Value nanFirst = largest ? s.isNan(a) : s.isNan(b), other = largest ? s.isNan(b) : s.isNan(a);
  return s.add(before, s.mul(nanFirst, s.logicalNot(other)));
}

/// The rank of each element among its row, by counting (ties by index); result k is the element of rank k. Quadratic in the axis.
LogicalResult topK(Node &n) {
  bool largest = n.op.getI64("largest", 1) != 0, isUnsigned = n.isUnsignedIn(0);
  n.op.ignore("sorted"); // always sorted
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("axis", -1), rank);
  MLIRContext *context = n.b.getContext();
  Type i64 = n.b.getI64Type();
  unsigned dims = static_cast<unsigned>(rank + 1);
  Shape here = iota(0, rank), there = here;
  there[axis] = rank;
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  AffineMap hereMap = dimsMap(context, dims, here), thereMap = dimsMap(context, dims, there);
  auto position = [&](Scalar &s, int64_t d) -> Value {
    return arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, d));
  };
  Scalar s(n.b, n.op.getLoc());
  Value ranks = reduceInto(n.b, {filled(n.b, n.inShape(0), s.icst(i64, 0)), hereMap}, {{n.in(0), hereMap}, {n.in(0), thereMap}},
                           iterators, [&](Scalar &s, ValueRange x) {
                             Value beaten = comesBefore(s, x[1], x[0], largest, isUnsigned);
                             Value beats = comesBefore(s, x[0], x[1], largest, isUnsigned);
                             Value tie =
                                 s.mul(s.logicalNot(beats), s.cmp(Compare::Less, position(s, rank), position(s, axis), false));
                             return s.add(x[2], s.select(s.add(beaten, tie), s.icst(i64, 1), s.icst(i64, 0)));
                           });
  Value indices = reduceInto(n.b, {filled(n.b, n.outShape(), s.icst(i64, 0)), hereMap}, {{ranks, thereMap}}, iterators,
                             [&](Scalar &s, ValueRange x) {
                               return s.select(s.cmp(Compare::Equal, x[0], position(s, axis), false), position(s, rank), x[1]);
                             });
  Value data = n.in(0);
  Value values = elementwise(
      n.b, n.outShape(), n.outElement(), indices,
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> source;
        for (int64_t d = 0; d < rank; ++d)
          source.push_back(d == axis ? s.toIndex(x[0], false) : linalg::IndexOp::create(s.b, d).getResult());
        return tensor::ExtractOp::create(s.b, data, source);
      },
      /*widen=*/false);
  if (failed(n.result(values)))
    return failure();
  return n.op.numOutputs() > 1 ? n.result(indices) : success();
}

} // namespace

void registerIndexing(Table &t) {
  t.add("Gather", gather);
  t.add("GatherElements", gatherElements);
  t.add("GatherND", gatherNd);
  t.add("ScatterND", scatterNd);
  t.add("ScatterElements", scatterElements);
  t.add("OneHot", oneHot);
  t.add("ReverseSequence", reverseSequence);
  t.add("TopK", topK);
}

} // namespace ogc::lower
