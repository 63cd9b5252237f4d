//===- VerifyCommand.cpp - ogc verify -------------------------------------===//
//
// The reference is always the cpu target in schedule order on one thread. On the cpu device the proof is about plan and edges:
// other orders, poisoned scratch and more threads must give the same bits. On a GPU the values are compared within a tolerance,
// and replays with each other bit by bit.
//
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/Json.h"
#include "tools/common/Commands.h"
#include "tools/common/Compare.h"
#include "tools/common/NodeCheck.h"
#include "tools/common/RandomCalls.h"
#include "tools/common/Session.h"

#include <cstdio>
#include <memory>
#include <optional>

namespace ogc::tools {

namespace {

using Outputs = std::vector<std::vector<std::byte>>;

struct VerifyOptions : SessionOptions {
  unsigned randomOrders = 0, replays = 1, randomCalls = 0;
  bool poison = false, nodes = false, newInputs = false, json = false;
  double tolerance = 0; // 0: by precision
  double seconds = 0;   // of random calls; 0: no limit
};

/// One check: what, whether it held, and a number or a reason.
struct Check {
  std::string what;
  bool passed;
  std::string detail;
  std::optional<double> error;
};

class Verifier {
public:
  Verifier(const VerifyOptions &options, const Session &session)
      : options_(options), session_(session),
        tolerance_(options.tolerance > 0 ? options.tolerance : defaultTolerance(session.bundle->manifest())) {}

  Status run();
  const std::vector<Check> &checks() const { return checks_; }
  double tolerance() const { return tolerance_; }

private:
  /// One run; the scratch and the outputs are filled with 0xFF before where `poison`.
  Result<Outputs> runOnce(runtime::Context &context, bool poison) { return runOnce(session_, context, poison); }
  Result<Outputs> runOnce(const Session &session, runtime::Context &context, bool poison);
  Status runInto(const Session &session, runtime::Context &context, bool poison, Outputs &outputs);
  Status checkNewInputs(runtime::Context &context, runtime::Context &cpu, const Outputs &before);
  Status checkOrders(runtime::Context &context);
  Status checkSame(runtime::Context &context, const Outputs &expected, unsigned times, bool poison, const std::string &what);
  void compareOutputs(const Outputs &actual, const Outputs &expected, const std::string &prefix);
  void requireEqual(const Outputs &actual, const Outputs &expected, const std::string &what);

