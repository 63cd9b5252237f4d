//===- ElementEmitterTest.cpp - elements of kernel bodies, executed -------===//
#include "KernelRunner.h"

#include "compiler/codegen/cpu/NativeLayout.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include <bit>
#include <cmath>

using namespace ogc::test;

namespace {

TEST(ElementEmitter, ViewsBecomeIndexArithmetic) {
  Kernels kernels(R"(
kern.kernel @k attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4x6xf32>, %y: tensor<2x3x4xf32>):
  %t0 = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%t0 : tensor<6x4xf32>) permutation = [1, 0]
  %c = tensor.collapse_shape %y [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %both = tensor.concat dim(1) %t, %c : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  %s = tensor.extract_slice %both[1, 2] [2, 3] [2, 2] : tensor<6x8xf32> to tensor<2x3xf32>
  %nine = arith.constant 9.0 : f32
  %p = tensor.pad %s low[1, 0] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %nine : f32
  } : tensor<2x3xf32> to tensor<3x5xf32>
  %whole = tensor.insert_slice %p into %both[3, 1] [3, 5] [1, 1] : tensor<3x5xf32> into tensor<6x8xf32>
  %e = tensor.expand_shape %whole [[0, 1], [2, 3]] output_shape [2, 3, 4, 2] : tensor<6x8xf32> into tensor<2x3x4x2xf32>
  kern.yield %e : tensor<2x3x4x2xf32>
})");
  ASSERT_TRUE(kernels.loaded());
  Floats x = numbers(24, 1), y = numbers(24, 2), result(48), both(48), expected(48);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j) {
      both[i * 8 + j] = x[j * 6 + i];
      both[i * 8 + 4 + j] = y[i * 4 + j];
    }
  expected = both;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j)
      expected[(3 + i) * 8 + 1 + j] = i >= 1 && j < 3 ? both[(1 + 2 * (i - 1)) * 8 + 2 + 2 * j] : 9;
  kernels.run("k", {x.data(), y.data(), result.data()});
  EXPECT_EQ(result, expected);
}

TEST(ElementEmitter, GathersAndIndices) {
  Kernels kernels(R"(
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
kern.kernel @k attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%table: tensor<5x7xf32>, %ids: tensor<3xi64>, %mask: tensor<3x7xi1>):
  %init = tensor.empty() : tensor<3x7xf32>
  %flags = tensor.empty() : tensor<3x7xi1>
  %r:2 = linalg.generic {indexing_maps = [#row, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %mask : tensor<3xi64>, tensor<3x7xi1>) outs(%init, %flags : tensor<3x7xf32>, tensor<3x7xi1>) {
  ^bb0(%id: i64, %keep: i1, %o: f32, %f: i1):
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%i, %j] : tensor<5x7xf32>
    %zero = arith.constant 0.0 : f32
    %s = arith.select %keep, %v, %zero : f32
    %positive = arith.cmpf ogt, %s, %zero : f32
    linalg.yield %s, %positive : f32, i1
  } -> (tensor<3x7xf32>, tensor<3x7xi1>)
  kern.yield %r#0, %r#1 : tensor<3x7xf32>, tensor<3x7xi1>
})");
  ASSERT_TRUE(kernels.loaded());
  Floats table = numbers(35, 3), result(21);
  std::vector<int64_t> ids{4, 0, 2};
  std::vector<uint8_t> mask(21), flags(21);
  for (int i = 0; i < 21; ++i)
    mask[i] = i % 3 != 0;
  kernels.run("k", {table.data(), ids.data(), mask.data(), result.data(), flags.data()});
  for (int i = 0; i < 21; ++i) {
    float expected = mask[i] ? table[ids[i / 7] * 7 + i % 7] : 0;
    EXPECT_EQ(result[i], expected);
    EXPECT_EQ(flags[i], expected > 0);
  }
}

/// Softmax over the last dimension of a reshaped input, under `schedule`.
std::string softmax(const std::string &schedule) {
  return R"(
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
kern.kernel @k attributes {schedule = #kern.schedule<)" +
         schedule + R"(>} {
^bb0(%x: tensor<2x3x37xf32>):
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x37xf32> into tensor<6x37xf32>
  %rows = tensor.empty() : tensor<6xf32>
  %all = tensor.empty() : tensor<6x37xf32>
  %m0 = linalg.fill ins(%lowest : f32) outs(%rows : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<6x37xf32>) outs(%m0 : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %e = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%c, %m : tensor<6x37xf32>, tensor<6xf32>) outs(%all : tensor<6x37xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<6x37xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<6xf32>) -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<6x37xf32>) outs(%s0 : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<6xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%e, %s : tensor<6x37xf32>, tensor<6xf32>) outs(%all : tensor<6x37xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<6x37xf32>
  kern.yield %r, %m : tensor<6x37xf32>, tensor<6xf32>
})";
}

