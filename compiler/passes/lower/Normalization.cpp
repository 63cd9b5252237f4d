//===- Normalization.cpp - softmax and the normalizations -----------------===//
//
// Each is several generics over one row domain [outer, inner] with plain maps; intermediate values are f32 (f64 for f64), so that
// the fuse phase can make one kernel of them and a 16-bit model loses nothing inside.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::lower {
namespace {

LogicalResult requireFloat(Node &n) {
  return isa<FloatType>(n.inElement(0)) ? success() : n.fail("operand 0 is not of a float type");
}

/// An operand broadcast to the tensor of the domain.
Operand broadcastOperand(Node &n, const RowDomain &domain, Value v, ArrayRef<int64_t> shape) {
  return {v, broadcastMap(n.b.getContext(), shapeOf(v), shape).compose(domain.full)};
}

Value add2(Scalar &s, ValueRange x) { return s.add(x[1], x[0]); }

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

template <bool isLog> LogicalResult softmax(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  int64_t axis = wrapAxis(n.op.getI64("axis", -1), n.inRank(0));
  if (axis < 0 || axis >= n.inRank(0))
    return n.fail("axis is out of range");
  RowDomain domain(n.b.getContext(), n.inShape(0), {axis});
  Type type = computeType(n.inElement(0));
  Scalar s(n.b, n.op.getLoc());
  Operand x{n.in(0), domain.full};
  Value max = reduceRows(n.b, domain, x, s.lowest(type, false), [](Scalar &s, ValueRange v) { return s.max(v[1], v[0], false); });
  Operand maxRow{max, domain.outerMap};
  if (isLog) {
    Value sum = reduceRows(n.b, domain, {x, maxRow}, s.cst(type, 0.0),
                           [](Scalar &s, ValueRange v) { return s.add(v[2], s.exp(s.sub(v[0], v[1]))); });
    return n.result(
        mapRows(n.b, domain, {x, maxRow, {sum, domain.outerMap}}, n.outElement(),
                [](Scalar &s, ValueRange v) -> Value { return s.sub(s.sub(v[0], v[1]), math::LogOp::create(s.b, v[2])); }));
  }
  Value power = mapRows(n.b, domain, {x, maxRow}, type, [](Scalar &s, ValueRange v) { return s.exp(s.sub(v[0], v[1])); });
  Value sum = reduceRows(n.b, domain, {{power, domain.full}}, s.cst(type, 0.0), add2);
  return n.result(mapRows(n.b, domain, {{power, domain.full}, {sum, domain.outerMap}}, n.outElement(),
                          [](Scalar &s, ValueRange v) { return s.div(v[0], v[1], false); }));
}

//===----------------------------------------------------------------------===//
// Normalizations with statistics of rows
//===----------------------------------------------------------------------===//

/// Sums over the rows of x and of (x - mean)^2; users divide by the row length.
struct Statistics {
  Value sum, squares;
  double scale; ///< 1 / row length
};

Value meanOf(Scalar &s, Value sum, double scale) { return s.mul(sum, s.cst(sum.getType(), scale)); }
Value inverseDeviation(Scalar &s, Value squares, double scale, double epsilon) {
  Type type = squares.getType();
  return s.rsqrt(s.add(s.mul(squares, s.cst(type, scale)), s.cst(type, epsilon)));
}

Statistics statistics(Node &n, const RowDomain &domain, Operand x) {
  Scalar s(n.b, n.op.getLoc());
  Type type = computeType(elementOf(x.value));
  double scale = 1.0 / static_cast<double>(domain.innerSize());
  Value sum = reduceRows(n.b, domain, x, s.cst(type, 0.0), add2);
  Value squares = reduceRows(n.b, domain, {x, {sum, domain.outerMap}}, s.cst(type, 0.0), [&](Scalar &s, ValueRange v) {
    Value difference = s.sub(v[0], meanOf(s, v[1], scale));
    return s.add(v[2], s.mul(difference, difference));
  });
  return {sum, squares, scale};
}

/// (x - mean) / sqrt(variance + epsilon) [* scale] [+ bias].
Value normalize(Node &n, const RowDomain &domain, Operand x, const Statistics &stats, double epsilon,
                std::optional<Operand> scale, std::optional<Operand> bias, Type element) {
  SmallVector<Operand> operands{x, {stats.sum, domain.outerMap}, {stats.squares, domain.outerMap}};
  for (const std::optional<Operand> &operand : {scale, bias})
    if (operand)
      operands.push_back(*operand);
  return mapRows(n.b, domain, operands, element, [&](Scalar &s, ValueRange v) {
    Value result = s.mul(s.sub(v[0], meanOf(s, v[1], stats.scale)), inverseDeviation(s, v[2], stats.scale, epsilon));
    // Scale and bias may be of another float type than x.
    if (scale)
      result = s.mul(result, s.cast(v[3], false, result.getType(), false));
    return bias ? s.add(result, s.cast(v.back(), false, result.getType(), false)) : result;
  });
}

Shape trailingAxes(int64_t first, int64_t rank) {
  Shape axes;
  for (int64_t d = first; d < rank; ++d)
    axes.push_back(d);
  return axes;
}

LogicalResult layerNormalization(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  n.op.ignore("stash_type"); // statistics are f32 or better
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("axis", -1), rank);
  double epsilon = n.op.getF32("epsilon", 1e-5f);
  if (axis < 0 || axis >= rank)
    return n.fail("axis is out of range");
  RowDomain domain(n.b.getContext(), n.inShape(0), trailingAxes(axis, rank));
  Operand x{n.in(0), domain.full};
  Statistics stats = statistics(n, domain, x);
  std::optional<Operand> bias;
  if (n.has(2))
    bias = broadcastOperand(n, domain, n.in(2), n.inShape(0));
  Operand scale = broadcastOperand(n, domain, n.in(1), n.inShape(0));
  if (failed(n.result(normalize(n, domain, x, stats, epsilon, scale, bias, n.outElement()))))
    return failure();
  if (!n.op.isOutputUsed(1) && !n.op.isOutputUsed(2))
    return success();
  Value mean = elementwise(n.b, domain.outer, n.outElement(1), stats.sum, [&](Scalar &s, ValueRange v) {
    return s.cast(meanOf(s, v[0], stats.scale), false, n.outElement(1), false);
  });
  if (failed(n.result(reshape(n.b, mean, n.outShape(1)))))
    return failure();
  if (!n.op.isOutputUsed(2))
    return success();
  Value deviation = elementwise(n.b, domain.outer, n.outElement(2), stats.squares, [&](Scalar &s, ValueRange v) {
    return s.cast(inverseDeviation(s, v[0], stats.scale, epsilon), false, n.outElement(2), false);
  });
  return n.result(reshape(n.b, deviation, n.outShape(2)));
}

