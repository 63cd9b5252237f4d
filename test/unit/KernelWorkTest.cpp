//===- KernelWorkTest.cpp - counted operations and bytes of kernels -------===//
#include "compiler/analysis/KernelWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using ogc::KernelWork;

namespace {

class Counted : public testing::Test {
protected:
  Counted() : context_(MLIRContext::Threading::DISABLED) {
    context_.loadDialect<ogc::kern::KernDialect, arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                         tensor::TensorDialect>();
  }
  KernelWork count(const std::string &kernel) {
    module_ = parseSourceString<ModuleOp>(kernel, &context_);
    EXPECT_TRUE(module_);
    return ogc::countWork(*module_->getOps<ogc::kern::KernelOp>().begin());
  }

  MLIRContext context_;
  OwningOpRef<ModuleOp> module_;
};

using Bytes = SmallVector<int64_t>;

} // namespace

TEST_F(Counted, ProductsAndTheirType) {
  KernelWork conv = count(R"(kern.kernel @k attributes {schedule = #kern.schedule<conv>} {
    ^bb0(%x: tensor<1x8x8x16xf32>, %w: tensor<1x144x16xf32>):
      %0 = kern.conv %x, %w {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
                             pads = array<i64: 1, 1, 1, 1>, math = #kern.math<tf32>}
        : (tensor<1x8x8x16xf32>, tensor<1x144x16xf32>) -> tensor<1x4x4x16xf32>
      kern.yield %0 : tensor<1x4x4x16xf32> })");
  EXPECT_EQ(conv.productOperations, 2 * 4 * 4 * 16 * 144);
  EXPECT_TRUE(conv.productType.isF32() && conv.tf32);
  EXPECT_EQ(conv.argumentBytes, (Bytes{4096, 9216, 1024}));
  KernelWork attention = count(R"(kern.kernel @k attributes {schedule = #kern.schedule<attention>} {
    ^bb0(%q: tensor<1x3x4x8xf16>, %k: tensor<1x5x2x8xf16>, %v: tensor<1x5x2x16xf16>):
      %0 = kern.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x3x4x8xf16>, tensor<1x5x2x8xf16>, tensor<1x5x2x16xf16>) -> tensor<1x3x4x16xf32>
      kern.yield %0 : tensor<1x3x4x16xf32> })");
  EXPECT_EQ(attention.productOperations, 2 * 3 * 4 * 5 * (8 + 16)); // scores, then values
  EXPECT_TRUE(attention.productType.isF16() && !attention.tf32);
}

TEST_F(Counted, DepthwiseConvolutionsAreNoProducts) {
  KernelWork work = count(R"(kern.kernel @k attributes {schedule = #kern.schedule<depthwise_conv>} {
    ^bb0(%x: tensor<1x8x8x4xf16>, %w: tensor<3x3x4xf16>):
      %0 = kern.depthwise_conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>}
        : (tensor<1x8x8x4xf16>, tensor<3x3x4xf16>) -> tensor<1x8x8x4xf32>
      kern.yield %0 : tensor<1x8x8x4xf32> })");
  EXPECT_EQ(work.productOperations, 0);
  EXPECT_EQ(work.otherOperations, 2 * 8 * 8 * 4 * 9);
}

TEST_F(Counted, OnlyWhatIsTouched) {
  // Rows of a table at computed positions, through an element-wise operation; a slice; nothing of the last argument.
  KernelWork work = count(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    kern.kernel @k attributes {schedule = #kern.schedule<pointwise>} {
    ^bb0(%table: tensor<1000x4xf32>, %ids: tensor<3xi64>, %all: tensor<6x4xf32>, %unused: tensor<8xf32>):
      %big = tensor.empty() : tensor<1000x4xf32>
      %twice = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%table : tensor<1000x4xf32>) outs(%big : tensor<1000x4xf32>) {
      ^bb1(%in: f32, %out: f32):
        %s = arith.addf %in, %in : f32
        linalg.yield %s : f32
      } -> tensor<1000x4xf32>
      %part = tensor.extract_slice %all[1, 0] [3, 4] [1, 1] : tensor<6x4xf32> to tensor<3x4xf32>
      %e = tensor.empty() : tensor<3x4xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, #id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%ids, %part : tensor<3xi64>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
      ^bb1(%id: i64, %p: f32, %out: f32):
        %row = arith.index_cast %id : i64 to index
        %column = linalg.index 1 : index
        %value = tensor.extract %twice[%row, %column] : tensor<1000x4xf32>
        %s = arith.addf %value, %p : f32
        linalg.yield %s : f32
      } -> tensor<3x4xf32>
      kern.yield %0 : tensor<3x4xf32>
    })");
  EXPECT_EQ(work.argumentBytes, (Bytes{12 * 4, 24, 12 * 4, 0, 48}));
}

TEST_F(Counted, AnUpdateInPlaceWritesTheUpdates) {
  const std::string text = R"(kern.kernel @k attributes {schedule = #kern.schedule<pointwise>IN_PLACE} {
    ^bb0(%cache: tensor<512x8xf16>, %row: tensor<1x8xf16>, %at: tensor<1x1xi64>):
      %0 = tensor.scatter %row into %cache[%at] scatter_dims([0]) unique : (tensor<1x8xf16>, tensor<512x8xf16>, tensor<1x1xi64>) -> tensor<512x8xf16>
      kern.yield %0 : tensor<512x8xf16> })";
  auto with = [&](const std::string &attribute) {
    std::string changed = text;
    return changed.replace(changed.find("IN_PLACE"), 8, attribute);
  };
  EXPECT_EQ(count(with("")).argumentBytes, (Bytes{8192, 16, 8, 8192}));
  EXPECT_EQ(count(with(", ogc.in_place = 0 : i64")).argumentBytes, (Bytes{0, 16, 8, 16}));
}
