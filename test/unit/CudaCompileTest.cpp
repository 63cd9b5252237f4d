//===- CudaCompileTest.cpp - kernels to cubins, and the cache -------------===//
#include "compiler/codegen/cuda/CompileKernels.h"
#include "compiler/codegen/cuda/Nvrtc.h"
#include "compiler/codegen/cuda/Schedules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ogc;
using namespace ogc::codegen;

namespace {

/// A kernel that multiplies by a constant, under its own name.
std::string scaleKernel(int number) {
  return llvm::formatv(R"(
    kern.kernel @scale{0} attributes {{schedule = #kern.schedule<pointwise>} {{
    ^bb0(%x: tensor<64xf32>):
      %e = tensor.empty() : tensor<64xf32>
      %c = arith.constant {0}.5 : f32
      %0 = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {{
      ^bb1(%a: f32, %o: f32):
        %m = arith.mulf %a, %c : f32
        linalg.yield %m : f32
      } -> tensor<64xf32>
      kern.yield %0 : tensor<64xf32>
    })",
                       number)
      .str();
}

class CudaCompile : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::Expected<const Nvrtc *> nvrtc = Nvrtc::get();
    if (!nvrtc)
      GTEST_SKIP() << llvm::toString(nvrtc.takeError());
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ogc-cache", folder));
    context.loadDialect<arith::ArithDialect, kern::KernDialect, linalg::LinalgDialect, tensor::TensorDialect>();
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += scaleKernel(i);
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    kernels.assign(module->getOps<kern::KernelOp>().begin(), module->getOps<kern::KernelOp>().end());
    options.cacheDir = std::string(folder);
  }
  void TearDown() override {
    if (!folder.empty())
      llvm::sys::fs::remove_directories(folder);
  }

  llvm::SmallString<128> folder;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  SmallVector<kern::KernelOp> kernels;
  CudaOptions options;
};

TEST_F(CudaCompile, GivesACubinWithEveryEntryPoint) {
  FailureOr<CudaModule> result = compileKernels(kernels, options);
  ASSERT_TRUE(succeeded(result));
  ASSERT_EQ(result->archs.size(), 1u);
  const CudaArchModule &arch = result->archs.front();
  EXPECT_EQ(arch.arch, "sm_90");
  EXPECT_GT(arch.cubins.size(), 1u);
  EXPECT_EQ(result->cacheHits, 0u);
  ASSERT_EQ(arch.kernels.size(), kernels.size());
  for (auto [kernel, op] : llvm::zip_equal(arch.kernels, kernels)) {
    EXPECT_EQ(kernel.name, kern::KernelOp(op).getSymName());
    const std::vector<char> &cubin = arch.cubins.at(kernel.cubin);
    EXPECT_NE(StringRef(cubin.data(), cubin.size()).find(kernel.name), StringRef::npos);
    EXPECT_GE(uint64_t(kernel.launch.grid) * kernel.launch.block, 64u);
  }
}

TEST_F(CudaCompile, SecondRunIsReadFromTheCache) {
  FailureOr<CudaModule> first = compileKernels(kernels, options), second = compileKernels(kernels, options);
  ASSERT_TRUE(succeeded(first) && succeeded(second));
  EXPECT_EQ(second->cacheHits, second->programs);
  EXPECT_EQ(first->archs.front().cubins, second->archs.front().cubins);
}

TEST_F(CudaCompile, BytesDoNotDependOnTheThreads) {
  options.cacheDir = "";
  options.threads = 1;
  FailureOr<CudaModule> one = compileKernels(kernels, options);
  options.threads = 3;
  FailureOr<CudaModule> three = compileKernels(kernels, options);
  ASSERT_TRUE(succeeded(one) && succeeded(three));
  EXPECT_EQ(one->archs.front().cubins, three->archs.front().cubins);
}

