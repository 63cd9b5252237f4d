//===- RandomCalls.cpp - the graphs of a bundle called in random order ----===//
#include "tools/common/RandomCalls.h"

#include "runtime_lib/src/driver/Random.h"
#include "tools/common/Compare.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace ogc::tools {

namespace {

using Outputs = std::vector<std::vector<std::byte>>;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Sets of inputs of each graph: a call must see its own, not those of the call before.
constexpr uint64_t inputSets = 3;

/// One graph with one set of inputs, and what it gives when it runs alone.
struct Call {
  Session session;
  Outputs expected;
};

Status run(const Session &session, runtime::Context &context, Outputs &outputs) {
  OGC_RETURN_IF_ERROR(uploadInputs(session, context));
  OGC_RETURN_IF_ERROR(context.launch(session.graphIndex));
  return downloadOutputs(session, context, outputs);
}

Session makeSession(const std::shared_ptr<const format::Bundle> &bundle, size_t graph, uint64_t set,
                    const SessionOptions &options) {
  Session session;
  session.bundle = bundle;
  session.graphIndex = graph;
  session.graph = bundle->manifest().graphs()->Get(static_cast<unsigned>(graph));
  for (const fb::Binding *binding : *session.graph->inputs())
    session.inputs.push_back(drawInput(*binding, options.seed + 1000 * set, options.intRange));
  return session;
}

struct Memory {
  int64_t host = 0, device = 0;
};

/// Resident memory of this process (0 where the system does not tell) and memory in use on the device.
Memory memoryInUse(const runtime::Engine &engine) {
  Memory memory;
  if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
    long total = 0, resident = 0;
    if (std::fscanf(file, "%ld %ld", &total, &resident) == 2)
      memory.host = int64_t(resident) * sysconf(_SC_PAGESIZE);
    std::fclose(file);
  }
  if (Result<uint64_t> bytes = engine.deviceBytesInUse(); bytes.ok())
    memory.device = static_cast<int64_t>(bytes.value());
  return memory;
}

Status compareWithCpu(const Call &call, runtime::Context &cpu, CallReport &report) {
  Outputs expected;
  OGC_RETURN_IF_ERROR(run(call.session, cpu, expected));
  for (unsigned i = 0; i < call.expected.size(); ++i) {
    Difference difference = compare(call.session.graph->outputs()->Get(i)->type(), call.expected[i], expected[i]);
    if (difference.relativeL2 >= report.largestError) {
      report.largestError = difference.relativeL2;
      report.largestGraph = call.session.graph->id()->str();
    }
  }
  return Status();
}

} // namespace

Result<CallReport> callRandomly(const SessionOptions &options, size_t calls, double seconds, bool againstCpu) {
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options.bundle);
  if (!bundle.ok())
    return bundle.status();
  if (bundle.value()->manifest().arena()->state_bytes() != 0)
    return Status(Code::InvalidArgument, "the graphs have states, so their results depend on the calls before");
  auto engine = runtime::createEngine(bundle.value(), options.device, engineOptions(options));
  if (!engine.ok())
    return engine.status();
  std::unique_ptr<runtime::Context> cpu;
  if (againstCpu) {
    Result<std::shared_ptr<runtime::Engine>> cpuEngine = runtime::createEngine(bundle.value(), "cpu", engineOptions(options));
    auto context = cpuEngine.ok() ? cpuEngine.value()->createContext(cpuEngine.value(), {})
                                  : Result<std::unique_ptr<runtime::Context>>(cpuEngine.status());
    if (!context.ok())
      return context.status().withContext("reference");
    cpu = std::move(context.value());
  }

  CallReport report;
  report.graphs = bundle.value()->manifest().graphs()->size();
  std::vector<Call> known;
  for (size_t graph = 0; graph < report.graphs; ++graph) {
    auto alone = engine.value()->createContext(engine.value(), {});
    if (!alone.ok())
      return alone.status();
    for (uint64_t set = 0; set < inputSets; ++set) {
      Call call{makeSession(bundle.value(), graph, set, options), {}};
      OGC_RETURN_IF_ERROR(run(call.session, *alone.value(), call.expected));
      if (cpu && set == 0)
        OGC_RETURN_IF_ERROR(compareWithCpu(call, *cpu, report));
      known.push_back(std::move(call));
    }
  }

  auto context = engine.value()->createContext(engine.value(), {});
  if (!context.ok())
    return context.status();
  runtime::Random random(options.seed + 1);
  Clock::time_point begin = Clock::now();
  Outputs outputs;
  Memory settled;
  for (; report.calls < calls && !known.empty(); ++report.calls) {
    if (report.calls == calls / 10)
      settled = memoryInUse(*engine.value());
    const Call &call = known[random.below(known.size())];
    if (seconds > 0 && secondsSince(begin) > seconds)
      break;
    OGC_RETURN_IF_ERROR(run(call.session, *context.value(), outputs));
    if (outputs == call.expected)
      continue;
    report.failure = "call " + std::to_string(report.calls) + ", of graph '" + call.session.graph->id()->str() +
                     "', has other bits than the graph alone";
    break;
  }
  report.secondsPerCall = secondsSince(begin) / static_cast<double>(std::max<size_t>(report.calls, 1));
  report.execStats = engine.value()->execStats();
  if (report.calls > calls / 10) {
    Memory last = memoryInUse(*engine.value());
    report.hostGrowth = last.host - settled.host;
    report.deviceGrowth = last.device - settled.device;
  }
  return report;
}

} // namespace ogc::tools
