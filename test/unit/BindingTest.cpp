//===- BindingTest.cpp - buffers in place, states and refit on the cpu ----===//
#include "runtime_lib/include/ogc/runtime.h"
#include "test/unit/TestBundle.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace ogc::test;

namespace {

using Values = std::vector<float>;

std::string sharedObject() { return readFile(OGC_TEST_KERNELS); }

/// kCount floats at a multiple of 256 bytes.
struct Buffer {
  std::unique_ptr<float, void (*)(void *)> memory{static_cast<float *>(std::aligned_alloc(256, 4 * kCount + 256)), std::free};
  float *data() const { return memory.get(); }
  Values values() const { return Values(data(), data() + kCount); }
  void set(const Values &values) const { std::copy(values.begin(), values.end(), data()); }
};

Values filled(float value) { return Values(kCount, value); }

/// y = -(x + step i)
Values expectedOf(const Values &x, float step = 0.5f) {
  Values y(x);
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = -(x[i] + step * static_cast<float>(i));
  return y;
}

struct Loaded {
  TemporaryFile file;
  ogc_bundle *bundle = nullptr;
  ogc_engine *engine = nullptr;
  ogc_context *context = nullptr;

  explicit Loaded(const std::string &bytes) : file(bytes) {
    EXPECT_EQ(ogc_bundle_open(file.path.c_str(), &bundle), OGC_OK) << ogc_last_error();
    EXPECT_EQ(ogc_engine_create(bundle, "cpu", nullptr, &engine), OGC_OK) << ogc_last_error();
    EXPECT_EQ(ogc_context_create(engine, nullptr, &context), OGC_OK) << ogc_last_error();
  }
  ~Loaded() {
    ogc_context_release(context);
    ogc_engine_release(engine);
    ogc_bundle_close(bundle);
  }
  ogc_code bindInput(const float *data, ogc_memory memory = OGC_DEVICE) {
    return ogc_bind_input(context, 0, 0, data, data ? 4 * kCount : 0, memory);
  }
  ogc_code bindOutput(float *data, ogc_memory memory = OGC_DEVICE) {
    return ogc_bind_output(context, 0, 0, data, data ? 4 * kCount : 0, memory);
  }
  Values run(size_t graph = 0) {
    EXPECT_EQ(ogc_run(context, graph), OGC_OK) << ogc_last_error();
    void *y = nullptr;
    EXPECT_EQ(ogc_output_buffer(context, graph, 0, &y), OGC_OK);
    return Values(static_cast<float *>(y), static_cast<float *>(y) + kCount);
  }
};

} // namespace

TEST(Binding, DeviceBuffersAreUsedInPlace) {
  Loaded loaded(makeBundle(sharedObject()));
  Buffer x, y;
  x.set(filled(3));
  ASSERT_EQ(loaded.bindInput(x.data()), OGC_OK);
  ASSERT_EQ(loaded.bindOutput(y.data()), OGC_OK);
  EXPECT_EQ(ogc_input_in_place(loaded.context, 0, 0), 1);
  EXPECT_EQ(ogc_output_in_place(loaded.context, 0, 0), 1);
  EXPECT_EQ(ogc_output_in_place(loaded.context, 0, 1), 0);
  Values own = loaded.run();
  EXPECT_EQ(y.values(), expectedOf(filled(3)));
  EXPECT_EQ(own, filled(0)); // not touched
  ASSERT_EQ(loaded.bindInput(nullptr), OGC_OK);
  ASSERT_EQ(loaded.bindOutput(nullptr), OGC_OK);
  EXPECT_EQ(loaded.run(), expectedOf(filled(0)));
  EXPECT_EQ(ogc_input_in_place(loaded.context, 0, 0), 0);
}

TEST(Binding, AlternatingBuffersKeepEarlierResults) {
  Loaded loaded(makeBundle(sharedObject()));
  Buffer x[3], y[3];
  for (int i = 0; i < 1000; ++i) {
    float value = static_cast<float>(i);
    x[i % 3].set(filled(value));
    ASSERT_EQ(loaded.bindInput(x[i % 3].data()), OGC_OK);
    ASSERT_EQ(loaded.bindOutput(y[i % 3].data()), OGC_OK);
    loaded.run();
    for (int back = 0; back < std::min(i + 1, 3); ++back)
      ASSERT_EQ(y[(i - back) % 3].values(), expectedOf(filled(value - static_cast<float>(back))));
  }
}

