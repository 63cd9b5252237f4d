//===- BundleRoundTripTest.cpp - cg module to bundle and back -------------===//
#include "compiler/bundle/BundleReader.h"
#include "compiler/bundle/BundleWriter.h"
#include "compiler/dialect/cg/Cg.h"
#include "compiler/dialect/kern/Kern.h"
#include "test/unit/TestBundle.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace mlir;
using namespace ogc;
using namespace ogc::test;

namespace {

const char *kModule = R"mlir(
cg.weight "w" at 0 = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
cg.weight "splat" at 64 = dense<1> : tensor<3xi64>
cg.weight "mask" at 128 = dense<[true, false, true]> : tensor<3xi1>
cg.graph @main inputs [#cg.binding<"größe", tensor<1x4xui8>, ["batch", ""], inputs, 0, 4>]
    outputs [#cg.binding<"y", tensor<4xf32>, [""], outputs, 0, 16>]
    attributes {scratch_bytes = 272 : i64, scratch_bound_bytes = 256 : i64, topology = 3 : i64} {
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 4, read>, #cg.slice<weights, 0, 16, read>, #cg.slice<scratch, 0, 16, write>] loc("conv (Conv)")
  %1 = cg.kernel @k [#cg.slice<scratch, 0, 16, read>, #cg.slice<weights, 64, 24, read>, #cg.slice<scratch, 16, 16, write>] after %0
      {edge_kinds = array<i32: 1>} loc(fused["a (Add)", "b (Relu)"])
  %2 = cg.memcpy #cg.slice<scratch, 16, 16, read> to #cg.slice<scratch, 256, 16, write> after %1
  %3 = cg.memset #cg.slice<scratch, 32, 16, write> = 7
  %4 = cg.gemm @k [#cg.slice<scratch, 0, 16, read>, #cg.slice<scratch, 16, 16, read>, #cg.slice<outputs, 0, 16, write>,
                   #cg.slice<scratch, 48, 16, write>] after %0, %1
      {has_workspace, element_type = f32, result_type = f32, batch = 1 : i64, m = 2 : i64, n = 2 : i64, k = 2 : i64, activation = "relu", transpose_b, tf32}
}
)mlir";

class RoundTrip : public testing::Test {
protected:
  RoundTrip() : context_(MLIRContext::Threading::DISABLED) {
    context_.loadDialect<cg::CgDialect, kern::KernDialect>();
    context_.printOpOnDiagnostic(false);
    char folder[] = "/tmp/ogc-test-XXXXXX";
    folder_ = mkdtemp(folder);
    parts_.targets = {"cpu"};
    parts_.sharedObject = "no code";
    parts_.kernels = {{"k", {}, bundle::CpuEntry{"k", 4}}};
    parts_.provenance = {"model.onnx", "xxh64:0", {"--precision fp32"}, {"llvm 22"}};
  }
  ~RoundTrip() override {
    for (const char *name : {"/a.ogc", "/b.ogc", "/a.ogc.weights"})
      unlink((folder_ + name).c_str());
    EXPECT_EQ(rmdir(folder_.c_str()), 0) << "something was left behind";
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context_);
    EXPECT_TRUE(module);
    return module;
  }
  /// Writes and returns the diagnostics.
  std::string write(ModuleOp module, const std::string &path) {
    std::string messages;
    ScopedDiagnosticHandler handler(&context_, [&](Diagnostic &diagnostic) { messages += diagnostic.str() + "\n"; });
    LogicalResult result = bundle::writeBundle(module, parts_, path);
    EXPECT_EQ(succeeded(result), messages.empty()) << messages;
    return messages;
  }
  std::string print(const std::string &path) {
    std::string text;
    llvm::raw_string_ostream os(text);
    Status status = bundle::printBundleIr(path, os);
    EXPECT_TRUE(status.ok()) << status.message();
    return text;
  }

  MLIRContext context_;
  std::string folder_;
  bundle::BundleParts parts_;
};

} // namespace

TEST_F(RoundTrip, GraphsComeBackAsTheyWere) {
  OwningOpRef<ModuleOp> module = parse(kModule);
  ASSERT_EQ(write(*module, folder_ + "/a.ogc"), "");
  auto bundle = format::Bundle::open(folder_ + "/a.ogc");
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  OwningOpRef<ModuleOp> back = bundle::readBundle(bundle.value(), &context_);
  auto graphText = [](ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    for (auto graph : module.getOps<cg::GraphOp>())
      graph.print(os, OpPrintingFlags().enableDebugInfo().useLocalScope());
    // Where an operation stands in this file is no part of a bundle.
    for (size_t at; (at = text.find(" loc(\"-\"")) != std::string::npos;)
      text.erase(at, text.find(')', at) + 1 - at);
    for (size_t at; (at = text.find(" loc(unknown)")) != std::string::npos;)
      text.erase(at, 13);
    return text;
  };
  EXPECT_EQ(graphText(*module), graphText(*back));
}

TEST_F(RoundTrip, TensorMapsAreKept) {
  parts_.targets = {"sm_90"};
  parts_.sharedObject.clear();
  parts_.cubins = {{"sm_90", "no code"}};
  bundle::CudaLaunch launch;
  launch.entry = "k";
  launch.tensorMaps = {{1, fb::DataType::BF16, 0, {8, 1}, {16}, {8, 1}, 32}};
  parts_.kernels = {{"k", {launch}, std::nullopt}};
  OwningOpRef<ModuleOp> module = parse(kModule);
  ASSERT_EQ(write(*module, folder_ + "/a.ogc"), "");
  auto bundle = format::Bundle::open(folder_ + "/a.ogc");
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  const auto &maps = *bundle.value()->manifest().kernels()->Get(0)->cuda()->Get(0)->tensor_maps();
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps.Get(0)->argument(), 1u);
  EXPECT_EQ(maps.Get(0)->type(), fb::DataType::BF16);
  EXPECT_EQ(maps.Get(0)->extents()->Get(1), 1u);
  EXPECT_EQ(maps.Get(0)->strides_bytes()->Get(0), 16u);
  EXPECT_EQ(maps.Get(0)->swizzle_bytes(), 32u);
}

TEST_F(RoundTrip, WeightsAreRawBytes) {
  OwningOpRef<ModuleOp> module = parse(kModule);
  ASSERT_EQ(write(*module, folder_ + "/a.ogc"), "");
  auto bundle = format::Bundle::open(folder_ + "/a.ogc");
  ASSERT_TRUE(bundle.ok());
  auto bytes = bundle.value()->inlineWeights();
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 131u);
  const char *data = reinterpret_cast<const char *>(bytes->data());
  EXPECT_EQ(reinterpret_cast<const float *>(data)[3], 4.0f);
  EXPECT_EQ(reinterpret_cast<const int64_t *>(data + 64)[2], 1);
  EXPECT_EQ(std::string(data + 128, 3), std::string("\1\0\1", 3));
  EXPECT_EQ(bundle.value()->manifest().graphs()->Get(0)->inputs()->Get(0)->type(), fb::DataType::U8);
  // Written again from what was read, the weights are the same.
  OwningOpRef<ModuleOp> back = bundle::readBundle(bundle.value(), &context_);
  ASSERT_EQ(write(*back, folder_ + "/b.ogc"), "");
  auto again = format::Bundle::open(folder_ + "/b.ogc");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value()->manifest().weights_checksum(), bundle.value()->manifest().weights_checksum());
}

