//===- AccurateMath.cpp - f32 functions over their whole range ------------===//
#include "compiler/codegen/cpu/AccurateMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <limits>

using namespace mlir;
using Predicate = arith::CmpFPredicate;

namespace ogc::codegen {

namespace {

/// Short names for the operations of one expansion, on scalars and vectors alike.
struct Ops {
  OpBuilder &builder;
  Location loc;

  static Type like(Type type, Type element) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(Type type, TypedAttr scalar) const {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(builder, loc, SplatElementsAttr::get(vector, scalar));
    return arith::ConstantOp::create(builder, loc, scalar);
  }
  /// `value` in the type of `model`.
  Value number(Value model, double value) const {
    return constant(model.getType(), builder.getFloatAttr(getElementTypeOrSelf(model.getType()), value));
  }
  Value integer(Value model, int64_t value) const {
    return constant(model.getType(), builder.getIntegerAttr(getElementTypeOrSelf(model.getType()), value));
  }
  Value add(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
  Value add(Value a, double b) const { return add(a, number(a, b)); }
  Value sub(Value a, Value b) const { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) const { return arith::MulFOp::create(builder, loc, a, b); }
  Value mul(Value a, double b) const { return mul(a, number(a, b)); }
  Value div(Value a, Value b) const { return arith::DivFOp::create(builder, loc, a, b); }
  Value fma(Value a, Value b, Value c) const { return math::FmaOp::create(builder, loc, a, b, c); }
  Value negate(Value a) const { return arith::NegFOp::create(builder, loc, a); }
  Value abs(Value a) const { return math::AbsFOp::create(builder, loc, a); }
  Value sqrt(Value a) const { return math::SqrtOp::create(builder, loc, a); }
  Value exp(Value a) const { return math::ExpOp::create(builder, loc, a); }
  Value log(Value a) const { return math::LogOp::create(builder, loc, a); }
  Value log1p(Value a) const { return math::Log1pOp::create(builder, loc, a); }
  Value copySign(Value magnitude, Value sign) const { return math::CopySignOp::create(builder, loc, magnitude, sign); }
  Value compare(Predicate predicate, Value a, Value b) const { return arith::CmpFOp::create(builder, loc, predicate, a, b); }
  Value compare(Predicate predicate, Value a, double b) const { return compare(predicate, a, number(a, b)); }
  Value select(Value condition, Value then, Value otherwise) const {
    return arith::SelectOp::create(builder, loc, condition, then, otherwise);
  }
  Value both(Value a, Value b) const { return arith::AndIOp::create(builder, loc, a, b); }
  Value either(Value a, Value b) const { return arith::OrIOp::create(builder, loc, a, b); }
  Value extend(Value a) const { return arith::ExtFOp::create(builder, loc, like(a.getType(), builder.getF64Type()), a); }
  Value truncate(Value a) const { return arith::TruncFOp::create(builder, loc, like(a.getType(), builder.getF32Type()), a); }
  /// Whether half of the integral `a` is not integral.
  Value isOdd(Value a) const {
    Value half = mul(a, 0.5);
    return compare(Predicate::ONE, math::FloorOp::create(builder, loc, half), half);
  }
  /// `a` between `low` and `high`; NaN stays.
  Value clamp(Value a, double low, double high) const {
    a = select(compare(Predicate::OLT, a, low), number(a, low), a);
    return select(compare(Predicate::OGT, a, high), number(a, high), a);
  }
  /// The polynomial of `x` with `coefficients`, the highest power first.
  Value polynomial(Value x, ArrayRef<double> coefficients) const {
    Value sum = number(x, coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, number(x, coefficient));
    return sum;
  }
};

constexpr double ln2 = 0.69314718055994530942, infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

/// log2 of a positive f64 that was an f32, to 1e-12: 2 atanh((m - 1) / (m + 1)) of the mantissa m around 1.
Value log2OfPositive(const Ops &ops, Value x) {
  OpBuilder &builder = ops.builder;
  Type i64 = Ops::like(x.getType(), builder.getI64Type()), i32 = Ops::like(x.getType(), builder.getI32Type());
  Value bits = arith::BitcastOp::create(builder, ops.loc, i64, x);
  Value biased = arith::ShRUIOp::create(builder, ops.loc, bits, ops.integer(bits, 52));
  Value exponent = arith::SIToFPOp::create(builder, ops.loc, x.getType(), arith::TruncIOp::create(builder, ops.loc, i32, biased));
  Value fraction = arith::AndIOp::create(builder, ops.loc, bits, ops.integer(bits, 0x000fffffffffffff));
  fraction = arith::OrIOp::create(builder, ops.loc, fraction, ops.integer(bits, 0x3ff0000000000000));
  Value mantissa = arith::BitcastOp::create(builder, ops.loc, x.getType(), fraction);
  Value large = ops.compare(Predicate::OGT, mantissa, 1.4142135623730951);
  mantissa = ops.select(large, ops.mul(mantissa, 0.5), mantissa);
  exponent = ops.add(exponent, ops.select(large, ops.number(x, -1022), ops.number(x, -1023)));
  Value s = ops.div(ops.add(mantissa, -1), ops.add(mantissa, 1)), square = ops.mul(s, s);
  Value series = ops.polynomial(square, {1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1});
  return ops.fma(ops.mul(s, 2 / ln2), series, exponent);
}

/// 2^x in f64 to 1e-10, relative, for |x| <= 1000.
Value exp2OfClamped(const Ops &ops, Value x) {
  OpBuilder &builder = ops.builder;
  Type i64 = Ops::like(x.getType(), builder.getI64Type()), i32 = Ops::like(x.getType(), builder.getI32Type());
  Value whole = math::RoundEvenOp::create(builder, ops.loc, x);
  Value rest = ops.mul(ops.sub(x, whole), ln2);
  Value power = ops.polynomial(rest, {1. / 362880, 1. / 40320, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 0.5, 1, 1});
  Value exponent = arith::FPToSIOp::create(builder, ops.loc, i32, whole);
  exponent = arith::ExtSIOp::create(builder, ops.loc, i64, exponent);
  exponent = arith::AddIOp::create(builder, ops.loc, exponent, ops.integer(exponent, 1023));
  exponent = arith::ShLIOp::create(builder, ops.loc, exponent, ops.integer(exponent, 52));
  return ops.mul(power, arith::BitcastOp::create(builder, ops.loc, x.getType(), exponent));
}

/// |x|^y through f64; 1 where the exponent of 2 is not a number (the caller tells NaNs from 1^inf and inf^0).
Value powerOfMagnitude(const Ops &ops, Value x, Value y) {
  Value magnitude = ops.extend(ops.abs(x));
  Value logarithm = log2OfPositive(ops, magnitude);
  logarithm = ops.select(ops.compare(Predicate::OEQ, magnitude, 0.), ops.number(magnitude, -infinity), logarithm);
  logarithm = ops.select(ops.compare(Predicate::OEQ, magnitude, infinity), magnitude, logarithm);
  Value exponent = ops.clamp(ops.mul(logarithm, ops.extend(y)), -200, 200); // beyond f32 on both sides
  exponent = ops.select(ops.compare(Predicate::UNO, exponent, exponent), ops.number(exponent, 0), exponent);
  return ops.truncate(exp2OfClamped(ops, exponent));
}

Value power(const Ops &ops, Value x, Value y) {
  Value result = powerOfMagnitude(ops, x, y);
  // Every f32 from 2^24 on, infinity too, is its own floor and an even number.
  Value whole = math::FloorOp::create(ops.builder, ops.loc, y);
  Value odd = ops.both(ops.compare(Predicate::OEQ, whole, y), ops.isOdd(y));
  result = ops.select(odd, ops.copySign(result, x), result);
  Value finiteNegative = ops.both(ops.compare(Predicate::OLT, x, 0.), ops.compare(Predicate::OGT, x, -infinity));
  Value undefined = ops.both(finiteNegative, ops.compare(Predicate::ONE, whole, y));
  undefined = ops.either(undefined, ops.compare(Predicate::UNO, x, y));
  result = ops.select(undefined, ops.number(x, nan), result);
  Value one = ops.either(ops.compare(Predicate::OEQ, y, 0.), ops.compare(Predicate::OEQ, x, 1.));
  return ops.select(one, ops.number(x, 1), result);
}

/// Unlike sqrt, the power makes +0 of -0 and infinity of -infinity.
Value rootPower(const Ops &ops, Value x) {
  return ops.select(ops.compare(Predicate::OEQ, x, -infinity), ops.number(x, infinity), ops.sqrt(ops.add(x, 0.)));
}

/// x to a small integral power by products.
Value smallPower(const Ops &ops, Value x, int exponent) {
  Value result;
  for (unsigned rest = std::abs(exponent); rest; rest >>= 1) {
    if (rest & 1)
      result = result ? ops.mul(result, x) : x;
    if (rest > 1)
      x = ops.mul(x, x);
  }
  return exponent < 0 ? ops.div(ops.number(result, 1), result) : result;
}

struct ExpandPower : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Ops ops{rewriter, op.getLoc()};
    APFloat constant(0.f);
    float exponent = matchPattern(op.getRhs(), m_ConstantFloat(&constant)) ? constant.convertToFloat() : 0;
    bool small = exponent == 1 || exponent == 2 || exponent == 3 || exponent == 4 || exponent == -1 || exponent == -2;
    if (small)
      rewriter.replaceOp(op, smallPower(ops, op.getLhs(), exponent));
    else if (exponent == 0.5f)
      rewriter.replaceOp(op, rootPower(ops, op.getLhs()));
    else
      rewriter.replaceOp(op, power(ops, op.getLhs(), op.getRhs()));
    return success();
  }
};

Value hyperbolicSine(const Ops &ops, Value x) {
  Value a = ops.abs(x), e = math::ExpM1Op::create(ops.builder, ops.loc, a);
  Value near = ops.mul(ops.add(e, ops.div(e, ops.add(e, 1))), 0.5);
  Value root = ops.exp(ops.mul(a, 0.5)), far = ops.mul(ops.mul(root, 0.5), root); // e^a alone would overflow too early
  return ops.copySign(ops.select(ops.compare(Predicate::OGT, a, 20.), far, near), x);
}

Value hyperbolicCosine(const Ops &ops, Value x) {
  Value a = ops.abs(x), e = ops.exp(a);
  Value near = ops.mul(ops.add(e, ops.div(ops.number(e, 1), e)), 0.5);
  Value root = ops.exp(ops.mul(a, 0.5)), far = ops.mul(ops.mul(root, 0.5), root); // as in the sine
  return ops.select(ops.compare(Predicate::OGT, a, 20.), far, near);
}

Value inverseSine(const Ops &ops, Value x) {
  Value a = ops.abs(x), square = ops.mul(a, a);
  Value near = ops.log1p(ops.add(a, ops.div(square, ops.add(ops.sqrt(ops.add(square, 1)), 1))));
  Value far = ops.add(ops.log(a), ln2);
  return ops.copySign(ops.select(ops.compare(Predicate::OGT, a, 1e9), far, near), x);
}

Value inverseCosine(const Ops &ops, Value x) {
  Value above = ops.add(x, -1);
  Value near = ops.log1p(ops.add(above, ops.sqrt(ops.mul(above, ops.add(above, 2)))));
  Value far = ops.add(ops.log(x), ln2);
  Value result = ops.select(ops.compare(Predicate::OGT, x, 1e9), far, near);
  return ops.select(ops.compare(Predicate::OLT, x, 1.), ops.number(x, nan), result);
}

Value inverseTangent(const Ops &ops, Value x) {
  Value a = ops.abs(x);
  Value ratio = ops.div(ops.mul(a, 2), ops.sub(ops.number(a, 1), a));
  return ops.copySign(ops.mul(ops.log1p(ratio), 0.5), x);
}

/// Sine and cosine of x - n pi/2, at most pi/4 away from zero, and the integral n.
struct Reduced {
  Value sine, cosine, quarters;
};

Reduced reduce(const Ops &ops, Value x) {
  // 31 bits of pi/2, so that the product with n below 2^22 is exact, and what they leave.
  constexpr double high = 0x1.921fb544p+0, low = 0x1.0b4611a626331p-34;
  Value wide = ops.extend(x);
  Value n = math::RoundEvenOp::create(ops.builder, ops.loc, ops.mul(wide, 0.63661977236758134308));
  Value minus = ops.negate(n);
  Value rest = ops.fma(minus, ops.number(n, low), ops.fma(minus, ops.number(n, high), wide));
  Value r = ops.truncate(ops.clamp(rest, -1, 1)), square = ops.mul(r, r);
  Value sine = ops.polynomial(square, {1. / 362880, -1. / 5040, 1. / 120, -1. / 6});
  Value cosine = ops.polynomial(square, {-1. / 3628800, 1. / 40320, -1. / 720, 1. / 24, -0.5, 1});
  return {ops.fma(ops.mul(sine, square), r, r), cosine, n};
}

/// The sine of (x + `ahead` pi/2), from the quadrant.
Value sineOf(const Ops &ops, Value x, double ahead) {
  Reduced reduced = reduce(ops, x);
  Value n = ahead ? ops.add(reduced.quarters, ahead) : reduced.quarters;
  Value result = ops.select(ops.isOdd(n), reduced.cosine, reduced.sine);
  Value halves = math::FloorOp::create(ops.builder, ops.loc, ops.mul(n, 0.5));
  return ops.select(ops.isOdd(halves), ops.negate(result), result);
}

Value sine(const Ops &ops, Value x) { return sineOf(ops, x, 0); }
Value cosine(const Ops &ops, Value x) { return sineOf(ops, x, 1); }

Value tangent(const Ops &ops, Value x) {
  Reduced reduced = reduce(ops, x);
  Value odd = ops.isOdd(reduced.quarters);
  Value numerator = ops.select(odd, ops.negate(reduced.cosine), reduced.sine);
  return ops.div(numerator, ops.select(odd, reduced.sine, reduced.cosine));
}

template <typename Op, Value (*expand)(const Ops &, Value)> struct ExpandUnary : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    rewriter.replaceOp(op, expand(Ops{rewriter, op.getLoc()}, op.getOperand()));
    return success();
  }
};

} // namespace

void populateAccurateMathPatterns(RewritePatternSet &patterns) {
  constexpr unsigned benefit = 10; // over the expansions of the math dialect
  patterns.add<ExpandPower, ExpandUnary<math::SinhOp, hyperbolicSine>, ExpandUnary<math::CoshOp, hyperbolicCosine>,
               ExpandUnary<math::AsinhOp, inverseSine>, ExpandUnary<math::AcoshOp, inverseCosine>,
               ExpandUnary<math::AtanhOp, inverseTangent>, ExpandUnary<math::SinOp, sine>, ExpandUnary<math::CosOp, cosine>,
               ExpandUnary<math::TanOp, tangent>>(patterns.getContext(), benefit);
}

} // namespace ogc::codegen
