//===- Pooling.cpp - MaxPool, AveragePool, LpPool and the global forms ----===//
#include "compiler/passes/lower/Window.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// A reduction over the windows of [N, C, spatial...]: the domain is n, c, out..., kernel... `extra` operands have the result's
/// dimensions.
Value reduceWindows(Node &n, Value padded, const Window &w, Value start, ArrayRef<Value> extra, Body body) {
  MLIRContext *context = n.b.getContext();
  unsigned rank = static_cast<unsigned>(w.rank()), dims = 2 + 2 * rank;
  SmallVector<AffineExpr> in{getAffineDimExpr(0, context), getAffineDimExpr(1, context)};
  llvm::append_range(in, windowExprs(context, w, 2, 2 + rank));
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(dims, context).getMajorSubMap(2 + rank);
  SmallVector<Operand> operands{{padded, AffineMap::get(dims, 0, in, context)}};
  for (Value v : extra)
    operands.push_back({v, outMap});
  // An operand that no body reads gives the window its extents.
  operands.push_back(
      {empty(n.b, w.kernel, elementOf(padded)), AffineMap::getMultiDimIdentityMap(dims, context).getMinorSubMap(rank)});
  SmallVector<IteratorType> iterators(2 + rank, IteratorType::parallel);
  iterators.append(rank, IteratorType::reduction);
  Shape shape{shapeOf(padded)[0], shapeOf(padded)[1]};
  llvm::append_range(shape, w.out);
  return reduceInto(n.b, {filled(n.b, shape, start), outMap}, operands, iterators, body);
}

FailureOr<Window> poolWindow(Node &n) {
  n.op.ignore("ceil_mode"); // the result type says it
  if (n.inRank(0) < 3)
    return n.fail("operand 0 has rank " + Twine(n.inRank(0)) + ", expected 3 or more");
  return readWindow(n, {}, n.inShape(0).drop_front(2), n.outShape().drop_front(2));
}

/// The flat index (over all dimensions, unpadded) of the first maximum of each window.
LogicalResult maxIndices(Node &n, Value padded, const Window &w, Value max) {
  bool columnMajor = n.op.getI64("storage_order") != 0, isUnsigned = n.isUnsignedIn(0);
  Type i64 = n.b.getI64Type();
  size_t rank = w.rank();
  Scalar outer(n.b, n.op.getLoc());
  Value indices = reduceWindows(n, padded, w, outer.highest(i64, false), {max}, [&](Scalar &s, ValueRange x) {
    auto dim = [&](size_t d) -> Value { return linalg::IndexOp::create(s.b, static_cast<int64_t>(d)); };
    Type index = s.b.getIndexType();
    Value flat = s.add(s.mul(dim(0), s.icst(index, shapeOf(padded)[1])), dim(1));
    flat = s.mul(flat, s.icst(index, numElements(w.in)));
    Value inside;
    int64_t stride = columnMajor ? 1 : numElements(w.in);
    for (size_t d = 0; d < rank; ++d) {
      if (!columnMajor)
        stride /= w.in[d];
      Value position =
          s.add(s.mul(dim(2 + d), s.icst(index, w.strides[d])), s.mul(dim(2 + rank + d), s.icst(index, w.dilations[d])));
      position = s.sub(position, s.icst(index, w.padBegin[d]));
      flat = s.add(flat, s.mul(position, s.icst(index, stride)));
      // As unsigned, a negative position is large.
      Value valid = s.cmp(Compare::Less, position, s.icst(index, w.in[d]), true);
      inside = inside ? arith::AndIOp::create(s.b, inside, valid).getResult() : valid;
      if (columnMajor)
        stride *= w.in[d];
    }
    Value holds = s.cmp(Compare::Equal, x[0], x[1], isUnsigned);
    if (isa<FloatType>(x[0].getType()))
      holds = s.add(holds, s.isNan(x[0]));
    Value candidate = arith::IndexCastOp::create(s.b, i64, flat);
    candidate = s.select(arith::AndIOp::create(s.b, holds, inside), candidate, s.highest(i64, false));
    return s.min(x.back(), candidate, false);
  });
  return n.result(indices);
}

