//===- Suppression.cpp - NonMaxSuppression --------------------------------===//
//
// A group for each batch and class: boxes in the order of their scores; each that is left is taken and suppresses those that
// overlap it too much. The rows of all groups are then put together; those past the last hold -1.
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

/// Two corners of a box, the lower ones first.
struct Box {
  Value low[2], high[2];
};

Box loadBox(ProgramBody &p, Value boxes, Value at, bool isCentered) {
  Value v[4];
  for (int i = 0; i < 4; ++i)
    v[i] = p.load(boxes, p.plus(at, i));
  Box box;
  for (int i = 0; i < 2; ++i) {
    if (isCentered) {
      Value half = p.mul(v[i + 2], p.cst(v[0].getType(), 0.5));
      box.low[i] = p.sub(v[i], half);
      box.high[i] = p.add(v[i], half);
    } else {
      box.low[i] = p.min(v[i], v[i + 2], false);
      box.high[i] = p.max(v[i], v[i + 2], false);
    }
  }
  return box;
}

/// True when the intersection is more than `threshold` of the union.
Value overlaps(ProgramBody &p, const Box &a, const Box &b, Value threshold) {
  Value zero = p.cst(threshold.getType(), 0), common, areas[2];
  for (int i = 0; i < 2; ++i) {
    Value side = p.sub(p.min(a.high[i], b.high[i], false), p.max(a.low[i], b.low[i], false));
    side = p.max(side, zero, false);
    common = common ? p.mul(common, side) : side;
    const Box *boxes[] = {&a, &b}; // a list between braces would be gone before the loop
    for (auto [box, area] : llvm::zip_equal(boxes, areas)) {
      Value length = p.sub(box->high[i], box->low[i]);
      area = area ? p.mul(area, length) : length;
    }
  }
  Value joined = p.sub(p.add(areas[0], areas[1]), common);
  Value isSolid = p.both(p.cmp(Compare::Greater, areas[0], zero, false), p.cmp(Compare::Greater, areas[1], zero, false));
  return p.both(isSolid, p.cmp(Compare::Greater, p.div(common, joined, false), threshold, false));
}

/// Extents of one call.
struct Sizes {
  int64_t batches, classes, boxes, kept; ///< kept: rows for each batch and class
};

/// Box numbers that each batch and class takes, in order, then -1: i64 [batches * classes * kept].
Value takeBoxes(Node &n, const Sizes &sizes, bool isCentered) {
  Value order = sortLines(n.b, n.in(1), 2, sizes.boxes, /*largest=*/true, false);
  SmallVector<Value> inputs{n.in(0), n.in(1), order};
  int numbers[3] = {-1, -1, -1}; // limit, overlap threshold, score threshold
  for (int i = 0; i < 3; ++i)
    if (n.has(2 + i)) {
      numbers[i] = static_cast<int>(inputs.size());
      inputs.push_back(n.in(2 + i));
    }
  int64_t groups = sizes.batches * sizes.classes;
  auto taken = RankedTensorType::get({groups * sizes.kept}, n.b.getI64Type());
  auto gone = RankedTensorType::get({groups * sizes.boxes}, n.b.getI1Type());
  return program(n.b, inputs, {taken, gone}, groups, [&](ProgramBody &p) {
    Type i1 = p.b.getI1Type(), i64 = p.b.getI64Type(), f32 = p.b.getF32Type();
    auto scalar = [&](int number) { return p.load(p.input(numbers[number]), p.index(0)); };
    Value limit = p.min(p.toIndex(scalar(0), false), p.index(sizes.kept), false);
    Value threshold = numbers[1] < 0 ? p.cst(f32, 0) : scalar(1);
    Value base = p.times(p.group(), sizes.boxes), boxes = p.times(p.over(p.group(), sizes.classes), 4 * sizes.boxes);
    Value rows = p.times(p.group(), sizes.kept);
    auto boxAt = [&](Value rank) -> Value {
      return arith::IndexCastOp::create(p.b, p.b.getIndexType(), p.loadRaw(p.input(2), p.plus(base, rank)));
    };
    p.parallel(sizes.boxes, [&](Value rank) {
      Value isGone = p.icst(i1, 0);
      if (numbers[2] >= 0)
        isGone = p.logicalNot(p.cmp(Compare::Greater, p.load(p.input(1), p.plus(base, boxAt(rank))), scalar(2), false));
      p.storeRaw(p.output(1), p.plus(base, rank), isGone);
    });
    p.parallel(sizes.kept, [&](Value i) { p.storeRaw(p.output(0), p.plus(rows, i), p.icst(i64, -1)); });
    p.loop(p.index(0), p.index(sizes.boxes), p.index(0), [&](Value rank, ValueRange v) -> SmallVector<Value> {
      Value isLeft = p.logicalNot(p.loadRaw(p.output(1), p.plus(base, rank)));
      Value takes = p.both(isLeft, p.cmp(Compare::Less, v[0], limit, false));
      p.when(takes, [&] {
        Value number = boxAt(rank);
        p.parallel(sizes.boxes, [&](Value other) {
          p.when(p.cmp(Compare::Equal, other, rank, false),
                 [&] { p.storeRaw(p.output(0), p.plus(rows, v[0]), p.asI64(number)); });
          p.when(p.isLess(rank, other), [&] {
            Box mine = loadBox(p, p.input(0), p.plus(boxes, p.times(number, 4)), isCentered);
            Box its = loadBox(p, p.input(0), p.plus(boxes, p.times(boxAt(other), 4)), isCentered);
            p.when(overlaps(p, mine, its, threshold), [&] { p.storeRaw(p.output(1), p.plus(base, other), p.icst(i1, 1)); });
          });
        });
      });
      return {p.select(takes, p.plus(v[0], 1), v[0])};
    });
  })[0];
}

