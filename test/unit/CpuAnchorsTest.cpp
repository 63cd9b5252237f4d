//===- CpuAnchorsTest.cpp - anchors on the cpu against plain loops --------===//
#include "KernelRunner.h"

#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ogc::test;

namespace {

std::string kernel(const std::string &schedule, const std::string &arguments, const std::string &op, const std::string &result) {
  return llvm::formatv(
      "kern.kernel @k attributes {{schedule = #kern.schedule<{0}>} {{\n^bb0({1}):\n  %r = {2}\n  kern.yield %r : {3}\n}\n",
      schedule, arguments, op, result);
}

struct MatmulCase {
  int64_t batches, m, k, n, panel; // panel 0: not packed
  bool transposed;
  const char *cpu;
};

class Matmul : public testing::TestWithParam<MatmulCase> {};

TEST_P(Matmul, EqualsLoops) {
  auto [batches, m, k, n, panel, transposed, cpu] = GetParam();
  int64_t panels = panel ? (n + panel - 1) / panel : 0;
  Floats lhs = numbers(batches * m * k, 1), rhs = numbers(batches * k * n, 2), result(batches * m * n), expected(result.size());
  if (panel)
    rhs.resize(k * n);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t p = 0; p < k; ++p)
          expected[(b * m + i) * n + j] += lhs[(b * m + i) * k + p] * (panel        ? rhs[p * n + j]
                                                                       : transposed ? rhs[(b * n + j) * k + p]
                                                                                    : rhs[(b * k + p) * n + j]);
  std::string rhsType = panel        ? llvm::formatv("tensor<{0}x{1}x{2}xf32>", panels, k, panel).str()
                        : transposed ? llvm::formatv("tensor<{0}x{1}x{2}xf32>", batches, n, k).str()
                                     : llvm::formatv("tensor<{0}x{1}x{2}xf32>", batches, k, n).str();
  Floats stored = rhs;
  if (panel) {
    stored.assign(panels * k * panel, 0);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        stored[(j / panel * k + p) * panel + j % panel] = rhs[p * n + j];
  }
  std::string lhsType = llvm::formatv("tensor<{0}x{1}x{2}xf32>", batches, m, k),
              type = llvm::formatv("tensor<{0}x{1}x{2}xf32>", batches, m, n);
  std::string flag = panel ? "{packed} " : transposed ? "{transpose_rhs} " : "";
  Kernels kernels(kernel("matmul", "%a: " + lhsType + ", %b: " + rhsType,
                         "kern.matmul %a, %b " + flag + ": (" + lhsType + ", " + rhsType + ") -> " + type, type),
                  cpu);
  ASSERT_TRUE(kernels.loaded());
  kernels.run("k", {lhs.data(), stored.data(), result.data()});
  expectNear(result, expected, 1e-6f);
}

// Extents below, at and just past the tiles of each processor.
INSTANTIATE_TEST_SUITE_P(All, Matmul,
                         testing::Values(MatmulCase{1, 1, 1, 1, 16, false, "host"}, MatmulCase{1, 13, 7, 65, 64, false, "host"},
                                         MatmulCase{1, 6, 12, 64, 64, false, "host"},
                                         MatmulCase{1, 29, 33, 100, 32, false, "host"}, MatmulCase{3, 5, 4, 17, 0, false, "host"},
                                         MatmulCase{2, 9, 6, 64, 0, false, "host"}, MatmulCase{2, 7, 5, 33, 0, true, "host"},
                                         MatmulCase{1, 7, 5, 33, 16, false, "x86-64-v2"},
                                         MatmulCase{2, 7, 5, 33, 0, true, "x86-64-v2"}));

struct ConvCase {
  int64_t images, height, width, channels, filters, kernel, stride, pad, dilation, panel;
};

class Conv : public testing::TestWithParam<ConvCase> {};

