//===- TensorScatter.cpp - rows written into a cache ----------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// past_cache [B, ..., C, ...] with update [B, ..., S, ...] at write_indices [B] of `axis`. Linear: rows past the end are
/// dropped; circular: they go on at the begin. A negative index counts from the end.
LogicalResult tensorScatter(Node &n) {
  MLIRContext *context = n.b.getContext();
  unsigned rank = static_cast<unsigned>(n.inRank(0));
  int64_t axis = wrapAxis(n.op.getI64("axis", -2), rank);
  StringRef mode = n.op.getStr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.fail("mode is '" + mode + "', expected linear or circular");
  if (axis < 1 || axis >= static_cast<int64_t>(rank))
    return n.fail("axis is out of range");
  int64_t capacity = n.inShape(0)[axis], rows = n.inShape(1)[axis];
  if (rows > capacity)
    return n.fail("update has " + Twine(rows) + " rows, expected at most " + Twine(capacity));
  if (numElements(n.inShape(1)) == 0)
    return n.result(n.in(0));
  SmallVector<Operand> operands{{n.in(0), AffineMap::getMultiDimIdentityMap(rank, context)}};
  if (n.has(2))
    operands.push_back({n.in(2), AffineMap::get(rank, 0, getAffineDimExpr(0, context), context)});
  Value update = n.in(1);
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), operands,
      [&](Scalar &s, ValueRange x) -> Value {
        Type index = s.b.getIndexType(), i64 = s.b.getI64Type();
        SmallVector<Value> at;
        for (unsigned d = 0; d < rank; ++d)
          at.push_back(linalg::IndexOp::create(s.b, d));
        Value row = arith::IndexCastOp::create(s.b, i64, at[axis]);
        Value offset = row;
        if (x.size() > 1) {
          Value fromEnd = s.add(x[1], s.icst(i64, capacity));
          offset = s.sub(row, s.select(s.cmp(Compare::Less, x[1], s.icst(i64, 0), false), fromEnd, x[1]));
        }
        if (mode == "circular")
          offset = s.mod(offset, s.icst(i64, capacity), false, /*fmod=*/false);
        Value isNew = arith::AndIOp::create(s.b, s.cmp(Compare::GreaterOrEqual, offset, s.icst(i64, 0), false),
                                            s.cmp(Compare::Less, offset, s.icst(i64, rows), false));
        Value clamped = s.min(s.max(offset, s.icst(i64, 0), false), s.icst(i64, rows - 1), false);
        at[axis] = arith::IndexCastOp::create(s.b, index, clamped);
        return s.select(isNew, tensor::ExtractOp::create(s.b, update, at), x[0]);
      },
      /*widen=*/false));
}

} // namespace

void registerTensorScatter(Table &t) { t.add("TensorScatter", tensorScatter); }

} // namespace ogc::lower
