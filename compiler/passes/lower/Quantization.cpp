//===- Quantization.cpp - QuantizeLinear, DequantizeLinear ----------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Scale or zero point (operand i) in the domain of operand 0: one for the tensor, one for each position of `axis`, or one for
/// each block.
FailureOr<Operand> quantizationOperand(Node &n, int i) {
  MLIRContext *context = n.b.getContext();
  Value v = n.in(i);
  unsigned rank = static_cast<unsigned>(n.inRank(0));
  if (numElements(shapeOf(v)) == 1)
    return Operand{reshape(n.b, v, {}), AffineMap::get(rank, 0, context)};
  int64_t axis = wrapAxis(n.op.getI64("axis", 1), rank), block = n.op.getI64("block_size");
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return n.fail("axis is out of range");
  if (shapeOf(v).size() == 1 && block == 0) {
    if (shapeOf(v)[0] != n.inShape(0)[axis])
      return n.fail("operand " + Twine(i) + " has " + Twine(shapeOf(v)[0]) + " elements, expected " + Twine(n.inShape(0)[axis]));
    return Operand{v, AffineMap::get(rank, 0, getAffineDimExpr(static_cast<unsigned>(axis), context), context)};
  }
  if (block <= 0 || shapeOf(v).size() != rank)
    return n.fail("operand " + Twine(i) + " of rank " + Twine(shapeOf(v).size()) + " does not fit block_size " + Twine(block));
  SmallVector<AffineExpr> exprs;
  for (unsigned d = 0; d < rank; ++d) {
    AffineExpr dim = getAffineDimExpr(d, context);
    exprs.push_back(d == axis ? dim.floorDiv(block) : dim);
  }
  return Operand{v, AffineMap::get(rank, 0, exprs, context)};
}

/// Operand 0, the scale and, where given, the zero point.
FailureOr<SmallVector<Operand>> quantizationOperands(Node &n) {
  for (StringRef name : {"axis", "block_size", "output_dtype", "saturate", "precision"})
    n.op.ignore(name); // output_dtype is the result type; saturate is for 8-bit floats; the division is f32 or better
  SmallVector<Operand> operands{
      {n.in(0), AffineMap::getMultiDimIdentityMap(static_cast<unsigned>(n.inRank(0)), n.b.getContext())}};
  for (int i : {1, 2}) {
    if (!n.has(i))
      continue;
    FailureOr<Operand> operand = quantizationOperand(n, i);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  return operands;
}

/// round(x / scale) + zero point, saturated to an integer type.
Value quantize(Scalar &s, Value x, Value scale, Value zeroPoint, bool zeroUnsigned, IntegerType to, bool toUnsigned) {
  Type type = x.getType();
  Value result = s.roundHalfEven(s.div(x, s.cast(scale, false, type, false), false));
  if (zeroPoint)
    result = s.add(result, s.cast(zeroPoint, zeroUnsigned, type, false));
  return s.cast(result, false, to, toUnsigned); // casts saturate
}

LogicalResult quantizeLinear(Node &n) {
  auto to = dyn_cast<IntegerType>(n.outElement());
  FailureOr<SmallVector<Operand>> operands = quantizationOperands(n);
  if (failed(operands))
    return failure();
  if (!to)
    return n.fail("result type is not an integer");
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), *operands, [&](Scalar &s, ValueRange x) {
    // Operand 0 may be i32.
    Value value = isa<FloatType>(x[0].getType()) ? x[0] : s.cast(x[0], n.isUnsignedIn(0), s.b.getF32Type(), false);
    return quantize(s, value, x[1], x.size() > 2 ? x[2] : Value(), n.isUnsignedIn(2), to, n.isUnsignedOut());
  }));
}

LogicalResult dequantizeLinear(Node &n) {
  FailureOr<SmallVector<Operand>> operands = quantizationOperands(n);
  if (failed(operands))
    return failure();
  if (!isa<IntegerType>(n.inElement(0)))
    return n.fail("operand 0 is not of an integer type");
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), *operands, [&](Scalar &s, ValueRange x) {
    Type type = x[1].getType(), wide = n.inElement(0).getIntOrFloatBitWidth() < 32 ? s.b.getI32Type() : s.b.getI64Type();
    Value difference = s.cast(x[0], n.isUnsignedIn(0), wide, false);
    if (x.size() > 2)
      difference = s.sub(difference, s.cast(x[2], n.isUnsignedIn(2), wide, false));
    return s.cast(s.mul(s.cast(difference, false, type, false), x[1]), false, computeType(n.outElement()), false);
  }));
}

/// The range of x with zero in it sets scale and zero point of uint8.
LogicalResult dynamicQuantizeLinear(Node &n) {
  Shape axes;
  for (int64_t d = 0; d < n.inRank(0); ++d)
    axes.push_back(d);
  RowDomain domain(n.b.getContext(), n.inShape(0), axes);
  Operand x{n.in(0), domain.full};
  Scalar s(n.b, n.op.getLoc());
  Type f32 = n.b.getF32Type();
  auto u8 = cast<IntegerType>(n.b.getI8Type());
  Value zero = s.cst(f32, 0.0);
  Value max = reduceRows(n.b, domain, x, zero, [](Scalar &s, ValueRange v) { return s.max(v[1], v[0], false); });
  Value min = reduceRows(n.b, domain, x, zero, [](Scalar &s, ValueRange v) { return s.min(v[1], v[0], false); });
  Value scale = elementwise(n.b, {}, f32, {max, min},
                            [&](Scalar &s, ValueRange v) { return s.div(s.sub(v[0], v[1]), s.cst(f32, 255.0), false); });
  Value point = elementwise(n.b, {}, u8, {min, scale}, [&](Scalar &s, ValueRange v) {
    return s.cast(s.roundHalfEven(s.div(s.neg(v[0]), v[1], false)), false, u8, true);
  });
  Value y = elementwise(n.b, n.outShape(), u8, {n.in(0), scale, point},
                        [&](Scalar &s, ValueRange v) { return quantize(s, v[0], v[1], v[2], true, u8, true); });
  return failure(failed(n.result(y)) || failed(n.result(scale)) || failed(n.result(point)));
}

} // namespace

void registerQuantization(Table &t) {
  t.add("QuantizeLinear", quantizeLinear);
  t.add("DequantizeLinear", dequantizeLinear);
  t.add("DynamicQuantizeLinear", dynamicQuantizeLinear);
}

} // namespace ogc::lower