TEST_P(Conv, EqualsLoops) {
  ConvCase c = GetParam();
  int64_t oh = (c.height + 2 * c.pad - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  int64_t ow = (c.width + 2 * c.pad - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  int64_t k = c.kernel * c.kernel * c.channels, panels = (c.filters + c.panel - 1) / c.panel;
  Floats input = numbers(c.images * c.height * c.width * c.channels, 3), weight = numbers(k * c.filters, 4),
         bias = numbers(c.filters, 5);
  Floats packed(panels * k * c.panel), result(c.images * oh * ow * c.filters), expected(result.size());
  for (int64_t p = 0; p < k; ++p)
    for (int64_t f = 0; f < c.filters; ++f)
      packed[(f / c.panel * k + p) * c.panel + f % c.panel] = weight[p * c.filters + f];
  size_t at = 0;
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t y = 0; y < oh; ++y)
      for (int64_t x = 0; x < ow; ++x)
        for (int64_t f = 0; f < c.filters; ++f, ++at) {
          float sum = 0;
          for (int64_t kh = 0; kh < c.kernel; ++kh)
            for (int64_t kw = 0; kw < c.kernel; ++kw) {
              int64_t iy = y * c.stride - c.pad + kh * c.dilation, ix = x * c.stride - c.pad + kw * c.dilation;
              if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width)
                continue;
              for (int64_t ch = 0; ch < c.channels; ++ch)
                sum += input[((n * c.height + iy) * c.width + ix) * c.channels + ch] *
                       weight[((kh * c.kernel + kw) * c.channels + ch) * c.filters + f];
            }
          expected[at] = std::max(sum + bias[f], 0.0f);
        }
  std::string text = llvm::formatv(R"(
kern.kernel @k attributes {{schedule = #kern.schedule<conv>} {{
^bb0(%x: tensor<{0}x{1}x{2}x{3}xf32>, %w: tensor<{4}x{5}x{6}xf32>, %b: tensor<{7}xf32>):
  %acc = kern.conv %x, %w {{kernel = array<i64: {8}, {8}>, strides = array<i64: {9}, {9}>, dilations = array<i64: {10}, {10}>,
      pads = array<i64: {11}, {11}, {11}, {11}>} : (tensor<{0}x{1}x{2}x{3}xf32>, tensor<{4}x{5}x{6}xf32>) -> tensor<{0}x{12}x{13}x{7}xf32>
  %e = tensor.empty() : tensor<{0}x{12}x{13}x{7}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(a,b,c,d)->(a,b,c,d)>, affine_map<(a,b,c,d)->(d)>, affine_map<(a,b,c,d)->(a,b,c,d)>],
      iterator_types = ["parallel","parallel","parallel","parallel"]}
      ins(%acc, %b : tensor<{0}x{12}x{13}x{7}xf32>, tensor<{7}xf32>) outs(%e : tensor<{0}x{12}x{13}x{7}xf32>) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %p, %q : f32
    %m = arith.maximumf %s, %z : f32
    linalg.yield %m : f32
  } -> tensor<{0}x{12}x{13}x{7}xf32>
  kern.yield %y : tensor<{0}x{12}x{13}x{7}xf32>
})",
                                   c.images, c.height, c.width, c.channels, panels, k, c.panel, c.filters, c.kernel, c.stride,
                                   c.dilation, c.pad, oh, ow);
  Kernels kernels(text);
  ASSERT_TRUE(kernels.loaded());
  kernels.run("k", {input.data(), packed.data(), bias.data(), result.data()});
  expectNear(result, expected, 1e-5f);
}

INSTANTIATE_TEST_SUITE_P(All, Conv,
                         testing::Values(ConvCase{1, 9, 9, 5, 7, 3, 1, 1, 1, 16}, ConvCase{1, 11, 10, 3, 33, 5, 2, 2, 1, 32},
                                         ConvCase{2, 8, 8, 4, 20, 3, 1, 2, 2, 16}, ConvCase{1, 7, 7, 6, 64, 1, 2, 0, 1, 64},
                                         ConvCase{1, 3, 3, 2, 16, 2, 1, 3, 1, 16}, ConvCase{1, 6, 5, 17, 70, 3, 1, 0, 1, 64}));

