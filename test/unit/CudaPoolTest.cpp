//===- CudaPoolTest.cpp - pool, bindings and refit on a fake driver -------===//
#include "runtime_lib/src/cuda/CudaEngine.h"
#include "test/unit/FakeDriver.h"
#include "test/unit/TestBundle.h"

#include <gtest/gtest.h>
#include <set>

using namespace ogc;
using namespace ogc::cuda;
using namespace ogc::test;

namespace {

constexpr size_t kMain = 0, kSwapped = 1, kChain = 2;
constexpr size_t kX = 0, kY = 1, kZ = 2; // bindings

class Pool : public testing::Test {
protected:
  Pool() : image_(makeBundle(readFile(OGC_TEST_KERNELS), addGraphs, "cubin")) {
    auto bundle = format::Bundle::view(image_.span());
    EXPECT_TRUE(bundle.ok()) << bundle.status().message();
    bundle_ = bundle.value();
    fake.reset(0);
  }

  std::shared_ptr<CudaEngine> makeEngine(size_t pool, ExecSwitch how = ExecSwitch::Automatic) {
    EngineOptions options;
    options.execPool = pool;
    options.execSwitch = how;
    auto engine = CudaEngine::create(driver_, Status(Code::NotFound, "none"), bundle_, 0, options);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.value();
  }

  static std::unique_ptr<runtime::Context> makeContext(const std::shared_ptr<CudaEngine> &engine) {
    auto context = engine->createContext(engine, {});
    EXPECT_TRUE(context.ok()) << context.status().message();
    return std::move(context.value());
  }

  /// The last launch is what `graph` is in `context`, with `bound` in place of the context's buffers where not 0.
  void expectLaunched(const runtime::Context &context, size_t graph, std::vector<CUdeviceptr> bound = {0, 0, 0}) {
    ASSERT_FALSE(fake.launches.empty());
    auto own = [&](fb::Section section, uint64_t offset) { return (CUdeviceptr)context.address(section) + offset; };
    CUdeviceptr w = own(fb::Section::Weights, 0), x = bound[kX] ? bound[kX] : own(fb::Section::Inputs, 0),
                y = bound[kY] ? bound[kY] : own(fb::Section::Outputs, 0),
                z = bound[kZ] ? bound[kZ] : own(fb::Section::Outputs, 256), a = own(fb::Section::Scratch, 0),
                b = own(fb::Section::Scratch, 256), c = own(fb::Section::Scratch, 512);
    std::vector<std::vector<CUdeviceptr>> expected = {{x, w, a}, {a, b}, {a, c}, {c, b, y}, {z}};
    if (graph == kSwapped)
      std::swap(expected[3][0], expected[3][1]);
    const FakeGraph &launched = fake.launches.back();
    ASSERT_EQ(launched.nodes.size(), 5u);
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(launched.nodes[i].arguments, expected[i]) << "node " << i;
    EXPECT_EQ(launched.edges.size(), graph == kChain ? 5u : 4u);
  }

  DriverApi driver_ = makeFakeDriver();
  Image image_;
  BundlePtr bundle_;
};

void *pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

/// Runs every path once: pool of one with switches both ways, eviction, bindings of all kinds of nodes, refit, states.
Status scenario(const DriverApi &driver, const BundlePtr &bundle, ExecSwitch how) {
  EngineOptions options;
  options.execPool = 1;
  options.execSwitch = how;
  auto engine = CudaEngine::create(driver, Status(Code::NotFound, "none"), bundle, 0, options);
  if (!engine.ok())
    return engine.status();
  auto created = engine.value()->createContext(engine.value(), {});
  if (!created.ok())
    return created.status();
  runtime::Context &context = *created.value();
  for (size_t graph : {kMain, kSwapped, kChain, kMain})
    OGC_RETURN_IF_ERROR(context.launch(graph));
  OGC_RETURN_IF_ERROR(context.prepare(kSwapped));
  for (size_t binding : {kX, kY, kZ}) {
    Result<bool> bound = context.bindInPlace(kSwapped, binding, pointer(0x70000000 * (binding + 1)));
    if (!bound.ok())
      return bound.status();
  }
  OGC_RETURN_IF_ERROR(context.prepare(kSwapped));
  OGC_RETURN_IF_ERROR(context.launch(kSwapped));
  OGC_RETURN_IF_ERROR(context.fillRange(fb::Section::Scratch, 0, 8, 1));
  OGC_RETURN_IF_ERROR(engine.value()->refit(bundle, ""));
  if (Result<uint64_t> bytes = engine.value()->deviceBytesInUse(); !bytes.ok())
    return bytes.status();
  return context.synchronize();
}

} // namespace