LogicalResult maxPool(Node &n) {
  FailureOr<Window> w = poolWindow(n);
  if (failed(w))
    return failure();
  n.op.ignore("storage_order");
  bool isUnsigned = n.isUnsignedIn(0);
  Scalar s(n.b, n.op.getLoc());
  Value padded = padWindow(n, n.in(0), *w, 2, s.lowest(n.inElement(0), isUnsigned));
  Value max = reduceWindows(n, padded, *w, s.lowest(computeType(n.inElement(0)), isUnsigned), {},
                            [&](Scalar &s, ValueRange x) { return s.max(x.back(), x[0], isUnsigned); });
  if (failed(n.result(convertFloat(n.b, max, n.outElement()))))
    return failure();
  return n.op.isOutputUsed(1) ? maxIndices(n, padded, *w, max) : success();
}

/// Elements of a window that an average divides by, along one dimension: those of its `kernel` positions that lie in [low, high).
struct Counted {
  int64_t low, high;
};

Counted countedRange(const Window &w, size_t d, bool countsPadding) {
  return {countsPadding ? -w.padBegin[d] : 0, w.in[d] + (countsPadding ? w.padEnd[d] : 0)};
}

/// True when every position of every window counts.
bool countsAll(const Window &w, bool countsPadding) {
  for (size_t d = 0; d < w.rank(); ++d) {
    Counted range = countedRange(w, d, countsPadding);
    if (w.position(d, 0, 0) < range.low || w.position(d, w.out[d] - 1, w.kernel[d] - 1) >= range.high)
      return false;
  }
  return true;
}

/// The number of elements that the window at the current element of [N, C, spatial...] divides by. Computed where it is needed: a
/// table would have an entry for each position.
Value windowCount(Scalar &s, const Window &w, bool countsPadding) {
  Type index = s.b.getIndexType();
  Value count;
  for (size_t d = 0; d < w.rank(); ++d) {
    Counted range = countedRange(w, d, countsPadding);
    Value at = linalg::IndexOp::create(s.b, static_cast<int64_t>(2 + d));
    Value first = s.sub(s.mul(at, s.icst(index, w.strides[d])), s.icst(index, w.padBegin[d]));
    // Kernel elements in front of `bound`.
    auto before = [&](int64_t bound) {
      Value distance = s.max(s.sub(s.icst(index, bound), first), s.icst(index, 0), false);
      if (w.dilations[d] != 1)
        distance = arith::DivUIOp::create(s.b, s.add(distance, s.icst(index, w.dilations[d] - 1)), s.icst(index, w.dilations[d]));
      return s.min(distance, s.icst(index, w.kernel[d]), false);
    };
    Value along = s.sub(before(range.high), before(range.low));
    count = count ? s.mul(count, along) : along;
  }
  return count;
}

LogicalResult averagePool(Node &n) {
  FailureOr<Window> w = poolWindow(n);
  if (failed(w))
    return failure();
  bool countsPadding = n.op.getI64("count_include_pad") != 0;
  Scalar s(n.b, n.op.getLoc());
  Value padded = padWindow(n, n.in(0), *w, 2, s.icst(n.inElement(0), 0));
  Value sum = reduceWindows(n, padded, *w, s.cst(computeType(n.inElement(0)), 0.0), {},
                            [](Scalar &s, ValueRange x) { return s.add(x.back(), x[0]); });
  bool isConstant = countsAll(*w, countsPadding);
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), {sum}, [&](Scalar &s, ValueRange x) -> Value {
    Type type = x[0].getType();
    if (isConstant)
      return s.mul(x[0], s.cst(type, 1.0 / static_cast<double>(numElements(w->kernel))));
    Value count = arith::IndexCastOp::create(s.b, s.b.getI64Type(), windowCount(s, *w, countsPadding));
    return s.div(x[0], s.cast(count, false, type, false), false);
  }));
}

