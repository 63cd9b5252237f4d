//===- ScalarRules.cpp ----------------------------------------------------===//
#include "compiler/passes/lower/ScalarRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace ogc::lower {

Type computeType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  return type;
}

static bool isFloat(Value v) { return isa<FloatType>(v.getType()); }

Value Scalar::cst(Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(floatType, value));
  return icst(type, static_cast<int64_t>(value));
}

Value Scalar::icst(Type type, int64_t value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(floatType, static_cast<double>(value)));
  if (type.isIndex())
    return arith::ConstantOp::create(b, b.getIndexAttr(value));
  unsigned width = type.getIntOrFloatBitWidth();
  return arith::ConstantOp::create(b, IntegerAttr::get(type, APInt(64, static_cast<uint64_t>(value)).trunc(width)));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Scalar::add(Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(b, x, y);
  if (x.getType().isInteger(1))
    return arith::OrIOp::create(b, x, y);
  return arith::AddIOp::create(b, x, y);
}

Value Scalar::sub(Value x, Value y) {
  return isFloat(x) ? arith::SubFOp::create(b, x, y).getResult() : arith::SubIOp::create(b, x, y).getResult();
}

Value Scalar::mul(Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(b, x, y);
  if (x.getType().isInteger(1))
    return arith::AndIOp::create(b, x, y);
  return arith::MulIOp::create(b, x, y);
}

/// True when y is a constant other than 0 and -1, for which no division can trap.
static bool isHarmlessDivisor(Value y) {
  APInt value;
  return matchPattern(y, m_ConstantInt(&value)) && !value.isZero() && !value.isAllOnes();
}

Value Scalar::div(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return arith::DivFOp::create(b, x, y);
  if (isHarmlessDivisor(y))
    return isUnsigned ? arith::DivUIOp::create(b, x, y).getResult() : arith::DivSIOp::create(b, x, y).getResult();
  Value zero = icst(x.getType(), 0), one = icst(x.getType(), 1);
  Value isZero = cmp(Compare::Equal, y, zero, isUnsigned);
  if (isUnsigned)
    return select(isZero, zero, arith::DivUIOp::create(b, x, select(isZero, one, y)));
  Value isMinusOne = cmp(Compare::Equal, y, icst(x.getType(), -1), false);
  Value safe = select(arith::OrIOp::create(b, isZero, isMinusOne), one, y);
  Value quotient = select(isMinusOne, sub(zero, x), arith::DivSIOp::create(b, x, safe));
  return select(isZero, zero, quotient);
}

Value Scalar::mod(Value x, Value y, bool isUnsigned, bool fmod) {
  Type type = x.getType();
  Value zero = icst(type, 0), rest;
  if (isFloat(x)) {
    rest = arith::RemFOp::create(b, x, y);
  } else if (isUnsigned) {
    Value isZero = cmp(Compare::Equal, y, zero, true);
    return select(isZero, zero, arith::RemUIOp::create(b, x, select(isZero, icst(type, 1), y)));
  } else if (isHarmlessDivisor(y)) {
    rest = arith::RemSIOp::create(b, x, y);
  } else {
    // x mod 1 and x mod -1 are 0, which is also the rule for x mod 0.
    Value trivial = arith::OrIOp::create(b, cmp(Compare::Equal, y, zero, false), cmp(Compare::Equal, y, icst(type, -1), false));
    rest = arith::RemSIOp::create(b, x, select(trivial, icst(type, 1), y));
  }
  if (fmod)
    return rest;
  Value signsDiffer = arith::XOrIOp::create(b, cmp(Compare::Less, rest, zero, false), cmp(Compare::Less, y, zero, false));
  Value notZero = logicalNot(cmp(Compare::Equal, rest, zero, false));
  Value result = select(arith::AndIOp::create(b, signsDiffer, notZero), add(rest, y), rest);
  if (isFloat(x))
    return result;
  return select(cmp(Compare::Equal, y, zero, false), zero, result);
}

Value Scalar::neg(Value x) {
  if (isFloat(x))
    return arith::NegFOp::create(b, x);
  return sub(icst(x.getType(), 0), x);
}

