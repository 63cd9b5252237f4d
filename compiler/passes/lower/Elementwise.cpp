//===- Elementwise.cpp - operators that compute each element alone --------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace ogc::lower {
namespace {

/// One operand, result of its type.
LogicalResult unary(Node &n, Body body) { return n.result(elementwise(n.b, n.outShape(), n.outElement(), n.in(0), body)); }

/// One operand of a float type.
LogicalResult unaryFloat(Node &n, function_ref<Value(Scalar &, Value)> f) {
  if (!isa<FloatType>(n.inElement(0)))
    return n.fail("operand 0 is not of a float type");
  return unary(n, [&](Scalar &s, ValueRange x) { return f(s, x[0]); });
}

/// One operand and a math or arith operation with no attributes.
template <typename OpTy> LogicalResult unaryOp(Node &n) {
  return unaryFloat(n, [](Scalar &s, Value x) -> Value { return OpTy::create(s.b, x); });
}

template <Value (Scalar::*method)(Value)> LogicalResult unaryMethod(Node &n) {
  return unaryFloat(n, [](Scalar &s, Value x) { return (s.*method)(x); });
}

/// Rounding functions keep integers.
template <typename OpTy> LogicalResult rounding(Node &n) {
  if (!isa<FloatType>(n.inElement(0)))
    return n.result(n.in(0));
  return unaryOp<OpTy>(n);
}

/// f(...f(f(x0, x1), x2)..., xn) with broadcasting; operands and result of one type.
LogicalResult fold(Node &n, function_ref<Value(Scalar &, Value, Value)> f, bool mean = false) {
  SmallVector<Value> operands;
  for (int i = 0; i < n.numInputs(); ++i)
    operands.push_back(n.in(i));
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), operands, [&](Scalar &s, ValueRange x) {
    Value result = x[0];
    for (Value v : x.drop_front())
      result = f(s, result, v);
    if (mean && x.size() > 1)
      result = s.div(result, s.icst(result.getType(), static_cast<int64_t>(x.size())), false);
    return result;
  }));
}

LogicalResult add(Node &n) {
  return fold(n, [](Scalar &s, Value x, Value y) { return s.add(x, y); });
}
LogicalResult sub(Node &n) {
  return fold(n, [](Scalar &s, Value x, Value y) { return s.sub(x, y); });
}
LogicalResult mul(Node &n) {
  return fold(n, [](Scalar &s, Value x, Value y) { return s.mul(x, y); });
}
LogicalResult div(Node &n) {
  return fold(n, [&](Scalar &s, Value x, Value y) { return s.div(x, y, n.isUnsignedIn(0)); });
}
LogicalResult max(Node &n) {
  return fold(n, [&](Scalar &s, Value x, Value y) { return s.max(x, y, n.isUnsignedIn(0)); });
}
LogicalResult min(Node &n) {
  return fold(n, [&](Scalar &s, Value x, Value y) { return s.min(x, y, n.isUnsignedIn(0)); });
}
LogicalResult mean(Node &n) {
  return fold(n, [](Scalar &s, Value x, Value y) { return s.add(x, y); }, true);
}
LogicalResult mod(Node &n) {
  bool fmod = n.op.getI64("fmod") != 0;
  return fold(n, [&](Scalar &s, Value x, Value y) { return s.mod(x, y, n.isUnsignedIn(0), fmod); });
}
LogicalResult pow(Node &n) {
  return fold(n, [&](Scalar &s, Value x, Value y) { return s.pow(x, y, n.isUnsignedIn(0), n.isUnsignedIn(1)); });
}

template <typename OpTy> LogicalResult bitwise(Node &n) {
  return fold(n, [](Scalar &s, Value x, Value y) -> Value { return OpTy::create(s.b, x, y); });
}

