//===- CpuRuntimeTest.cpp - the C interface on the cpu device -------------===//
#include "runtime_lib/include/ogc/runtime.h"
#include "runtime_lib/include/ogc/runtime.hpp"
#include "runtime_lib/src/cpu/CpuFeatures.h"
#include "runtime_lib/src/cpu/ThreadPool.h"
#include "runtime_lib/src/driver/Driver.h"
#include "runtime_lib/src/driver/Order.h"
#include "runtime_lib/src/driver/Weights.h"
#include "test/unit/TestBundle.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace ogc;
using namespace ogc::test;

namespace {

std::string sharedObject() { return readFile(OGC_TEST_KERNELS); }

std::vector<float> inputOf(float start) {
  std::vector<float> x(kCount);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = start + static_cast<float>(i);
  return x;
}

std::vector<float> expectedOf(const std::vector<float> &x) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = -(x[i] + 0.5f * static_cast<float>(i));
  return y;
}

/// A bundle, engine and context through the C interface.
struct Loaded {
  ogc_bundle *bundle = nullptr;
  ogc_engine *engine = nullptr;
  ogc_context *context = nullptr;

  explicit Loaded(const std::string &path, unsigned threads = 1) {
    ogc_engine_options options = {};
    options.threads = threads;
    EXPECT_EQ(ogc_bundle_open(path.c_str(), &bundle), OGC_OK) << ogc_last_error();
    EXPECT_EQ(ogc_engine_create(bundle, "cpu", &options, &engine), OGC_OK) << ogc_last_error();
    EXPECT_EQ(ogc_context_create(engine, nullptr, &context), OGC_OK) << ogc_last_error();
  }
  ~Loaded() {
    // In the wrong order on purpose: each object keeps what it needs.
    ogc_bundle_close(bundle);
    ogc_engine_release(engine);
    ogc_context_release(context);
  }
};

} // namespace

TEST(CApi, RunsAGraph) {
  TemporaryFile file(makeBundle(sharedObject()));
  Loaded loaded(file.path);
  ogc_tensor x = {};
  ASSERT_EQ(ogc_bundle_input(loaded.bundle, 0, 0, &x), OGC_OK);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, OGC_FLOAT32);
  EXPECT_EQ(x.rank, 1u);
  EXPECT_EQ(x.shape[0], kCount);
  EXPECT_EQ(ogc_bundle_output_count(loaded.bundle, 0), 2u);

  std::vector<float> in = inputOf(3), y(kCount), z(kCount, 7);
  ASSERT_EQ(ogc_bind_input(loaded.context, 0, 0, in.data(), 4 * kCount, OGC_HOST), OGC_OK);
  ASSERT_EQ(ogc_bind_output(loaded.context, 0, 0, y.data(), 4 * kCount, OGC_HOST), OGC_OK);
  ASSERT_EQ(ogc_bind_output(loaded.context, 0, 1, z.data(), 4 * kCount, OGC_HOST), OGC_OK);
  for (float start : {3.0f, -8.0f, 100.0f}) { // a replay sees what the bound buffer holds then
    std::vector<float> next = inputOf(start);
    std::copy(next.begin(), next.end(), in.begin()); // in place: the address is bound
    ASSERT_EQ(ogc_run(loaded.context, 0), OGC_OK) << ogc_last_error();
    EXPECT_EQ(y, expectedOf(in));
    EXPECT_EQ(z, std::vector<float>(kCount, 0));
  }
}

TEST(CApi, OwnBuffersNeedNoBinding) {
  TemporaryFile file(makeBundle(sharedObject()));
  Loaded loaded(file.path, 3);
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(ogc_input_buffer(loaded.context, 0, 0, &x), OGC_OK);
  ASSERT_EQ(ogc_output_buffer(loaded.context, 0, 0, &y), OGC_OK);
  std::vector<float> in = inputOf(1);
  std::copy(in.begin(), in.end(), static_cast<float *>(x));
  ASSERT_EQ(ogc_run(loaded.context, 0), OGC_OK);
  std::vector<float> expected = expectedOf(in);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), static_cast<float *>(y)));
}