struct AttentionCase {
  int64_t batches, queries, keys, heads, keyHeads, depth, valueDepth;
  bool causal, bias;
};

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, EqualsLoops) {
  AttentionCase c = GetParam();
  Floats q = numbers(c.batches * c.queries * c.heads * c.depth, 6), k = numbers(c.batches * c.keys * c.keyHeads * c.depth, 7);
  Floats v = numbers(c.batches * c.keys * c.keyHeads * c.valueDepth, 8), bias = numbers(c.batches * c.keys, 9);
  bias[0] = -INFINITY;
  Floats result(c.batches * c.queries * c.heads * c.valueDepth), expected(result.size());
  for (int64_t b = 0; b < c.batches; ++b)
    for (int64_t s = 0; s < c.queries; ++s)
      for (int64_t h = 0; h < c.heads; ++h) {
        int64_t kh = h / (c.heads / c.keyHeads);
        std::vector<double> weights(c.keys, -INFINITY);
        double top = -INFINITY, sum = 0;
        for (int64_t t = 0; t < c.keys; ++t) {
          if (c.causal && t > s + c.keys - c.queries)
            continue;
          double dot = 0;
          for (int64_t d = 0; d < c.depth; ++d)
            dot += q[((b * c.queries + s) * c.heads + h) * c.depth + d] * k[((b * c.keys + t) * c.keyHeads + kh) * c.depth + d];
          weights[t] = 0.5 * dot + (c.bias ? bias[b * c.keys + t] : 0);
          top = std::max(top, weights[t]);
        }
        if (top == -INFINITY)
          continue;
        for (double &weight : weights)
          sum += weight = std::exp(weight - top);
        for (int64_t d = 0; d < c.valueDepth; ++d)
          for (int64_t t = 0; t < c.keys; ++t)
            expected[((b * c.queries + s) * c.heads + h) * c.valueDepth + d] +=
                weights[t] / sum * v[((b * c.keys + t) * c.keyHeads + kh) * c.valueDepth + d];
      }
  auto type = [](int64_t a, int64_t b, int64_t c, int64_t d) {
    return llvm::formatv("tensor<{0}x{1}x{2}x{3}xf32>", a, b, c, d).str();
  };
  std::string qt = type(c.batches, c.queries, c.heads, c.depth), kt = type(c.batches, c.keys, c.keyHeads, c.depth);
  std::string vt = type(c.batches, c.keys, c.keyHeads, c.valueDepth), rt = type(c.batches, c.queries, c.heads, c.valueDepth);
  std::string bt = type(c.batches, 1, 1, c.keys);
  Kernels kernels(kernel("attention", "%q: " + qt + ", %k: " + kt + ", %v: " + vt + ", %b: " + bt,
                         std::string("kern.attention %q, %k, %v") + (c.bias ? ", bias %b" : "") + " {scale = 0.5 : f32" +
                             (c.causal ? ", causal" : "") + "} : (" + qt + ", " + kt + ", " + vt + (c.bias ? ", " + bt : "") +
                             ") -> " + rt,
                         rt));
  ASSERT_TRUE(kernels.loaded());
  kernels.run("k", {q.data(), k.data(), v.data(), bias.data(), result.data()});
  expectNear(result, expected, 1e-5f);
}

// Causal with more queries than keys: the first rows see nothing and give zero.
INSTANTIATE_TEST_SUITE_P(
    All, Attention,
    testing::Values(AttentionCase{1, 5, 7, 2, 1, 8, 6, false, false}, AttentionCase{2, 9, 9, 2, 2, 16, 16, true, false},
                    AttentionCase{1, 33, 70, 4, 2, 20, 24, false, true}, AttentionCase{1, 6, 3, 1, 1, 8, 8, true, false},
                    AttentionCase{2, 1, 77, 2, 2, 64, 64, true, true}, AttentionCase{1, 2, 1, 1, 1, 4, 4, false, true}));

TEST(CpuObject, SameBytesWithAnyThreads) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text +=
        llvm::formatv("kern.kernel @k{0} attributes {{schedule = #kern.schedule<matmul>} {{\n^bb0(%a: tensor<1x{1}x8xf32>, %b: "
                      "tensor<1x8x16xf32>):\n  %r = kern.matmul %a, %b {{packed} : (tensor<1x{1}x8xf32>, tensor<1x8x16xf32>) -> "
                      "tensor<1x{1}x16xf32>\n  kern.yield %r : tensor<1x{1}x16xf32>\n}\n",
                      i, i + 1);
  mlir::DialectRegistry registry;
  ogc::codegen::registerCpuCodegenDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::vector<char> images[2];
  for (unsigned i = 0; i < 2; ++i) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    ogc::codegen::CpuOptions options;
    options.threads = i + 1;
    mlir::FailureOr<ogc::codegen::CpuObject> object = ogc::codegen::compileKernels(*module, options);
    ASSERT_TRUE(mlir::succeeded(object));
    images[i] = object->image;
  }
  EXPECT_EQ(images[0], images[1]);
}

} // namespace
