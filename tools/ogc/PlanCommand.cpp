//===- PlanCommand.cpp - ogc plan -----------------------------------------===//
#include "compiler/pipeline/BucketPlan.h"
#include "compiler/pipeline/Compiler.h"
#include "tools/ogc/CompileCommand.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace ogc::tools {

namespace {

struct PlanOptions {
  CompileOptions compile;
  std::string trace;
  uint64_t memory = 0; // 0: no limit
  uint64_t graphBytes = 2 << 20;
  double graphSeconds = 0.01;
  BucketLimits limits;
};

bool fail(const llvm::Twine &what) {
  llvm::errs() << "error: " << what << "\n";
  return false;
}

bool readTrace(const PlanOptions &options, llvm::ArrayRef<std::string> symbols, ShapeTrace &trace) {
  auto buffer = llvm::MemoryBuffer::getFile(options.trace, /*IsText=*/true);
  if (!buffer)
    return fail("cannot read '" + options.trace + "': " + buffer.getError().message());
  llvm::Expected<ShapeTrace> parsed = parseTrace((*buffer)->getBuffer(), options.trace);
  if (!parsed)
    return fail(llvm::toString(parsed.takeError()));
  for (const std::string &symbol : symbols)
    if (!llvm::is_contained(parsed->symbols, symbol))
      return fail("the trace has no column '" + symbol + "', a named dimension of the model");
  for (const std::string &column : parsed->symbols)
    if (!llvm::is_contained(symbols, column))
      return fail("the trace has a column '" + column + "', which is no named dimension of the model; " +
                  (symbols.empty() ? "it has none" : "these are '" + llvm::join(symbols, "', '") + "'"));
  trace = std::move(*parsed);
  return true;
}

/// The shape that needs most memory: the largest size of every symbol.
std::string largestShape(const ShapeTrace &trace) {
  std::string text;
  for (auto [i, symbol] : llvm::enumerate(trace.symbols)) {
    int64_t largest = 1;
    for (const ShapeTrace::Call &call : trace.calls)
      largest = std::max(largest, call.sizes[i]);
    text += (text.empty() ? "" : " ") + symbol + "=" + std::to_string(largest);
  }
  return text;
}

/// How many graphs the memory has room for, beside the weights and the arena of the largest one.
bool limitByMemory(PlanOptions &options, const ModelFacts &facts) {
  uint64_t fixed = static_cast<uint64_t>(facts.weightsBytes + facts.contextBytes);
  if (options.memory == 0)
    return true;
  if (options.memory < fixed + options.graphBytes)
    return fail(
        llvm::formatv("the largest shape needs {0} bytes of weights, {1} of buffers and {2} of a graph, --memory allows {3}",
                      facts.weightsBytes, facts.contextBytes, options.graphBytes, options.memory)
            .str());
  options.limits.buckets = std::min<uint64_t>(options.limits.buckets, (options.memory - fixed) / options.graphBytes);
  return true;
}

void print(const PlanOptions &options, const ShapeTrace &trace, const ModelFacts &facts, llvm::ArrayRef<bool> isSafe,
           const BucketPlan &plan) {
  for (auto [symbol, safe] : llvm::zip_equal(trace.symbols, isSafe))
    llvm::outs() << "symbol '" << symbol << "': " << (safe ? "may be padded" : "exact sizes, padding is not safe") << "\n";
  double calls = 0;
  for (const ShapeTrace::Call &call : trace.calls)
    calls += call.count;
  uint64_t count = plan.buckets.size();
  llvm::outs() << llvm::formatv("{0} graphs for {1} shapes of {2:f0} calls\n", count, trace.calls.size(), calls)
               << llvm::formatv("regret: {0:f1} % more work than graphs of exactly these shapes\n", (plan.work - 1) * 100)
               << llvm::formatv("memory: {0:f1} MB: weights {1:f1}, buffers {2:f1}, graphs {3:f1}\n",
                                (facts.weightsBytes + facts.contextBytes + count * options.graphBytes) / 1e6,
                                facts.weightsBytes / 1e6, facts.contextBytes / 1e6, count * options.graphBytes / 1e6)
               << llvm::formatv("load: about {0:f2} s for all graphs\n", static_cast<double>(count) * options.graphSeconds);
  for (const std::string &text : shapesOf(plan, trace.symbols))
    llvm::outs() << "--shapes '" << text << "'\n";
}

bool plan(PlanOptions options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  printDiagnostics(context);
  loadDialects(context);
  mlir::FailureOr<std::vector<std::string>> symbols = readSymbols(context, options.compile);
  ShapeTrace trace;
  if (mlir::failed(symbols) || !readTrace(options, *symbols, trace))
    return false;
  options.compile.shapes.push_back(largestShape(trace));
  mlir::FailureOr<ModelFacts> facts = examine(context, options.compile, /*withMemory=*/true);
  if (mlir::failed(facts) || !limitByMemory(options, *facts))
    return false;
  llvm::SmallVector<bool> isSafe;
  for (const std::string &symbol : trace.symbols)
    isSafe.push_back(llvm::any_of(facts->padding.getAsRange<mlir::DictionaryAttr>(), [&](mlir::DictionaryAttr answer) {
      return answer.getAs<mlir::StringAttr>("symbol").getValue() == symbol && answer.getAs<mlir::BoolAttr>("safe").getValue();
    }));
  llvm::Expected<BucketPlan> chosen = planBuckets(trace, isSafe, options.limits);
  if (!chosen)
    return fail(llvm::toString(chosen.takeError()));
  print(options, trace, *facts, isSafe, *chosen);
  return true;
}

} // namespace

void addPlanCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App *command = app.add_subcommand("plan", "proposes shapes to compile for a trace of calls");
  command->add_option("model", options->compile.modelPath, "the ONNX file")->required();
  command->add_option("--trace", options->trace, "CSV: a line of named dimensions (and 'count'), then a line a call")->required();
  command->add_option("--value", options->compile.values, "value of an input, as for 'compile'");
  command->add_option("--state", options->compile.states, "INPUT=OUTPUT that are one state, as for 'compile'");
  command->add_option("--memory", options->memory, "device memory for weights, buffers and graphs: 2GiB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  command->add_option("--max-graphs", options->limits.buckets, "most graphs")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4096u));
  command->add_option("--gain", options->limits.gain, "part of the work that a further graph must save")->capture_default_str();
  command->add_option("--graph-memory", options->graphBytes, "device memory of a loaded graph")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->capture_default_str();
  command->add_option("--graph-seconds", options->graphSeconds, "seconds to load a graph")->capture_default_str();
  command->add_option("--precision", options->compile.precision, "precision of storage and products")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}))
      ->capture_default_str();
  command->callback([options, &exitCode] { exitCode = plan(*options) ? 0 : 1; });
}

} // namespace ogc::tools