TEST_F(Pool, OneExecServesTheGraphsOfItsTopology) {
  for (ExecSwitch how : {ExecSwitch::Automatic, ExecSwitch::Update}) {
    fake.reset(0);
    auto engine = makeEngine(1, how);
    auto context = makeContext(engine);
    for (size_t graph : {kMain, kSwapped, kSwapped, kMain}) {
      ASSERT_TRUE(context->launch(graph).ok());
      expectLaunched(*context, graph);
      EXPECT_EQ(fake.live["exec"], 1);
    }
    runtime::ExecStats stats = engine->execStats();
    EXPECT_EQ(stats.instantiated, 1u);
    EXPECT_EQ(stats.switched, 2u);
    EXPECT_EQ(stats.evicted, 0u);
    ASSERT_TRUE(context->launch(kChain).ok());
    expectLaunched(*context, kChain);
    EXPECT_EQ(engine->execStats().evicted, 1u);
    EXPECT_EQ(engine->execStats().live, 1u);
    EXPECT_EQ(context->executableNodes(kChain), 0u); // the fake counts none
  }
}

TEST_F(Pool, TheLeastRecentlyUsedGoes) {
  auto engine = makeEngine(2);
  auto context = makeContext(engine);
  for (size_t graph : {kMain, kChain, kMain, kSwapped}) // main was used after chain, but only main can become swapped
    ASSERT_TRUE(context->launch(graph).ok());
  expectLaunched(*context, kSwapped);
  EXPECT_EQ(engine->execStats().switched, 1u);
  ASSERT_TRUE(context->launch(kChain).ok()); // still there
  EXPECT_EQ(engine->execStats().instantiated, 2u);
  EXPECT_EQ(engine->execStats().evicted, 0u);
}

TEST_F(Pool, ContextsShareExecsAndNoMemory) {
  auto engine = makeEngine(1);
  auto first = makeContext(engine), second = makeContext(engine);
  ASSERT_NE(first->address(fb::Section::Inputs), second->address(fb::Section::Inputs));
  for (int i = 0; i < 3; ++i)
    for (runtime::Context *context : {first.get(), second.get()}) {
      ASSERT_TRUE(context->launch(kMain).ok());
      expectLaunched(*context, kMain);
    }
  EXPECT_EQ(engine->execStats().instantiated, 1u);
  EXPECT_EQ(engine->execStats().switched, 5u);
  second.reset(); // takes its exec with it
  EXPECT_EQ(engine->execStats().live, 0u);
  ASSERT_TRUE(first->launch(kMain).ok());
  expectLaunched(*first, kMain);
}

TEST_F(Pool, ARefusedUpdateIsFollowedByAnInstantiation) {
  for (ExecSwitch how : {ExecSwitch::Automatic, ExecSwitch::Update}) {
    fake.reset(0);
    auto engine = makeEngine(1, how);
    auto context = makeContext(engine);
    ASSERT_TRUE(context->launch(kMain).ok());
    fake.refuseChanges = true;
    ASSERT_TRUE(context->launch(kSwapped).ok());
    expectLaunched(*context, kSwapped);
    ASSERT_TRUE(context->bindInPlace(kSwapped, kX, pointer(0x700000)).value());
    ASSERT_TRUE(context->launch(kSwapped).ok());
    expectLaunched(*context, kSwapped, {0x700000, 0, 0});
    fake.refuseChanges = false;
    ASSERT_TRUE(context->launch(kMain).ok());
    expectLaunched(*context, kMain);
    EXPECT_EQ(engine->execStats().refused, 2u);
    EXPECT_EQ(engine->execStats().instantiated, 3u);
    EXPECT_EQ(engine->execStats().switched, 1u);
    EXPECT_EQ(fake.live["exec"], 1);
    EXPECT_EQ(fake.live["graph"], how == ExecSwitch::Update ? 2 : 1); // what it was made from, and last updated from
  }
}

TEST_F(Pool, OnlyNodesThatUseABindingArePatched) {
  auto engine = makeEngine(4);
  auto context = makeContext(engine);
  ASSERT_TRUE(context->launch(kMain).ok());
  for (auto [binding, address] : {std::pair(kX, 0x700000ull), {kY, 0x800000ull}, {kZ, 0x900000ull}})
    ASSERT_TRUE(context->bindInPlace(kMain, binding, pointer(address)).value());
  EXPECT_EQ(engine->execStats().patched, 0u); // not before the next launch
  ASSERT_TRUE(context->launch(kMain).ok());
  expectLaunched(*context, kMain, {0x700000, 0x800000, 0x900000});
  EXPECT_EQ(engine->execStats().patched, 3u);
  ASSERT_TRUE(context->bindInPlace(kMain, kY, pointer(0x800100)).value());
  ASSERT_TRUE(context->bindInPlace(kMain, kX, nullptr).ok());
  ASSERT_TRUE(context->launch(kMain).ok());
  expectLaunched(*context, kMain, {0, 0x800100, 0x900000});
  EXPECT_EQ(engine->execStats().patched, 5u);
  EXPECT_EQ(engine->execStats().instantiated, 1u);
  ASSERT_TRUE(context->launch(kSwapped).ok()); // bindings are of one graph ID
  expectLaunched(*context, kSwapped);
}