TEST(CApi, RefusesWrongArguments) {
  TemporaryFile file(makeBundle(sharedObject()));
  Loaded loaded(file.path);
  float value = 0;
  EXPECT_EQ(ogc_bind_input(loaded.context, 0, 0, &value, 4, OGC_HOST), OGC_INVALID_ARGUMENT);
  EXPECT_STREQ(ogc_last_error(), "'x' has 256 bytes, the buffer 4");
  EXPECT_EQ(ogc_bind_input(loaded.context, 0, 1, &value, 4, OGC_HOST), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_bind_output(loaded.context, 5, 0, &value, 4, OGC_HOST), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_run(loaded.context, 1), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_run(nullptr, 0), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_bundle_graph_id(loaded.bundle, 1), nullptr);
  size_t graph = 0;
  EXPECT_EQ(ogc_bundle_find_graph(loaded.bundle, "other", &graph), OGC_NOT_FOUND);
  ogc_engine *engine = nullptr;
  EXPECT_EQ(ogc_engine_create(loaded.bundle, "tpu", nullptr, &engine), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_engine_create(loaded.bundle, "cuda:-1", nullptr, &engine), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(engine, nullptr);
  ogc_bundle *bundle = nullptr;
  EXPECT_EQ(ogc_bundle_open("/tmp/no/such/bundle", &bundle), OGC_NOT_FOUND);
}

TEST(CApi, FindsInputsAndOutputsByName) {
  TemporaryFile file(makeBundle(sharedObject()));
  Loaded loaded(file.path);
  size_t index = 7;
  EXPECT_EQ(ogc_bundle_find_input(loaded.bundle, 0, "x", &index), OGC_OK);
  EXPECT_EQ(index, 0u);
  index = 7;
  EXPECT_EQ(ogc_bundle_find_output(loaded.bundle, 0, "y", &index), OGC_OK);
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(ogc_bundle_find_input(loaded.bundle, 0, "y", &index), OGC_NOT_FOUND);
  EXPECT_STREQ(ogc_last_error(), "graph 'main' has no input 'y'");
  EXPECT_EQ(ogc_bundle_find_output(loaded.bundle, 1, "y", &index), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_bundle_find_output(loaded.bundle, 0, nullptr, &index), OGC_INVALID_ARGUMENT);
}

TEST(CppApi, RunsByNameAndByIndex) {
  TemporaryFile file(makeBundle(sharedObject()));
  ogc::rt::Bundle bundle(file.path);
  ogc::rt::Engine engine(bundle, "cpu");
  ogc::rt::Context context(engine);
  std::vector<float> in = inputOf(1), out(kCount), again(kCount);
  ogc_tensor x = bundle.inputs(0)[bundle.findInput(0, "x")], y = bundle.outputs(0)[bundle.findOutput(0, "y")];
  std::vector<ogc_array> inputs = {{"x", x.rank, x.shape, in.data(), x.bytes}};
  EXPECT_FALSE(bundle.isState(0, 0));
  EXPECT_EQ(bundle.select(inputs), 0u);
  EXPECT_EQ(bundle.selectedShape(inputs, 0, y.rank), std::vector<int64_t>(y.shape, y.shape + y.rank));
  EXPECT_EQ(context.runArrays(inputs, {{"y", y.rank, y.shape, out.data(), y.bytes}}), 0u);
  EXPECT_EQ(out, expectedOf(in));
  std::copy(in.begin(), in.end(), static_cast<float *>(context.inputBuffer(0, 0)));
  context.run(0);
  std::copy_n(static_cast<const float *>(context.outputBuffer(0, 0)), kCount, again.begin());
  EXPECT_EQ(again, out);
  EXPECT_EQ(context.stream(), nullptr);
  EXPECT_THROW(bundle.findInput(0, "z"), ogc::Error);
}

TEST(CApi, ContextsRunSideBySide) {
  TemporaryFile file(makeBundle(sharedObject()));
  Loaded loaded(file.path);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      ogc_context *context = nullptr;
      if (ogc_context_create(loaded.engine, nullptr, &context) != OGC_OK)
        return void(++wrong);
      std::vector<float> in = inputOf(static_cast<float>(t)), out(kCount);
      ogc_bind_input(context, 0, 0, in.data(), 4 * kCount, OGC_HOST);
      ogc_bind_output(context, 0, 0, out.data(), 4 * kCount, OGC_HOST);
      for (int i = 0; i < 200; ++i)
        if (ogc_run(context, 0) != OGC_OK || out != expectedOf(in))
          ++wrong;
      ogc_context_release(context);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CpuRuntime, AnyOrderGivesTheSameBits) {
  Image image(makeBundle(sharedObject()));
  auto bundle = format::Bundle::view(image.span());
  ASSERT_TRUE(bundle.ok());
  auto engine = runtime::createCpuEngine(bundle.value(), {});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  auto context = engine.value()->createContext(engine.value(), {});
  ASSERT_TRUE(context.ok());
  std::vector<float> in = inputOf(2), out(kCount);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_TRUE(context.value()->setOrder(seed).ok());
    ASSERT_TRUE(context.value()->fill(fb::Section::Scratch, 0xff).ok());
    ASSERT_TRUE(context.value()->copyIn(fb::Section::Inputs, 0, in.data(), 4 * kCount).ok());
    ASSERT_TRUE(context.value()->launch(0).ok());
    ASSERT_TRUE(context.value()->copyOut(fb::Section::Outputs, 0, out.data(), 4 * kCount).ok());
    EXPECT_EQ(out, expectedOf(in));
  }
}