TEST(ElementEmitter, RowAndPointwiseAgreeWithLoops) {
  Floats x = numbers(222, 5), expected(222), tops(6, -INFINITY);
  for (int i = 0; i < 6; ++i) {
    double sum = 0;
    for (int j = 0; j < 37; ++j)
      tops[i] = std::max(tops[i], x[i * 37 + j]);
    for (int j = 0; j < 37; ++j)
      sum += std::exp(double(x[i * 37 + j]) - tops[i]);
    for (int j = 0; j < 37; ++j)
      expected[i * 37 + j] = std::exp(double(x[i * 37 + j]) - tops[i]) / sum;
  }
  for (const char *schedule : {"row", "pointwise"}) {
    Kernels kernels(softmax(schedule));
    ASSERT_TRUE(kernels.loaded());
    Floats result(222), top(6);
    kernels.run("k", {x.data(), result.data(), top.data()});
    expectNear(result, expected, 1e-6f);
    EXPECT_EQ(top, tops);
  }
}

bool sameFloat(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

struct Function {
  const char *op;
  double (*reference)(double);
  double low, high;
};

/// @name with `op` on every element of `inputs` vectors of `count` numbers.
std::string elementwise(llvm::StringRef name, llvm::StringRef op, int inputs, int64_t count) {
  return llvm::formatv(R"(
kern.kernel @{0} attributes {{schedule = #kern.schedule<pointwise>} {{
^bb0(%x: tensor<{1}xf32>{2}):
  %e = tensor.empty() : tensor<{1}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>{3}], iterator_types = ["parallel"]} ins(%x{4}) outs(%e : tensor<{1}xf32>) {{
  ^bb0(%a: f32{5}, %o: f32):
    %r = {6}
    linalg.yield %r : f32
  } -> tensor<{1}xf32>
  kern.yield %y : tensor<{1}xf32>
})",
                       name, count, inputs == 2 ? llvm::formatv(", %z: tensor<{0}xf32>", count).str() : std::string(),
                       inputs == 2 ? ", affine_map<(i)->(i)>" : "",
                       inputs == 2 ? llvm::formatv(", %z : tensor<{0}xf32>, tensor<{0}xf32>", count).str()
                                   : llvm::formatv(" : tensor<{0}xf32>", count).str(),
                       inputs == 2 ? ", %b: f32" : "", op);
}

/// Equal NaNs and infinities; finite numbers to `relative` or to `absolute`.
::testing::AssertionResult close(float actual, double expected, double relative, double absolute) {
  float rounded = expected;
  bool same = std::isfinite(rounded) ? std::fabs(actual - expected) <= std::max(relative * std::fabs(expected), absolute)
                                     : sameFloat(actual, rounded);
  if (same)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << actual << " instead of " << expected;
}

/// Every function is a polynomial of the object's own: no libm is linked.
TEST(CpuMath, CloseToLibm) {
  const Function functions[] = {{"exp", std::exp, -80, 80},     {"expm1", std::expm1, -2, 2},     {"log", std::log, 1e-6, 100},
                                {"log2", std::log2, 1e-6, 100}, {"log10", std::log10, 1e-6, 100}, {"log1p", std::log1p, -0.9, 9},
                                {"tanh", std::tanh, -9, 9},     {"tan", std::tan, -1.5, 1.5},     {"sin", std::sin, -9, 9},
                                {"cos", std::cos, -9, 9},       {"asin", std::asin, -1, 1},       {"acos", std::acos, -1, 1},
                                {"atan", std::atan, -9, 9},     {"sinh", std::sinh, -5, 5},       {"cosh", std::cosh, -5, 5},
                                {"asinh", std::asinh, -9, 9},   {"erf", std::erf, -4, 4},         {"cbrt", std::cbrt, -9, 9},
                                {"sqrt", std::sqrt, 0, 9},      {"floor", std::floor, -9, 9},     {"ceil", std::ceil, -9, 9},
                                {"round", std::round, -9, 9},   {"trunc", std::trunc, -9, 9}};
  constexpr int64_t count = 4001;
  for (const char *cpu : {"host", "x86-64-v2"}) {
    std::string text;
    for (const Function &function : functions)
      text += elementwise(function.op, llvm::formatv("math.{0} %a : f32", function.op).str(), 1, count);
    Kernels kernels(text, cpu);
    ASSERT_TRUE(kernels.loaded());
    for (const Function &function : functions) {
      Floats x(count), result(count), expected(count);
      for (int64_t i = 0; i < count; ++i) {
        x[i] = function.low + (function.high - function.low) * i / (count - 1);
        expected[i] = function.reference(x[i]);
      }
      kernels.run(function.op, {x.data(), result.data()});
      for (int64_t i = 0; i < count; ++i)
        ASSERT_NEAR(result[i], expected[i], 4e-6 * (1e-1 + std::fabs(expected[i])))
            << function.op << " of " << x[i] << " on " << cpu;
    }
  }
}

