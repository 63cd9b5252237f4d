//===- Scan.cpp - CumSum, CumProd -----------------------------------------===//
//
// One pass over each line where there are many lines or they are short; else chunks: their totals, the totals before each chunk,
// then each chunk from there.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Lines longer than this are cut into chunks when there are few of them.
constexpr int64_t longLine = 256, manyLines = 8192;

/// What a scan does with the elements of a line.
struct Scan {
  bool isProduct, exclusive, backwards;
  Type type; ///< of the accumulator

  Value start(ProgramBody &p) const { return p.icst(type, isProduct ? 1 : 0); }
  Value combine(ProgramBody &p, Value x, Value y) const { return isProduct ? p.mul(x, y) : p.add(x, y); }

  /// Steps [from, to) of a line of `length` elements that begins at `begin`; returns the total. Stores when `store` is set.
  Value run(ProgramBody &p, Value begin, Value stride, Value length, Value from, Value to, Value sum, bool store) const {
    auto step = [&](Value i, ValueRange carried) -> SmallVector<Value> {
      Value j = backwards ? p.minus(p.minus(length, i), p.index(1)) : i;
      Value at = p.plus(begin, p.times(j, stride));
      Value next = combine(p, carried[0], p.load(p.input(0), at));
      if (store)
        p.store(p.output(0), at, exclusive ? carried[0] : next);
      return {next};
    };
    return p.loop(from, to, sum, step)[0];
  }
};

/// A thread a line.
void scanLines(ProgramBody &p, const Scan &scan, const Lines &lines) {
  Value length = p.index(lines.length);
  scan.run(p, lines.start(p, p.group()), p.index(lines.stride), length, p.index(0), length, scan.start(p), true);
}

/// A group a line, its threads a chunk each; output 1 holds the totals of the chunks.
void scanChunks(ProgramBody &p, const Scan &scan, const Lines &lines, int64_t chunk) {
  int64_t chunks = (lines.length + chunk - 1) / chunk;
  Value begin = lines.start(p, p.group()), stride = p.index(lines.stride), length = p.index(lines.length);
  Value totals = p.times(p.group(), chunks);
  auto chunkEnd = [&](Value c) { return p.smaller(p.times(p.plus(c, 1), chunk), length); };
  p.parallel(chunks, [&](Value c) {
    Value total = scan.run(p, begin, stride, length, p.times(c, chunk), chunkEnd(c), scan.start(p), false);
    p.store(p.output(1), p.plus(totals, c), total);
  });
  p.parallel(1, [&](Value) {
    p.loop(p.index(0), p.index(chunks), scan.start(p), [&](Value c, ValueRange carried) -> SmallVector<Value> {
      Value at = p.plus(totals, c), total = p.load(p.output(1), at);
      p.store(p.output(1), at, carried[0]);
      return {scan.combine(p, carried[0], total)};
    });
  });
  p.parallel(chunks, [&](Value c) {
    Value before = p.load(p.output(1), p.plus(totals, c));
    scan.run(p, begin, stride, length, p.times(c, chunk), chunkEnd(c), before, true);
  });
}

/// The axis is known at run time only: length and stride are looked up by it.
void scanAxis(ProgramBody &p, const Scan &scan, ArrayRef<int64_t> shape) {
  int64_t rank = static_cast<int64_t>(shape.size()), total = numElements(shape);
  Value axis = p.wrapIndex(p.loadRaw(p.input(1), p.index(0)), rank, false);
  Value length = p.index(shape[0]), stride = p.index(Lines(shape, 0).stride), count = p.index(total / shape[0]);
  for (int64_t d = 1; d < rank; ++d) {
    Value here = p.cmp(Compare::Equal, axis, p.index(d), false);
    length = p.select(here, p.index(shape[d]), length);
    stride = p.select(here, p.index(Lines(shape, d).stride), stride);
    count = p.select(here, p.index(total / shape[d]), count);
  }
  p.parallel(count, total, [&](Value line) {
    Value outer = arith::DivUIOp::create(p.b, line, stride), inner = arith::RemUIOp::create(p.b, line, stride);
    Value begin = p.plus(p.times(p.times(outer, length), stride), inner);
    scan.run(p, begin, stride, length, p.index(0), length, scan.start(p), true);
  });
}

template <bool isProduct> LogicalResult cumulate(Node &n) {
  bool exclusive = n.op.getI64("exclusive") != 0, backwards = n.op.getI64("reverse") != 0;
  Type element = n.inElement(0);
  Scan scan{isProduct, exclusive, backwards, computeType(element)};
  int64_t rank = n.inRank(0);
  if (rank == 0)
    return n.fail("operand 0 is a scalar");
  if (numElements(n.inShape(1)) != 1)
    return n.fail("axis has " + Twine(numElements(n.inShape(1))) + " elements, expected 1");
  if (numElements(n.outShape()) == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  std::optional<Shape> given = n.constInts(1);
  if (!given)
    return n.result(
        program(n.b, {n.in(0), n.in(1)}, {n.outType()}, 1, [&](ProgramBody &p) { scanAxis(p, scan, n.inShape(0)); })[0]);
  int64_t axis = wrapAxis(given->front(), rank);
  if (axis < 0 || axis >= rank)
    return n.fail("axis " + Twine(given->front()) + " is out of range for rank " + Twine(rank));
  Lines lines(n.inShape(0), axis);
  if (lines.length <= longLine || lines.count() >= manyLines)
    return n.result(program(n.b, n.in(0), {n.outType()}, lines.count(), [&](ProgramBody &p) { scanLines(p, scan, lines); })[0]);
  auto chunk = static_cast<int64_t>(std::sqrt(static_cast<double>(lines.length)));
  int64_t chunks = (lines.length + chunk - 1) / chunk;
  RankedTensorType totals = RankedTensorType::get({lines.count(), chunks}, scan.type);
  return n.result(
      program(n.b, n.in(0), {n.outType(), totals}, lines.count(), [&](ProgramBody &p) { scanChunks(p, scan, lines, chunk); })[0]);
}

} // namespace

void registerScan(Table &t) {
  t.add("CumSum", cumulate<false>);
  t.add("CumProd", cumulate<true>);
}

} // namespace ogc::lower