TEST_F(CudaCompile, DamagedCacheEntriesAreCompiledAnew) {
  FailureOr<CudaModule> first = compileKernels(kernels, options);
  ASSERT_TRUE(succeeded(first));
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
    llvm::raw_fd_ostream os(it->path(), error, llvm::sys::fs::CD_OpenExisting, llvm::sys::fs::FA_Write, llvm::sys::fs::OF_None);
    os << "not a cubin";
  }
  FailureOr<CudaModule> second = compileKernels(kernels, options);
  ASSERT_TRUE(succeeded(second));
  EXPECT_EQ(second->cacheHits, 0u);
  EXPECT_EQ(first->archs.front().cubins, second->archs.front().cubins);
}

TEST_F(CudaCompile, SeveralArchitectures) {
  options.archs = {"sm_90", "sm_80"};
  FailureOr<CudaModule> result = compileKernels(ArrayRef<kern::KernelOp>(kernels).take_front(2), options);
  ASSERT_TRUE(succeeded(result));
  ASSERT_EQ(result->archs.size(), 2u);
  EXPECT_EQ(result->archs[1].arch, "sm_80");
  EXPECT_NE(result->archs[0].cubins, result->archs[1].cubins);
}

TEST_F(CudaCompile, LogIsPartOfTheError) {
  llvm::Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  ASSERT_TRUE(bool(nvrtc));
  llvm::Expected<std::vector<char>> cubin =
      (*nvrtc)->compile("broken", "extern \"C\" __global__ void k() { nothing(); }", {"--gpu-architecture=sm_90"});
  ASSERT_FALSE(cubin);
  EXPECT_NE(llvm::toString(cubin.takeError()).find("nothing"), std::string::npos);
}

TEST_F(CudaCompile, ProductsAreRoundedBeforeTheyAreAdded) {
  OwningOpRef<ModuleOp> positions = parseSourceString<ModuleOp>(R"(
    kern.kernel @position attributes {schedule = #kern.schedule<pointwise>} {
    ^bb0(%x: tensor<64xf32>, %y: tensor<64xf64>):
      %e = tensor.empty() : tensor<64xi32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<64xf32>, tensor<64xf64>) outs(%e : tensor<64xi32>) {
      ^bb1(%a: f32, %b: f64, %o: i32):
        %p = arith.mulf %a, %a : f32
        %q = arith.addf %p, %a : f32
        %r = arith.extf %q : f32 to f64
        %s = arith.mulf %b, %b : f64
        %t = arith.subf %r, %s : f64
        %i = arith.fptosi %t : f64 to i32
        linalg.yield %i : i32
      } -> tensor<64xi32>
      kern.yield %0 : tensor<64xi32>
    })",
                                                                &context);
  ASSERT_TRUE(positions);
  Tuning tuning;
  FailureOr<KernelText> text = printPointwise(*positions->getOps<kern::KernelOp>().begin(), *CudaArch::parse("sm_90"), tuning);
  ASSERT_TRUE(succeeded(text));
  std::string ptx;
  llvm::Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  llvm::Expected<std::vector<char>> cubin = (*nvrtc)->compile("position", programText(*text), {"--gpu-architecture=sm_90"}, &ptx);
  ASSERT_TRUE(bool(cubin)) << llvm::toString(cubin.takeError());
  EXPECT_EQ(StringRef(ptx).count("fma."), 0u) << ptx;
  EXPECT_EQ(StringRef(ptx).count("mul.rn.f"), 2u) << ptx;
}

TEST(CudaArch, Parse) {
  EXPECT_EQ(CudaArch::parse("sm_90")->name(), "sm_90");
  EXPECT_EQ(CudaArch::parse("sm_120")->major, 12u);
  for (StringRef bad : {"90", "sm_", "sm_9x", "sm_1"})
    EXPECT_TRUE(failed(CudaArch::parse(bad))) << bad.str();
}

TEST(KernelCache, KeyDependsOnHowPartsAreCut) {
  EXPECT_NE(KernelCache::key({"ab", "c"}), KernelCache::key({"a", "bc"}));
  EXPECT_EQ(KernelCache::key({"ab", "c"}), KernelCache::key({"ab", "c"}));
}

} // namespace
