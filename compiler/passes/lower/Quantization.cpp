//===- Quantization.cpp - QuantizeLinear, DequantizeLinear ----------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

// Numbers of TensorProto.DataType.
constexpr int64_t onnxFloat16 = 10, onnxBFloat16 = 16;

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
    int64_t extent = n.inShape(0)[d], expected = d == axis ? (extent + block - 1) / block : extent;
    if (shapeOf(v)[d] != expected)
      return n.fail("operand " + Twine(i) + " has size " + Twine(shapeOf(v)[d]) + " in dimension " + Twine(d) + ", expected " +
                    Twine(expected));
    AffineExpr dim = getAffineDimExpr(d, context);
    exprs.push_back(d == axis ? dim.floorDiv(block) : dim);
  }
  return Operand{v, AffineMap::get(rank, 0, exprs, context)};
}

/// Operand 0, the scale and, where given, the zero point.
FailureOr<SmallVector<Operand>> quantizationOperands(Node &n) {
  for (StringRef name : {"axis", "block_size", "output_dtype"})
    n.op.ignore(name); // output_dtype is the result type
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

/// The number of a stored element in f32 (f64 stays).
Value toFloat(Scalar &s, Value x, Type declared) {
  if (x.getType().isF64() || x.getType().isF32())
    return x;
  return castElement(s, x, declared, s.b.getF32Type());
}

/// The 16-bit type that the division of QuantizeLinear is rounded to, or null: the scale's, unless `precision` says otherwise.
Type divisionType(Node &n) {
  int64_t precision = n.op.getI64("precision");
  if (precision == onnxFloat16)
    return n.b.getF16Type();
  if (precision == onnxBFloat16)
    return n.b.getBF16Type();
  Type scale = n.declaredIn(1);
  return precision == 0 && (scale.isF16() || scale.isBF16()) ? scale : Type();
}

/// round(x / scale) + zero point, saturated to an integer type.
Value quantize(Scalar &s, Value x, Value scale, Value zeroPoint, IntegerType to, Type division = {}) {
  Value quotient = s.div(x, scale, false);
  if (division)
    quotient = s.widen(s.narrow(quotient, division));
  Value result = s.roundHalfEven(quotient);
  return saturateToInteger(s, zeroPoint ? s.add(result, zeroPoint) : result, to);
}

LogicalResult quantizeLinear(Node &n) {
  FailureOr<SmallVector<Operand>> operands = quantizationOperands(n);
  if (failed(operands))
    return failure();
  SmallFloatOptions options;
  options.saturate = n.op.getI64("saturate", 1) != 0;
  Type to = n.declaredOut(), division = divisionType(n);
  if (!isa<IntegerType>(to) && !isSmallFloat(to))
    return n.fail("result type is not one of numbers of at most 16 bits");
  Type x0 = n.declaredIn(0), x1 = n.declaredIn(1), x2 = n.has(2) ? n.declaredIn(2) : Type();
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), *operands, [&](Scalar &s, ValueRange x) {
    Value value = toFloat(s, x[0], x0), scale = toFloat(s, x[1], x1);
    Value zero = x2 ? toFloat(s, x[2], x2) : Value();
    if (auto integer = dyn_cast<IntegerType>(to))
      return quantize(s, value, scale, zero, integer, division);
    Value quotient = s.div(value, scale, false);
    if (division)
      quotient = s.widen(s.narrow(quotient, division));
    return encodeFloat(s, zero ? s.add(quotient, zero) : quotient, cast<FloatType>(to), options);
  }));
}

LogicalResult dequantizeLinear(Node &n) {
  FailureOr<SmallVector<Operand>> operands = quantizationOperands(n);
  if (failed(operands))
    return failure();
  Type from = n.declaredIn(0), scaleType = n.declaredIn(1);
  if (!isa<IntegerType>(from) && !isSmallFloat(from))
    return n.fail("operand 0 is not of an integer or small float type");
  return n.result(mapElements(n.b, n.outShape(), n.outElement(), *operands, [&](Scalar &s, ValueRange x) {
    Type f32 = s.b.getF32Type();
    Value scale = isa<FloatType>(x[1].getType()) ? x[1] : castElement(s, x[1], scaleType, f32), difference;
    if (isSmallFloat(from)) {
      difference = castElement(s, x[0], from, f32);
      if (x.size() > 2)
        difference = s.sub(difference, castElement(s, x[2], from, f32));
    } else {
      Type wide = n.inElement(0).getIntOrFloatBitWidth() < 32 ? s.b.getI32Type() : s.b.getI64Type();
      difference = castElement(s, x[0], from, wide);
      if (x.size() > 2)
        difference = s.sub(difference, castElement(s, x[2], from, wide));
    }
    return s.cast(s.mul(s.cast(difference, false, scale.getType(), false), scale), false, computeType(n.outElement()), false);
  }));
}

/// The range of x with zero in it sets scale and zero point of uint8. A tensor of zeros has scale 1.
LogicalResult dynamicQuantizeLinear(Node &n) {
  Shape axes;
  for (int64_t d = 0; d < n.inRank(0); ++d)
    axes.push_back(d);
  RowDomain domain(n.b.getContext(), n.inShape(0), axes);
  Operand x{n.in(0), domain.full};
  Scalar s(n.b, n.op.getLoc());
  Type f32 = n.b.getF32Type();
  IntegerType u8 = IntegerType::get(n.b.getContext(), 8, IntegerType::Unsigned);
  Type stored = storageType(u8);
  Value zero = s.cst(f32, 0.0);
  Value max = reduceRows(n.b, domain, x, zero, [](Scalar &s, ValueRange v) { return s.max(v[1], v[0], false); });
  Value min = reduceRows(n.b, domain, x, zero, [](Scalar &s, ValueRange v) { return s.min(v[1], v[0], false); });
  Value scale = elementwise(n.b, {}, f32, {max, min}, [&](Scalar &s, ValueRange v) {
    Value range = s.sub(v[0], v[1]);
    Value isEmpty = s.cmp(Compare::Equal, range, s.cst(f32, 0.0), false);
    return s.select(isEmpty, s.cst(f32, 1.0), s.div(range, s.cst(f32, 255.0), false));
  });
  Value point = elementwise(n.b, {}, stored, {min, scale}, [&](Scalar &s, ValueRange v) {
    return saturateToInteger(s, s.roundHalfEven(s.div(s.neg(v[0]), v[1], false)), u8);
  });
  Value y = elementwise(n.b, n.outShape(), stored, {n.in(0), scale, point},
                        [&](Scalar &s, ValueRange v) { return quantize(s, v[0], v[1], toFloat(s, v[2], u8), u8); });
  return failure(failed(n.result(y)) || failed(n.result(scale)) || failed(n.result(point)));
}

} // namespace

void registerQuantization(Table &t) {
  t.add("QuantizeLinear", quantizeLinear);
  t.add("DequantizeLinear", dequantizeLinear);
  t.add("DynamicQuantizeLinear", dynamicQuantizeLinear);
}

} // namespace ogc::lower