LogicalResult rmsNormalization(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  n.op.ignore("stash_type");
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("axis", -1), rank);
  double epsilon = n.op.getF32("epsilon", 1e-5f);
  if (axis < 0 || axis >= rank)
    return n.fail("axis is out of range");
  RowDomain domain(n.b.getContext(), n.inShape(0), trailingAxes(axis, rank));
  double scale = 1.0 / static_cast<double>(domain.innerSize());
  Scalar s(n.b, n.op.getLoc());
  Operand x{n.in(0), domain.full};
  Value squares = reduceRows(n.b, domain, x, s.cst(computeType(n.inElement(0)), 0.0),
                             [](Scalar &s, ValueRange v) { return s.add(v[1], s.mul(v[0], v[0])); });
  Operand weight = broadcastOperand(n, domain, n.in(1), n.inShape(0));
  return n.result(mapRows(n.b, domain, {x, {squares, domain.outerMap}, weight}, n.outElement(), [&](Scalar &s, ValueRange v) {
    Value result = s.mul(v[0], inverseDeviation(s, v[1], scale, epsilon));
    return s.mul(result, s.cast(v[2], false, result.getType(), false));
  }));
}

/// [C] as an operand of the domain of [N, C, ...].
Operand channelOperand(Node &n, const RowDomain &domain, Value v) {
  return {v, domain.dims(n.b.getContext(), {domain.domainDim(1)})};
}

LogicalResult instanceNormalization(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  RowDomain domain(n.b.getContext(), n.inShape(0), trailingAxes(2, n.inRank(0)));
  Operand x{n.in(0), domain.full};
  Statistics stats = statistics(n, domain, x);
  return n.result(normalize(n, domain, x, stats, n.op.getF32("epsilon", 1e-5f), channelOperand(n, domain, n.in(1)),
                            channelOperand(n, domain, n.in(2)), n.outElement()));
}