/// Near zero, far from it, and at the limits.
TEST(CpuMath, WholeRange) {
  struct {
    llvm::StringRef op;
    double (*reference)(double);
    double relative, absolute;
  } const functions[] = {
      {"asinh", std::asinh, 1e-6, 1e-38}, {"acosh", std::acosh, 1e-6, 1e-38}, {"atanh", std::atanh, 1e-6, 1e-38},
      {"sinh", std::sinh, 1e-6, 1e-38},   {"expm1", std::expm1, 1e-6, 1e-38}, {"log1p", std::log1p, 1e-6, 1e-38},
      {"sin", std::sin, 0, 2e-7},         {"cos", std::cos, 0, 2e-7},         {"tan", std::tan, 1e-6, 1e-38}};
  Floats x{0, 1, 89, 1e9f, 2e9f, 1e20f, 3e38f, INFINITY, NAN};
  for (float magnitude = 1e-30f; magnitude < 1e6f; magnitude *= 1.093f)
    x.insert(x.end(), {magnitude, -magnitude});
  for (int i = 0; i < 2000; ++i)
    x.insert(x.end(), {float(100 + i * 499.97), float(-3 + i * 0.003), float(1 + i * 1e-6)});
  for (const char *cpu : {"host", "x86-64-v2"}) {
    std::string text;
    for (const auto &function : functions)
      text += elementwise(function.op, ("math." + function.op + " %a : f32").str(), 1, x.size());
    Kernels kernels(text, cpu);
    ASSERT_TRUE(kernels.loaded());
    for (const auto &function : functions) {
      Floats result(x.size());
      kernels.run(function.op.str(), {x.data(), result.data()});
      bool periodic = function.op == "sin" || function.op == "cos" || function.op == "tan";
      for (size_t i = 0; i < x.size(); ++i)
        if (!periodic || !(std::fabs(x[i]) > 1e6f) || std::isinf(x[i]))
          EXPECT_TRUE(close(result[i], function.reference(x[i]), function.relative, function.absolute))
              << function.op.str() << " of " << x[i] << " on " << cpu;
    }
  }
}

TEST(CpuMath, Powers) {
  Floats x, y;
  for (float base : {-INFINITY, -1e20f, -7.5f, -2.f, -1.f, -0.3f, -1e-30f, 0.f, 1e-40f, 1e-3f, 0.7f, 1.f, 1.0001f, 2.f, 9.f,
                     3e38f, INFINITY, NAN})
    for (float exponent : {-INFINITY, -1e9f, -33554431.f, -5.f, -2.f, -1.f, -0.5f,   0.f,        1e-5f,    0.5f, 1.f,
                           2.f,       2.5f,  3.f,         4.f,  7.f,  20.f, 12345.f, 16777216.f, INFINITY, NAN}) {
      x.push_back(base);
      y.push_back(exponent);
    }
  for (int i = 0; i < 4000; ++i) {
    x.push_back(0.01f + i * 0.0025f);
    y.push_back(-20 + (i * 37 % 4000) * 0.01f);
  }
  const double constants[] = {-2, -1, 0, 0.5, 1, 2, 3, 4, 5, -3, 2.5};
  for (const char *cpu : {"host", "x86-64-v2"}) {
    std::string text = elementwise("dynamic", "math.powf %a, %b : f32", 2, x.size());
    for (auto [index, constant] : llvm::enumerate(constants)) {
      std::string op = llvm::formatv("arith.constant {0:f1} : f32\n    %p = math.powf %a, %r : f32", constant);
      std::string kernel = elementwise("by" + std::to_string(index), op, 1, x.size());
      text += kernel.replace(kernel.find("yield %r"), 8, "yield %p");
    }
    Kernels kernels(text, cpu);
    ASSERT_TRUE(kernels.loaded());
    Floats result(x.size());
    kernels.run("dynamic", {x.data(), y.data(), result.data()});
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE(close(result[i], std::pow(double(x[i]), double(y[i])), 2e-7, 1e-44)) << x[i] << "^" << y[i] << " on " << cpu;
    for (auto [index, constant] : llvm::enumerate(constants)) {
      kernels.run("by" + std::to_string(index), {x.data(), result.data()});
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_TRUE(close(result[i], std::pow(double(x[i]), constant), 4e-7, 1e-38)) << x[i] << "^" << constant << " on " << cpu;
    }
  }
}

