//===- MathLowering.cpp - math without a math library (but for f64) -------===//
#include "compiler/codegen/cpu/MathLowering.h"
#include "compiler/codegen/cpu/AccurateMath.h"
#include "compiler/codegen/cpu/LibmCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

/// `type` (scalar or vector) with another element type.
Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

Value floatConstant(OpBuilder &builder, Location loc, Type type, double value) {
  TypedAttr scalar = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(builder, loc, SplatElementsAttr::get(vector, scalar));
  return arith::ConstantOp::create(builder, loc, scalar);
}

Value intConstant(OpBuilder &builder, Location loc, Type type, uint32_t value) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  TypedAttr scalar =
      builder.getIntegerAttr(getElementTypeOrSelf(type), APInt(width, value, /*isSigned=*/false, /*implicitTrunc=*/true));
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(builder, loc, SplatElementsAttr::get(vector, scalar));
  return arith::ConstantOp::create(builder, loc, scalar);
}

/// Without the instruction a fused multiply-add would be a call into libm.
struct SplitFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    Value product = arith::MulFOp::create(rewriter, op.getLoc(), op.getA(), op.getB());
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op.getC());
    return success();
  }
};

struct SplitVectorFma : OpRewritePattern<vector::FMAOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::FMAOp op, PatternRewriter &rewriter) const override {
    Value product = arith::MulFOp::create(rewriter, op.getLoc(), op.getLhs(), op.getRhs());
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op.getAcc());
    return success();
  }
};

struct Log10FromLog : OpRewritePattern<math::Log10Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Log10Op op, PatternRewriter &rewriter) const override {
    Value natural = math::LogOp::create(rewriter, op.getLoc(), op.getOperand());
    Value factor = floatConstant(rewriter, op.getLoc(), op.getType(), 0.43429448190325182765);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, natural, factor);
    return success();
  }
};

/// f32 remainder through f64: with a quotient below 2^29 both the truncated quotient and the remainder are exact.
struct RemainderInDouble : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Type wide = withElement(op.getType(), rewriter.getF64Type());
    Value lhs = arith::ExtFOp::create(rewriter, loc, wide, op.getLhs()),
          rhs = arith::ExtFOp::create(rewriter, loc, wide, op.getRhs());
    Value quotient = math::TruncOp::create(rewriter, loc, arith::DivFOp::create(rewriter, loc, lhs, rhs));
    Value rest = arith::SubFOp::create(rewriter, loc, lhs, arith::MulFOp::create(rewriter, loc, quotient, rhs));
    Value result = arith::TruncFOp::create(rewriter, loc, op.getType(), rest);
    result = math::CopySignOp::create(rewriter, loc, result, op.getLhs()); // a zero keeps the sign of the dividend
    // A finite number is its own remainder by infinity.
    Value infinity = floatConstant(rewriter, loc, op.getType(), std::numeric_limits<double>::infinity());
    auto isInfinite = [&](Value value) -> Value {
      return arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OEQ, math::AbsFOp::create(rewriter, loc, value),
                                   infinity);
    };
    Value nan = floatConstant(rewriter, loc, op.getType(), std::numeric_limits<double>::quiet_NaN());
    Value byInfinity = arith::SelectOp::create(rewriter, loc, isInfinite(op.getLhs()), nan, op.getLhs());
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isInfinite(op.getRhs()), byInfinity, result);
    return success();
  }
};

/// f16 to f32 by shifting into place; the product with 2^112 rebases the exponent and normalizes subnormals.
struct ExpandHalfExt : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (!getElementTypeOrSelf(op.getIn().getType()).isF16() || !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Type i16 = withElement(op.getType(), rewriter.getI16Type()), i32 = withElement(op.getType(), rewriter.getI32Type());
    auto constant = [&](uint32_t value) { return intConstant(rewriter, loc, i32, value); };
    Value bits = arith::ExtUIOp::create(rewriter, loc, i32, arith::BitcastOp::create(rewriter, loc, i16, op.getIn()));
    Value magnitude =
        arith::ShLIOp::create(rewriter, loc, arith::AndIOp::create(rewriter, loc, bits, constant(0x7fff)), constant(13));
    Value sign = arith::ShLIOp::create(rewriter, loc, arith::AndIOp::create(rewriter, loc, bits, constant(0x8000)), constant(16));
    Value scaled = arith::MulFOp::create(rewriter, loc, arith::BitcastOp::create(rewriter, loc, op.getType(), magnitude),
                                         floatConstant(rewriter, loc, op.getType(), 0x1p112));
    Value special = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::uge, magnitude, constant(0x0f800000));
    Value exponent = arith::SelectOp::create(rewriter, loc, special, constant(0x7f800000), constant(0));
    Value result = arith::OrIOp::create(rewriter, loc, arith::BitcastOp::create(rewriter, loc, i32, scaled), exponent);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), arith::OrIOp::create(rewriter, loc, result, sign));
    return success();
  }
};