Value Scalar::abs(Value x, bool isUnsigned) {
  if (isFloat(x))
    return math::AbsFOp::create(b, x);
  if (isUnsigned)
    return x;
  return select(cmp(Compare::Less, x, icst(x.getType(), 0), false), neg(x), x);
}

Value Scalar::sign(Value x, bool isUnsigned) {
  Value zero = icst(x.getType(), 0), one = icst(x.getType(), 1);
  Value positive = select(cmp(Compare::Greater, x, zero, isUnsigned), one, x);
  if (isUnsigned)
    return positive;
  return select(cmp(Compare::Less, x, zero, false), icst(x.getType(), -1), positive);
}

Value Scalar::max(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return arith::MaximumFOp::create(b, x, y);
  if (isUnsigned || x.getType().isInteger(1))
    return arith::MaxUIOp::create(b, x, y);
  return arith::MaxSIOp::create(b, x, y);
}

Value Scalar::min(Value x, Value y, bool isUnsigned) {
  if (isFloat(x))
    return arith::MinimumFOp::create(b, x, y);
  if (isUnsigned || x.getType().isInteger(1))
    return arith::MinUIOp::create(b, x, y);
  return arith::MinSIOp::create(b, x, y);
}

//===----------------------------------------------------------------------===//
// Pow
//===----------------------------------------------------------------------===//

Value Scalar::pow(Value x, Value y, bool xUnsigned, bool yUnsigned) {
  if (isFloat(x))
    return powFloat(x, isFloat(y) && x.getType() == y.getType() ? y : cast(y, yUnsigned, x.getType(), false));
  if (!isFloat(y))
    return powInt(x, y, xUnsigned, yUnsigned);
  // In f32, as the exponent is: powers of f64 have no code on the cpu target.
  Type compute = y.getType().isF64() ? Type(b.getF64Type()) : Type(b.getF32Type());
  return cast(powFloat(cast(x, xUnsigned, compute, false), cast(y, false, compute, false)), false, x.getType(), xUnsigned);
}

Value Scalar::powFloat(Value x, Value y) {
  APFloat exponent(0.0f);
  if (matchPattern(y, m_ConstantFloat(&exponent))) {
    // Exponents whose short form is exact or as accurate as pow itself.
    double e = exponent.convertToDouble();
    if (e == 1.0)
      return x;
    if (e == 2.0)
      return mul(x, x);
    if (e == 3.0)
      return mul(mul(x, x), x);
    if (e == -1.0)
      return div(cst(x.getType(), 1.0), x, false);
    if (e == 0.0)
      return cst(x.getType(), 1.0);
  }
  return math::PowFOp::create(b, x, y);
}

Value Scalar::powIntConstant(Value x, uint64_t exponent) {
  Value result, square = x;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = result ? mul(result, square) : square;
    if (exponent > 1)
      square = mul(square, square);
  }
  return result ? result : icst(x.getType(), 1);
}

Value Scalar::powInt(Value x, Value y, bool xUnsigned, bool yUnsigned) {
  APInt exponent;
  if (matchPattern(y, m_ConstantInt(&exponent)) && (yUnsigned || exponent.isNonNegative()))
    return powIntConstant(x, exponent.getZExtValue());
  // Square and multiply over the bits of the exponent; bodies have no loops.
  Type type = y.getType();
  unsigned bits = type.getIntOrFloatBitWidth() - (yUnsigned ? 0 : 1);
  Value zeroX = icst(x.getType(), 0), oneX = icst(x.getType(), 1), zeroY = icst(type, 0);
  Value result = oneX, square = x;
  for (unsigned bit = 0; bit < bits; ++bit) {
    Value mask = icst(type, static_cast<int64_t>(uint64_t(1) << bit));
    Value isClear = cmp(Compare::Equal, arith::AndIOp::create(b, y, mask), zeroY, true);
    result = select(isClear, result, mul(result, square));
    if (bit + 1 < bits)
      square = mul(square, square);
  }
  if (yUnsigned)
    return result;
  // 1 / x^n truncates to 0 but for x = 1 and x = -1, where x^-n = x^n (the low bit of n decides, and it is that of -n).
  Value isUnit = cmp(Compare::Equal, x, oneX, xUnsigned);
  Value inverse = select(isUnit, oneX, zeroX);
  if (!xUnsigned) {
    Value isOdd = cmp(Compare::Equal, arith::AndIOp::create(b, y, icst(type, 1)), icst(type, 1), true);
    Value minusOne = icst(x.getType(), -1);
    inverse = select(cmp(Compare::Equal, x, minusOne, false), select(isOdd, minusOne, oneX), inverse);
  }
  return select(cmp(Compare::Less, y, zeroY, false), inverse, result);
}

