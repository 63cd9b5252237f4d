//===- LoadBench.cpp - what loading, switching and rebinding cost ---------===//
#include "tools/common/LoadBench.h"

#include "runtime_lib/format/Json.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>

namespace ogc::tools {

namespace {

namespace fb = format::fb;
using Clock = std::chrono::steady_clock;
using runtime::Context;
using runtime::Engine;

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> samples) {
  auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

class LoadMeasurement {
public:
  explicit LoadMeasurement(const LoadBenchOptions &options) : options_(options) {}

  Result<LoadCosts> run() {
    OGC_RETURN_IF_ERROR(measureFirstResult());
    OGC_RETURN_IF_ERROR(measureInstantiation());
    OGC_RETURN_IF_ERROR(measureLaunches());
    OGC_RETURN_IF_ERROR(measureUpdates());
    OGC_RETURN_IF_ERROR(measureRebinding());
    OGC_RETURN_IF_ERROR(measureExecBytes());
    return costs_;
  }

private:
  const fb::Graph &graph(size_t index) const { return *bundle_->manifest().graphs()->Get(static_cast<unsigned>(index)); }

  Result<std::shared_ptr<Engine>> makeEngine(size_t pool) {
    runtime::EngineOptions options = options_.engine;
    options.execPool = pool;
    return runtime::createEngine(bundle_, options_.device, options);
  }

  uint64_t bytesInUse() {
    Result<uint64_t> bytes = engine_->deviceBytesInUse();
    return bytes.ok() ? bytes.value() : 0;
  }

  using Call = std::function<Status(unsigned)>;
  static constexpr unsigned warmUp = 4; ///< iterations that are not counted

  /// The median time of `call` among the iterations, without `before`; the device is idle before each.
  Status time(Context &context, double &out, const Call &call, const Call &before = {}) {
    std::vector<double> samples;
    for (unsigned i = 0; i < options_.iterations + warmUp; ++i) {
      if (before)
        OGC_RETURN_IF_ERROR(before(i));
      OGC_RETURN_IF_ERROR(context.synchronize());
      Clock::time_point begin = Clock::now();
      OGC_RETURN_IF_ERROR(call(i));
      if (i >= warmUp)
        samples.push_back(microsecondsSince(begin));
    }
    out = median(std::move(samples));
    return context.synchronize();
  }

  /// `call` and, in turn with it, a launch of graph 0 behind one of the same: what one costs above the other is told apart from a
  /// processor that is faster at one time than at another.
  Status timeBesideLaunch(Context &context, double &launch, double &out, const Call &call) {
    std::vector<double> launches;
    OGC_RETURN_IF_ERROR(time(context, out, call, [&](unsigned i) -> Status {
      OGC_RETURN_IF_ERROR(context.launch(0));
      OGC_RETURN_IF_ERROR(context.synchronize());
      Clock::time_point begin = Clock::now();
      OGC_RETURN_IF_ERROR(context.launch(0));
      if (i >= warmUp)
        launches.push_back(microsecondsSince(begin));
      return Status();
    }));
    launch = median(std::move(launches));
    return Status();
  }

  /// The one engine that is created before anything else of this process has touched the device.
  Status measureFirstResult() {
    Clock::time_point start = Clock::now(), begin = start;
    Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options_.bundle);
    if (!bundle.ok())
      return bundle.status();
    bundle_ = bundle.value();
    costs_.openMs = microsecondsSince(begin) / 1000;
    begin = Clock::now();
    Result<std::shared_ptr<Engine>> engine = makeEngine(std::max<size_t>(options_.engine.execPool, 2));
    if (!engine.ok())
      return engine.status();
    engine_ = engine.value();
    costs_.engineMs = microsecondsSince(begin) / 1000;
    uint64_t before = bytesInUse();
    begin = Clock::now();
    Result<std::unique_ptr<Context>> context = engine_->createContext(engine_, {});
    if (!context.ok())
      return context.status();
    context_ = std::move(context.value());
    costs_.contextMs = microsecondsSince(begin) / 1000;
    OGC_RETURN_IF_ERROR(context_->launch(0));
    for (const fb::Binding *output : *graph(0).outputs()) {
      std::vector<std::byte> host(output->slice()->size_bytes());
      OGC_RETURN_IF_ERROR(
          context_->copyOut(output->slice()->section(), output->slice()->offset_bytes(), host.data(), host.size()));
      OGC_RETURN_IF_ERROR(context_->synchronize());
    }
    costs_.firstResultMs = microsecondsSince(start) / 1000;
    costs_.contextBytes = bytesInUse() - before;

    const fb::Manifest &manifest = bundle_->manifest();
    costs_.deviceName = engine_->deviceName();
    costs_.graphs = manifest.graphs()->size();
    costs_.nodes = graph(0).nodes()->size();
    costs_.weightsBytes = manifest.arena()->weights_bytes();
    costs_.arenaBytes = format::contextLayout(*manifest.arena()).total;
    std::set<uint32_t> topologies;
    for (const fb::Graph *each : *manifest.graphs())
      topologies.insert(each->topology());
    costs_.topologies = topologies.size();
    return Status();
  }

  /// The graphs are prepared in new contexts, so that nothing can be updated.
  Status measureInstantiation() {
    Result<std::shared_ptr<Engine>> engine = makeEngine(costs_.graphs + 8);
    if (!engine.ok())
      return engine.status();
    std::vector<double> times, perNode;
    for (int repeat = 0; repeat < 5; ++repeat) {
      Result<std::unique_ptr<Context>> context = engine.value()->createContext(engine.value(), {});
      if (!context.ok())
        return context.status();
      for (size_t i = 0; i < std::min<size_t>(costs_.graphs, 8); ++i) {
        Clock::time_point begin = Clock::now();
        OGC_RETURN_IF_ERROR(context.value()->prepare(i));
        times.push_back(microsecondsSince(begin));
        perNode.push_back(times.back() / std::max(1u, graph(i).nodes()->size()));
      }
    }
    costs_.instantiateUs = median(times);
    costs_.instantiateUsPerNode = median(perNode);
    return Status();
  }

  Status measureLaunches() {
    if (costs_.graphs < 2)
      return time(*context_, costs_.launchUs, [&](unsigned) { return context_->launch(0); });
    return timeBesideLaunch(*context_, costs_.launchUs, costs_.switchUs, [&](unsigned) { return context_->launch(1); });
  }

  /// Two graphs of one topology in a pool of one: each must take the place of the other.
  Status measureUpdates() {
    size_t other = 0;
    for (size_t i = 1; i < costs_.graphs && other == 0; ++i)
      if (graph(i).topology() == graph(0).topology() && graph(i).topology() != format::kNoTopology)
        other = i;
    if (other == 0 || !context_->stream())
      return Status();
    Result<std::shared_ptr<Engine>> engine = makeEngine(1);
    if (!engine.ok())
      return engine.status();
    Result<std::unique_ptr<Context>> context = engine.value()->createContext(engine.value(), {});
    if (!context.ok())
      return context.status();
    Context &single = *context.value();
    double launchUs = 0;
    OGC_RETURN_IF_ERROR(timeBesideLaunch(single, launchUs, costs_.updateUs, [&](unsigned) { return single.launch(other); }));
    OGC_RETURN_IF_ERROR(time(single, costs_.prepareUpdateUs, [&](unsigned i) { return single.prepare(i % 2 ? other : 0); }));
    costs_.refused = engine.value()->execStats().refused;
    costs_.updateUsPerNode = std::max(0.0, costs_.updateUs - launchUs) / static_cast<double>(std::max<size_t>(costs_.nodes, 1));
    return Status();
  }

  /// The buffers come from other contexts of the engine.
  Status measureRebinding() {
    const fb::Binding *input = graph(0).inputs()->size() ? graph(0).inputs()->Get(0) : nullptr;
    if (!input || !input->uses() || input->uses()->size() == 0)
      return Status();
    std::unique_ptr<Context> others[2];
    void *buffers[2] = {};
    for (int i = 0; i < 2; ++i) {
      Result<std::unique_ptr<Context>> context = engine_->createContext(engine_, {});
      if (!context.ok())
        return context.status();
      others[i] = std::move(context.value());
      buffers[i] = static_cast<std::byte *>(others[i]->address(input->slice()->section())) + input->slice()->offset_bytes();
    }
    Result<bool> isInPlace = context_->bindInPlace(0, 0, buffers[0]);
    if (!isInPlace.ok() || !isInPlace.value())
      return isInPlace.status();
    std::set<uint32_t> nodes;
    for (const fb::BindingUse *use : *input->uses())
      nodes.insert(use->node());
    costs_.rebindNodes = nodes.size();
    double launchUs = 0;
    OGC_RETURN_IF_ERROR(timeBesideLaunch(*context_, launchUs, costs_.rebindUs, [&](unsigned i) {
      Result<bool> bound = context_->bindInPlace(0, 0, buffers[i % 2]);
      return bound.ok() ? context_->launch(0) : bound.status();
    }));
    costs_.rebindUsPerNode = std::max(0.0, costs_.rebindUs - launchUs) / static_cast<double>(nodes.size());
    return context_->bindInPlace(0, 0, nullptr).status();
  }

  /// Several contexts hold an executable graph each, as memory is handed out in pages of 2 MiB.
  Status measureExecBytes() {
    constexpr size_t contexts = 16;
    size_t each = std::min<size_t>(costs_.graphs, 4);
    Result<std::shared_ptr<Engine>> engine = makeEngine(contexts * each);
    if (!engine.ok())
      return engine.status();
    std::vector<std::unique_ptr<Context>> held;
    for (size_t i = 0; i < contexts; ++i) {
      Result<std::unique_ptr<Context>> context = engine.value()->createContext(engine.value(), {});
      if (!context.ok())
        return context.status().code() == Code::OutOfMemory ? Status() : context.status();
      held.push_back(std::move(context.value()));
    }
    uint64_t before = bytesInUse();
    for (const std::unique_ptr<Context> &context : held)
      for (size_t i = 0; i < each; ++i)
        OGC_RETURN_IF_ERROR(context->prepare(i));
    uint64_t after = bytesInUse();
    costs_.execBytes = after > before ? (after - before) / (contexts * each) : 0;
    return Status();
  }

  const LoadBenchOptions &options_;
  LoadCosts costs_;
  std::shared_ptr<const format::Bundle> bundle_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Context> context_;
};

} // namespace

