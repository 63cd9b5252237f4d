//===- BenchCommand.cpp - ogc bench ---------------------------------------===//
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/Json.h"
#include "tools/common/Commands.h"
#include "tools/common/LoadBench.h"
#include "tools/common/Roofline.h"
#include "tools/common/Session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

namespace ogc::tools {

namespace {

struct BenchOptions : SessionOptions {
  unsigned iterations = 100, warmup = 5;
  bool json = false, load = false, roofline = false;
  std::string switchBy = "auto";
  double bandwidth = 0; // GB/s; 0: what is known of the device
  std::vector<std::pair<std::string, double>> peaks;
  unsigned replays = 60, top = 0;
};

using Clock = std::chrono::steady_clock;

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// The value below which `percent` of the sorted samples lie (nearest rank).
double percentile(const std::vector<double> &sorted, double percent) {
  size_t rank = static_cast<size_t>(std::ceil(percent / 100.0 * static_cast<double>(sorted.size())));
  return sorted[std::min(std::max<size_t>(rank, 1), sorted.size()) - 1];
}

struct Measurement {
  std::vector<double> deviceUs, wallUs; // sorted
  double loadMs = 0, prepareMs = 0, pipelinedUs = 0;
};

void writeTimes(format::JsonWriter &json, const char *key, const std::vector<double> &sorted) {
  json.key(key)
      .beginObject()
      .field("p50", percentile(sorted, 50))
      .field("p90", percentile(sorted, 90))
      .field("p99", percentile(sorted, 99));
  json.field("min", sorted.front()).field("max", sorted.back()).endObject();
}

void printJson(const Session &session, const BenchOptions &options, const std::string &deviceName, size_t executableNodes,
               const Measurement &m) {
  const fb::Manifest &manifest = session.bundle->manifest();
  const fb::Arena &arena = *manifest.arena();
  format::JsonWriter json;
  json.beginObject().field("bundle", options.bundle).field("device", options.device).field("device_name", deviceName);
  json.field("graph", session.graph->id()->string_view()).field("iterations", options.iterations);
  writeTimes(json, "device_us", m.deviceUs);
  writeTimes(json, "wall_us", m.wallUs);
  json.field("pipelined_us", m.pipelinedUs).field("load_ms", m.loadMs).field("prepare_ms", m.prepareMs);
  json.field("nodes", session.graph->nodes()->size()).field("executable_nodes", static_cast<uint64_t>(executableNodes));
  json.field("weights_bytes", arena.weights_bytes()).field("arena_bytes", format::contextLayout(arena).total);
  json.field("scratch_bytes", session.graph->scratch_bytes());
  bool isRandom = manifest.weights_mode() == fb::WeightsMode::None && options.weightsFile.empty();
  json.field("weights", isRandom ? "random" : "real").endObject();
  std::printf("%s\n", json.text().c_str());
}

void printText(const Session &session, const std::string &deviceName, size_t executableNodes, const Measurement &m) {
  std::printf("graph '%s' on %s: %u nodes (%zu on the device), %llu bytes of weights\n", session.graph->id()->c_str(),
              deviceName.c_str(), session.graph->nodes()->size(), executableNodes,
              static_cast<unsigned long long>(session.bundle->manifest().arena()->weights_bytes()));
  auto line = [](const char *what, const std::vector<double> &sorted) {
    std::printf("  %-10s p50 %10.1f us, p90 %10.1f us, p99 %10.1f us, min %10.1f us\n", what, percentile(sorted, 50),
                percentile(sorted, 90), percentile(sorted, 99), sorted.front());
  };
  line("device", m.deviceUs);
  line("wall", m.wallUs);
  std::printf("  pipelined      %10.1f us a run, load %.1f ms, first graph %.1f ms\n", m.pipelinedUs, m.loadMs, m.prepareMs);
}

/// Wall time, device time and back-to-back runs are measured in loops of their own, so that none disturbs another.
Status measure(const Session &session, const BenchOptions &options, runtime::Context &context, Measurement &out) {
  size_t graph = session.graphIndex;
  Clock::time_point begin = Clock::now();
  OGC_RETURN_IF_ERROR(context.prepare(graph));
  out.prepareMs = microsecondsSince(begin) / 1000;
  OGC_RETURN_IF_ERROR(uploadInputs(session, context));
  for (unsigned i = 0; i < options.warmup; ++i)
    OGC_RETURN_IF_ERROR(context.launch(graph));
  OGC_RETURN_IF_ERROR(context.synchronize());
  for (unsigned i = 0; i < options.iterations; ++i) {
    double microseconds = 0;
    OGC_RETURN_IF_ERROR(context.timeLaunch(graph, microseconds));
    out.deviceUs.push_back(microseconds);
  }
  if (!context.stream()) {
    // On the cpu the call is the run: measuring it again would only take time.
    out.wallUs = out.deviceUs;
  } else {
    for (unsigned i = 0; i < options.iterations; ++i) {
      begin = Clock::now();
      OGC_RETURN_IF_ERROR(context.launch(graph));
      OGC_RETURN_IF_ERROR(context.synchronize());
      out.wallUs.push_back(microsecondsSince(begin));
    }
    begin = Clock::now();
    for (unsigned i = 0; i < options.iterations; ++i)
      OGC_RETURN_IF_ERROR(context.launch(graph));
    OGC_RETURN_IF_ERROR(context.synchronize());
    out.pipelinedUs = microsecondsSince(begin) / options.iterations;
  }
  std::sort(out.deviceUs.begin(), out.deviceUs.end());
  std::sort(out.wallUs.begin(), out.wallUs.end());
  if (!context.stream())
    out.pipelinedUs = percentile(out.wallUs, 50);
  return Status();
}

Status bench(const BenchOptions &options) {
  Result<Session> session = openSession(options);
  if (!session.ok())
    return session.status();
  Measurement measurement;
  Clock::time_point begin = Clock::now();
  std::shared_ptr<runtime::Engine> engine;
  Result<std::unique_ptr<runtime::Context>> context = openContext(session.value(), options.device, options, &engine);
  if (!context.ok())
    return context.status();
  measurement.loadMs = microsecondsSince(begin) / 1000;
  OGC_RETURN_IF_ERROR(measure(session.value(), options, *context.value(), measurement));
  size_t executableNodes = context.value()->executableNodes(session.value().graphIndex);
  if (options.json)
    printJson(session.value(), options, engine->deviceName(), executableNodes, measurement);
  else
    printText(session.value(), engine->deviceName(), executableNodes, measurement);
  return Status();
}

Status benchLoad(const BenchOptions &options) {
  LoadBenchOptions load{options.bundle, options.device, engineOptions(options), options.iterations};
  load.engine.execSwitch = options.switchBy == "update"       ? runtime::ExecSwitch::Update
                           : options.switchBy == "parameters" ? runtime::ExecSwitch::Parameters
                                                              : runtime::ExecSwitch::Automatic;
  Result<LoadCosts> costs = measureLoad(load);
  if (!costs.ok())
    return costs.status();
  std::string text = options.json ? loadCostsJson(load, costs.value()) + "\n" : loadCostsText(costs.value());
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status();
}

Status benchRoofline(const BenchOptions &options) {
  Result<Session> session = openSession(options);
  if (!session.ok())
    return session.status();
  std::shared_ptr<runtime::Engine> engine;
  Result<std::unique_ptr<runtime::Context>> context = openContext(session.value(), options.device, options, &engine);
  if (!context.ok())
    return context.status();
  RooflineOptions roofline{options.replays, knownPeaks(engine->deviceName())};
  if (options.bandwidth > 0)
    roofline.peaks.bytes = 1e9 * options.bandwidth;
  for (const auto &[type, peak] : options.peaks) {
    constexpr std::string_view types[] = {"float16", "bfloat16", "tf32", "float32", "float64"};
    if (std::find(std::begin(types), std::end(types), type) == std::end(types))
      return Status(Code::InvalidArgument,
                    "--peak: products are not done in '" + type + "', expected float16, bfloat16, tf32, float32 or float64");
    roofline.peaks.operations[type] = 1e12 * peak;
  }
  Result<Roofline> measured = measureRoofline(session.value(), *context.value(), roofline);
  if (!measured.ok())
    return measured.status();
  std::string text = options.json
                         ? rooflineJson(session.value(), options.device, engine->deviceName(), measured.value(), roofline) + "\n"
                         : rooflineText(session.value(), engine->deviceName(), measured.value(), options.top);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status();
}

void addRooflineOptions(CLI::App &command, BenchOptions &options, CLI::Option *load) {
  CLI::Option *roofline = command.add_flag("--roofline", options.roofline,
                                           "measures instead the time of each node in the graph, against what bytes and "
                                           "operations need on this device");
  roofline->excludes(load);
  command.add_option("--replays", options.replays, "of --roofline, for each prefix of the graph, or each node on the cpu")
      ->check(CLI::Range(2u, 1u << 20))
      ->capture_default_str()
      ->needs(roofline);
  command.add_option("--top", options.top, "nodes that --roofline shows, 0: all")->capture_default_str()->needs(roofline);
  command.add_option("--bandwidth", options.bandwidth, "GB/s of the device's memory, for --roofline; default: known devices")
      ->needs(roofline);
  command
      .add_option(
          "--peak", options.peaks,
          "TYPE TFLOPS of matrix products, for --roofline (float16, bfloat16, tf32, float32, float64), any number of times")
      ->needs(roofline);
}

} // namespace

void addBenchCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<BenchOptions>();
  // Times do not depend on the values of weights, so missing ones are no reason to stop.
  options->randomWeights = true;
  CLI::App *command =
      app.add_subcommand("bench", "measures the time of a run; weights that the bundle does not hold are made up");
  addSessionOptions(*command, *options);
  command->add_option("--iterations", options->iterations, "runs to measure")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 24));
  command->add_option("--warmup", options->warmup, "runs before")->capture_default_str();
  command->add_flag("--json", options->json, "prints JSON");
  CLI::Option *load = command->add_flag(
      "--load", options->load, "measures instead what loading, the first result, switching between graphs and rebinding cost");
  command->add_option("--switch-by", options->switchBy, "how an executable graph is updated to another graph")
      ->check(CLI::IsMember({"auto", "parameters", "update"}))
      ->capture_default_str()
      ->needs(load);
  addRooflineOptions(*command, *options, load);
  command->callback([options, &exitCode] {
    runAction(exitCode, [&] {
      return options->load ? benchLoad(*options) : options->roofline ? benchRoofline(*options) : bench(*options);
    });
  });
}

} // namespace ogc::tools
