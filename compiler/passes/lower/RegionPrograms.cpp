//===- RegionPrograms.cpp - pooling of regions whose extents are data -----===//
//
// One thread an element of the result: it goes over the samples or pixels of its bin, as many as the region asks for. What lies
// outside of the map is left out of the loops, so that their length is bounded by the map, whatever the regions are.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Interpolation.h"
#include "compiler/passes/lower/Program.h"
#include "compiler/passes/lower/Regions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::lower {
namespace {

Value asFloat(ProgramBody &p, Value index, Type type) { return arith::SIToFPOp::create(p.b, type, p.asI64(index)); }

/// A float as an index in [0, limit]; NaN gives 0.
Value boundedIndex(ProgramBody &p, Value x, Value limit) {
  Type type = x.getType();
  Value zero = p.cst(type, 0.0);
  x = p.select(p.cmp(Compare::GreaterOrEqual, x, zero, false), x, zero);
  x = p.select(p.cmp(Compare::LessOrEqual, x, limit, false), x, limit);
  return indexOf(p, x);
}

/// The samples of one bin along one direction: position(i) = base + (i + 0.5) * step for i in [0, count).
struct Samples {
  Value base, step, count; ///< floats
  Value first, last;       ///< of those that can lie on the map, as indices
  Value leavesOut;         ///< i1: some are not among them
};

Samples samplesOf(ProgramBody &p, Value start, Value binSize, Value bin, int64_t extent) {
  Type type = start.getType();
  Value zero = p.cst(type, 0.0), one = p.cst(type, 1.0);
  Value count = p.max(math::CeilOp::create(p.b, binSize), zero, false);
  Value step = p.div(binSize, p.max(count, one, false), false);
  Value base = p.add(start, p.mul(asFloat(p, bin, type), binSize));
  // One sample more at both ends than the quotients say, for their rounding.
  auto numberAt = [&](double position) { return p.div(p.sub(p.cst(type, position), base), step, false); };
  Value low = p.sub(math::FloorOp::create(p.b, numberAt(-1.0)), p.cst(type, 2.0));
  Value high = p.add(math::CeilOp::create(p.b, numberAt(static_cast<double>(extent))), p.cst(type, 2.0));
  Value limit = p.min(count, p.cst(type, 1e9), false);
  Value first = boundedIndex(p, low, limit), last = boundedIndex(p, high, limit);
  Value taken = asFloat(p, p.select(p.isLess(first, last), p.minus(last, first), p.index(0)), type);
  return {base, step, count, first, last, p.cmp(Compare::Less, taken, count, false)};
}

/// Two neighbouring pixels with their weights, and whether the sample counts.
struct Pair {
  Value low, high, lowWeight, highWeight, counts;
};

Pair pairAt(ProgramBody &p, const Samples &samples, Value i, int64_t extent) {
  Type type = samples.base.getType();
  Value half = p.add(asFloat(p, i, type), p.cst(type, 0.5)), position = p.add(samples.base, p.mul(half, samples.step));
  Value counts = p.both(p.cmp(Compare::GreaterOrEqual, position, p.cst(type, -1.0), false),
                        p.cmp(Compare::LessOrEqual, position, p.icst(type, extent), false));
  Value inside = clampPosition(p, position, extent), base = math::FloorOp::create(p.b, inside), above = p.sub(inside, base);
  Value next = clampPosition(p, p.add(base, p.cst(type, 1.0)), extent);
  return {indexOf(p, base), indexOf(p, next), p.sub(p.cst(type, 1.0), above), above, counts};
}

} // namespace