TEST(Order, IsRandomAndTopological) {
  Image image(makeBundle(""));
  auto bundle = format::Bundle::view(image.span());
  ASSERT_TRUE(bundle.ok());
  const fb::Graph &graph = *bundle.value()->manifest().graphs()->Get(0);
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<uint32_t> order = runtime::topologicalOrder(graph, seed);
    for (const fb::Edge *edge : *graph.edges())
      EXPECT_LT(std::find(order.begin(), order.end(), edge->from()), std::find(order.begin(), order.end(), edge->to()));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 10u); // all there are: two orders of nodes 1 and 2, and five places for node 4
}

TEST(CpuRuntime, SaysWhatIsMissing) {
  auto create = [&](const std::string &bytes, const runtime::EngineOptions &options = {}) {
    Image image(bytes);
    auto bundle = format::Bundle::view(image.span());
    EXPECT_TRUE(bundle.ok()) << bundle.status().message();
    return runtime::createCpuEngine(bundle.value(), options).status();
  };
  EXPECT_EQ(create(makeBundle("garbage")).code(), Code::Unsupported);
  EXPECT_EQ(create(makeBundle(sharedObject(), [](auto &m) { m.kernels[0]->cpu->symbol = "missing"; })).message(),
            "the shared object has no symbol 'missing'");
  EXPECT_EQ(create(makeBundle(sharedObject(), [](auto &m) { m.cpu_features = "+sse2,+quantum"; })).message(),
            "this processor lacks what the cpu kernels need: quantum");
}

TEST(Weights, FileRandomOrRefused) {
  std::string bytes = makeBundle(sharedObject(), [](fb::ManifestT &m) {
    m.weights_mode = fb::WeightsMode::None;
    m.blobs.pop_back();
  });
  std::vector<float> w(kCount);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = 0.5f * static_cast<float>(i);
  std::string section(reinterpret_cast<const char *>(w.data()), 4 * kCount);
  TemporaryFile good(section), wrong(std::string(4 * kCount, 'x')), shorter(section.substr(4));
  Image image(bytes);
  auto bundle = format::Bundle::view(image.span());
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  auto status = [&](const runtime::EngineOptions &options) {
    return runtime::HostWeights::find(bundle.value(), options).status();
  };
  EXPECT_EQ(status({}).code(), Code::FailedPrecondition);
  EXPECT_TRUE(status({good.path}).ok());
  EXPECT_EQ(status({wrong.path}).code(), Code::DataLoss);
  EXPECT_EQ(status({shorter.path}).code(), Code::DataLoss);
  EXPECT_TRUE(status({"", /*randomWeights=*/true}).ok());
}

TEST(CpuFeatures, KnowsBothSpellings) {
  const char *flags = "fpu lm sse4_2 pni abm bmi1 avx2 fma avx512_vnni 3dnowprefetch";
  EXPECT_TRUE(runtime::checkCpuFeatures("+64bit,+sse4.2,sse3,+lzcnt,+bmi,+avx2,+avx512vnni,+prfchw,+rtm,-avx512f", flags).ok());
  EXPECT_TRUE(runtime::checkCpuFeatures("+avx10.1,+avx512fp16,+prefetchi", "avx512_fp16").ok());
  EXPECT_EQ(runtime::checkCpuFeatures("+avx2,+avx512f,+amx-tile", flags).message(),
            "this processor lacks what the cpu kernels need: avx512f, amx-tile");
}

TEST(ThreadPool, CoversEveryUnitOnce) {
  static std::atomic<int> hits[1000];
  for (unsigned threads : {1u, 2u, 5u}) {
    runtime::ThreadPool pool(threads);
    for (int64_t units : {0, 1, 3, 1000}) {
      for (auto &hit : hits)
        hit = 0;
      pool.run(
          [](void *const *, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              ++hits[i];
          },
          nullptr, units);
      for (int64_t i = 0; i < 1000; ++i)
        ASSERT_EQ(hits[i], i < units ? 1 : 0);
    }
  }
}
