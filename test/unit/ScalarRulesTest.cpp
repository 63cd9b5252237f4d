//===- ScalarRulesTest.cpp - the meaning of operators on single elements --===//
//
// Each rule is emitted on constants and folded by the canonicalizer: what is left is the value.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/ScalarRules.h"
#include "compiler/passes/lower/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace mlir;
using ogc::lower::Compare;
using ogc::lower::Scalar;

namespace {

class ScalarRules : public testing::Test {
protected:
  ScalarRules() { context.loadDialect<arith::ArithDialect, math::MathDialect, func::FuncDialect>(); }

  Type i(unsigned width) { return IntegerType::get(&context, width); }
  Type f32() { return Float32Type::get(&context); }

  /// The constant that the emitted value folds to; null when it does not fold.
  TypedAttr evaluate(llvm::function_ref<Value(Scalar &)> emit) {
    OpBuilder builder(&context);
    Location loc = builder.getUnknownLoc();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToStart(module->getBody());
    auto fn = func::FuncOp::create(builder, loc, "f", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(fn.addEntryBlock());
    Scalar s(builder, loc);
    Value v = emit(s);
    func::ReturnOp::create(s.b, v);
    fn.setFunctionType(builder.getFunctionType({}, v.getType()));
    PassManager manager(&context);
    manager.addPass(createCanonicalizerPass());
    if (failed(manager.run(*module)))
      return {};
    TypedAttr result;
    matchPattern(fn.getBody().front().getTerminator()->getOperand(0), m_Constant(&result));
    return result;
  }

  /// Folded integer, sign extended (i1: 0 or 1); fails the test when nothing folds.
  int64_t integer(llvm::function_ref<Value(Scalar &)> emit) {
    auto attr = llvm::dyn_cast_or_null<IntegerAttr>(evaluate(emit));
    EXPECT_TRUE(attr) << "did not fold to an integer";
    if (!attr)
      return std::numeric_limits<int64_t>::min() + 12345;
    return attr.getType().isInteger(1) ? attr.getValue().getZExtValue() : attr.getValue().getSExtValue();
  }
  double number(llvm::function_ref<Value(Scalar &)> emit) {
    auto attr = llvm::dyn_cast_or_null<FloatAttr>(evaluate(emit));
    EXPECT_TRUE(attr) << "did not fold to a float";
    return attr ? attr.getValueAsDouble() : std::nan("");
  }

  int64_t div(unsigned width, int64_t x, int64_t y, bool isUnsigned = false) {
    return integer([&](Scalar &s) { return s.div(s.icst(i(width), x), s.icst(i(width), y), isUnsigned); });
  }
  int64_t mod(int64_t x, int64_t y, bool fmod) {
    return integer([&](Scalar &s) { return s.mod(s.icst(i(64), x), s.icst(i(64), y), false, fmod); });
  }
  int64_t castFloat(double x, unsigned width, bool toUnsigned = false) {
    return integer([&](Scalar &s) { return s.cast(s.cst(f32(), x), false, i(width), toUnsigned); });
  }
  int64_t pow(int64_t x, int64_t y) {
    return integer([&](Scalar &s) { return s.pow(s.icst(i(64), x), s.icst(i(64), y), false, false); });
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
};

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

TEST_F(ScalarRules, IntegerDivisionTruncates) {
  EXPECT_EQ(div(64, 8, -3), -2);
  EXPECT_EQ(div(64, -8, 3), -2);
  EXPECT_EQ(div(64, 7, -2), -3);
  EXPECT_EQ(div(8, 200, 7, true), 28);
}

TEST_F(ScalarRules, NoDivisionTraps) {
  EXPECT_EQ(div(32, 5, 0), 0);
  EXPECT_EQ(div(8, 5, 0, true), 0);
  EXPECT_EQ(div(8, -128, -1), -128);
  EXPECT_EQ(mod(5, 0, false), 0);
  EXPECT_EQ(mod(5, 0, true), 0);
  EXPECT_EQ(mod(std::numeric_limits<int64_t>::min(), -1, true), 0);
}

TEST_F(ScalarRules, ModTakesTheSignOfTheDivisorOrTheDividend) {
  EXPECT_EQ(mod(-5, 3, false), 1);
  EXPECT_EQ(mod(5, -3, false), -1);
  EXPECT_EQ(mod(-5, -3, false), -2);
  EXPECT_EQ(mod(5, 3, false), 2);
  EXPECT_EQ(mod(-5, 3, true), -2);
  EXPECT_EQ(mod(5, -3, true), 2);
}

TEST_F(ScalarRules, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(castFloat(50.9, 8), 50);
  EXPECT_EQ(castFloat(-50.9, 8), -50);
  EXPECT_EQ(castFloat(300, 8), 127);
  EXPECT_EQ(castFloat(-300, 8), -128);
  EXPECT_EQ(castFloat(inf, 8), 127);
  EXPECT_EQ(castFloat(-inf, 8), -128);
  EXPECT_EQ(castFloat(nan, 8), 0);
  EXPECT_EQ(castFloat(-1.0, 32, true), 0);
  EXPECT_EQ(castFloat(300, 8, true), -1); // 255
  EXPECT_EQ(castFloat(9.3e18, 64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(castFloat(-9.3e18, 64), std::numeric_limits<int64_t>::min());
}

TEST_F(ScalarRules, EverythingButZeroIsTrue) {
  EXPECT_EQ(castFloat(-0.0, 1), 0);
  EXPECT_EQ(castFloat(0.5, 1), 1);
  EXPECT_EQ(castFloat(nan, 1), 1);
}

TEST_F(ScalarRules, NarrowerIntegersWrap) {
  auto narrow = [&](int64_t x) { return integer([&](Scalar &s) { return s.cast(s.icst(i(16), x), false, i(8), false); }); };
  EXPECT_EQ(narrow(200), -56);
  EXPECT_EQ(narrow(-200), 56);
  EXPECT_EQ(narrow(128), -128);
  EXPECT_EQ(integer([&](Scalar &s) { return s.cast(s.icst(i(8), -1), true, i(32), false); }), 255);
  EXPECT_EQ(integer([&](Scalar &s) { return s.cast(s.icst(i(1), 1), false, i(32), false); }), 1);
}

TEST_F(ScalarRules, IntegerPowersAreExact) {
  EXPECT_EQ(pow(3, 39), 4052555153018976267);
  EXPECT_EQ(pow(-2, 5), -32);
  EXPECT_EQ(pow(7, 0), 1);
  EXPECT_EQ(pow(2, -1), 0);
  EXPECT_EQ(pow(1, -3), 1);
  EXPECT_EQ(pow(-1, -3), -1);
  EXPECT_EQ(pow(-1, -4), 1);
}

TEST_F(ScalarRules, ExtremesKeepNan) {
  auto max = [&](double x, double y) {
    return number([&](Scalar &s) { return s.max(s.cst(f32(), x), s.cst(f32(), y), false); });
  };
  EXPECT_EQ(max(1, 2), 2);
  EXPECT_TRUE(std::isnan(max(nan, 2)));
  EXPECT_TRUE(std::isnan(max(2, nan)));
  EXPECT_EQ(integer([&](Scalar &s) { return s.max(s.icst(i(8), -1), s.icst(i(8), 1), true); }), -1); // 255
}

TEST_F(ScalarRules, ComparisonsWithNanAreFalse) {
  for (Compare c : {Compare::Equal, Compare::Less, Compare::LessOrEqual, Compare::Greater, Compare::GreaterOrEqual})
    EXPECT_EQ(integer([&](Scalar &s) { return s.cmp(c, s.cst(f32(), nan), s.cst(f32(), 1.0), false); }), 0);
}

TEST_F(ScalarRules, RoundingIsHalfToEven) {
  auto round = [&](double x) { return number([&](Scalar &s) { return s.roundHalfEven(s.cst(f32(), x)); }); };
  EXPECT_EQ(round(0.5), 0);
  EXPECT_EQ(round(1.5), 2);
  EXPECT_EQ(round(2.5), 2);
  EXPECT_EQ(round(-2.5), -2);
}

TEST_F(ScalarRules, IndicesWrapOnceAndAreClamped) {
  auto wrap = [&](int64_t x) { return integer([&](Scalar &s) { return s.wrapIndex(s.icst(i(64), x), 5, false); }); };
  EXPECT_EQ(wrap(0), 0);
  EXPECT_EQ(wrap(4), 4);
  EXPECT_EQ(wrap(-1), 4);
  EXPECT_EQ(wrap(5), 4);
  EXPECT_EQ(wrap(-9), 0);
}

TEST(Panels, TheWidestThatWastesLittle) {
  using ogc::lower::panelWidth;
  EXPECT_EQ(panelWidth(768), 64);
  EXPECT_EQ(panelWidth(1000), 64);
  EXPECT_EQ(panelWidth(50257), 64);
  EXPECT_EQ(panelWidth(48), 64);
  EXPECT_EQ(panelWidth(80), 32);
  EXPECT_EQ(panelWidth(24), 32);
  EXPECT_EQ(panelWidth(40), 16);
  EXPECT_EQ(panelWidth(16), 16);
  EXPECT_EQ(panelWidth(1), 16);
}

} // namespace