LogicalResult bitShift(Node &n) {
  StringRef direction = n.op.getStr("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.fail("direction is '" + direction + "', expected LEFT or RIGHT");
  bool left = direction == "LEFT", isUnsigned = n.isUnsignedIn(0);
  return fold(n, [&](Scalar &s, Value x, Value y) -> Value {
    // A shift by the width or more (a negative one counts as such) leaves nothing but the sign.
    Type type = x.getType();
    int64_t width = type.getIntOrFloatBitWidth();
    Value inRange = s.cmp(Compare::Less, y, s.icst(type, width), true), zero = s.icst(type, 0);
    if (!left && !isUnsigned)
      return arith::ShRSIOp::create(s.b, x, s.select(inRange, y, s.icst(type, width - 1)));
    Value amount = s.select(inRange, y, zero);
    Value shifted = left ? arith::ShLIOp::create(s.b, x, amount).getResult() : arith::ShRUIOp::create(s.b, x, amount).getResult();
    return s.select(inRange, shifted, zero);
  });
}

template <Compare c> LogicalResult compare(Node &n) {
  return fold(n, [&](Scalar &s, Value x, Value y) { return s.cmp(c, x, y, n.isUnsignedIn(0)); });
}

LogicalResult notOp(Node &n) {
  return unary(n, [](Scalar &s, ValueRange x) { return s.logicalNot(x[0]); });
}
LogicalResult bitwiseNot(Node &n) {
  return unary(n, [](Scalar &s, ValueRange x) -> Value { return arith::XOrIOp::create(s.b, x[0], s.icst(x[0].getType(), -1)); });
}
LogicalResult neg(Node &n) {
  return unary(n, [](Scalar &s, ValueRange x) { return s.neg(x[0]); });
}
LogicalResult abs(Node &n) {
  return unary(n, [&](Scalar &s, ValueRange x) { return s.abs(x[0], n.isUnsignedIn(0)); });
}
LogicalResult sign(Node &n) {
  return unary(n, [&](Scalar &s, ValueRange x) { return s.sign(x[0], n.isUnsignedIn(0)); });
}
/// Operand 0 with small floats as f32.
Value decoded(Node &n) {
  auto small = dyn_cast<FloatType>(n.declaredIn(0));
  if (!small || !isSmallFloat(small))
    return n.in(0);
  return elementwise(n.b, n.inShape(0), n.b.getF32Type(), n.in(0),
                     [&](Scalar &s, ValueRange x) { return decodeFloat(s, x[0], small); });
}

/// A question about a number of a float type.
LogicalResult question(Node &n, function_ref<Value(Scalar &, Value)> f) {
  Value x = decoded(n);
  if (!isa<FloatType>(elementOf(x)))
    return n.fail("operand 0 is not of a float type");
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), x, [&](Scalar &s, ValueRange v) { return f(s, v[0]); }));
}

LogicalResult isNan(Node &n) {
  return question(n, [](Scalar &s, Value x) { return s.isNan(x); });
}
LogicalResult isInf(Node &n) {
  bool positive = n.op.getI64("detect_positive", 1), negative = n.op.getI64("detect_negative", 1);
  return question(n, [&](Scalar &s, Value x) {
    Value isPositive = s.cmp(Compare::Equal, x, s.highest(x.getType(), false), false);
    Value isNegative = s.cmp(Compare::Equal, x, s.lowest(x.getType(), false), false);
    Value no = s.icst(s.b.getI1Type(), 0);
    return s.add(positive ? isPositive : no, negative ? isNegative : no);
  });
}

LogicalResult reciprocal(Node &n) {
  return unaryFloat(n, [](Scalar &s, Value x) { return s.div(s.cst(x.getType(), 1.0), x, false); });
}

