//===- Determinant.cpp - Det ----------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// Matrices up to this size are the matter of one thread.
constexpr int64_t smallMatrix = 12;

/// Gaussian elimination with the largest pivot of a column, a group a matrix. Output 1 holds the matrices in work.
void eliminate(ProgramBody &p, int64_t size, Type type) {
  auto each = [&](Value extent, int64_t width, function_ref<void(Value)> body) {
    size <= smallMatrix ? p.loop(p.index(0), extent, body) : p.parallel(extent, width, body);
  };
  Value base = p.times(p.group(), size * size), work = p.output(1), result = p.output(0);
  auto at = [&](Value row, Value column) { return p.plus(base, p.plus(p.times(row, size), column)); };
  each(p.index(size * size), size * size, [&](Value i) { p.store(work, p.plus(base, i), p.load(p.input(0), p.plus(base, i))); });
  each(p.index(1), 1, [&](Value) { p.store(p.output(2), p.group(), p.cst(type, 1)); });
  p.loop(p.index(0), p.index(size), [&](Value k) {
    each(p.index(1), 1, [&](Value) {
      auto better = [&](Value row, ValueRange v) -> SmallVector<Value> {
        Value candidate = p.abs(p.load(work, at(row, k)), false);
        Value isBetter = p.cmp(Compare::Greater, candidate, v[1], false);
        return {p.select(isBetter, row, v[0]), p.select(isBetter, candidate, v[1])};
      };
      SmallVector<Value> best = p.loop(p.plus(k, 1), p.index(size), {k, p.abs(p.load(work, at(k, k)), false)}, better);
      Value swaps = p.logicalNot(p.cmp(Compare::Equal, best[0], k, false));
      p.when(swaps, [&] {
        p.loop(k, p.index(size), [&](Value column) {
          Value upper = p.load(work, at(k, column)), lower = p.load(work, at(best[0], column));
          p.store(work, at(k, column), lower);
          p.store(work, at(best[0], column), upper);
        });
      });
      Value pivot = p.load(work, at(k, k)), before = p.load(p.output(2), p.group());
      p.store(p.output(2), p.group(), p.mul(before, p.select(swaps, p.neg(pivot), pivot)));
    });
    Value left = p.minus(p.index(size - 1), k);
    each(p.times(left, left), size * size, [&](Value i) {
      Value row = p.plus(p.plus(k, 1), arith::DivUIOp::create(p.b, i, left)),
            column = p.plus(p.plus(k, 1), arith::RemUIOp::create(p.b, i, left));
      Value pivot = p.load(work, at(k, k)), zero = p.cst(type, 0);
      Value factor = p.div(p.load(work, at(row, k)), pivot, false);
      factor = p.select(p.cmp(Compare::Equal, pivot, zero, false), zero, factor);
      p.store(work, at(row, column), p.sub(p.load(work, at(row, column)), p.mul(factor, p.load(work, at(k, column)))));
    });
  });
  each(p.index(1), 1, [&](Value) { p.store(result, p.group(), p.load(p.output(2), p.group())); });
}

LogicalResult det(Node &n) {
  int64_t rank = n.inRank(0);
  if (rank < 2 || n.inShape(0)[rank - 1] != n.inShape(0)[rank - 2])
    return n.fail("operand 0 holds no square matrices");
  int64_t size = n.inShape(0).back(), count = numElements(n.outShape());
  Type type = computeType(n.inElement(0));
  Scalar s(n.b, n.op.getLoc());
  if (count == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  if (size == 0)
    return n.result(filled(n.b, n.outShape(), s.narrow(s.cst(type, 1), n.outElement())));
  RankedTensorType work = RankedTensorType::get({count, size, size}, type), product = RankedTensorType::get({count}, type);
  return n.result(
      program(n.b, n.in(0), {n.outType(), work, product}, count, [&](ProgramBody &p) { eliminate(p, size, type); })[0]);
}

} // namespace

void registerDeterminant(Table &t) { t.add("Det", det); }

} // namespace ogc::lower
