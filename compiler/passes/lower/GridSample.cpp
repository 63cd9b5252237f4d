//===- GridSample.cpp - GridSample and AffineGrid -------------------------===//
#include "compiler/passes/lower/Interpolation.h"
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// How one dimension is sampled.
struct Axis {
  int64_t extent;
  StringRef mode, padding;
  bool alignCorners;

  double low() const { return alignCorners ? 0.0 : -0.5; }
  double high() const { return static_cast<double>(extent) - (alignCorners ? 1.0 : 0.5); }
};

/// [-1, 1] to positions of elements.
Value denormalize(Scalar &s, Value x, const Axis &axis) {
  Type type = x.getType();
  Value shifted = s.add(x, s.cst(type, 1.0));
  if (axis.alignCorners)
    return s.mul(shifted, s.cst(type, static_cast<double>(axis.extent - 1) / 2));
  return s.mul(s.sub(s.mul(shifted, s.icst(type, axis.extent)), s.cst(type, 1.0)), s.cst(type, 0.5));
}

/// Reflects at both borders until the position is between them.
Value reflect(Scalar &s, Value x, const Axis &axis) {
  Type type = x.getType();
  double range = axis.high() - axis.low();
  Value low = s.cst(type, axis.low());
  if (range <= 0)
    return low;
  Value period = s.cst(type, 2 * range);
  Value rest = s.mod(s.abs(s.sub(x, low), false), period, false, /*fmod=*/true);
  Value folded = s.add(low, s.min(rest, s.sub(period, rest), false));
  Value inside = arith::AndIOp::create(s.b, s.cmp(Compare::GreaterOrEqual, x, low, false),
                                       s.cmp(Compare::LessOrEqual, x, s.cst(type, axis.high()), false));
  return s.select(inside, x, folded);
}

/// The tap at a whole position, padded.
Tap tapAt(Scalar &s, Value position, Value weight, const Axis &axis) {
  if (axis.padding == "reflection")
    position = math::RoundEvenOp::create(s.b, reflect(s, position, axis));
  Value valid = axis.padding == "zeros" ? isInside(s, position, axis.extent) : Value();
  return {indexOf(s, clampPosition(s, position, axis.extent)), valid, weight};
}

/// The weight of cubic convolution (a = -0.75) at distance d from the position: `inner` for d <= 1, otherwise d <= 2.
Value cubicWeight(Scalar &s, Value d, bool inner) {
  constexpr double a = -0.75;
  Type type = d.getType();
  auto horner = [&](std::initializer_list<double> factors) {
    Value result;
    for (double factor : factors)
      result = result ? s.add(s.mul(result, d), s.cst(type, factor)) : s.cst(type, factor);
    return result;
  };
  return inner ? horner({a + 2, -(a + 3), 0, 1}) : horner({a, -5 * a, 8 * a, -4 * a});
}

SmallVector<Tap> tapsOf(Scalar &s, Value x, const Axis &axis) {
  Type type = x.getType();
  x = denormalize(s, x, axis);
  if (axis.mode == "nearest")
    x = math::RoundEvenOp::create(s.b, x);
  // Cubic weights are those of the position itself, also where all four elements are the border.
  if (axis.padding == "border" && axis.mode != "cubic")
    x = clampPosition(s, x, axis.extent);
  else if (axis.padding == "reflection")
    x = reflect(s, x, axis);
  if (axis.mode == "nearest")
    return {tapAt(s, x, {}, axis)};
  Value base = math::FloorOp::create(s.b, x), above = s.sub(x, base), one = s.cst(type, 1.0), below = s.sub(one, above);
  if (axis.mode == "linear")
    return {tapAt(s, base, below, axis), tapAt(s, s.add(base, one), above, axis)};
  return {tapAt(s, s.sub(base, one), cubicWeight(s, s.add(above, one), false), axis),
          tapAt(s, base, cubicWeight(s, above, true), axis), tapAt(s, s.add(base, one), cubicWeight(s, below, true), axis),
          tapAt(s, s.add(base, s.cst(type, 2.0)), cubicWeight(s, s.add(below, one), false), axis)};
}