LogicalResult relu(Node &n) {
  return unary(n, [](Scalar &s, ValueRange x) { return s.max(x[0], s.icst(x[0].getType(), 0), false); });
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

Value clampUnit(Scalar &s, Value x) { return s.min(s.max(x, s.cst(x.getType(), 0.0), false), s.cst(x.getType(), 1.0), false); }

LogicalResult hardSigmoid(Node &n) {
  float alpha = n.op.getF32("alpha", 0.2f), beta = n.op.getF32("beta", 0.5f);
  return unaryFloat(
      n, [&](Scalar &s, Value x) { return clampUnit(s, s.add(s.mul(x, s.cst(x.getType(), alpha)), s.cst(x.getType(), beta))); });
}
LogicalResult hardSwish(Node &n) {
  return unaryFloat(n, [](Scalar &s, Value x) {
    return s.mul(x, clampUnit(s, s.add(s.mul(x, s.cst(x.getType(), 1.0 / 6.0)), s.cst(x.getType(), 0.5))));
  });
}
LogicalResult gelu(Node &n) {
  StringRef approximate = n.op.getStr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return n.fail("approximate is '" + approximate + "', expected none or tanh");
  return unaryFloat(n, [&](Scalar &s, Value x) { return s.gelu(x, approximate == "tanh"); });
}
LogicalResult leakyRelu(Node &n) {
  float alpha = n.op.getF32("alpha", 0.01f);
  return unaryFloat(n, [&](Scalar &s, Value x) {
    return s.select(s.cmp(Compare::Less, x, s.cst(x.getType(), 0.0), false), s.mul(x, s.cst(x.getType(), alpha)), x);
  });
}
LogicalResult prelu(Node &n) {
  return fold(n, [&](Scalar &s, Value x, Value slope) {
    return s.select(s.cmp(Compare::Less, x, s.icst(x.getType(), 0), n.isUnsignedIn(0)), s.mul(x, slope), x);
  });
}
/// x for x > 0, scale * alpha * (exp(x / divisor) - 1) otherwise; positive values times `scale`.
LogicalResult exponentialUnit(Node &n, float alpha, float scale, float divisor) {
  return unaryFloat(n, [&](Scalar &s, Value x) {
    Type type = x.getType();
    Value scaled = divisor == 1.0f ? x : s.div(x, s.cst(type, divisor), false);
    Value grown = s.mul(s.cst(type, alpha), math::ExpM1Op::create(s.b, scaled));
    Value result = s.select(s.cmp(Compare::Greater, x, s.cst(type, 0.0), false), x, grown);
    return scale == 1.0f ? result : s.mul(result, s.cst(type, scale));
  });
}
LogicalResult elu(Node &n) { return exponentialUnit(n, n.op.getF32("alpha", 1.0f), 1.0f, 1.0f); }
LogicalResult selu(Node &n) {
  return exponentialUnit(n, n.op.getF32("alpha", 1.67326319217681884765625f), n.op.getF32("gamma", 1.05070102214813232421875f),
                         1.0f);
}
LogicalResult celu(Node &n) {
  float alpha = n.op.getF32("alpha", 1.0f);
  return exponentialUnit(n, alpha, 1.0f, alpha);
}
LogicalResult thresholdedRelu(Node &n) {
  float alpha = n.op.getF32("alpha", 1.0f);
  return unaryFloat(n, [&](Scalar &s, Value x) {
    return s.select(s.cmp(Compare::Greater, x, s.cst(x.getType(), alpha), false), x, s.cst(x.getType(), 0.0));
  });
}
LogicalResult softsign(Node &n) {
  return unaryFloat(n, [](Scalar &s, Value x) { return s.div(x, s.add(s.cst(x.getType(), 1.0), s.abs(x, false)), false); });
}
LogicalResult mish(Node &n) {
  return unaryFloat(n, [](Scalar &s, Value x) { return s.mul(x, s.tanh(s.softplus(x))); });
}
LogicalResult swish(Node &n) {
  float alpha = n.op.getF32("alpha", 1.0f);
  return unaryFloat(
      n, [&](Scalar &s, Value x) { return s.mul(x, s.sigmoid(alpha == 1.0f ? x : s.mul(x, s.cst(x.getType(), alpha)))); });
}
LogicalResult shrink(Node &n) {
  float bias = n.op.getF32("bias", 0.0f), lambd = n.op.getF32("lambd", 0.5f);
  return unary(n, [&](Scalar &s, ValueRange x) {
    Type type = x[0].getType();
    Value below = s.cmp(Compare::Less, x[0], s.cst(type, -lambd), false),
          above = s.cmp(Compare::Greater, x[0], s.cst(type, lambd), false);
    Value result = s.select(above, s.sub(x[0], s.cst(type, bias)), s.cst(type, 0.0));
    return s.select(below, s.add(x[0], s.cst(type, bias)), result);
  });
}

//===----------------------------------------------------------------------===//
// Choice and conversion
//===----------------------------------------------------------------------===//

LogicalResult where(Node &n) {
  // No arithmetic, so nothing is widened.
  return n.result(elementwise(
      n.b, n.outShape(), n.outElement(), {n.in(0), n.in(1), n.in(2)},
      [](Scalar &s, ValueRange x) { return s.select(x[0], x[1], x[2]); }, /*widen=*/false));
}

LogicalResult clip(Node &n) {
  SmallVector<Value> operands{n.in(0)};
  for (int i : {1, 2})
    if (n.has(i))
      operands.push_back(reshape(n.b, n.in(i), {}));
  bool isUnsigned = n.isUnsignedIn(0), hasMin = n.has(1);
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), operands, [&](Scalar &s, ValueRange x) {
    Value result = hasMin ? s.max(x[0], x[1], isUnsigned) : x[0];
    return x.size() > (hasMin ? 2u : 1u) ? s.min(result, x.back(), isUnsigned) : result;
  }));
}

