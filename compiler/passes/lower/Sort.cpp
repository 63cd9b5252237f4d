//===- Sort.cpp - TopK, and the sorting that other operators need ---------===//
//
// A merge sort of positions in one kernel: chunks are sorted by insertion, then runs are merged pairwise. Each thread writes a
// few consecutive positions of a merged run; where they begin in the two runs it finds by bisection along a diagonal (merge
// path).
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Sort.h"
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Positions that are sorted by insertion, and positions of a merged run that one thread writes.
constexpr int64_t chunkSize = fewItems, pieceSize = 16;

int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

class MergeSort {
public:
  MergeSort(ProgramBody &p, Value base, int64_t length, int64_t kept, Before before)
      : p(p), base(base), length(length), kept(kept), before(before) {}

  void insertionSort(Value buffer, Value chunk) {
    Value first = p.times(chunk, chunkSize), end = p.smaller(p.plus(first, chunkSize), p.index(length));
    p.loop(first, end, [&](Value item) {
      // Moves items up until the place of the new one is found.
      auto goesOn = [&](ValueRange at) {
        auto isAfter = [&] { return before(p, item, read(buffer, p.minus(at[0], p.index(1)))); };
        return p.choose(p.isLess(first, at[0]), isAfter, [&] { return p.icst(p.b.getI1Type(), 0); });
      };
      auto moveUp = [&](ValueRange at) -> SmallVector<Value> {
        Value below = p.minus(at[0], p.index(1));
        write(buffer, at[0], read(buffer, below));
        return {below};
      };
      Value place = p.whileLoop(item, goesOn, moveUp)[0];
      write(buffer, place, item);
    });
  }

  /// Merges runs of `width` of `from` pairwise into `to`.
  void merge(Value from, Value to, int64_t width) {
    int64_t wanted = std::min({2 * width, kept, length}), pieces = ceilDiv(wanted, pieceSize);
    int64_t pairs = ceilDiv(length, 2 * width);
    p.parallel(pairs * pieces, [&](Value piece) {
      Value pair = p.over(piece, pieces), diagonal = p.times(p.rest(piece, pieces), pieceSize);
      mergePiece(from, to, p.times(pair, 2 * width), diagonal, width);
    });
  }

private:
  Value read(Value buffer, Value at) {
    return arith::IndexCastOp::create(p.b, p.b.getIndexType(), p.loadRaw(buffer, p.plus(base, at)));
  }
  void write(Value buffer, Value at, Value item) {
    p.storeRaw(buffer, p.plus(base, at), arith::IndexCastOp::create(p.b, p.b.getI32Type(), item));
  }
  Value minusOrZero(Value x, Value y) { return p.select(p.isLess(y, x), p.minus(x, y), p.index(0)); }

  void mergePiece(Value from, Value to, Value start, Value diagonal, int64_t width) {
    Value limit = p.index(std::min(width, kept)), end = p.index(length);
    Value second = p.smaller(p.plus(start, width), end);
    Value sizeA = p.smaller(p.minus(second, start), limit);
    Value sizeB = p.smaller(minusOrZero(end, second), limit);
    Value total = p.smaller(p.plus(sizeA, sizeB), p.index(kept));
    // How many of the first `diagonal` merged positions come from the first run.
    auto bounds = p.whileLoop(
        {minusOrZero(diagonal, sizeB), p.smaller(diagonal, sizeA)}, [&](ValueRange v) { return p.isLess(v[0], v[1]); },
        [&](ValueRange v) -> SmallVector<Value> {
          Value middle = p.over(p.plus(v[0], v[1]), 2);
          Value other = p.minus(p.minus(diagonal, p.index(1)), middle);
          Value tooMany = before(p, read(from, p.plus(second, other)), read(from, p.plus(start, middle)));
          return {p.select(tooMany, v[0], p.plus(middle, 1)), p.select(tooMany, middle, v[1])};
        });
    Value a = bounds[0], b = p.minus(diagonal, a);
    p.loop(diagonal, p.smaller(p.plus(diagonal, pieceSize), total), {a, b}, [&](Value i, ValueRange v) -> SmallVector<Value> {
      auto no = [&] { return p.icst(p.b.getI1Type(), 0); };
      auto isSecond = [&] {
        return p.choose(
            p.isLess(v[0], sizeA), [&] { return before(p, read(from, p.plus(second, v[1])), read(from, p.plus(start, v[0]))); },
            [&] { return p.icst(p.b.getI1Type(), 1); });
      };
      Value takesSecond = p.choose(p.isLess(v[1], sizeB), isSecond, no);
      Value source = p.select(takesSecond, p.plus(second, v[1]), p.plus(start, v[0]));
      write(to, p.plus(start, i), read(from, source));
      return {p.select(takesSecond, v[0], p.plus(v[0], 1)), p.select(takesSecond, p.plus(v[1], 1), v[1])};
    });
  }

  ProgramBody &p;
  Value base;
  int64_t length, kept;
  Before before;
};

} // namespace

void mergeSort(ProgramBody &p, Value base, Value order, Value spare, int64_t length, int64_t kept, Before before) {
  MergeSort sort(p, base, length, kept, before);
  int levels = 0;
  for (int64_t width = chunkSize; width < length; width *= 2)
    ++levels;
  Value buffers[2] = {order, spare};
  p.parallel(ceilDiv(length, chunkSize), [&](Value chunk) { sort.insertionSort(buffers[levels % 2], chunk); });
  for (int64_t width = chunkSize; levels > 0; width *= 2, --levels)
    sort.merge(buffers[levels % 2], buffers[(levels - 1) % 2], width);
}