LogicalResult gridSample(Node &n) {
  StringRef mode = n.op.getStr("mode", "linear"), padding = n.op.getStr("padding_mode", "zeros");
  bool alignCorners = n.op.getI64("align_corners") != 0;
  if (!llvm::is_contained({"nearest", "linear", "cubic"}, mode))
    return n.fail("mode is '" + mode + "', expected nearest, linear or cubic");
  if (!llvm::is_contained({"zeros", "border", "reflection"}, padding))
    return n.fail("padding_mode is '" + padding + "', expected zeros, border or reflection");
  int64_t rank = n.inRank(0), spatial = rank - 2;
  if (rank < 3 || n.inRank(1) != rank || n.inShape(1).back() != spatial || n.inShape(0)[0] != n.inShape(1)[0])
    return n.fail("data and grid do not fit: expected [N, C, D1, ...] and [N, out1, ..., " + Twine(spatial) + "]");
  if (mode != "nearest" && !isa<FloatType>(n.inElement(0)))
    return n.fail("mode " + mode + " needs a float type");
  if (numElements(n.inShape(0)) == 0 && numElements(n.outShape()) != 0)
    return n.fail("samples a tensor without elements");
  Value data = n.in(0);
  MLIRContext *context = n.b.getContext();
  // Coordinate 0 belongs to the last dimension.
  SmallVector<Operand> coordinates;
  for (int64_t d = 0; d < spatial; ++d) {
    SmallVector<AffineExpr> exprs{getAffineDimExpr(0, context)};
    for (int64_t i = 2; i < rank; ++i)
      exprs.push_back(getAffineDimExpr(static_cast<unsigned>(i), context));
    exprs.push_back(getAffineConstantExpr(spatial - 1 - d, context));
    coordinates.push_back({n.in(1), AffineMap::get(static_cast<unsigned>(rank), 0, exprs, context)});
  }
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), coordinates, [&](Scalar &s, ValueRange x) {
    SmallVector<SmallVector<Tap>> taps;
    for (int64_t d = 0; d < spatial; ++d)
      taps.push_back(tapsOf(s, x[d], {shapeOf(data)[d + 2], mode, padding, alignCorners}));
    Value batch = linalg::IndexOp::create(s.b, 0), channel = linalg::IndexOp::create(s.b, 1);
    return interpolate(s, data, {batch, channel}, taps);
  }));
}

/// The coordinate in [-1, 1] of position `i` along an output dimension.
Value gridCoordinate(Scalar &s, Value i, int64_t extent, bool alignCorners, Type type) {
  double step = alignCorners ? 2.0 / static_cast<double>(std::max<int64_t>(extent - 1, 1)) : 2.0 / static_cast<double>(extent);
  double start = alignCorners ? -1.0 : -1.0 + step / 2;
  Value number = arith::SIToFPOp::create(s.b, type, arith::IndexCastOp::create(s.b, s.b.getI64Type(), i));
  return s.add(s.mul(number, s.cst(type, step)), s.cst(type, start));
}

/// theta [N, k, k + 1] times the homogeneous coordinates of each position: [N, size..., k].
LogicalResult affineGrid(Node &n) {
  bool alignCorners = n.op.getI64("align_corners") != 0;
  int64_t rank = static_cast<int64_t>(n.outShape().size()), spatial = rank - 2;
  if (!isa<FloatType>(n.inElement(0)) || n.inRank(0) != 3 || spatial < 1 || n.inShape(0)[1] != spatial ||
      n.inShape(0)[2] != spatial + 1 || n.inShape(0)[0] != n.outShape()[0])
    return n.fail("theta is " + Twine(n.inRank(0)) + "-dimensional or does not fit the size, expected [N, " + Twine(spatial) +
                  ", " + Twine(spatial + 1) + "]");
  n.op.ignore("size");
  Shape sizes(n.outShape().drop_front(1).drop_back(1));
  MLIRContext *context = n.b.getContext();
  SmallVector<Operand> factors;
  for (int64_t j = 0; j <= spatial; ++j)
    factors.push_back(
        {n.in(0), AffineMap::get(static_cast<unsigned>(rank), 0,
                                 {getAffineDimExpr(0, context), getAffineDimExpr(static_cast<unsigned>(rank - 1), context),
                                  getAffineConstantExpr(j, context)},
                                 context)});
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), factors, [&](Scalar &s, ValueRange x) {
    Value sum = x.back();
    for (int64_t j = 0; j < spatial; ++j) {
      // Factor 0 belongs to the last dimension.
      int64_t d = spatial - 1 - j;
      Value position = linalg::IndexOp::create(s.b, d + 1);
      sum = s.add(sum, s.mul(x[j], gridCoordinate(s, position, sizes[d], alignCorners, x[j].getType())));
    }
    return sum;
  }));
}

} // namespace

void registerGridSample(Table &t) {
  t.add("GridSample", gridSample);
  t.add("AffineGrid", affineGrid);
}

} // namespace ogc::lower