Result<LoadCosts> measureLoad(const LoadBenchOptions &options) { return LoadMeasurement(options).run(); }

std::string loadCostsJson(const LoadBenchOptions &options, const LoadCosts &costs) {
  format::JsonWriter json;
  json.beginObject().field("bundle", options.bundle).field("device", options.device).field("device_name", costs.deviceName);
  json.field("graphs", static_cast<uint64_t>(costs.graphs)).field("topologies", static_cast<uint64_t>(costs.topologies));
  json.field("nodes", static_cast<uint64_t>(costs.nodes)).field("pool", static_cast<uint64_t>(options.engine.execPool));
  json.field("iterations", options.iterations);
  json.field("open_ms", costs.openMs).field("engine_ms", costs.engineMs).field("context_ms", costs.contextMs);
  json.field("first_result_ms", costs.firstResultMs).field("instantiate_us", costs.instantiateUs);
  json.field("instantiate_us_per_node", costs.instantiateUsPerNode).field("launch_us", costs.launchUs);
  auto optional = [&](const char *key, double value) {
    if (value >= 0)
      json.field(key, value);
  };
  optional("switch_us", costs.switchUs);
  optional("update_us", costs.updateUs);
  optional("update_us_per_node", costs.updateUsPerNode);
  optional("prepare_update_us", costs.prepareUpdateUs);
  optional("rebind_us", costs.rebindUs);
  optional("rebind_us_per_node", costs.rebindUsPerNode);
  json.field("rebind_nodes", static_cast<uint64_t>(costs.rebindNodes)).field("refused_updates", costs.refused);
  json.field("weights_bytes", costs.weightsBytes).field("arena_bytes", costs.arenaBytes);
  json.field("context_device_bytes", costs.contextBytes).field("exec_device_bytes", costs.execBytes).endObject();
  return json.text();
}