  const VerifyOptions &options_;
  const Session &session_;
  double tolerance_;
  Outputs reference_;
  std::vector<Check> checks_;
};

Result<Outputs> Verifier::runOnce(const Session &session, runtime::Context &context, bool poison) {
  Outputs outputs;
  OGC_RETURN_IF_ERROR(runInto(session, context, poison, outputs));
  return outputs;
}

Status Verifier::runInto(const Session &session, runtime::Context &context, bool poison, Outputs &outputs) {
  OGC_RETURN_IF_ERROR(resetAndUpload(session, context));
  if (poison) {
    OGC_RETURN_IF_ERROR(context.fill(fb::Section::Scratch, 0xFF));
    OGC_RETURN_IF_ERROR(context.fill(fb::Section::Outputs, 0xFF));
  }
  OGC_RETURN_IF_ERROR(context.launch(session_.graphIndex));
  return downloadOutputs(session_, context, outputs);
}

void Verifier::requireEqual(const Outputs &actual, const Outputs &expected, const std::string &what) {
  const auto &bindings = *session_.graph->outputs();
  for (unsigned i = 0; i < bindings.size(); ++i) {
    if (actual[i] == expected[i])
      continue;
    Difference difference = compare(bindings.Get(i)->type(), actual[i], expected[i]);
    checks_.push_back({what,
                       false,
                       "output '" + bindings.Get(i)->name()->str() + "' differs in " + std::to_string(difference.mismatches) +
                           " of " + std::to_string(difference.count) + " elements",
                       {}});
    return;
  }
}

Status Verifier::checkSame(runtime::Context &context, const Outputs &expected, unsigned times, bool poison,
                           const std::string &what) {
  size_t before = checks_.size();
  Outputs again;
  for (unsigned i = 0; i < times && checks_.size() == before; ++i) {
    OGC_RETURN_IF_ERROR(runInto(session_, context, poison, again));
    requireEqual(again, expected, what);
  }
  if (checks_.size() == before)
    checks_.push_back({what, true, "same bits", {}});
  return Status();
}

Status Verifier::checkOrders(runtime::Context &context) {
  std::string what = std::to_string(options_.randomOrders) + " random orders";
  size_t before = checks_.size();
  Outputs outputs;
  for (unsigned i = 0; i < options_.randomOrders && checks_.size() == before; ++i) {
    uint64_t seed = options_.seed + i + 1;
    OGC_RETURN_IF_ERROR(context.setOrder(seed));
    OGC_RETURN_IF_ERROR(runInto(session_, context, options_.poison, outputs));
    requireEqual(outputs, reference_, "random order of seed " + std::to_string(seed));
  }
  if (checks_.size() == before)
    checks_.push_back({what, true, "same bits", {}});
  return context.setOrder(0);
}

/// Writes other inputs into the same buffers: the next replay must see them, and nothing of the run before.
Status Verifier::checkNewInputs(runtime::Context &context, runtime::Context &cpu, const Outputs &before) {
  Session changed = session_;
  const auto &bindings = *session_.graph->inputs();
  for (unsigned i = 0; i < bindings.size(); ++i)
    changed.inputs[i] = drawInput(*bindings.Get(i), options_.seed + 1000 + i, options_.intRange);
  Result<Outputs> expected = runOnce(changed, cpu, /*poison=*/false);
  if (!expected.ok())
    return expected.status();
  Result<Outputs> actual = runOnce(changed, context, options_.poison);
  if (!actual.ok())
    return actual.status();
  checks_.push_back(
      {"new inputs", actual.value() != before, actual.value() != before ? "other outputs" : "the outputs are the old ones", {}});
  compareOutputs(actual.value(), expected.value(), "new inputs, ");
  return Status();
}

void Verifier::compareOutputs(const Outputs &actual, const Outputs &expected, const std::string &prefix) {
  const auto &bindings = *session_.graph->outputs();
  for (unsigned i = 0; i < bindings.size(); ++i) {
    const fb::Binding &binding = *bindings.Get(i);
    Difference difference = compare(binding.type(), actual[i], expected[i]);
    std::string what = prefix + "output '" + binding.name()->str() + "'";
    if (!format::isFloat(binding.type())) {
      checks_.push_back({what,
                         difference.mismatches == 0,
                         std::to_string(difference.mismatches) + " of " + std::to_string(difference.count) + " elements differ",
                         {}});
      continue;
    }
    char detail[160];
    std::snprintf(detail, sizeof detail, "relative L2 error %.3g, largest difference %.3g at %zu", difference.relativeL2,
                  difference.largest, difference.firstIndex);
    checks_.push_back({what, difference.relativeL2 <= tolerance_, detail, difference.relativeL2});
  }
}

Status Verifier::run() {
  SessionOptions referenceOptions = options_;
  referenceOptions.threads = 1;
  Result<std::unique_ptr<runtime::Context>> cpu = openContext(session_, "cpu", referenceOptions);
  if (!cpu.ok())
    return cpu.status().withContext("reference");
  Result<Outputs> reference = runOnce(*cpu.value(), /*poison=*/false);
  if (!reference.ok())
    return reference.status();
  reference_ = std::move(reference.value());

  Result<std::unique_ptr<runtime::Context>> context = openContext(session_, options_.device, options_);
  if (!context.ok())
    return context.status();
  Result<Outputs> outputs = runOnce(*context.value(), options_.poison);
  if (!outputs.ok())
    return outputs.status();
  bool onCpu = options_.device == "cpu";
  std::string poisoned = options_.poison ? " with poisoned scratch" : "";
  if (onCpu)
    OGC_RETURN_IF_ERROR(checkSame(*context.value(), reference_, 1, options_.poison, "schedule order" + poisoned));
  else
    compareOutputs(outputs.value(), reference_, "");
  if (options_.poison && !onCpu)
    OGC_RETURN_IF_ERROR(checkSame(*context.value(), outputs.value(), 1, /*poison=*/false, "without poisoned scratch"));
  if (options_.replays > 1)
    OGC_RETURN_IF_ERROR(checkSame(*context.value(), outputs.value(), options_.replays - 1, options_.poison,
                                  std::to_string(options_.replays) + " replays"));
  if (options_.randomOrders != 0)
    OGC_RETURN_IF_ERROR(checkOrders(onCpu ? *context.value() : *cpu.value()));
  if (options_.newInputs)
    OGC_RETURN_IF_ERROR(checkNewInputs(*context.value(), *cpu.value(), outputs.value()));
  if (!options_.nodes)
    return Status();
  Result<std::vector<NodeDifference>> nodes = checkNodes(session_, *context.value(), *cpu.value(), tolerance_);
  if (!nodes.ok())
    return nodes.status();
  for (const NodeDifference &node : nodes.value())
    checks_.push_back({node.node, node.passed, node.detail, node.relativeL2});
  return Status();
}

void printJson(const Verifier &verifier, const VerifyOptions &options, bool passed) {
  format::JsonWriter json;
  json.beginObject().field("bundle", options.bundle).field("device", options.device).field("tolerance", verifier.tolerance());
  json.field("passed", passed).key("checks").beginArray();
  for (const Check &check : verifier.checks()) {
    json.beginObject().field("what", check.what).field("passed", check.passed).field("detail", check.detail);
    if (check.error)
      json.field("relative_l2", *check.error);
    json.endObject();
  }
  json.endArray().endObject();
  std::printf("%s\n", json.text().c_str());
}

/// All graphs of the bundle in one context.
Status verifyCalls(const VerifyOptions &options) {
  Result<CallReport> result = callRandomly(options, options.randomCalls, options.seconds, options.device != "cpu");
  if (!result.ok())
    return result.status();
  const CallReport &report = result.value();
  bool isRight = report.failure.empty();
  std::printf("%s  %zu random calls of %zu graphs: %s\n", isRight ? "ok  " : "FAIL", report.calls, report.graphs,
              isRight ? "the bits of each graph alone" : report.failure.c_str());
  if (report.calls >= 10000) // of fewer calls, what allocators keep hides it
    std::printf("      memory behind the first tenth: host %+lld KiB, device %+lld KiB\n",
                static_cast<long long>(report.hostGrowth / 1024), static_cast<long long>(report.deviceGrowth / 1024));
  if (options.device != "cpu") {
    const runtime::ExecStats &stats = report.execStats;
    std::printf("      %.0f us a call; executable graphs: %zu of %zu live, %llu instantiated, %llu switched, %llu refused, %llu "
                "evicted\n",
                1e6 * report.secondsPerCall, stats.live, stats.capacity, static_cast<unsigned long long>(stats.instantiated),
                static_cast<unsigned long long>(stats.switched), static_cast<unsigned long long>(stats.refused),
                static_cast<unsigned long long>(stats.evicted));
    Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options.bundle);
    double tolerance = options.tolerance > 0 ? options.tolerance : bundle.ok() ? defaultTolerance(bundle.value()->manifest()) : 0;
    bool isClose = report.largestError <= tolerance;
    std::printf("%s  against the cpu target: relative L2 error %.3g in graph '%s'\n", isClose ? "ok  " : "FAIL",
                report.largestError, report.largestGraph.c_str());
    isRight &= isClose;
  }
  return isRight ? Status() : Status(Code::DataLoss, "random calls failed");
}

Status verify(const VerifyOptions &options) {
  if (options.randomCalls != 0)
    return verifyCalls(options);
  Result<Session> session = openSession(options);
  if (!session.ok())
    return session.status();
  Verifier verifier(options, session.value());
  OGC_RETURN_IF_ERROR(verifier.run());
  size_t failed = 0;
  for (const Check &check : verifier.checks())
    failed += !check.passed;
  if (options.json)
    printJson(verifier, options, failed == 0);
  else
    for (const Check &check : verifier.checks())
      std::printf("%s  %s: %s\n", check.passed ? "ok  " : "FAIL", check.what.c_str(), check.detail.c_str());
  if (failed == 0)
    return Status();
  return Status(Code::DataLoss, std::to_string(failed) + " of " + std::to_string(verifier.checks().size()) + " checks failed");
}

} // namespace

void addVerifyCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<VerifyOptions>();
  options->randomWeights = true;
  CLI::App *command =
      app.add_subcommand("verify", "compares a device with the cpu target, other orders and replays with the first");
  addSessionOptions(*command, *options);
  CLI::Option *calls = command->add_option("--random-calls", options->randomCalls,
                                           "calls random graphs of the bundle this many times in one context; each must give the "
                                           "bits it gives alone");
  command->add_option("--seconds", options->seconds, "ends the random calls after this time, with fewer calls")->needs(calls);
  // What checks one graph; inputs of the calls are random.
  calls->excludes("--graph")->excludes("--input");
  command
      ->add_option("--random-orders", options->randomOrders,
                   "random topological orders to run on the cpu, which must give the same bits")
      ->excludes(calls);
  command->add_option("--replays", options->replays, "runs on the device, which must give the same bits")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 24))
      ->excludes(calls);
  command->add_flag("--poison", options->poison, "fills scratch and outputs with NaN patterns before each run")->excludes(calls);
  command->add_flag("--nodes", options->nodes, "also runs the nodes one by one on equal inputs and compares what each writes")
      ->excludes(calls);
  command
      ->add_flag("--new-inputs", options->newInputs,
                 "then writes other random inputs into the same buffers and compares the next run")
      ->excludes(calls);
  command->add_option("--tolerance", options->tolerance,
                      "largest relative L2 error of a float output against the cpu target; by default 1e-4 for fp32, 5e-3 for "
                      "tf32, 2e-2 for 16 bits");
  command->add_flag("--json", options->json, "prints JSON")->excludes(calls);
  command->callback([options, &exitCode] { runAction(exitCode, [&] { return verify(*options); }); });
}

} // namespace ogc::tools