TEST_F(Pool, BindingsSurviveTheLossOfTheExec) {
  auto engine = makeEngine(1);
  auto context = makeContext(engine);
  ASSERT_TRUE(context->bindInPlace(kMain, kX, pointer(0x700000)).value());
  ASSERT_TRUE(context->bindInPlace(kSwapped, kX, pointer(0x710000)).value());
  for (int i = 0; i < 2; ++i) {
    for (auto [graph, address] : {std::pair(kMain, 0x700000ull), {kSwapped, 0x710000ull}}) {
      ASSERT_TRUE(context->launch(graph).ok());
      expectLaunched(*context, graph, {address, 0, 0});
    }
    ASSERT_TRUE(context->launch(kChain).ok());
  }
}

TEST_F(Pool, BuffersThatCannotBeUsedInPlaceAreCopiedOrRefused) {
  auto engine = makeEngine(1);
  auto context = makeContext(engine);
  EXPECT_FALSE(context->bindInPlace(kMain, kX, pointer(0x700010)).value()); // not aligned to 256
  EXPECT_FALSE(context->bindInPlace(kMain, kX, context->address(fb::Section::Outputs)).value());
  fake.memoryType = kMemoryTypeHost; // pinned
  EXPECT_FALSE(context->bindInPlace(kMain, kX, pointer(0x700000)).value());
  fake.memoryType = 0;
  EXPECT_EQ(context->bindInPlace(kMain, kX, pointer(0x700000)).status().message(),
            "the buffer is no memory that the device can reach");
  fake.memoryType = kMemoryTypeDevice;
  fake.memoryOrdinal = 1;
  EXPECT_EQ(context->bindInPlace(kMain, kX, pointer(0x700000)).status().message(),
            "the buffer is memory of cuda:1, the context is on cuda:0");
}

/// Tensor maps hold addresses: they follow their argument wherever it goes.
TEST_F(Pool, TensorMapsFollowTheirArgument) {
  Image image(makeBundle(
      readFile(OGC_TEST_KERNELS),
      [](fb::ManifestT &m) {
        addGraphs(m);
        m.kernels[0]->cuda[0]->entry = "mapped";
        m.kernels[0]->cuda[0]->tensor_maps.push_back(makeTensorMap(0));
        m.kernels[0]->cuda[0]->tensor_maps[0]->extents = {8, 15};
        m.kernels[0]->cuda[0]->tensor_maps[0]->offset_bytes = 16;
      },
      "cubin"));
  auto bundle = format::Bundle::view(image.span());
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  bundle_ = bundle.value();
  for (ExecSwitch how : {ExecSwitch::Automatic, ExecSwitch::Update}) {
    auto engine = makeEngine(1, how);
    auto first = makeContext(engine), second = makeContext(engine);
    auto expectMap = [&](CUdeviceptr x) {
      const std::vector<CUdeviceptr> &arguments = fake.launches.back().nodes[0].arguments;
      ASSERT_EQ(arguments.size(), 4u);
      EXPECT_EQ(arguments[0], x);
      EXPECT_EQ(arguments[3], x + 16);
    };
    ASSERT_TRUE(first->launch(kMain).ok());
    expectMap((CUdeviceptr)first->address(fb::Section::Inputs));
    ASSERT_TRUE(second->launch(kSwapped).ok()); // the same executable graph
    expectMap((CUdeviceptr)second->address(fb::Section::Inputs));
    ASSERT_TRUE(second->bindInPlace(kSwapped, kX, pointer(0x700000)).value());
    ASSERT_TRUE(second->launch(kSwapped).ok());
    expectMap(0x700000);
  }
}

TEST_F(Pool, AKernelThatCannotBeLaunchedFailsTheLoad) {
  Image image(makeBundle(
      readFile(OGC_TEST_KERNELS), [](fb::ManifestT &m) { m.kernels[0]->cuda[0]->grid = std::make_unique<fb::Dim3>(0, 1, 1); },
      "cubin"));
  EXPECT_EQ(format::Bundle::view(image.span()).status().message(), "kernel 'add_weight': grid is out of range");
}

