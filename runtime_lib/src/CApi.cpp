//===- CApi.cpp - the C interface over the drivers ------------------------===//
#include "runtime_lib/include/ogc/runtime.h"

#include "runtime_lib/src/Handles.h"
#include "runtime_lib/src/driver/Driver.h"
#include "runtime_lib/src/driver/OutputShape.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

using ogc::Code;
using ogc::Status;
namespace fb = ogc::format::fb;

struct ogc_bundle {
  ogc::runtime::BundlePtr bundle;
};

struct ogc_engine {
  std::shared_ptr<ogc::runtime::Engine> engine;
  std::string deviceName;
};

namespace {

struct BoundBuffer {
  void *data = nullptr;
  size_t bytes = 0;
  ogc_memory memory = OGC_HOST;
  /// The graph uses `data` itself: there is nothing to copy.
  bool isInPlace = false;
};

struct GraphBindings {
  std::vector<BoundBuffer> inputs, outputs;
};

} // namespace

struct ogc_context {
  std::shared_ptr<ogc::runtime::Engine> engine; // outlives `context`, whose destructor uses it
  std::unique_ptr<ogc::runtime::Context> context;
  std::vector<GraphBindings> bindings;
  std::atomic_flag inUse = ATOMIC_FLAG_INIT;
};