std::string loadCostsText(const LoadCosts &costs) {
  std::string text;
  char line[200];
  auto add = [&](const char *format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    text += line;
  };
  auto cost = [&](const char *what, double value, const char *unit) {
    if (value >= 0)
      add("  %-44s %12.2f %s\n", what, value, unit);
  };
  add("%zu graphs of %zu topologies on %s, %zu nodes in the first\n", costs.graphs, costs.topologies, costs.deviceName.c_str(),
      costs.nodes);
  cost("open and verify the file", costs.openMs, "ms");
  cost("engine: code and weights", costs.engineMs, "ms");
  cost("context: arena and streams", costs.contextMs, "ms");
  cost("from nothing to the first result", costs.firstResultMs, "ms");
  cost("instantiate a graph", costs.instantiateUs, "us");
  cost("  a node", costs.instantiateUsPerNode, "us");
  cost("launch the graph of before", costs.launchUs, "us");
  cost("launch another one in the pool", costs.switchUs, "us");
  cost("launch one that must be updated first", costs.updateUs, "us");
  cost("  a node, above a launch", costs.updateUsPerNode, "us");
  cost("  the update done ahead, with its upload", costs.prepareUpdateUs, "us");
  cost("launch with another buffer of one input", costs.rebindUs, "us");
  cost("  a node that uses it, above a launch", costs.rebindUsPerNode, "us");
  cost("weights", static_cast<double>(costs.weightsBytes) / 1e6, "MB");
  cost("arena of a context", static_cast<double>(costs.arenaBytes) / 1e6, "MB");
  cost("device memory of a context", static_cast<double>(costs.contextBytes) / 1e6, "MB");
  cost("device memory of an executable graph", static_cast<double>(costs.execBytes) / 1e6, "MB");
  return text;
}

} // namespace ogc::tools