LogicalResult groupNormalization(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  n.op.ignore("stash_type");
  int64_t groups = n.op.getI64("num_groups"), channels = n.inShape(0)[1];
  if (groups <= 0 || channels % groups != 0)
    return n.fail("num_groups is " + Twine(groups) + ", expected a divisor of " + Twine(channels));
  Shape grouped{n.inShape(0)[0], groups, channels / groups};
  llvm::append_range(grouped, n.inShape(0).drop_front(2));
  MLIRContext *context = n.b.getContext();
  RowDomain domain(context, grouped, trailingAxes(2, static_cast<int64_t>(grouped.size())));
  Operand x{reshape(n.b, n.in(0), grouped), domain.full};
  Statistics stats = statistics(n, domain, x);
  auto weight = [&](int i) -> Operand {
    return {reshape(n.b, n.in(i), {groups, channels / groups}), domain.dims(context, {1, 2})};
  };
  Value y = normalize(n, domain, x, stats, n.op.getF32("epsilon", 1e-5f), weight(1), weight(2), n.outElement());
  return n.result(reshape(n.b, y, n.outShape()));
}

LogicalResult meanVarianceNormalization(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  Shape axes = n.op.getI64s("axes", {0, 2, 3});
  for (int64_t &axis : axes)
    axis = wrapAxis(axis, n.inRank(0));
  RowDomain domain(n.b.getContext(), n.inShape(0), axes);
  Operand x{n.in(0), domain.full};
  Statistics stats = statistics(n, domain, x);
  // The operator's function body adds 1e-9 to the deviation.
  return n.result(mapRows(n.b, domain, {x, {stats.sum, domain.outerMap}, {stats.squares, domain.outerMap}}, n.outElement(),
                          [&](Scalar &s, ValueRange v) {
                            Value deviation = s.sqrt(meanOf(s, v[2], stats.scale));
                            Value divisor = s.add(deviation, s.cst(deviation.getType(), 1e-9));
                            return s.div(s.sub(v[0], meanOf(s, v[1], stats.scale)), divisor, false);
                          }));
}

LogicalResult lpNormalization(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  int64_t p = n.op.getI64("p", 2), axis = wrapAxis(n.op.getI64("axis", -1), n.inRank(0));
  if (p != 1 && p != 2)
    return n.fail("p is " + Twine(p) + ", expected 1 or 2");
  RowDomain domain(n.b.getContext(), n.inShape(0), {axis});
  Scalar s(n.b, n.op.getLoc());
  Operand x{n.in(0), domain.full};
  Value norm = reduceRows(n.b, domain, x, s.cst(computeType(n.inElement(0)), 0.0),
                          [&](Scalar &s, ValueRange v) { return s.add(v[1], p == 1 ? s.abs(v[0], false) : s.mul(v[0], v[0])); });
  return n.result(mapRows(n.b, domain, {x, {norm, domain.outerMap}}, n.outElement(), [&](Scalar &s, ValueRange v) {
    Value divisor = p == 1 ? v[1] : s.sqrt(v[1]), zero = s.cst(divisor.getType(), 0.0);
    // A row of zeros stays zero.
    Value isZero = s.cmp(Compare::Equal, divisor, zero, false);
    return s.select(isZero, zero, s.div(v[0], s.select(isZero, s.cst(divisor.getType(), 1.0), divisor), false));
  }));
}

//===----------------------------------------------------------------------===//
// Batch normalization, LRN
//===----------------------------------------------------------------------===//

/// With the statistics of the batch: the result, and the running mean and variance moved towards them.
LogicalResult trainingBatchNormalization(Node &n, double epsilon, double momentum) {
  if (n.inRank(0) < 2)
    return n.fail("training_mode is 1 and operand 0 has rank " + Twine(n.inRank(0)) + ", expected 2 or more");
  Shape axes = trailingAxes(2, n.inRank(0));
  axes.insert(axes.begin(), 0);
  RowDomain domain(n.b.getContext(), n.inShape(0), axes);
  Operand x{n.in(0), domain.full};
  Statistics stats = statistics(n, domain, x);
  if (failed(n.result(normalize(n, domain, x, stats, epsilon, channelOperand(n, domain, n.in(1)),
                                channelOperand(n, domain, n.in(2)), n.outElement()))))
    return failure();
  for (int i : {1, 2}) {
    if (!n.op.output(i))
      break;
    Type element = n.outElement(i);
    Value moved =
        elementwise(n.b, domain.outer, element, {n.in(i + 2), i == 1 ? stats.sum : stats.squares}, [&](Scalar &s, ValueRange v) {
          Value now = meanOf(s, v[1], stats.scale);
          Value before = s.cast(v[0], false, now.getType(), false);
          Value sum = s.add(s.mul(before, s.cst(now.getType(), momentum)), s.mul(now, s.cst(now.getType(), 1.0 - momentum)));
          return s.cast(sum, false, element, false);
        });
    if (failed(n.result(moved)))
      return failure();
  }
  return success();
}

