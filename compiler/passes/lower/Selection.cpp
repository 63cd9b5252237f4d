//===- Selection.cpp - NonZero, Compress, Unique --------------------------===//
//
// How many elements are selected is known at run time only. Results have the largest possible extent and hold zeros, or copies of
// the first element, past what was selected; ogc-bound-extents says what that is.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/Sort.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

Value extractAt(Scalar &s, Value tensor, ValueRange position) { return tensor::ExtractOp::create(s.b, tensor, position); }

/// Row i holds coordinate i of the selected elements.
LogicalResult nonZero(Node &n) {
  int64_t total = numElements(n.inShape(0)), rank = static_cast<int64_t>(n.inShape(0).size());
  if (numElements(n.outShape()) == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  Value flags = elementwise(n.b, n.inShape(0), n.b.getI1Type(), n.in(0),
                            [&](Scalar &s, ValueRange x) { return s.cast(x[0], n.isUnsignedIn(0), s.b.getI1Type(), false); });
  Value positions = selectSet(n.b, reshape(n.b, flags, {total})).positions;
  Shape strides(rank, 1);
  for (int64_t d = rank - 1; d-- > 0;)
    strides[d] = strides[d + 1] * n.inShape(0)[d + 1];
  MLIRContext *context = n.b.getContext();
  AffineMap map = AffineMap::get(2, 0, {getAffineDimExpr(1, context)}, context);
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), {{positions, map}}, [&](Scalar &s, ValueRange x) {
    Type i64 = s.b.getI64Type();
    Value row = linalg::IndexOp::create(s.b, 0), result = s.icst(i64, 0);
    for (int64_t d = 0; d < rank; ++d) {
      Value digit = x[0];
      if (strides[d] != 1)
        digit = arith::DivUIOp::create(s.b, digit, s.icst(i64, strides[d]));
      if (d > 0)
        digit = arith::RemUIOp::create(s.b, digit, s.icst(i64, n.inShape(0)[d]));
      result = d == 0 ? digit : s.select(s.cmp(Compare::Equal, row, s.icst(s.b.getIndexType(), d), false), digit, result);
    }
    return result;
  }));
}

/// Slices of `data` along `axis` at positions that a tensor holds.
Value takeAlong(Builder &b, Value data, Value positions, int64_t axis, ArrayRef<int64_t> shape) {
  MLIRContext *context = b.getContext();
  int64_t rank = static_cast<int64_t>(shape.size());
  AffineMap map =
      AffineMap::get(static_cast<unsigned>(rank), 0, {getAffineDimExpr(static_cast<unsigned>(axis), context)}, context);
  return mapElements(
      b, shape, elementOf(data), {{positions, map}},
      [&](Scalar &s, ValueRange x) {
        SmallVector<Value> position;
        for (int64_t d = 0; d < rank; ++d)
          position.push_back(d == axis ? s.wrapIndex(x[0], shapeOf(data)[d], false)
                                       : linalg::IndexOp::create(s.b, d).getResult());
        return extractAt(s, data, position);
      },
      /*widen=*/false);
}