LogicalResult nonMaxSuppression(Node &n) {
  int64_t centered = n.op.getI64("center_point_box", 0);
  if (centered != 0 && centered != 1)
    return n.fail("center_point_box is " + Twine(centered) + ", expected 0 or 1");
  if (n.inRank(0) != 3 || n.inRank(1) != 3 || n.inShape(0)[2] != 4)
    return n.fail("boxes or scores do not have rank 3, or boxes not 4 numbers");
  if (numElements(n.outShape()) == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  Sizes sizes{n.inShape(1)[0], n.inShape(1)[1], n.inShape(1)[2], 0};
  sizes.kept = n.outShape()[0] / (sizes.batches * sizes.classes);
  Value taken = takeBoxes(n, sizes, centered == 1);
  Value flags = elementwise(n.b, shapeOf(taken), n.b.getI1Type(), taken, [](Scalar &s, ValueRange x) {
    return s.cmp(Compare::GreaterOrEqual, x[0], s.icst(x[0].getType(), 0), false);
  });
  Selected selected = selectSet(n.b, flags);
  MLIRContext *context = n.b.getContext();
  AffineMap rowMap = AffineMap::get(2, 0, {getAffineDimExpr(0, context)}, context),
            countMap = AffineMap::get(2, 0, {getAffineConstantExpr(0, context)}, context);
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), {{selected.positions, rowMap}, {selected.count, countMap}},
                              [&](Scalar &s, ValueRange x) {
                                Type i64 = s.b.getI64Type();
                                Value row = arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, 0));
                                Value column = linalg::IndexOp::create(s.b, 1);
                                Value group = arith::DivUIOp::create(s.b, x[0], s.icst(i64, sizes.kept));
                                Value batch = arith::DivUIOp::create(s.b, group, s.icst(i64, sizes.classes));
                                Value kind = arith::RemUIOp::create(s.b, group, s.icst(i64, sizes.classes));
                                Value box = tensor::ExtractOp::create(s.b, taken, ValueRange{s.toIndex(x[0], false)});
                                auto isColumn = [&](int64_t c) {
                                  return s.cmp(Compare::Equal, column, s.icst(s.b.getIndexType(), c), false);
                                };
                                Value value = s.select(isColumn(0), batch, s.select(isColumn(1), kind, box));
                                return s.select(s.cmp(Compare::Less, row, x[1], false), value, s.icst(i64, -1));
                              }));
}

} // namespace

void registerSuppression(Table &t) { t.add("NonMaxSuppression", nonMaxSuppression); }

} // namespace ogc::lower