TEST(Binding, AnOutputFedBackAsInput) {
  Loaded loaded(makeBundle(sharedObject()));
  Buffer buffer;
  for (bool outputFirst : {false, true}) {
    ASSERT_EQ(loaded.bindInput(nullptr), OGC_OK);
    ASSERT_EQ(loaded.bindOutput(nullptr), OGC_OK);
    buffer.set(filled(0));
    if (outputFirst)
      ASSERT_EQ(loaded.bindOutput(buffer.data()), OGC_OK);
    ASSERT_EQ(loaded.bindInput(buffer.data()), OGC_OK);
    if (!outputFirst)
      ASSERT_EQ(loaded.bindOutput(buffer.data()), OGC_OK);
    EXPECT_EQ(ogc_input_in_place(loaded.context, 0, 0) + ogc_output_in_place(loaded.context, 0, 0), 1);
    Values expected = filled(0);
    for (int i = 0; i < 50; ++i) {
      loaded.run();
      expected = expectedOf(expected);
      ASSERT_EQ(buffer.values(), expected);
    }
  }
}

TEST(Binding, BuffersThatOverlapInPartAreCopied) {
  Loaded loaded(makeBundle(sharedObject()));
  std::unique_ptr<float, void (*)(void *)> memory(static_cast<float *>(std::aligned_alloc(256, 12 * kCount)), std::free);
  float *x = memory.get(), *y = x + kCount / 2;
  std::fill(x, x + 3 * kCount, 2.0f);
  ASSERT_EQ(loaded.bindInput(x), OGC_OK);
  ASSERT_EQ(loaded.bindOutput(y), OGC_OK);
  EXPECT_EQ(ogc_output_in_place(loaded.context, 0, 0), 0);
  loaded.run();
  EXPECT_EQ(Values(y, y + kCount), expectedOf(filled(2)));
  EXPECT_EQ(y[kCount], 2.0f);
}

TEST(Binding, TheContextsOwnBuffersAreCopied) {
  Loaded loaded(makeBundle(sharedObject()));
  void *own = nullptr;
  ASSERT_EQ(ogc_output_buffer(loaded.context, 0, 0, &own), OGC_OK);
  ASSERT_EQ(loaded.bindInput(static_cast<float *>(own)), OGC_OK); // the result of one run is the input of the next
  EXPECT_EQ(ogc_input_in_place(loaded.context, 0, 0), 0);
  Values expected = filled(0);
  for (int i = 0; i < 3; ++i) {
    expected = expectedOf(expected);
    EXPECT_EQ(loaded.run(), expected);
  }
}

TEST(Binding, UnalignedBuffersAreCopied) {
  Loaded loaded(makeBundle(sharedObject()));
  Buffer x, y;
  std::fill(x.data(), x.data() + kCount + 1, 4.0f);
  ASSERT_EQ(loaded.bindInput(x.data() + 1), OGC_OK);
  ASSERT_EQ(loaded.bindOutput(y.data() + 1), OGC_OK);
  EXPECT_EQ(ogc_input_in_place(loaded.context, 0, 0), 0);
  EXPECT_EQ(ogc_output_in_place(loaded.context, 0, 0), 0);
  loaded.run();
  EXPECT_EQ(Values(y.data() + 1, y.data() + 1 + kCount), expectedOf(filled(4)));
}