TEST_F(RoundTrip, EqualInputsGiveEqualBytes) {
  OwningOpRef<ModuleOp> module = parse(kModule);
  ASSERT_EQ(write(*module, folder_ + "/a.ogc"), "");
  ASSERT_EQ(write(*parse(kModule), folder_ + "/b.ogc"), "");
  EXPECT_EQ(readFile(folder_ + "/a.ogc"), readFile(folder_ + "/b.ogc"));
}

TEST_F(RoundTrip, WeightsMayLieElsewhere) {
  OwningOpRef<ModuleOp> module = parse(kModule);
  parts_.weightsMode = bundle::WeightsMode::None;
  ASSERT_EQ(write(*module, folder_ + "/b.ogc"), "");
  parts_.weightsMode = bundle::WeightsMode::External;
  ASSERT_EQ(write(*module, folder_ + "/a.ogc"), "");
  auto none = format::Bundle::open(folder_ + "/b.ogc"), external = format::Bundle::open(folder_ + "/a.ogc");
  ASSERT_TRUE(none.ok() && external.ok());
  EXPECT_FALSE(none.value()->inlineWeights());
  std::string section = readFile(folder_ + "/a.ogc.weights");
  EXPECT_EQ(section.size(), 131u);
  EXPECT_EQ(format::checksum(section.data(), section.size()), none.value()->manifest().weights_checksum());
  EXPECT_EQ(format::checksum(section.data(), section.size()), external.value()->manifest().weights_checksum());
}

TEST_F(RoundTrip, EveryReasonIsTold) {
  OwningOpRef<ModuleOp> module = parse(kModule);
  EXPECT_NE(write(*module, "/nonexistent/folder/a.ogc").find("cannot write '/nonexistent/folder/a.ogc': No such file"),
            std::string::npos);
  parts_.kernels.clear();
  EXPECT_NE(write(*module, folder_ + "/a.ogc").find("kernel 'k' was not compiled"), std::string::npos);
  parts_.kernels = {{"k", {}, {}}};
  EXPECT_NE(write(*module, folder_ + "/a.ogc").find("the module makes no valid bundle"), std::string::npos);
}

TEST_F(RoundTrip, IrHasNamesAndElidesWeights) {
  OwningOpRef<ModuleOp> module = parse(kModule);
  ASSERT_EQ(write(*module, folder_ + "/a.ogc"), "");
  std::string text = print(folder_ + "/a.ogc");
  EXPECT_NE(text.find("cg.graph @main"), std::string::npos) << text;
  EXPECT_NE(text.find("conv (Conv)"), std::string::npos) << text;
}
