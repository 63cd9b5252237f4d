//===- RooflineTest.cpp - times of nodes against their floors -------------===//
#include "tools/common/Roofline.h"
#include "runtime_lib/src/cuda/CudaEngine.h"
#include "test/unit/FakeDriver.h"
#include "test/unit/TestBundle.h"

#include <gtest/gtest.h>

using namespace ogc;
using namespace ogc::cuda;
using namespace ogc::test;
using namespace ogc::tools;

namespace {

constexpr uint64_t kBytes = 4 * kCount;

/// Kernel 0 is a product that reads a quarter of its weights; kernel 1 has no counts.
void addWork(fb::ManifestT &manifest) {
  auto work = std::make_unique<fb::KernelWorkT>();
  work->schedule = "matmul";
  work->product_operations = 4'000'000;
  work->product_type = fb::DataType::F32;
  work->tf32 = true;
  work->other_operations = 1000;
  work->arg_bytes = {kBytes, kBytes / 4, kBytes};
  manifest.kernels[0]->work = std::move(work);
  work = std::make_unique<fb::KernelWorkT>();
  work->schedule = "row";
  work->arg_bytes = {kBytes, kBytes, kBytes};
  manifest.kernels[2]->work = std::move(work);
}

class RooflineOnCuda : public testing::Test {
protected:
  RooflineOnCuda() : image_(makeBundle(readFile(OGC_TEST_KERNELS), addWork, "cubin")) {
    fake.reset(0);
    session_.bundle = format::Bundle::view(image_.span()).value();
    session_.graph = session_.bundle->manifest().graphs()->Get(0);
    session_.inputs = {std::vector<std::byte>(kBytes)};
    options_.replays = 3;
    options_.peaks = {1e9, {{"tf32", 2e12}, {"float32", 1e12}}};
  }

  Result<Roofline> measure() {
    auto engine = CudaEngine::create(driver_, &blas_, session_.bundle, 0, {}).value();
    std::unique_ptr<runtime::Context> context = std::move(engine->createContext(engine, {}).value());
    return measureRoofline(session_, *context, options_);
  }

  DriverApi driver_ = makeFakeDriver();
  BlasApi blas_ = makeFakeBlas();
  Image image_;
  Session session_;
  RooflineOptions options_;
};

} // namespace

TEST_F(RooflineOnCuda, TimesAreDifferencesOfPrefixes) {
  Result<Roofline> measured = measure();
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  const Roofline &roofline = measured.value();
  ASSERT_EQ(roofline.nodes.size(), 5u);
  for (const RooflineNode &node : roofline.nodes)
    EXPECT_NEAR(node.timeUs, 1, 1e-3) << node.index; // as the fake driver counts
  EXPECT_EQ(roofline.startUs, 0);
  EXPECT_NEAR(roofline.total.timeUs, 5, 1e-3);
  EXPECT_EQ(fake.leaked(), 0);
  // Behind each prefix the rest of the graph was run too.
  ASSERT_GE(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[fake.launches.size() - 1].nodes.size(), 5u); // the prefix of no nodes comes last
}

TEST_F(RooflineOnCuda, FloorsAreOfBytesOrOperations) {
  Result<Roofline> measured = measure();
  ASSERT_TRUE(measured.ok());
  const Roofline &roofline = measured.value();
  const RooflineNode &product = roofline.nodes[0], &unknown = roofline.nodes[1], &copy = roofline.nodes[2];
  EXPECT_EQ(product.work.kind, "matmul");
  EXPECT_EQ(product.work.weightBytes, kBytes / 4);
  EXPECT_EQ(product.work.bytes(), kBytes * 9 / 4);
  EXPECT_TRUE(product.isComputeBound);
  EXPECT_DOUBLE_EQ(product.floorUs, 2); // 4 MFLOP at 2 TFLOP/s
  EXPECT_FALSE(unknown.work.isCounted);
  EXPECT_EQ(unknown.work.kind, "kernel");
  EXPECT_DOUBLE_EQ(unknown.floorUs, 2 * kBytes * 1e-3); // at 1 GB/s
  EXPECT_EQ(copy.work.kind, "memcpy");
  EXPECT_DOUBLE_EQ(copy.floorUs, 2 * kBytes * 1e-3);
  EXPECT_EQ(roofline.nodes[4].work.bytes(), kBytes);
  // Node 2 waits for node 0, node 4 for none.
  EXPECT_EQ((std::vector<bool>{product.isBeside, unknown.isBeside, copy.isBeside, roofline.nodes[4].isBeside}),
            (std::vector<bool>{false, false, true, true}));
  // x, a quarter of w, y and z, against 2 us of operations.
  EXPECT_DOUBLE_EQ(roofline.modelFloorUs, 2);
  EXPECT_EQ(roofline.kinds.at("row").nodes, 1u);
  EXPECT_EQ(roofline.total.nodes, 5u);
}

TEST_F(RooflineOnCuda, TablesSortByTimeLost) {
  Result<Roofline> measured = measure();
  ASSERT_TRUE(measured.ok());
  std::string text = rooflineText(session_, "Fake GPU", measured.value(), 2);
  size_t zeros = text.find("4: memset, from zeros"), copy = text.find("1: kernel twice, from second");
  EXPECT_NE(zeros, std::string::npos) << text;
  EXPECT_NE(copy, std::string::npos) << text;
  EXPECT_LT(zeros, copy);
  EXPECT_EQ(text.find("0: kernel add_weight"), std::string::npos) << text;
  EXPECT_NE(text.find("and 3 nodes that lose less"), std::string::npos);
  EXPECT_NE(text.find("the bundle has no counts for 1 nodes"), std::string::npos);
  std::string json = rooflineJson(session_, "cuda:0", "Fake GPU", measured.value(), options_);
  EXPECT_NE(json.find("\"bound\": \"operations\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"product_type\": \"tf32\""), std::string::npos);
}

TEST_F(RooflineOnCuda, WithoutPeaksThereAreNoFloors) {
  options_.peaks = knownPeaks("an unknown device");
  Result<Roofline> measured = measure();
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured.value().nodes[0].floorUs, 0);
  EXPECT_EQ(rooflineJson(session_, "cuda:0", "", measured.value(), options_).find("floor"), std::string::npos);
  EXPECT_GT(knownPeaks("NVIDIA H200").bytes, 4e12);
}

TEST(NodeWork, WorkForOtherArgumentsIsRefused) {
  auto spoil = [](fb::ManifestT &manifest) {
    addWork(manifest);
    manifest.kernels[0]->work->arg_bytes.pop_back();
  };
  Image image(makeBundle("", spoil));
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::view(image.span());
  EXPECT_NE(bundle.status().message().find("expected the 2 that its work is counted for"), std::string::npos)
      << bundle.status().message();
}