TEST(Binding, RefusedCallsLeaveOutputsAlone) {
  Loaded loaded(makeBundle(sharedObject()));
  Buffer x, y;
  x.set(filled(1));
  y.set(filled(7));
  ASSERT_EQ(loaded.bindOutput(y.data()), OGC_OK);
  EXPECT_EQ(ogc_bind_input(loaded.context, 0, 0, x.data(), 8, OGC_DEVICE), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_bind_input(loaded.context, 0, 0, x.data(), 4 * kCount, static_cast<ogc_memory>(9)), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_run(loaded.context, 17), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_run(nullptr, 0), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(y.values(), filled(7));
  ASSERT_EQ(loaded.bindInput(x.data()), OGC_OK);
  loaded.run();
  EXPECT_EQ(y.values(), expectedOf(filled(1)));
}

TEST(State, AdvancesOncePerRun) {
  Loaded loaded(makeBundle(sharedObject(), addStateGraph));
  EXPECT_EQ(ogc_bundle_input_is_state(loaded.bundle, 1, 0), 1);
  EXPECT_EQ(ogc_bundle_input_is_state(loaded.bundle, 0, 0), 0);
  Values state(kCount, -1), expected(kCount), other(kCount, -1);
  auto read = [&](ogc_context *context, Values &out) {
    ASSERT_EQ(ogc_state_read(context, 1, 0, out.data(), 4 * kCount, OGC_HOST), OGC_OK) << ogc_last_error();
  };
  ogc_context *second = nullptr;
  ASSERT_EQ(ogc_context_create(loaded.engine, nullptr, &second), OGC_OK);
  ASSERT_EQ(ogc_context_prepare(loaded.context, 1), OGC_OK); // preparing runs nothing
  read(loaded.context, state);
  EXPECT_EQ(state, filled(0));
  for (int step = 1; step <= 3; ++step) {
    loaded.run(1);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = 0.5f * static_cast<float>(i) * static_cast<float>(step);
    read(loaded.context, state);
    EXPECT_EQ(state, expected);
  }
  read(second, other);
  EXPECT_EQ(other, filled(0)); // a state is of one context
  ogc_context_release(second);

  Values ten = filled(10), present(kCount);
  ASSERT_EQ(ogc_state_write(loaded.context, 1, 0, ten.data(), 4 * kCount, OGC_HOST), OGC_OK);
  ASSERT_EQ(ogc_bind_output(loaded.context, 1, 0, present.data(), 4 * kCount, OGC_HOST), OGC_OK);
  loaded.run(1);
  EXPECT_EQ(present[4], 12.0f);
  ASSERT_EQ(ogc_state_reset(loaded.context), OGC_OK);
  read(loaded.context, state);
  EXPECT_EQ(state, filled(0));
}

TEST(State, RefusesWhatWouldOverwriteIt) {
  Loaded loaded(makeBundle(sharedObject(), addStateGraph));
  Buffer x;
  EXPECT_EQ(ogc_bind_input(loaded.context, 1, 0, x.data(), 4 * kCount, OGC_HOST), OGC_FAILED_PRECONDITION);
  EXPECT_STREQ(ogc_last_error(), "'past' is a state of the context: use ogc_state_write");
  EXPECT_EQ(ogc_state_write(loaded.context, 0, 0, x.data(), 4 * kCount, OGC_HOST), OGC_INVALID_ARGUMENT);
  EXPECT_STREQ(ogc_last_error(), "'x' is no state");
  EXPECT_EQ(ogc_state_read(loaded.context, 1, 0, x.data(), 8, OGC_HOST), OGC_INVALID_ARGUMENT);
  EXPECT_EQ(ogc_state_read(loaded.context, 1, 5, x.data(), 4 * kCount, OGC_HOST), OGC_INVALID_ARGUMENT);
}

TEST(Refit, NewWeightsInALivingEngine) {
  Loaded loaded(makeBundle(sharedObject())), refitted(makeBundle(sharedObject(), nullptr, "", 2.0f));
  EXPECT_EQ(loaded.run(), expectedOf(filled(0), 0.5f));
  ASSERT_EQ(ogc_engine_refit(loaded.engine, refitted.bundle, nullptr), OGC_OK) << ogc_last_error();
  EXPECT_EQ(loaded.run(), expectedOf(filled(0), 2.0f));
  Loaded other(makeBundle(sharedObject(), [](auto &m) { m.weights[0]->shape = {8, 8}; }));
  EXPECT_EQ(ogc_engine_refit(loaded.engine, other.bundle, nullptr), OGC_INVALID_ARGUMENT);
  EXPECT_STREQ(ogc_last_error(), "the bundles differ in more than their weights\n"
                                 "  weight 0 is 'w', float32 8x8 at 0, expected 'w', float32 64 at 0");
  EXPECT_EQ(loaded.run(), expectedOf(filled(0), 2.0f));
}

TEST(Refit, NamesInitializers) {
  auto withParameter = [](const char *name, fb::DataType type, std::vector<int64_t> shape) {
    return makeBundle(sharedObject(), [=](fb::ManifestT &m) {
      m.parameters.push_back(std::make_unique<fb::ParameterT>());
      m.parameters[0]->name = name;
      m.parameters[0]->type = type;
      m.parameters[0]->shape = shape;
    });
  };
  Loaded loaded(withParameter("w", fb::DataType::F32, {64})), shape(withParameter("w", fb::DataType::F16, {8, 8})),
      name(withParameter("v", fb::DataType::F32, {64}));
  EXPECT_EQ(ogc_engine_refit(loaded.engine, shape.bundle, nullptr), OGC_INVALID_ARGUMENT);
  EXPECT_STREQ(ogc_last_error(), "the bundles differ in more than their weights\n"
                                 "  initializer 'w' is float16 8x8, expected float32 64");
  EXPECT_EQ(ogc_engine_refit(loaded.engine, name.bundle, nullptr), OGC_INVALID_ARGUMENT);
  EXPECT_STREQ(ogc_last_error(), "the bundles differ in more than their weights\n"
                                 "  initializer 'v' (float32 64) is not in the bundle's model\n"
                                 "  initializer 'w' (float32 64) is missing");
}

// Every run sees the old weights or the new ones, never both; contexts of one engine never see each other's data.
TEST(Threads, RunsRebindingsAndRefitsSideBySide) {
  Loaded loaded(makeBundle(sharedObject(), addGraphs)), refitted(makeBundle(sharedObject(), addGraphs, "", 2.0f));
  std::atomic<int> wrong = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      ogc_context *context = nullptr;
      if (ogc_context_create(loaded.engine, nullptr, &context) != OGC_OK)
        return void(++wrong);
      Buffer x, y;
      x.set(filled(static_cast<float>(t)));
      for (int i = 0; i < 300; ++i) {
        size_t graph = i % 2 ? 2 : 0;
        ogc_memory memory = i % 3 ? OGC_DEVICE : OGC_HOST;
        wrong += ogc_bind_input(context, graph, 0, x.data(), 4 * kCount, memory) != OGC_OK;
        wrong += ogc_bind_output(context, graph, 0, y.data(), 4 * kCount, memory) != OGC_OK;
        wrong += ogc_run(context, graph) != OGC_OK;
        Values result = y.values(), expected = filled(static_cast<float>(t));
        wrong += result != expectedOf(expected, 0.5f) && result != expectedOf(expected, 2.0f);
      }
      ogc_context_release(context);
    });
  std::thread refitting([&] {
    for (int i = 0; !stop; ++i)
      wrong += ogc_engine_refit(loaded.engine, i % 2 ? loaded.bundle : refitted.bundle, nullptr) != OGC_OK;
  });
  for (std::thread &thread : threads)
    thread.join();
  stop = true;
  refitting.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, EightLoadsAtOnce) {
  TemporaryFile file(makeBundle(sharedObject()));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Buffer x, y;
      x.set(filled(static_cast<float>(t)));
      for (int i = 0; i < 20; ++i) {
        ogc_bundle *bundle = nullptr;
        ogc_engine *engine = nullptr;
        ogc_context *context = nullptr;
        wrong += ogc_bundle_open(file.path.c_str(), &bundle) != OGC_OK;
        wrong += ogc_engine_create(bundle, "cpu", nullptr, &engine) != OGC_OK;
        wrong += ogc_context_create(engine, nullptr, &context) != OGC_OK;
        wrong += ogc_bind_input(context, 0, 0, x.data(), 4 * kCount, OGC_DEVICE) != OGC_OK;
        wrong += ogc_bind_output(context, 0, 0, y.data(), 4 * kCount, OGC_DEVICE) != OGC_OK;
        wrong += ogc_run(context, 0) != OGC_OK || y.values() != expectedOf(x.values());
        ogc_bundle_close(bundle);
        ogc_engine_release(engine);
        ogc_context_release(context);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, OneContextServesOneCallAtATime) {
  Loaded loaded(makeBundle(sharedObject()));
  std::atomic<int> wrong = 0, served = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ogc_code code = ogc_run(loaded.context, 0);
        wrong += code != OGC_OK && code != OGC_BUSY;
        served += code == OGC_OK;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(served, 0);
}

TEST(Threads, MadeUsedAndReleasedByDifferentOnes) {
  TemporaryFile file(makeBundle(sharedObject()));
  ogc_bundle *bundle = nullptr;
  ogc_engine *engine = nullptr;
  ogc_context *context = nullptr;
  std::thread([&] {
    ASSERT_EQ(ogc_bundle_open(file.path.c_str(), &bundle), OGC_OK);
    ASSERT_EQ(ogc_engine_create(bundle, "cpu", nullptr, &engine), OGC_OK);
    ASSERT_EQ(ogc_context_create(engine, nullptr, &context), OGC_OK);
  }).join();
  Buffer x, y;
  x.set(filled(5));
  std::thread([&] {
    ogc_bind_input(context, 0, 0, x.data(), 4 * kCount, OGC_HOST);
    ogc_bind_output(context, 0, 0, y.data(), 4 * kCount, OGC_HOST);
    EXPECT_EQ(ogc_run(context, 0), OGC_OK);
  }).join();
  EXPECT_EQ(y.values(), expectedOf(filled(5)));
  std::thread([&] {
    ogc_engine_release(engine);
    ogc_bundle_close(bundle);
    ogc_context_release(context);
  }).join();
}