Value roiAlignAdaptive(Node &n, const RoiAlignOptions &options) {
  Value data = n.in(0);
  Shape shape(n.outShape());
  int64_t channels = shapeOf(data)[1], height = shapeOf(data)[2], width = shapeOf(data)[3];
  Type type = computeType(n.inElement(0));
  auto body = [&](ProgramBody &p) {
    SmallVector<Value> at = p.split(p.group(), shape);
    Value batch = p.wrapIndex(p.loadRaw(p.input(2), at[0]), shapeOf(data)[0], n.isUnsignedIn(2));
    Value plane = p.times(p.plus(p.times(batch, channels), at[1]), height * width);
    Samples samples[2];
    for (int64_t d : {0, 1}) {
      auto corner = [&](int64_t i) { return p.load(p.input(1), p.plus(p.times(at[0], 4), i)); };
      RoiBins bins = roiBins(p, corner(1 - d), corner(3 - d), options, shape[2 + d]);
      samples[d] = samplesOf(p, bins.start, bins.size, at[2 + d], shapeOf(data)[2 + d]);
    }
    Value zero = p.cst(type, 0.0);
    auto pixel = [&](Value y, Value x) { return p.load(p.input(0), p.plus(plane, p.plus(p.times(y, width), x))); };
    auto sampleAt = [&](Value iy, Value ix, Value acc) {
      Pair y = pairAt(p, samples[0], iy, height), x = pairAt(p, samples[1], ix, width);
      Value corners[] = {p.mul(p.mul(y.lowWeight, x.lowWeight), pixel(y.low, x.low)),
                         p.mul(p.mul(y.lowWeight, x.highWeight), pixel(y.low, x.high)),
                         p.mul(p.mul(y.highWeight, x.lowWeight), pixel(y.high, x.low)),
                         p.mul(p.mul(y.highWeight, x.highWeight), pixel(y.high, x.high))};
      auto combine = [&](Value a, Value b) { return options.isMax ? p.max(a, b, false) : p.add(a, b); };
      Value sample = combine(combine(corners[0], corners[1]), combine(corners[2], corners[3]));
      return combine(acc, p.select(p.both(y.counts, x.counts), sample, zero));
    };
    Value start = options.isMax ? p.lowest(type, false) : zero;
    auto row = [&](Value iy, ValueRange acc) {
      return p.loop(samples[1].first, samples[1].last, acc,
                    [&](Value ix, ValueRange v) -> SmallVector<Value> { return {sampleAt(iy, ix, v[0])}; });
    };
    Value result = p.loop(samples[0].first, samples[0].last, start, row)[0];
    Value count = p.mul(samples[0].count, samples[1].count);
    if (options.isMax) {
      // Samples outside of the map are zero, and a bin without samples is.
      Value hasZero = p.either(samples[0].leavesOut, samples[1].leavesOut);
      result = p.select(hasZero, p.max(result, zero, false), result);
      result = p.select(p.cmp(Compare::Greater, count, zero, false), result, zero);
    } else {
      result = p.div(result, p.max(count, p.cst(type, 1.0), false), false);
    }
    p.store(p.output(0), p.group(), result);
  };
  return program(n.b, {data, n.in(1), n.in(2)}, {n.outType()}, numElements(shape), body)[0];
}

namespace {

/// Pixels [first, last) of a bin of MaxRoiPool.
std::pair<Value, Value> pixelsOf(ProgramBody &p, Value begin, Value end, Value bin, int64_t bins, int64_t extent) {
  Type type = begin.getType();
  Value one = p.cst(type, 1.0), size = p.max(p.add(p.sub(end, begin), one), one, false);
  Value step = p.div(size, p.icst(type, bins), false), number = asFloat(p, bin, type), limit = p.icst(type, extent);
  Value first = p.add(math::FloorOp::create(p.b, p.mul(number, step)), begin);
  Value last = p.add(math::CeilOp::create(p.b, p.mul(p.add(number, one), step)), begin);
  return {boundedIndex(p, first, limit), boundedIndex(p, last, limit)};
}

/// The largest pixel of each bin; 0 for a bin without pixels.
LogicalResult maxRoiPool(Node &n) {
  float scale = n.op.getF32("spatial_scale", 1.0f);
  n.op.ignore("pooled_shape"); // the result type says it
  if (!isa<FloatType>(n.inElement(0)) || n.inRank(0) != 4 || n.inRank(1) != 2 || n.inShape(1)[1] != 5)
    return n.fail("expected data [N, C, H, W] of a float type and regions [count, 5]");
  if (numElements(n.outShape()) == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  if (numElements(n.inShape(0)) == 0)
    return n.fail("pools a tensor without elements");
  Shape shape(n.outShape()), in(n.inShape(0));
  Type type = computeType(n.inElement(0));
  auto body = [&](ProgramBody &p) {
    SmallVector<Value> at = p.split(p.group(), shape);
    auto column = [&](int64_t i) { return p.load(p.input(1), p.plus(p.times(at[0], 5), i)); };
    auto corner = [&](int64_t i) -> Value { return math::RoundOp::create(p.b, p.mul(column(i), p.cst(type, scale))); };
    Value batch = boundedIndex(p, column(0), p.icst(type, in[0] - 1));
    Value plane = p.times(p.plus(p.times(batch, in[1]), at[1]), in[2] * in[3]);
    auto [top, bottom] = pixelsOf(p, corner(2), corner(4), at[2], shape[2], in[2]);
    auto [left, right] = pixelsOf(p, corner(1), corner(3), at[3], shape[3], in[3]);
    auto row = [&, left = left, right = right](Value y, ValueRange acc) {
      return p.loop(left, right, acc, [&](Value x, ValueRange v) -> SmallVector<Value> {
        return {p.max(v[0], p.load(p.input(0), p.plus(plane, p.plus(p.times(y, in[3]), x))), false)};
      });
    };
    Value result = p.loop(top, bottom, p.lowest(type, false), row)[0];
    Value hasPixels = p.both(p.isLess(top, bottom), p.isLess(left, right));
    p.store(p.output(0), p.group(), p.select(hasPixels, result, p.cst(type, 0.0)));
  };
  return n.result(program(n.b, {n.in(0), n.in(1)}, {n.outType()}, numElements(shape), body)[0]);
}

} // namespace

void registerRegionPrograms(Table &t) { t.add("MaxRoiPool", maxRoiPool); }

} // namespace ogc::lower