LogicalResult batchNormalization(Node &n) {
  double momentum = n.op.getF32("momentum", 0.9f), epsilon = n.op.getF32("epsilon", 1e-5f);
  if (failed(requireFloat(n)))
    return failure();
  if (n.op.getI64("training_mode") != 0)
    return trainingBatchNormalization(n, epsilon, momentum);
  // y = x * factor + offset; both are constants of one value a channel in all but strange models, evaluated at compile time.
  Type type = computeType(n.inElement(0));
  Shape channels{n.inRank(0) > 1 ? n.inShape(0)[1] : 1};
  Value factor = elementwise(n.b, channels, type, {n.in(1), n.in(4)}, [&](Scalar &s, ValueRange v) {
    Value variance = s.cast(v[1], false, type, false);
    return s.mul(s.cast(v[0], false, type, false), s.rsqrt(s.add(variance, s.cst(type, epsilon))));
  });
  Value offset = elementwise(n.b, channels, type, {n.in(2), n.in(3), factor}, [&](Scalar &s, ValueRange v) {
    return s.sub(s.cast(v[0], false, type, false), s.mul(s.cast(v[1], false, type, false), v[2]));
  });
  unsigned rank = static_cast<unsigned>(n.inRank(0));
  MLIRContext *context = n.b.getContext();
  AffineExpr channel = rank > 1 ? getAffineDimExpr(1, context) : getAffineConstantExpr(0, context);
  AffineMap map = AffineMap::get(rank, 0, channel, context), same = AffineMap::getMultiDimIdentityMap(rank, context);
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), {{n.in(0), same}, {factor, map}, {offset, map}},
                              [](Scalar &s, ValueRange v) { return s.add(s.mul(v[0], v[1]), v[2]); }));
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels)^beta.
LogicalResult localResponse(Node &n) {
  if (failed(requireFloat(n)))
    return failure();
  double alpha = n.op.getF32("alpha", 1e-4f), beta = n.op.getF32("beta", 0.75f), bias = n.op.getF32("bias", 1.0f);
  int64_t size = n.op.getI64("size"), rank = n.inRank(0);
  if (size <= 0)
    return n.fail("size is " + Twine(size) + ", expected a positive value");
  Shape low(rank, 0), high(rank, 0);
  low[1] = (size - 1) / 2;
  high[1] = size / 2;
  Scalar s(n.b, n.op.getLoc());
  Type type = computeType(n.inElement(0));
  Value padded = pad(n.b, n.in(0), low, high, s.icst(n.inElement(0), 0));
  MLIRContext *context = n.b.getContext();
  unsigned dims = static_cast<unsigned>(rank + 1);
  SmallVector<AffineExpr> exprs, outExprs;
  for (unsigned d = 0; d < rank; ++d) {
    outExprs.push_back(getAffineDimExpr(d, context));
    exprs.push_back(d == 1 ? getAffineDimExpr(1, context) + getAffineDimExpr(dims - 1, context) : getAffineDimExpr(d, context));
  }
  // An operand that no body reads gives the window its extent.
  Operand window{empty(n.b, {size}, type), AffineMap::get(dims, 0, getAffineDimExpr(dims - 1, context), context)};
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  Value squares = reduceInto(n.b, {filled(n.b, n.inShape(0), s.cst(type, 0.0)), AffineMap::get(dims, 0, outExprs, context)},
                             {{padded, AffineMap::get(dims, 0, exprs, context)}, window}, iterators,
                             [](Scalar &s, ValueRange v) { return s.add(v[2], s.mul(v[0], v[0])); });
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), {n.in(0), squares}, [&](Scalar &s, ValueRange v) {
    Value base = s.add(s.cst(type, bias), s.mul(s.cst(type, alpha / static_cast<double>(size)), v[1]));
    return s.div(v[0], s.pow(base, s.cst(type, beta), false, false), false);
  }));
}

} // namespace

void registerNormalization(Table &t) {
  t.add("Softmax", softmax<false>);
  t.add("LogSoftmax", softmax<true>);
  t.add("LayerNormalization", layerNormalization);
  t.add("RMSNormalization", rmsNormalization);
  t.add("InstanceNormalization", instanceNormalization);
  t.add("GroupNormalization", groupNormalization);
  t.add("MeanVarianceNormalization", meanVarianceNormalization);
  t.add("LpNormalization", lpNormalization);
  t.add("BatchNormalization", batchNormalization);
  t.add("LRN", localResponse);
}

} // namespace ogc::lower