namespace {

thread_local std::string lastError;

ogc_code report(const Status &status) {
  if (status.ok())
    return OGC_OK;
  lastError = status.message();
  return static_cast<ogc_code>(status.code());
}

/// Runs `action`; no exception passes the interface.
template <typename Action> ogc_code guarded(Action action) {
  try {
    return report(action());
  } catch (const std::bad_alloc &) {
    return report(Status(Code::OutOfMemory, "out of memory"));
  } catch (const std::exception &error) {
    return report(Status(Code::Internal, error.what()));
  }
}

Status invalid(std::string what) { return Status(Code::InvalidArgument, std::move(what)); }

/// The same for a call on a context, which serves one thread at a time.
template <typename Action> ogc_code guardedContext(ogc_context *context, Action action) {
  return guarded([&]() -> Status {
    if (!context)
      return invalid("the context is null");
    if (context->inUse.test_and_set(std::memory_order_acquire))
      return Status(Code::Busy, "another thread is using this context");
    struct Release {
      std::atomic_flag &flag;
      ~Release() { flag.clear(std::memory_order_release); }
    } release{context->inUse};
    return action();
  });
}

using Bindings = flatbuffers::Vector<flatbuffers::Offset<fb::Binding>>;

const fb::Graph *findGraph(const ogc::format::Bundle &bundle, size_t index) {
  const auto &graphs = *bundle.manifest().graphs();
  return index < graphs.size() ? graphs.Get(static_cast<unsigned>(index)) : nullptr;
}

Status noGraph(size_t index) { return invalid("there is no graph " + std::to_string(index)); }

ogc::Result<const fb::Binding *> findBinding(const ogc::format::Bundle &bundle, size_t graph, size_t index, bool isInput) {
  const fb::Graph *description = findGraph(bundle, graph);
  if (!description)
    return noGraph(graph);
  const Bindings &bindings = isInput ? *description->inputs() : *description->outputs();
  if (index >= bindings.size())
    return invalid(std::string("there is no ") + (isInput ? "input " : "output ") + std::to_string(index));
  return bindings.Get(static_cast<unsigned>(index));
}

ogc_code queryTensor(const ogc_bundle *bundle, size_t graph, size_t index, bool isInput, ogc_tensor *out) {
  return guarded([&]() -> Status {
    if (!bundle || !out)
      return invalid("an argument is null");
    ogc::Result<const fb::Binding *> binding = findBinding(*bundle->bundle, graph, index, isInput);
    if (!binding.ok())
      return binding.status();
    const fb::Binding &found = *binding.value();
    *out = {found.name()->c_str(), static_cast<ogc_dtype>(found.type()), found.shape()->size(), found.shape()->data(),
            found.slice()->size_bytes()};
    return Status();
  });
}

ogc_code findTensor(const ogc_bundle *bundle, size_t graph, const char *name, bool isInput, size_t *out) {
  return guarded([&]() -> Status {
    if (!bundle || !name || !out)
      return invalid("an argument is null");
    const fb::Graph *found = findGraph(*bundle->bundle, graph);
    if (!found)
      return noGraph(graph);
    const Bindings &bindings = *(isInput ? found->inputs() : found->outputs());
    for (unsigned i = 0; i < bindings.size(); ++i)
      if (bindings.Get(i)->name()->string_view() == name) {
        *out = i;
        return Status();
      }
    return Status(Code::NotFound,
                  "graph '" + found->id()->str() + "' has no " + (isInput ? "input" : "output") + " '" + name + "'");
  });
}

bool isState(const fb::Binding &binding) { return binding.slice()->section() == fb::Section::State; }

/// Whether a buffer shares a byte with one that the graph uses in place, and one of both is written.
bool sharesBytes(const GraphBindings &bindings, const BoundBuffer &buffer, bool isInput) {
  auto overlaps = [&](const BoundBuffer &other) {
    return other.isInPlace && ogc::runtime::overlaps(other.data, other.bytes, buffer.data, buffer.bytes);
  };
  return std::any_of(bindings.outputs.begin(), bindings.outputs.end(), overlaps) ||
         (!isInput && std::any_of(bindings.inputs.begin(), bindings.inputs.end(), overlaps));
}

ogc_code bind(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory, bool isInput) {
  return guardedContext(context, [&]() -> Status {
    ogc::Result<const fb::Binding *> binding = findBinding(context->engine->bundle(), graph, index, isInput);
    if (!binding.ok())
      return binding.status();
    if (memory != OGC_HOST && memory != OGC_DEVICE)
      return invalid("unknown kind of memory " + std::to_string(static_cast<int>(memory)));
    uint64_t expected = binding.value()->slice()->size_bytes();
    if (data && bytes != expected)
      return invalid("'" + binding.value()->name()->str() + "' has " + std::to_string(expected) + " bytes, the buffer " +
                     std::to_string(bytes));
    if (isInput && isState(*binding.value()))
      return Status(Code::FailedPrecondition,
                    "'" + binding.value()->name()->str() + "' is a state of the context: use ogc_state_write");
    GraphBindings &bindings = context->bindings[graph];
    BoundBuffer &target = (isInput ? bindings.inputs : bindings.outputs)[index];
    BoundBuffer bound{data, data ? bytes : 0, memory, false};
    // The graph does not know that two of its buffers are one, so the nodes in its parallel branches would race. The one that is
    // bound later is copied.
    target.isInPlace = false;
    bool wantsInPlace = data && memory == OGC_DEVICE && !sharesBytes(bindings, bound, isInput);
    size_t position = index + (isInput ? 0 : bindings.inputs.size());
    ogc::Result<bool> isInPlace = context->context->bindInPlace(graph, position, wantsInPlace ? data : nullptr);
    if (!isInPlace.ok()) {
      target = {};
      return isInPlace.status().withContext("'" + binding.value()->name()->str() + "'");
    }
    bound.isInPlace = isInPlace.value();
    target = bound;
    return Status();
  });
}

ogc_code buffer(ogc_context *context, size_t graph, size_t index, void **out, bool isInput) {
  return guardedContext(context, [&]() -> Status {
    if (!out)
      return invalid("an argument is null");
    ogc::Result<const fb::Binding *> binding = findBinding(context->engine->bundle(), graph, index, isInput);
    if (!binding.ok())
      return binding.status();
    const fb::Slice &slice = *binding.value()->slice();
    *out = static_cast<char *>(context->context->address(slice.section())) + slice.offset_bytes();
    return Status();
  });
}

/// Copies in, launches, copies out; allocates nothing once the graph is prepared.
Status enqueue(ogc_context *context, size_t graph) {
  const fb::Graph *description = findGraph(context->engine->bundle(), graph);
  if (!description)
    return noGraph(graph);
  ogc::runtime::Context &driver = *context->context;
  GraphBindings &bindings = context->bindings[graph];
  for (unsigned i = 0; i < bindings.inputs.size(); ++i) {
    const BoundBuffer &bound = bindings.inputs[i];
    const fb::Slice &slice = *description->inputs()->Get(i)->slice();
    if (bound.data && !bound.isInPlace)
      OGC_RETURN_IF_ERROR(bound.memory == OGC_HOST
                              ? driver.copyIn(slice.section(), slice.offset_bytes(), bound.data, slice.size_bytes())
                              : driver.copyInDevice(slice.section(), slice.offset_bytes(), bound.data, slice.size_bytes()));
  }
  OGC_RETURN_IF_ERROR(driver.launch(graph));
  for (unsigned i = 0; i < bindings.outputs.size(); ++i) {
    const BoundBuffer &bound = bindings.outputs[i];
    const fb::Slice &slice = *description->outputs()->Get(i)->slice();
    if (bound.data && !bound.isInPlace)
      OGC_RETURN_IF_ERROR(bound.memory == OGC_HOST
                              ? driver.copyOut(slice.section(), slice.offset_bytes(), bound.data, slice.size_bytes())
                              : driver.copyOutDevice(slice.section(), slice.offset_bytes(), bound.data, slice.size_bytes()));
  }
  return Status();
}

ogc_code accessState(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory, bool write) {
  return guardedContext(context, [&]() -> Status {
    ogc::Result<const fb::Binding *> binding = findBinding(context->engine->bundle(), graph, index, /*isInput=*/true);
    if (!binding.ok())
      return binding.status();
    std::string name = "'" + binding.value()->name()->str() + "'";
    const fb::Slice &slice = *binding.value()->slice();
    if (!isState(*binding.value()))
      return invalid(name + " is no state");
    if (memory != OGC_HOST && memory != OGC_DEVICE)
      return invalid("unknown kind of memory " + std::to_string(static_cast<int>(memory)));
    if (!data || bytes != slice.size_bytes())
      return invalid(name + " has " + std::to_string(slice.size_bytes()) + " bytes, the buffer " +
                     std::to_string(data ? bytes : 0));
    ogc::runtime::Context &driver = *context->context;
    if (memory == OGC_DEVICE)
      return write ? driver.copyInDevice(slice.section(), slice.offset_bytes(), data, bytes)
                   : driver.copyOutDevice(slice.section(), slice.offset_bytes(), data, bytes);
    OGC_RETURN_IF_ERROR(write ? driver.copyIn(slice.section(), slice.offset_bytes(), data, bytes)
                              : driver.copyOut(slice.section(), slice.offset_bytes(), data, bytes));
    return driver.synchronize();
  });
}

int isInPlace(const ogc_context *context, size_t graph, size_t index, bool isInput) {
  if (!context || graph >= context->bindings.size())
    return 0;
  const GraphBindings &bindings = context->bindings[graph];
  const std::vector<BoundBuffer> &buffers = isInput ? bindings.inputs : bindings.outputs;
  return index < buffers.size() && buffers[index].isInPlace;
}

} // namespace