//===----------------------------------------------------------------------===//
// Comparison, selection
//===----------------------------------------------------------------------===//

Value Scalar::cmp(Compare c, Value x, Value y, bool isUnsigned) {
  static constexpr arith::CmpFPredicate floats[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::OLT,
                                                    arith::CmpFPredicate::OLE, arith::CmpFPredicate::OGT,
                                                    arith::CmpFPredicate::OGE};
  static constexpr arith::CmpIPredicate ints[] = {arith::CmpIPredicate::eq, arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                  arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  static constexpr arith::CmpIPredicate unsignedInts[] = {arith::CmpIPredicate::eq, arith::CmpIPredicate::ult,
                                                          arith::CmpIPredicate::ule, arith::CmpIPredicate::ugt,
                                                          arith::CmpIPredicate::uge};
  int i = static_cast<int>(c);
  if (isFloat(x))
    return arith::CmpFOp::create(b, floats[i], x, y);
  return arith::CmpIOp::create(b, isUnsigned || x.getType().isInteger(1) ? unsignedInts[i] : ints[i], x, y);
}

Value Scalar::select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }

Value Scalar::logicalNot(Value x) { return arith::XOrIOp::create(b, x, icst(x.getType(), 1)); }

Value Scalar::isNan(Value x) { return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x); }

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

Value Scalar::widen(Value x) {
  Type type = computeType(x.getType());
  return type == x.getType() ? x : arith::ExtFOp::create(b, type, x).getResult();
}

Value Scalar::narrow(Value x, Type to) { return x.getType() == to ? x : arith::TruncFOp::create(b, to, x).getResult(); }

Value Scalar::floatToInt(Value x, IntegerType to, bool toUnsigned) {
  x = widen(x);
  Type type = x.getType();
  unsigned width = to.getWidth();
  // Both bounds are powers of two (or zero), exact in every float type: a value converts when low <= x < high after truncation.
  double high = std::ldexp(1.0, static_cast<int>(toUnsigned ? width : width - 1));
  Value tooHigh = cmp(Compare::GreaterOrEqual, x, cst(type, high), false);
  Value tooLow = cmp(Compare::LessOrEqual, x, cst(type, toUnsigned ? 0.0 : -high), false);
  Value outside = arith::OrIOp::create(b, arith::OrIOp::create(b, tooHigh, tooLow), isNan(x));
  Value safe = select(outside, cst(type, 0.0), x);
  Value result = toUnsigned ? arith::FPToUIOp::create(b, to, safe).getResult() : arith::FPToSIOp::create(b, to, safe).getResult();
  result = select(tooHigh, highest(to, toUnsigned), result);
  return select(tooLow, lowest(to, toUnsigned), result);
}

