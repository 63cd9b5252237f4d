//===- CudaRuntimeTest.cpp - the cuda driver against a fake one -----------===//
#include "runtime_lib/src/cuda/Architecture.h"
#include "runtime_lib/src/cuda/Carveout.h"
#include "runtime_lib/src/cuda/CudaEngine.h"
#include "test/unit/FakeDriver.h"
#include "test/unit/TestBundle.h"

#include <array>
#include <gtest/gtest.h>

using namespace ogc;
using namespace ogc::cuda;
using namespace ogc::test;

namespace {

constexpr uint64_t kWorkspaceOffset = 768;

/// Adds to the test bundle a kernel in clusters of two and a gemm with a bias, which only a library does.
void addClusterAndGemm(fb::ManifestT &manifest) {
  fb::GraphT &graph = *manifest.graphs[0];
  manifest.kernels[1]->cuda[0]->grid = std::make_unique<fb::Dim3>(2, 1, 1);
  manifest.kernels[1]->cuda[0]->cluster = std::make_unique<fb::Dim3>(2, 1, 1);
  manifest.kernels[1]->cuda[0]->shared_bytes = 100'000;
  manifest.kernels.push_back(makeKernel("add_weight", 4, 1, /*withCuda=*/false));
  manifest.kernels.back()->name = "fallback";
  fb::Slice read = slice(fb::Section::Scratch, 0, 64, fb::Access::Read),
            bias = slice(fb::Section::Scratch, 0, 16, fb::Access::Read);
  fb::Slice result = slice(fb::Section::Scratch, 256, 64, fb::Access::Write),
            workspace = slice(fb::Section::Scratch, kWorkspaceOffset, 1024, fb::Access::Write);
  graph.scratch_bytes = manifest.arena->scratch_bytes = kWorkspaceOffset + 1024;
  graph.nodes.push_back(makeNode(fb::NodeKind::Gemm, 3, {read, read, bias, result, workspace}, "gemm"));
  fb::GemmT &gemm = *(graph.nodes.back()->gemm = std::make_unique<fb::GemmT>());
  gemm.element_type = gemm.result_type = fb::DataType::F32;
  gemm.batch = 1;
  gemm.m = gemm.n = gemm.k = 4;
  gemm.has_bias = gemm.has_workspace = true;
  graph.edges.push_back(fb::Edge(3, 5, fb::EdgeKind::Full));
}

TEST(Carveout, LeavesTheCacheToKernelsThatNeedLittleSharedMemory) {
  Multiprocessors h200{132, 2048, 233472};
  KernelNeeds attention{32, 384, 14376}, streamed{1024, 256, 768}, row{1, 256, 32};
  // One block of 15400 bytes and eight of 1792 beside it.
  EXPECT_EQ(carveoutPercent(std::array{row, attention, streamed, row}, h200), 13);
  EXPECT_EQ(carveoutPercent(std::array{row}, h200), 1);
  // Tiles that fill shared memory, and two neighbours that together need more than a third of it.
  EXPECT_EQ(carveoutPercent(std::array{row, KernelNeeds{96, 160, 200'000}}, h200), 100);
  EXPECT_EQ(carveoutPercent(std::array{KernelNeeds{132, 256, 40'000}, KernelNeeds{132, 256, 41'000}}, h200), 100);
  EXPECT_EQ(carveoutPercent(std::array{KernelNeeds{132, 256, 39'000}, KernelNeeds{132, 256, 39'000}}, h200), 35);
  // More blocks than fit by their threads do not count.
  EXPECT_EQ(carveoutPercent(std::array{KernelNeeds{100'000, 1024, 1024}}, h200), 2);
}

class FakeCuda : public testing::Test {
protected:
  FakeCuda() : image_(makeBundle(readFile(OGC_TEST_KERNELS), addClusterAndGemm, "cubin")) {
    bundle_ = format::Bundle::view(image_.span()).value();
  }

  /// Everything a user does, once.
  Status scenario() {
    auto engine = CudaEngine::create(driver_, &blas_, bundle_, 0, {});
    if (!engine.ok())
      return engine.status();
    auto created = engine.value()->createContext(engine.value(), {});
    if (!created.ok())
      return created.status();
    runtime::Context &context = *created.value();
    std::vector<float> data(kCount);
    OGC_RETURN_IF_ERROR(context.prepare(0));
    for (int run = 0; run < 2; ++run) {
      OGC_RETURN_IF_ERROR(context.copyIn(fb::Section::Inputs, 0, data.data(), 4 * kCount));
      OGC_RETURN_IF_ERROR(context.launch(0));
      OGC_RETURN_IF_ERROR(context.copyOut(fb::Section::Outputs, 0, data.data(), 4 * kCount));
    }
    OGC_RETURN_IF_ERROR(context.synchronize());
    OGC_RETURN_IF_ERROR(context.copyInDevice(fb::Section::Inputs, 0, data.data(), 4));
    OGC_RETURN_IF_ERROR(context.copyOutDevice(fb::Section::Outputs, 0, data.data(), 4));
    OGC_RETURN_IF_ERROR(context.fill(fb::Section::Scratch, 0xff));
    OGC_RETURN_IF_ERROR(context.copyIn(fb::Section::Scratch, 0, data.data(), 4));
    double microseconds = 0;
    OGC_RETURN_IF_ERROR(context.timeLaunch(0, microseconds));
    OGC_RETURN_IF_ERROR(context.timePrefix(0, 2, std::span(&microseconds, 1)));
    return context.runNodes(0, 1, 3);
  }

  DriverApi driver_ = makeFakeDriver();
  BlasApi blas_ = makeFakeBlas();
  Image image_;
  std::shared_ptr<const format::Bundle> bundle_;
};

} // namespace

TEST_F(FakeCuda, ReleasesEverything) {
  fake.reset(0);
  Status status = scenario();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fake.leaked(), 0);
  EXPECT_EQ(fake.maxCluster, 2);
}

TEST_F(FakeCuda, ProgrammaticEdgesComeFromTheProgrammaticPort) {
  fake.reset(0);
  ASSERT_TRUE(scenario().ok());
  // The gemm's edge is given to its capture. The graph, then both parts of it where a prefix is timed.
  ASSERT_EQ(fake.edges.size(), 4u + 2u);
  EXPECT_EQ(fake.edges[0].from_port, kPortProgrammatic);
  EXPECT_EQ(fake.edges[0].type, kDependencyProgrammatic);
  EXPECT_EQ(fake.edges[4].type, kDependencyProgrammatic);
  for (size_t i : {1, 2, 3, 5})
    EXPECT_EQ(fake.edges[i].type, 0) << i;
}

TEST_F(FakeCuda, EveryFailingCallIsReportedAndLeavesNothing) {
  fake.reset(0);
  ASSERT_TRUE(scenario().ok());
  int calls = fake.calls;
  EXPECT_GT(calls, 60);
  for (int failAt = 1; failAt <= calls; ++failAt) {
    fake.reset(failAt);
    Status status = scenario();
    // The one call whose failure cannot be reported is that of a destructor.
    if (status.ok()) {
      EXPECT_TRUE(!fake.failed || std::string(fake.failed) == "cuStreamSynchronize" ||
                  std::string(fake.failed) == "cuCtxPushCurrent" ||
                  std::string(fake.failed) == "cuThreadExchangeStreamCaptureMode")
          << fake.failed;
    } else {
      ASSERT_NE(fake.failed, nullptr);
      EXPECT_NE(status.message().find(std::string(fake.failed) + " failed"), std::string::npos) << status.message();
    }
    EXPECT_EQ(fake.leaked(), 0) << "after " << (fake.failed ? fake.failed : "none");
  }
}

TEST_F(FakeCuda, LibrariesWorkInTheArena) {
  fake.reset(0);
  auto engine = CudaEngine::create(driver_, &blas_, bundle_, 0, {});
  ASSERT_TRUE(engine.ok());
  auto context = engine.value()->createContext(engine.value(), {});
  ASSERT_TRUE(context.ok());
  std::map<std::string, int> before = fake.live;
  ASSERT_TRUE(context.value()->prepare(0).ok());
  EXPECT_EQ(fake.workspace, static_cast<std::byte *>(context.value()->address(fb::Section::Scratch)) + kWorkspaceOffset);
  EXPECT_EQ(fake.workspaceBytes, 1024u);
  EXPECT_EQ(fake.live["allocation"], before["allocation"]);
  // What the library asks for is what the plan has, or it is not asked.
  context.value().reset();
  context = engine.value()->createContext(engine.value(), {});
  ASSERT_TRUE(context.ok());
  fake.neededWorkspace = 1025;
  EXPECT_EQ(context.value()->prepare(0).message(),
            "graph 'main', node 5 (gemm of gemm): cublaslt has no algorithm for this gemm");
}

TEST_F(FakeCuda, GemmWithoutLibraryOrFallbackSaysWhy) {
  fake.reset(0);
  auto engine = CudaEngine::create(driver_, Status(Code::NotFound, "cuBLASLt not found: really"), bundle_, 0, {});
  ASSERT_TRUE(engine.ok());
  auto context = engine.value()->createContext(engine.value(), {});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context.value()->prepare(0).message(), "graph 'main', node 5 (gemm of gemm): cuBLASLt not found: really");
}

TEST_F(FakeCuda, MissingDeviceIsNamed) {
  fake.reset(0);
  auto engine = CudaEngine::create(driver_, &blas_, bundle_, 2, {});
  EXPECT_EQ(engine.status().message(), "there is no device cuda:2, the driver knows 1");
}

TEST(Architecture, CubinsRunOnTheirMajorVersion) {
  EXPECT_TRUE(runsOn("sm_90", 9, 0));
  EXPECT_TRUE(runsOn("sm_80", 8, 6));
  EXPECT_FALSE(runsOn("sm_86", 8, 0));
  EXPECT_FALSE(runsOn("sm_80", 9, 0));
  EXPECT_TRUE(runsOn("sm_90a", 9, 0));
  EXPECT_FALSE(runsOn("sm_100a", 10, 3));
  EXPECT_TRUE(runsOn("sm_100f", 10, 3));
  EXPECT_TRUE(runsOn("sm_120", 12, 1));
  EXPECT_FALSE(runsOn("cpu", 9, 0));
  EXPECT_FALSE(runsOn("sm_", 0, 0));
  EXPECT_FALSE(runsOn("sm_90x", 9, 0));
}

TEST(Architecture, TheBestOrAnErrorThatNamesBothSides) {
  EXPECT_EQ(chooseArchitecture({"sm_80", "sm_86", "sm_90"}, 8, 9, "").value(), "sm_86");
  EXPECT_EQ(chooseArchitecture({"sm_90", "sm_90a"}, 9, 0, "").value(), "sm_90a");
  EXPECT_EQ(chooseArchitecture({"sm_90", "sm_100"}, 8, 6, "Test GPU").status().message(),
            "the bundle has code for sm_90, sm_100, the device is sm_86 (Test GPU)");
  EXPECT_EQ(chooseArchitecture({}, 9, 0, "Test GPU").status().message(),
            "the bundle has no code for GPUs, the device is sm_90 (Test GPU)");
}

TEST(CudaDriver, AbsenceIsAStatus) {
  // Also where a GPU is: then the driver is found and complete.
  Result<const DriverApi *> driver = loadDriver();
  if (!driver.ok())
    EXPECT_NE(driver.status().message().find("the CUDA driver not found"), std::string::npos) << driver.status().message();
}