TEST_F(Pool, MemoryIsFlatOverManyCalls) {
  auto engine = makeEngine(2);
  {
    std::unique_ptr<runtime::Context> contexts[] = {makeContext(engine), makeContext(engine), makeContext(engine)};
    uint64_t state = 7;
    for (int i = 0; i < 20000; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      size_t graph = (state >> 33) % 3;
      runtime::Context &context = *contexts[(state >> 45) % 3];
      ASSERT_TRUE(context.launch(graph).ok());
      expectLaunched(context, graph);
      fake.launches.clear();
      ASSERT_LE(fake.live["exec"], 2);
      ASSERT_LE(fake.live["graph"], 2);
      if (i % 100 == 0)
        contexts[(state >> 50) % 3] = makeContext(engine);
    }
  }
  EXPECT_EQ(fake.live["exec"], 0);
  engine.reset();
  EXPECT_EQ(fake.leaked(), 0);
}

TEST_F(Pool, ACapturingStreamOfTheCallerIsRefusedAndLeftAlone) {
  auto engine = makeEngine(1);
  ContextOptions options;
  options.stream = pointer(0x5000);
  auto context = std::move(engine->createContext(engine, options).value());
  fake.captureStatus = 1;
  float value = 0;
  fake.launches.clear();
  for (const Status &status :
       {context->launch(kMain), context->copyIn(fb::Section::Inputs, 0, &value, 4),
        context->copyOut(fb::Section::Outputs, 0, &value, 4), context->copyInDevice(fb::Section::Inputs, 0, &value, 4),
        context->synchronize(), context->fill(fb::Section::Scratch, 0)}) {
    EXPECT_EQ(status.code(), Code::FailedPrecondition);
    EXPECT_EQ(status.message(), "the stream is capturing");
  }
  EXPECT_TRUE(fake.launches.empty());
  EXPECT_TRUE(context->prepare(kMain).ok()); // on a stream of the context's own
  fake.captureStatus = 0;
  EXPECT_TRUE(context->launch(kMain).ok());
  expectLaunched(*context, kMain);
}

TEST_F(Pool, RefitTakesOnlyABundleOfTheSameStructure) {
  auto engine = makeEngine(1);
  auto context = makeContext(engine);
  ASSERT_TRUE(context->launch(kMain).ok());
  EXPECT_TRUE(engine->refit(bundle_, "").ok());
  Image other(makeBundle(
      readFile(OGC_TEST_KERNELS),
      [](fb::ManifestT &m) {
        addGraphs(m);
        m.kernels[1]->body_hash = 5;
        m.graphs[2]->id = "renamed";
      },
      "cubin"));
  Status status = engine->refit(format::Bundle::view(other.span()).value(), "");
  EXPECT_EQ(status.code(), Code::InvalidArgument);
  EXPECT_EQ(status.message(), "the bundles differ in more than their weights\n"
                              "  kernel 'twice' of second has other code: a constant that is part of it has changed\n"
                              "  graph 'chain' has other nodes, edges or bindings");
  EXPECT_EQ(engine->execStats().instantiated, 1u);
}

TEST_F(Pool, EveryFailingCallIsReportedOrAnsweredByAnInstantiation) {
  std::set<std::string> everFailed;
  for (ExecSwitch how : {ExecSwitch::Automatic, ExecSwitch::Update}) {
    fake.reset(0);
    ASSERT_TRUE(scenario(driver_, bundle_, how).ok());
    int calls = fake.calls;
    EXPECT_GT(calls, 80);
    for (int failAt = 1; failAt <= calls; ++failAt) {
      fake.reset(failAt);
      Status status = scenario(driver_, bundle_, how);
      std::string failed = fake.failed ? fake.failed : "none";
      // A change that fails is tried again as an instantiation, also where the graph for it could not be built. Destructors
      // report nothing, and a capture mode that cannot be set only matters within a capture.
      static const std::set<std::string> answered = {"cuGraphExecKernelNodeSetParams",
                                                     "cuGraphExecMemcpyNodeSetParams",
                                                     "cuGraphExecMemsetNodeSetParams",
                                                     "cuGraphExecUpdate",
                                                     "cuGraphCreate",
                                                     "cuGraphAddKernelNode",
                                                     "cuGraphAddMemcpyNode",
                                                     "cuGraphAddMemsetNode",
                                                     "cuGraphAddDependencies",
                                                     "cuGraphGetNodes",
                                                     "cuStreamSynchronize",
                                                     "cuCtxPushCurrent",
                                                     "cuThreadExchangeStreamCaptureMode"};
      if (status.ok())
        EXPECT_TRUE(answered.contains(failed)) << failed;
      else
        EXPECT_NE(status.message().find(failed + " failed"), std::string::npos) << status.message();
      everFailed.insert(failed);
      EXPECT_EQ(fake.leaked(), 0) << "after " << failed;
    }
  }
  for (const char *reached :
       {"cuGraphExecKernelNodeSetParams", "cuGraphExecMemcpyNodeSetParams", "cuGraphExecMemsetNodeSetParams", "cuGraphExecUpdate",
        "cuPointerGetAttributes", "cuMemGetInfo", "cuCtxSynchronize"})
    EXPECT_TRUE(everFailed.contains(reached)) << reached;
}