Value Scalar::cast(Value x, bool fromUnsigned, Type to, bool toUnsigned) {
  Type from = x.getType();
  if (from == to)
    return x;
  if (to.isInteger(1)) {
    if (isFloat(x)) {
      x = widen(x);
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, x, cst(x.getType(), 0.0));
    }
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, x, icst(from, 0));
  }
  fromUnsigned |= from.isInteger(1);
  auto toFloat = dyn_cast<FloatType>(to);
  if (isFloat(x) && toFloat) {
    unsigned fromWidth = cast<FloatType>(from).getWidth(), toWidth = toFloat.getWidth();
    if (fromWidth == toWidth) // f16 and bf16
      return arith::TruncFOp::create(b, to, widen(x));
    return fromWidth < toWidth ? arith::ExtFOp::create(b, to, x).getResult() : arith::TruncFOp::create(b, to, x).getResult();
  }
  if (isFloat(x))
    return floatToInt(x, cast<IntegerType>(to), toUnsigned);
  if (toFloat) {
    Type through = computeType(to);
    Value wide =
        fromUnsigned ? arith::UIToFPOp::create(b, through, x).getResult() : arith::SIToFPOp::create(b, through, x).getResult();
    return narrow(wide, to);
  }
  if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, to, x);
  return fromUnsigned ? arith::ExtUIOp::create(b, to, x).getResult() : arith::ExtSIOp::create(b, to, x).getResult();
}

//===----------------------------------------------------------------------===//
// Float functions
//===----------------------------------------------------------------------===//

Value Scalar::exp(Value x) { return math::ExpOp::create(b, x); }
Value Scalar::sqrt(Value x) { return math::SqrtOp::create(b, x); }
Value Scalar::rsqrt(Value x) { return div(cst(x.getType(), 1.0), sqrt(x), false); }
Value Scalar::tanh(Value x) { return math::TanhOp::create(b, x); }
Value Scalar::roundHalfEven(Value x) { return math::RoundEvenOp::create(b, x); }

Value Scalar::sigmoid(Value x) {
  Value one = cst(x.getType(), 1.0);
  return div(one, add(one, exp(neg(x))), false);
}

Value Scalar::softplus(Value x) {
  // log(1 + exp(x)) without overflow.
  Value tail = math::Log1pOp::create(b, exp(neg(abs(x, false))));
  return add(max(x, cst(x.getType(), 0.0), false), tail);
}

Value Scalar::gelu(Value x, bool tanhForm) {
  Type type = x.getType();
  Value one = cst(type, 1.0), half = cst(type, 0.5), inner;
  if (tanhForm) {
    Value cube = mul(mul(x, x), x);
    inner = tanh(mul(cst(type, 0.7978845608028654), add(x, mul(cst(type, 0.044715), cube))));
  } else {
    inner = math::ErfOp::create(b, mul(x, cst(type, 0.7071067811865476)));
  }
  return mul(mul(half, x), add(one, inner));
}

Value Scalar::lowest(Type type, bool isUnsigned) {
  if (isa<FloatType>(type))
    return cst(type, -std::numeric_limits<double>::infinity());
  unsigned width = type.getIntOrFloatBitWidth();
  bool zero = isUnsigned || width == 1;
  return arith::ConstantOp::create(b, IntegerAttr::get(type, zero ? APInt(width, 0) : APInt::getSignedMinValue(width)));
}

Value Scalar::highest(Type type, bool isUnsigned) {
  if (isa<FloatType>(type))
    return cst(type, std::numeric_limits<double>::infinity());
  unsigned width = type.getIntOrFloatBitWidth();
  bool full = isUnsigned || width == 1;
  return arith::ConstantOp::create(b, IntegerAttr::get(type, full ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width)));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value Scalar::toIndex(Value x, bool isUnsigned) {
  if (x.getType().isIndex())
    return x;
  return isUnsigned ? arith::IndexCastUIOp::create(b, b.getIndexType(), x).getResult()
                    : arith::IndexCastOp::create(b, b.getIndexType(), x).getResult();
}

Value Scalar::wrapIndex(Value index, int64_t extent, bool isUnsigned) {
  Value i = toIndex(index, isUnsigned);
  Type type = i.getType();
  Value zero = icst(type, 0);
  Value wrapped = select(arith::CmpIOp::create(b, arith::CmpIPredicate::slt, i, zero), add(i, icst(type, extent)), i);
  Value clamped = arith::MaxSIOp::create(b, wrapped, zero);
  return arith::MinSIOp::create(b, clamped, icst(type, extent - 1));
}

} // namespace ogc::lower