LogicalResult castTo(Node &n) {
  n.op.ignore("to"); // the result type says it
  SmallFloatOptions options;
  options.saturate = n.op.getI64("saturate", 1) != 0;
  StringRef mode = n.op.getStr("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    return n.fail("round_mode is '" + mode + "', expected up, down or nearest");
  options.round = mode == "up" ? PowerRounding::Up : mode == "down" ? PowerRounding::Down : PowerRounding::Nearest;
  Type from = n.declaredIn(0), to = n.declaredOut();
  if (from == to || (n.inElement(0) == n.outElement() && !isSmallType(from) && !isSmallType(to)))
    return n.result(n.in(0));
  return n.result(elementwise(
      n.b, n.outShape(), n.outElement(), n.in(0),
      [&](Scalar &s, ValueRange x) { return castElement(s, x[0], from, to, options); },
      /*widen=*/false));
}

/// The same bits under another type. Of the types stored as bytes, small integers are the ones whose bits are not all there.
LogicalResult bitCast(Node &n) {
  n.op.ignore("to"); // the result type says it
  Type from = n.declaredIn(0), to = n.declaredOut();
  if (from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth() || from.isInteger(1) != to.isInteger(1))
    return n.fail("element types do not have the same number of bits");
  if (n.inElement(0) == n.outElement() && !isSmallInteger(from) && !isSmallInteger(to))
    return n.result(n.in(0));
  return n.result(elementwise(
      n.b, n.outShape(), n.outElement(), n.in(0),
      [&](Scalar &s, ValueRange x) -> Value {
        if (n.inElement(0) != n.outElement())
          return arith::BitcastOp::create(s.b, n.outElement(), x[0]);
        if (auto integer = dyn_cast<IntegerType>(to); integer && isSmallInteger(to))
          return wrapToWidth(s, x[0], integer);
        return arith::AndIOp::create(s.b, x[0], s.icst(x[0].getType(), (1 << from.getIntOrFloatBitWidth()) - 1));
      },
      /*widen=*/false));
}

LogicalResult identity(Node &n) { return n.result(n.in(0)); }

} // namespace

void registerElementwise(Table &t) {
  t.add("Add", add);
  t.add("Sub", sub);
  t.add("Mul", mul);
  t.add("Div", div);
  t.add("Max", max);
  t.add("Min", min);
  t.add("Sum", add);
  t.add("Mean", mean);
  t.add("Mod", mod);
  t.add("Pow", pow);
  t.add("And", bitwise<arith::AndIOp>);
  t.add("Or", bitwise<arith::OrIOp>);
  t.add("Xor", bitwise<arith::XOrIOp>);
  t.add("BitwiseAnd", bitwise<arith::AndIOp>);
  t.add("BitwiseOr", bitwise<arith::OrIOp>);
  t.add("BitwiseXor", bitwise<arith::XOrIOp>);
  t.add("BitwiseNot", bitwiseNot);
  t.add("BitShift", bitShift);
  t.add("Not", notOp);
  t.add("Equal", compare<Compare::Equal>);
  t.add("Less", compare<Compare::Less>);
  t.add("LessOrEqual", compare<Compare::LessOrEqual>);
  t.add("Greater", compare<Compare::Greater>);
  t.add("GreaterOrEqual", compare<Compare::GreaterOrEqual>);
  t.add("Neg", neg);
  t.add("Abs", abs);
  t.add("Sign", sign);
  t.add("IsNaN", isNan);
  t.add("IsInf", isInf);
  t.add("Reciprocal", reciprocal);
  t.add("Relu", relu);
  t.add("Exp", unaryOp<math::ExpOp>);
  t.add("Log", unaryOp<math::LogOp>);
  t.add("Sqrt", unaryOp<math::SqrtOp>);
  t.add("Sin", unaryOp<math::SinOp>);
  t.add("Cos", unaryOp<math::CosOp>);
  t.add("Tan", unaryOp<math::TanOp>);
  t.add("Asin", unaryOp<math::AsinOp>);
  t.add("Acos", unaryOp<math::AcosOp>);
  t.add("Atan", unaryOp<math::AtanOp>);
  t.add("Sinh", unaryOp<math::SinhOp>);
  t.add("Cosh", unaryOp<math::CoshOp>);
  t.add("Tanh", unaryOp<math::TanhOp>);
  t.add("Asinh", unaryOp<math::AsinhOp>);
  t.add("Acosh", unaryOp<math::AcoshOp>);
  t.add("Atanh", unaryOp<math::AtanhOp>);
  t.add("Erf", unaryOp<math::ErfOp>);
  t.add("Floor", rounding<math::FloorOp>);
  t.add("Ceil", rounding<math::CeilOp>);
  t.add("Round", rounding<math::RoundEvenOp>);
  t.add("Sigmoid", unaryMethod<&Scalar::sigmoid>);
  t.add("Softplus", unaryMethod<&Scalar::softplus>);
  t.add("Softsign", softsign);
  t.add("HardSigmoid", hardSigmoid);
  t.add("HardSwish", hardSwish);
  t.add("Gelu", gelu);
  t.add("LeakyRelu", leakyRelu);
  t.add("PRelu", prelu);
  t.add("Elu", elu);
  t.add("Selu", selu);
  t.add("Celu", celu);
  t.add("ThresholdedRelu", thresholdedRelu);
  t.add("Mish", mish);
  t.add("Swish", swish);
  t.add("Shrink", shrink);
  t.add("Where", where);
  t.add("Clip", clip);
  t.add("Cast", castTo);
  t.add("CastLike", castTo);
  t.add("BitCast", bitCast);
  t.add("Identity", identity);
}

} // namespace ogc::lower