void sortFew(ProgramBody &p, Value base, Value order, int64_t length, Before before) {
  MergeSort(p, base, length, length, before).insertionSort(order, p.index(0));
}

Value comesBefore(Scalar &s, Value a, Value b, bool largest, bool isUnsigned) {
  Value before = s.cmp(largest ? Compare::Greater : Compare::Less, a, b, isUnsigned);
  if (!isa<FloatType>(a.getType()))
    return before;
  Value nanFirst = largest ? s.isNan(a) : s.isNan(b), other = largest ? s.isNan(b) : s.isNan(a);
  return s.add(before, s.mul(nanFirst, s.logicalNot(other)));
}

Value sortLines(Builder &b, Value data, int64_t axis, int64_t kept, bool largest, bool isUnsigned) {
  Lines lines(shapeOf(data), axis);
  RankedTensorType order = RankedTensorType::get({lines.count(), lines.length}, b.getI32Type());
  SmallVector<RankedTensorType> results(lines.length > chunkSize ? 2 : 1, order);
  return program(b, data, results, lines.count(), [&](ProgramBody &p) {
    Value start = lines.start(p, p.group());
    auto key = [&](Value item) { return p.load(p.input(0), p.plus(start, p.times(item, lines.stride))); };
    Value base = p.times(p.group(), lines.length);
    auto before = [&](ProgramBody &p, Value x, Value y) { return comesBefore(p, key(x), key(y), largest, isUnsigned); };
    if (lines.length <= fewItems)
      sortFew(p, base, p.output(0), lines.length, before);
    else
      mergeSort(p, base, p.output(0), p.output(1), lines.length, kept, before);
  })[0];
}

Selected selectSet(Builder &b, Value flags) {
  int64_t length = shapeOf(flags)[0];
  auto chunk = std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(length))));
  int64_t chunks = ceilDiv(length, chunk);
  auto vector = [&](int64_t n) { return RankedTensorType::get({n}, b.getI64Type()); };
  SmallVector<Value> results = program(b, flags, {vector(length), vector(1), vector(chunks)}, 1, [&](ProgramBody &p) {
    Type i64 = p.b.getI64Type();
    Value zero = p.icst(i64, 0), one = p.icst(i64, 1);
    auto chunkEnd = [&](Value c) { return p.smaller(p.times(p.plus(c, 1), chunk), p.index(length)); };
    p.parallel(chunks, [&](Value c) {
      Value count = p.loop(p.times(c, chunk), chunkEnd(c), zero, [&](Value i, ValueRange v) -> SmallVector<Value> {
        return {p.add(v[0], p.select(p.loadRaw(p.input(0), i), one, zero))};
      })[0];
      p.storeRaw(p.output(2), c, count);
    });
    p.parallel(1, [&](Value) {
      Value total = p.loop(p.index(0), p.index(chunks), zero, [&](Value c, ValueRange v) -> SmallVector<Value> {
        Value count = p.loadRaw(p.output(2), c);
        p.storeRaw(p.output(2), c, v[0]);
        return {p.add(v[0], count)};
      })[0];
      p.storeRaw(p.output(1), p.index(0), total);
    });
    // What is set goes to its place; positions at and after the total hold zero.
    p.parallel(chunks, [&](Value c) {
      Value place = p.toIndex(p.loadRaw(p.output(2), c), false);
      p.loop(p.times(c, chunk), chunkEnd(c), place, [&](Value i, ValueRange v) -> SmallVector<Value> {
        Value isSet = p.loadRaw(p.input(0), i);
        p.when(isSet, [&] { p.storeRaw(p.output(0), v[0], p.asI64(i)); });
        return {p.select(isSet, p.plus(v[0], 1), v[0])};
      });
    });
    p.parallel(length, [&](Value i) {
      Value total = p.toIndex(p.loadRaw(p.output(1), p.index(0)), false);
      p.when(p.logicalNot(p.isLess(i, total)), [&] { p.storeRaw(p.output(0), i, zero); });
    });
  });
  return {results[0], results[1]};
}

namespace {

LogicalResult topK(Node &n) {
  bool largest = n.op.getI64("largest", 1) != 0, isUnsigned = n.isUnsignedIn(0);
  n.op.ignore("sorted"); // always sorted
  int64_t rank = n.inRank(0);
  if (rank == 0)
    return n.fail("operand 0 is a scalar");
  int64_t axis = wrapAxis(n.op.getI64("axis", -1), rank);
  if (axis < 0 || axis >= rank)
    return n.fail("axis is out of range for rank " + Twine(rank));
  int64_t k = n.outShape()[axis];
  if (k > n.inShape(0)[axis])
    return n.fail("k is " + Twine(k) + ", expected at most " + Twine(n.inShape(0)[axis]));
  if (numElements(n.outShape()) == 0) {
    if (failed(n.result(empty(n.b, n.outShape(), n.outElement()))))
      return failure();
    return n.op.numOutputs() > 1 ? n.result(empty(n.b, n.outShape(), n.b.getI64Type())) : success();
  }
  Lines lines(n.inShape(0), axis);
  Value order = sortLines(n.b, n.in(0), axis, k, largest, isUnsigned); // [outer * inner, length]
  order = slice(n.b, order, {0, 0}, {lines.count(), k});
  order = transpose(n.b, reshape(n.b, order, {lines.outer, lines.stride, k}), {0, 2, 1});
  Value indices = elementwise(n.b, n.outShape(), n.b.getI64Type(), reshape(n.b, order, n.outShape()),
                              [](Scalar &s, ValueRange x) { return s.cast(x[0], false, s.b.getI64Type(), false); });
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

void registerSort(Table &t) { t.add("TopK", topK); }

} // namespace ogc::lower