float halfToFloat(uint16_t bits) {
  llvm::APFloat value(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits));
  bool inexact;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToFloat();
}

uint16_t floatToHalf(float number) {
  llvm::APFloat value(number);
  bool inexact;
  value.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.bitcastToAPInt().getZExtValue();
}

/// Conversions by the compiler's copy loops and by kernels, with and without the instructions, on all halves and around all
/// roundings.
TEST(Conversions, HalfIsExactEverywhere) {
  std::vector<uint16_t> halves(65536);
  Floats wide, exact(65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    halves[i] = i;
    exact[i] = halfToFloat(i);
    uint32_t bits = std::bit_cast<uint32_t>(exact[i]);
    for (uint32_t offset : {0u, 1u, 0xfffu, 0x1000u, 0x1001u})
      wide.push_back(std::bit_cast<float>(bits + offset));
  }
  wide.insert(wide.end(), {65519.9f, 65520.f, 1e30f, -1e30f, 1e-8f, 2.9802322e-8f, 2.9802326e-8f, 0x1p-149f});
  int64_t count = wide.size();
  std::vector<uint16_t> narrow(count);
  for (int64_t i = 0; i < count; ++i)
    narrow[i] = floatToHalf(wide[i]);

  auto check = [&](const Floats &widened, const std::vector<uint16_t> &narrowed, const char *by) {
    for (uint32_t i = 0; i < 65536; ++i)
      ASSERT_TRUE(sameFloat(widened[i], exact[i])) << i << " by " << by;
    for (int64_t i = 0; i < count; ++i)
      ASSERT_TRUE(sameFloat(halfToFloat(narrowed[i]), halfToFloat(narrow[i]))) << wide[i] << " by " << by;
  };
  Floats widened(65536);
  std::vector<uint16_t> narrowed(count);
  mlir::MLIRContext context;
  mlir::Builder builder(&context);
  ASSERT_TRUE(ogc::codegen::copyStrided((char *)widened.data(), builder.getF32Type(), {1}, (char *)halves.data(),
                                        builder.getF16Type(), {1}, {65536}));
  ASSERT_TRUE(ogc::codegen::copyStrided((char *)narrowed.data(), builder.getF16Type(), {1}, (char *)wide.data(),
                                        builder.getF32Type(), {1}, {count}));
  check(widened, narrowed, "copying");
  for (const char *cpu : {"host", "x86-64-v2"}) {
    std::string text;
    for (bool up : {true, false})
      text += llvm::formatv(R"(
kern.kernel @{0} attributes {{schedule = #kern.schedule<pointwise>} {{
^bb0(%x: tensor<{1}x{2}>):
  %e = tensor.empty() : tensor<{1}x{3}>
  %y = linalg.generic {{indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]} ins(%x : tensor<{1}x{2}>) outs(%e : tensor<{1}x{3}>) {{
  ^bb0(%a: {2}, %o: {3}):
    %r = arith.{0} %a : {2} to {3}
    linalg.yield %r : {3}
  } -> tensor<{1}x{3}>
  kern.yield %y : tensor<{1}x{3}>
})",
                            up ? "extf" : "truncf", up ? 65536 : count, up ? "f16" : "f32", up ? "f32" : "f16");
    Kernels kernels(text, cpu);
    ASSERT_TRUE(kernels.loaded());
    kernels.run("extf", {halves.data(), widened.data()});
    kernels.run("truncf", {wide.data(), narrowed.data()});
    check(widened, narrowed, cpu);
  }
}

TEST(Conversions, CopiesTransposeInBlocks) {
  mlir::MLIRContext context;
  mlir::Type type = mlir::Builder(&context).getF32Type();
  Floats from = numbers(3 * 37 * 50, 7), to(from.size()), expected(from.size());
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 37; ++b)
      for (int c = 0; c < 50; ++c)
        expected[(c * 3 + a) * 37 + b] = from[(a * 37 + b) * 50 + c];
  ASSERT_TRUE(
      ogc::codegen::copyStrided((char *)to.data(), type, {37, 1, 111}, (char *)from.data(), type, {1850, 50, 1}, {3, 37, 50}));
  EXPECT_EQ(to, expected);
}

} // namespace