const ogc::format::Bundle &ogc::runtime::bundleOf(const ogc_bundle &handle) { return *handle.bundle; }
const ogc::format::Bundle &ogc::runtime::bundleOf(const ogc_context &handle) { return handle.engine->bundle(); }
ogc_code ogc::runtime::reported(const std::function<Status()> &action) { return guarded(action); }

extern "C" {

int ogc_api_version(void) { return OGC_API_VERSION; }

const char *ogc_last_error(void) { return lastError.c_str(); }

ogc_code ogc_bundle_open(const char *path, ogc_bundle **out_bundle) {
  return guarded([&]() -> Status {
    if (!path || !out_bundle)
      return invalid("an argument is null");
    auto bundle = ogc::format::Bundle::open(path);
    if (!bundle.ok())
      return bundle.status();
    *out_bundle = new ogc_bundle{bundle.value()};
    return Status();
  });
}

void ogc_bundle_close(ogc_bundle *bundle) { delete bundle; }

size_t ogc_bundle_graph_count(const ogc_bundle *bundle) { return bundle ? bundle->bundle->manifest().graphs()->size() : 0; }

const char *ogc_bundle_graph_id(const ogc_bundle *bundle, size_t graph) {
  const fb::Graph *found = bundle ? findGraph(*bundle->bundle, graph) : nullptr;
  return found ? found->id()->c_str() : nullptr;
}

ogc_code ogc_bundle_find_graph(const ogc_bundle *bundle, const char *id, size_t *out_graph) {
  return guarded([&]() -> Status {
    if (!bundle || !id || !out_graph)
      return invalid("an argument is null");
    auto index = bundle->bundle->findGraph(id);
    if (!index)
      return Status(Code::NotFound, std::string("there is no graph '") + id + "'");
    *out_graph = *index;
    return Status();
  });
}

size_t ogc_bundle_input_count(const ogc_bundle *bundle, size_t graph) {
  const fb::Graph *found = bundle ? findGraph(*bundle->bundle, graph) : nullptr;
  return found ? found->inputs()->size() : 0;
}

size_t ogc_bundle_output_count(const ogc_bundle *bundle, size_t graph) {
  const fb::Graph *found = bundle ? findGraph(*bundle->bundle, graph) : nullptr;
  return found ? found->outputs()->size() : 0;
}

ogc_code ogc_bundle_input(const ogc_bundle *bundle, size_t graph, size_t index, ogc_tensor *out_tensor) {
  return queryTensor(bundle, graph, index, true, out_tensor);
}

ogc_code ogc_bundle_output(const ogc_bundle *bundle, size_t graph, size_t index, ogc_tensor *out_tensor) {
  return queryTensor(bundle, graph, index, false, out_tensor);
}

ogc_code ogc_bundle_find_input(const ogc_bundle *bundle, size_t graph, const char *name, size_t *out_index) {
  return findTensor(bundle, graph, name, true, out_index);
}

ogc_code ogc_bundle_find_output(const ogc_bundle *bundle, size_t graph, const char *name, size_t *out_index) {
  return findTensor(bundle, graph, name, false, out_index);
}

ogc_code ogc_engine_create(ogc_bundle *bundle, const char *device, const ogc_engine_options *options, ogc_engine **out_engine) {
  return guarded([&]() -> Status {
    if (!bundle || !device || !out_engine)
      return invalid("an argument is null");
    ogc::runtime::EngineOptions engineOptions;
    if (options) {
      engineOptions.weightsFile = options->weights_file ? options->weights_file : "";
      engineOptions.randomWeights = options->random_weights != 0;
      engineOptions.seed = options->seed;
      engineOptions.threads = options->threads ? options->threads : 1;
      if (options->exec_pool != 0)
        engineOptions.execPool = options->exec_pool;
    }
    auto engine = ogc::runtime::createEngine(bundle->bundle, device, engineOptions);
    if (!engine.ok())
      return engine.status();
    *out_engine = new ogc_engine{engine.value(), engine.value()->deviceName()};
    return Status();
  });
}

void ogc_engine_release(ogc_engine *engine) { delete engine; }

const char *ogc_engine_device_name(const ogc_engine *engine) { return engine ? engine->deviceName.c_str() : ""; }

ogc_code ogc_engine_exec_stats(const ogc_engine *engine, ogc_exec_stats *out_stats) {
  return guarded([&]() -> Status {
    if (!engine || !out_stats)
      return invalid("an argument is null");
    ogc::runtime::ExecStats stats = engine->engine->execStats();
    *out_stats = {stats.live, stats.capacity, stats.instantiated, stats.switched, stats.refused, stats.evicted, stats.patched};
    return Status();
  });
}

ogc_code ogc_engine_refit(ogc_engine *engine, const ogc_bundle *refitted, const char *weightsFile) {
  return guarded([&]() -> Status {
    if (!engine || !refitted)
      return invalid("an argument is null");
    return engine->engine->refit(refitted->bundle, weightsFile ? weightsFile : "");
  });
}

ogc_code ogc_context_create(ogc_engine *engine, const ogc_context_options *options, ogc_context **out_context) {
  return guarded([&]() -> Status {
    if (!engine || !out_context)
      return invalid("an argument is null");
    ogc::runtime::ContextOptions contextOptions;
    if (options)
      contextOptions.stream = options->stream;
    auto created = engine->engine->createContext(engine->engine, contextOptions);
    if (!created.ok())
      return created.status();
    auto context = std::make_unique<ogc_context>();
    context->engine = engine->engine;
    context->context = std::move(created.value());
    for (const fb::Graph *graph : *engine->engine->bundle().manifest().graphs())
      context->bindings.push_back(
          {std::vector<BoundBuffer>(graph->inputs()->size()), std::vector<BoundBuffer>(graph->outputs()->size())});
    *out_context = context.release();
    return Status();
  });
}

void ogc_context_release(ogc_context *context) { delete context; }

ogc_code ogc_context_prepare(ogc_context *context, size_t graph) {
  return guardedContext(context, [&]() -> Status {
    return findGraph(context->engine->bundle(), graph) ? context->context->prepare(graph) : noGraph(graph);
  });
}

ogc_code ogc_bind_input(ogc_context *context, size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory) {
  return bind(context, graph, index, const_cast<void *>(data), bytes, memory, true);
}

ogc_code ogc_bind_output(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory) {
  return bind(context, graph, index, data, bytes, memory, false);
}

ogc_code ogc_input_buffer(ogc_context *context, size_t graph, size_t index, void **out_data) {
  return buffer(context, graph, index, out_data, true);
}

ogc_code ogc_output_buffer(ogc_context *context, size_t graph, size_t index, void **out_data) {
  return buffer(context, graph, index, out_data, false);
}

int ogc_input_in_place(const ogc_context *context, size_t graph, size_t index) { return isInPlace(context, graph, index, true); }

int ogc_output_in_place(const ogc_context *context, size_t graph, size_t index) {
  return isInPlace(context, graph, index, false);
}

int ogc_bundle_input_is_state(const ogc_bundle *bundle, size_t graph, size_t index) {
  const fb::Graph *found = bundle ? findGraph(*bundle->bundle, graph) : nullptr;
  return found && index < found->inputs()->size() && isState(*found->inputs()->Get(static_cast<unsigned>(index)));
}

ogc_code ogc_state_write(ogc_context *context, size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory) {
  return accessState(context, graph, index, const_cast<void *>(data), bytes, memory, true);
}

ogc_code ogc_state_read(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory) {
  return accessState(context, graph, index, data, bytes, memory, false);
}

ogc_code ogc_state_reset(ogc_context *context) {
  return guardedContext(context, [&] { return context->context->fill(fb::Section::State, 0); });
}

ogc_code ogc_run(ogc_context *context, size_t graph) {
  return guardedContext(context, [&]() -> Status {
    OGC_RETURN_IF_ERROR(enqueue(context, graph));
    return context->context->synchronize();
  });
}

ogc_code ogc_run_async(ogc_context *context, size_t graph) {
  return guardedContext(context, [&] { return enqueue(context, graph); });
}

ogc_code ogc_context_synchronize(ogc_context *context) {
  return guardedContext(context, [&] { return context->context->synchronize(); });
}

ogc_code ogc_output_shape(ogc_context *context, size_t graph, size_t index, int64_t *out_shape, size_t rank) {
  return guardedContext(context, [&]() -> Status {
    ogc::Result<const fb::Binding *> binding = findBinding(context->engine->bundle(), graph, index, false);
    if (!binding.ok())
      return binding.status();
    size_t expected = binding.value()->shape()->size();
    if ((!out_shape && rank != 0) || rank != expected)
      return invalid("'" + binding.value()->name()->str() + "' has rank " + std::to_string(expected) +
                     ", the shape has room for " + std::to_string(out_shape ? rank : 0));
    ogc::Result<std::vector<int64_t>> shape = ogc::runtime::readShape(*context->context, *binding.value());
    if (!shape.ok())
      return shape.status();
    std::copy(shape.value().begin(), shape.value().end(), out_shape);
    return Status();
  });
}

void *ogc_context_stream(const ogc_context *context) { return context ? context->context->stream() : nullptr; }

} // extern "C"