/// f32 to f16, to nearest even: the carry of the added half unit rounds normal numbers, adding 0.5 rounds subnormal ones.
struct ExpandHalfTrunc : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type f32 = op.getIn().getType();
    if (!getElementTypeOrSelf(f32).isF32() || !getElementTypeOrSelf(op.getType()).isF16())
      return failure();
    Type i16 = withElement(f32, rewriter.getI16Type()), i32 = withElement(f32, rewriter.getI32Type());
    auto constant = [&](uint32_t value) { return intConstant(rewriter, loc, i32, value); };
    auto shiftRight = [&](Value value, uint32_t by) -> Value {
      return arith::ShRUIOp::create(rewriter, loc, value, constant(by));
    };
    auto select = [&](arith::CmpIPredicate predicate, Value value, uint32_t limit, Value then, Value otherwise) -> Value {
      return arith::SelectOp::create(rewriter, loc, arith::CmpIOp::create(rewriter, loc, predicate, value, constant(limit)), then,
                                     otherwise);
    };
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, op.getIn());
    Value sign = arith::AndIOp::create(rewriter, loc, shiftRight(bits, 16), constant(0x8000));
    Value magnitude = arith::AndIOp::create(rewriter, loc, bits, constant(0x7fffffff));
    Value shifted = arith::AddFOp::create(rewriter, loc, arith::BitcastOp::create(rewriter, loc, f32, magnitude),
                                          floatConstant(rewriter, loc, f32, 0.5));
    Value subnormal =
        arith::SubIOp::create(rewriter, loc, arith::BitcastOp::create(rewriter, loc, i32, shifted), constant(0x3f000000));
    Value odd = arith::AndIOp::create(rewriter, loc, shiftRight(magnitude, 13), constant(1));
    Value rounded =
        arith::AddIOp::create(rewriter, loc, arith::AddIOp::create(rewriter, loc, magnitude, constant(0xc8000fff)), odd);
    Value half = select(arith::CmpIPredicate::ult, magnitude, 0x38800000, subnormal, shiftRight(rounded, 13));
    half = select(arith::CmpIPredicate::uge, magnitude, 0x477ff000, constant(0x7c00), half);
    half = select(arith::CmpIPredicate::ugt, magnitude, 0x7f800000, constant(0x7e00), half);
    Value result = arith::TruncIOp::create(rewriter, loc, i16, arith::OrIOp::create(rewriter, loc, half, sign));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), result);
    return success();
  }
};

} // namespace

/// Arithmetic and functions on f16 and bf16 in f32: the same numbers on every processor.
static LogicalResult widenHalves(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithEmulateUnsupportedFloatsOptions options;
  options.sourceTypeStrs = {"f16", "bf16"};
  options.targetTypeStr = "f32";
  passes.addPass(arith::createArithEmulateUnsupportedFloats(options));
  return passes.run(module);
}

LogicalResult lowerMath(ModuleOp module, const CpuTarget &target) {
  MLIRContext *context = module.getContext();
  if (failed(widenHalves(module)))
    return failure();
  callLibmForDoubles(module);
  RewritePatternSet patterns(context);
  math::populateExpansionPatterns(patterns,
                                  {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "exp2", "powf", "fpowi", "roundf", "rsqrt"});
  populateMathPolynomialApproximationPatterns(patterns);
  populateAccurateMathPatterns(patterns);
  arith::populateExpandBFloat16Patterns(patterns);
  patterns.add<Log10FromLog, RemainderInDouble>(context);
  if (!target.hasF16C)
    patterns.add<ExpandHalfExt, ExpandHalfTrunc>(context);
  if (failed(applyPatternsGreedily(module, std::move(patterns))))
    return failure();
  if (target.hasFma)
    return success();
  RewritePatternSet split(context);
  split.add<SplitFma, SplitVectorFma>(context);
  return applyPatternsGreedily(module, std::move(split));
}

} // namespace ogc::codegen