LogicalResult compress(Node &n) {
  std::optional<int64_t> given = n.op.findI64("axis");
  Value data = n.in(0);
  int64_t axis = given ? wrapAxis(*given, n.inRank(0)) : 0;
  if (!given)
    data = reshape(n.b, data, {numElements(n.inShape(0))});
  int64_t rank = static_cast<int64_t>(shapeOf(data).size());
  if (axis < 0 || axis >= rank)
    return n.fail("axis is out of range for rank " + Twine(rank));
  if (n.inRank(1) != 1)
    return n.fail("condition has rank " + Twine(n.inRank(1)) + ", expected 1");
  if (numElements(n.outShape()) == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  int64_t length = std::min(n.inShape(1)[0], shapeOf(data)[axis]);
  Value condition = slice(n.b, n.in(1), {0}, {length});
  return n.result(takeAlong(n.b, data, selectSet(n.b, condition).positions, axis, n.outShape()));
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

/// Items are elements, or slices along the axis. Results: Y, indices, inverse_indices, counts.
class Unique {
public:
  explicit Unique(Node &n) : n(n) {}

  LogicalResult run() {
    bool isSorted = n.op.getI64("sorted", 1) != 0;
    std::optional<int64_t> given = n.op.findI64("axis");
    data = n.in(0);
    if (!given)
      data = reshape(n.b, data, {numElements(n.inShape(0))});
    int64_t rank = static_cast<int64_t>(shapeOf(data).size());
    axis = given ? wrapAxis(*given, rank) : 0;
    if (axis < 0 || axis >= rank)
      return n.fail("axis is out of range for rank " + Twine(rank));
    items = shapeOf(data)[axis];
    if (numElements(shapeOf(data)) == 0)
      return n.fail("operand 0 has no elements");
    sortItems();
    Value number = isSorted ? numberSorted() : numberByOccurrence();
    if (failed(n.result(takeAlong(n.b, data, firsts, axis, n.outShape()))))
      return failure();
    Value rest[3] = {firsts, number, counts};
    for (int i = 1; i < n.op.numOutputs(); ++i)
      if (failed(n.result(rest[i - 1])))
        return failure();
    return success();
  }

private:
  RankedTensorType vector(Type element) { return RankedTensorType::get({items}, element); }

  /// Emits a comparison of items: calls `step` for each pair of elements until it decides.
  Value compareItems(ProgramBody &p, Value x, Value y, bool isEquality) {
    Lines lines(shapeOf(data), axis);
    int64_t elements = lines.count();
    auto at = [&](Value item, Value i) { return p.load(p.input(0), p.plus(lines.start(p, i), p.times(item, lines.stride))); };
    bool isUnsigned = n.isUnsignedIn(0);
    auto before = [&](Value a, Value b) { return comesBefore(p, a, b, false, isUnsigned); };
    auto isSame = [&](Value a, Value b) { return p.logicalNot(p.either(before(a, b), before(b, a))); };
    if (elements == 1) {
      Value a = at(x, p.index(0)), b = at(y, p.index(0));
      return isEquality ? isSame(a, b) : before(a, b);
    }
    // The first element that differs decides.
    Value first = p.whileLoop(
        p.index(0),
        [&](ValueRange v) {
          return p.choose(
              p.isLess(v[0], p.index(elements)), [&] { return isSame(at(x, v[0]), at(y, v[0])); },
              [&] { return p.icst(p.b.getI1Type(), 0); });
        },
        [&](ValueRange v) -> SmallVector<Value> { return {p.plus(v[0], 1)}; })[0];
    Value differs = p.isLess(first, p.index(elements));
    if (isEquality)
      return p.logicalNot(differs);
    return p.choose(differs, [&] { return before(at(x, first), at(y, first)); }, [&] { return p.icst(p.b.getI1Type(), 0); });
  }

  /// `order`: positions in ascending order; `heads`: whether the item at a sorted position differs from the one before.
  void sortItems() {
    SmallVector<Value> results =
        program(n.b, data, {vector(n.b.getI32Type()), vector(n.b.getI32Type()), vector(n.b.getI1Type())}, 1, [&](ProgramBody &p) {
          mergeSort(p, p.index(0), p.output(0), p.output(1), items, items,
                    [&](ProgramBody &p, Value x, Value y) { return compareItems(p, x, y, false); });
          auto item = [&](Value i) -> Value {
            return arith::IndexCastOp::create(p.b, p.b.getIndexType(), p.loadRaw(p.output(0), i));
          };
          p.parallel(items, [&](Value i) {
            auto differs = [&] { return p.logicalNot(compareItems(p, item(p.minus(i, p.index(1))), item(i), true)); };
            Value isHead = p.choose(p.isLess(p.index(0), i), differs, [&] { return p.icst(p.b.getI1Type(), 1); });
            p.storeRaw(p.output(2), i, isHead);
            if (items <= fewItems) // the spare buffer was not needed
              p.storeRaw(p.output(1), i, p.icst(p.b.getI32Type(), 0));
          });
        });
    order = results[0];
    heads = results[2];
    headPositions = selectSet(n.b, heads);
  }

  /// Sets `firsts` and `counts` in ascending order; returns the number of each item.
  Value numberSorted() {
    Selected selected = headPositions;
    SmallVector<Value> results = program(
        n.b, {order, heads, selected.positions, selected.count},
        {vector(n.b.getI64Type()), vector(n.b.getI64Type()), vector(n.b.getI64Type())}, 1, [&](ProgramBody &p) {
          Value count = p.toIndex(p.loadRaw(p.input(3), p.index(0)), false);
          Type i64 = p.b.getI64Type();
          auto item = [&](Value i) -> Value {
            return arith::IndexCastOp::create(p.b, p.b.getIndexType(), p.loadRaw(p.input(0), i));
          };
          auto head = [&](Value k) { return p.toIndex(p.loadRaw(p.input(2), k), false); };
          p.parallel(items, [&](Value k) {
            Value exists = p.isLess(k, count), start = head(k);
            auto end = [&] {
              return p.choose(p.isLess(p.plus(k, 1), count), [&] { return head(p.plus(k, 1)); }, [&] { return p.index(items); });
            };
            p.storeRaw(p.output(0), k, p.asI64(item(start)));
            Value size = p.choose(exists, [&] { return p.asI64(p.minus(end(), start)); }, [&] { return p.icst(i64, 0); });
            p.storeRaw(p.output(2), k, size);
            // The members of a run have one number.
            p.when(exists, [&] {
              p.loop(start, p.plus(start, p.toIndex(size, false)),
                     [&](Value i) { p.storeRaw(p.output(1), item(i), p.asI64(k)); });
            });
          });
        });
    firsts = results[0];
    counts = results[2];
    return results[1];
  }

  /// The same in the order of first occurrence.
  Value numberByOccurrence() {
    Value sortedNumber = numberSorted(), sortedFirsts = firsts, sortedCounts = counts;
    // An item is the first of its kind when it is the first of its run.
    Value isFirst = elementwise(n.b, {items}, n.b.getI1Type(), sortedNumber, [&](Scalar &s, ValueRange x) {
      Value own = linalg::IndexOp::create(s.b, 0), first = extractAt(s, sortedFirsts, s.toIndex(x[0], false));
      return s.cmp(Compare::Equal, s.toIndex(first, false), own, false);
    });
    Selected selected = selectSet(n.b, isFirst);
    SmallVector<Value> results =
        program(n.b, {selected.positions, selected.count, sortedNumber, sortedCounts},
                {vector(n.b.getI64Type()), vector(n.b.getI64Type()), vector(n.b.getI64Type())}, 1, [&](ProgramBody &p) {
                  Value count = p.toIndex(p.loadRaw(p.input(1), p.index(0)), false);
                  auto sorted = [&](Value item) { return p.toIndex(p.loadRaw(p.input(2), item), false); };
                  // Output 2: the new number of each sorted one.
                  p.parallel(items, [&](Value k) {
                    Value item = p.toIndex(p.loadRaw(p.input(0), k), false), exists = p.isLess(k, count);
                    p.when(exists, [&] { p.storeRaw(p.output(2), sorted(item), p.asI64(k)); });
                    Value size = p.loadRaw(p.input(3), sorted(item));
                    p.storeRaw(p.output(1), k, p.select(exists, size, p.icst(size.getType(), 0)));
                  });
                  p.parallel(items, [&](Value item) { p.storeRaw(p.output(0), item, p.loadRaw(p.output(2), sorted(item))); });
                });
    firsts = selected.positions;
    counts = results[1];
    return results[0];
  }

  Node &n;
  Value data, order, heads, firsts, counts;
  Selected headPositions;
  int64_t axis = 0, items = 0;
};

LogicalResult unique(Node &n) { return Unique(n).run(); }

} // namespace

void registerSelection(Table &t) {
  t.add("NonZero", nonZero);
  t.add("Compress", compress);
  t.add("Unique", unique);
}

} // namespace ogc::lower