Value powerOf(Scalar &s, Value x, int64_t p) {
  return p == 1 ? s.abs(x, false) : s.pow(s.abs(x, false), s.cst(x.getType(), static_cast<double>(p)), false, false);
}
Value rootOf(Scalar &s, Value x, int64_t p) {
  if (p == 1)
    return x;
  return p == 2 ? s.sqrt(x) : s.pow(x, s.cst(x.getType(), 1.0 / static_cast<double>(p)), false, false);
}

LogicalResult lpPool(Node &n) {
  FailureOr<Window> w = poolWindow(n);
  if (failed(w))
    return failure();
  int64_t p = n.op.getI64("p", 2);
  Scalar s(n.b, n.op.getLoc());
  Value padded = padWindow(n, n.in(0), *w, 2, s.icst(n.inElement(0), 0));
  Value sum = reduceWindows(n, padded, *w, s.cst(computeType(n.inElement(0)), 0.0), {},
                            [&](Scalar &s, ValueRange x) { return s.add(x.back(), powerOf(s, x[0], p)); });
  return n.result(
      elementwise(n.b, n.outShape(), n.outElement(), sum, [&](Scalar &s, ValueRange x) { return rootOf(s, x[0], p); }));
}

//===----------------------------------------------------------------------===//
// Global pooling
//===----------------------------------------------------------------------===//

/// A reduction over all spatial dimensions.
LogicalResult globalPool(Node &n, function_ref<Value(Scalar &, Type)> start, Body body,
                         function_ref<Value(Scalar &, Value, int64_t)> after) {
  Shape axes;
  for (int64_t d = 2; d < n.inRank(0); ++d)
    axes.push_back(d);
  RowDomain domain(n.b.getContext(), n.inShape(0), axes);
  Scalar s(n.b, n.op.getLoc());
  Value sum = reduceRows(n.b, domain, {{n.in(0), domain.full}}, start(s, computeType(n.inElement(0))), body);
  Value result = elementwise(n.b, domain.outer, n.outElement(), sum,
                             [&](Scalar &s, ValueRange x) { return after(s, x[0], domain.innerSize()); });
  return n.result(reshape(n.b, result, n.outShape()));
}

LogicalResult globalAveragePool(Node &n) {
  return globalPool(
      n, [](Scalar &s, Type type) { return s.cst(type, 0.0); }, [](Scalar &s, ValueRange x) { return s.add(x[1], x[0]); },
      [](Scalar &s, Value x, int64_t count) { return s.mul(x, s.cst(x.getType(), 1.0 / static_cast<double>(count))); });
}
LogicalResult globalMaxPool(Node &n) {
  return globalPool(
      n, [](Scalar &s, Type type) { return s.lowest(type, false); },
      [](Scalar &s, ValueRange x) { return s.max(x[1], x[0], false); }, [](Scalar &, Value x, int64_t) { return x; });
}
LogicalResult globalLpPool(Node &n) {
  int64_t p = n.op.getI64("p", 2);
  return globalPool(
      n, [](Scalar &s, Type type) { return s.cst(type, 0.0); },
      [&](Scalar &s, ValueRange x) { return s.add(x[1], powerOf(s, x[0], p)); },
      [&](Scalar &s, Value x, int64_t) { return rootOf(s, x, p); });
}

} // namespace

void registerPooling(Table &t) {
  t.add("MaxPool", maxPool);
  t.add("AveragePool", averagePool);
  t.add("LpPool", lpPool);
  t.add("GlobalAveragePool", globalAveragePool);
  t.add("GlobalMaxPool", globalMaxPool);
  t.add("GlobalLpPool", globalLpPool);
}

} // namespace ogc::lower
