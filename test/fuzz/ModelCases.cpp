//===- ModelCases.cpp - compiles damaged models ----------------------------===//
#include "test/fuzz/Cases.h"
#include "test/fuzz/Corpus.h"
#include "test/fuzz/Isolate.h"
#include "test/fuzz/ModelMutator.h"

#include "compiler/pipeline/Compiler.h"
#include "compiler/pipeline/Diagnostics.h"
#include "runtime_lib/src/driver/Driver.h"

#include <unistd.h>

namespace ogc::fuzz {

namespace {

/// The compiler may hold this much more than ten times the file.
constexpr uint64_t allowedBytes = uint64_t(256) << 20;

/// A `--shapes` text that gives every unknown dimension of the inputs a size, "" where none is unknown or a name cannot be
/// written.
std::string shapesFor(const onnx::ModelProto &model) {
  std::string text;
  for (const onnx::ValueInfoProto &input : model.graph().input()) {
    if (input.name().empty() || input.name().find_first_of("=, :") != std::string::npos)
      continue;
    std::string dims;
    bool isUnknown = false;
    for (const auto &dim : input.type().tensor_type().shape().dim()) {
      bool isKnown = dim.has_dim_value() && dim.dim_value() >= 0;
      isUnknown |= !isKnown;
      dims += (dims.empty() ? "" : "x") + std::to_string(isKnown ? dim.dim_value() : 2);
    }
    if (isUnknown)
      text += (text.empty() ? "" : ",") + input.name() + "=" + dims;
  }
  return text;
}

class ModelCases final : public Cases {
public:
  ModelCases(const std::string &corpus, uint64_t seed) : seed(seed) {
    for (const std::string &bytes : readCorpus(corpus, ".onnx"))
      if (onnx::ModelProto model; model.ParseFromString(bytes))
        models.push_back(std::move(model));
    mutator = std::make_unique<ModelMutator>(models);
  }

  size_t size() const override { return models.size(); }
  const char *suffix() const override { return ".onnx"; }

  std::string make(uint64_t index) const override {
    Random random = randomOf(index);
    return make(random);
  }

  bool run(uint64_t index) const override {
    Random random = randomOf(index);
    std::string bytes = make(random);
    std::string stem = "/dev/shm/ogc-fuzz-" + std::to_string(getpid());
    writeFile(stem + ".onnx", bytes);
    CompileOptions options;
    options.modelPath = stem + ".onnx";
    options.targets = {"cpu"};
    options.cpu = "x86-64-v3";
    options.threads = 1;
    if (random.oneIn(4))
      options.precision = random.oneIn(2) ? "fp16" : "bf16";
    if (onnx::ModelProto model; model.ParseFromString(bytes))
      if (std::string shapes = shapesFor(model); !shapes.empty())
        options.shapes = {shapes};
    bool isWhole = random.oneIn(10);
    if (isWhole)
      options.outputPath = stem + ".ogc";
    else
      options.stopAfter = Phase::Plan; // the IR goes to standard output, which is closed
    limitAllocations(10 * bytes.size() + allowedBytes);
    bool isAccepted = compileOne(options);
    if (isAccepted && isWhole)
      runBundle(stem + ".ogc");
    unlink((stem + ".onnx").c_str());
    unlink((stem + ".ogc").c_str());
    return isAccepted;
  }

private:
  Random randomOf(uint64_t index) const { return Random(seed * 0x100000001B3ull + index); }

  std::string make(Random &random) const {
    onnx::ModelProto model = random.pick(models);
    bool isRaw = random.oneIn(12);
    if (!isRaw || random.oneIn(2))
      mutator->mutate(model, random);
    std::string bytes = model.SerializePartialAsString();
    if (isRaw)
      damageBytes(random, bytes);
    return bytes;
  }

  /// Compiles; a failure without a diagnostic, or a diagnostic that is not one line, is a finding.
  static bool compileOne(const CompileOptions &options) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    size_t errors = 0;
    context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
        return;
      ++errors;
      std::string text = diagnosticText(diagnostic);
      if (text.empty())
        fail("a diagnostic without a text");
    });
    loadDialects(context);
    bool ok = mlir::succeeded(compile(context, options));
    if (ok == (errors != 0))
      fail(ok ? "compiled in spite of an error" : "refused without a reason");
    return ok;
  }

  static void runBundle(const std::string &path) {
    auto bundle = format::Bundle::open(path);
    if (!bundle.ok())
      fail("the compiler wrote a bundle that cannot be opened: " + bundle.status().message());
    auto engine = runtime::createEngine(bundle.value(), "cpu", {});
    if (!engine.ok())
      fail("the compiler wrote a bundle that cannot be loaded: " + engine.status().message());
    auto context = engine.value()->createContext(engine.value(), {});
    if (!context.ok())
      return; // too large for this process
    if (Status status = context.value()->launch(0); !status.ok())
      fail("the compiler wrote a bundle that cannot be run: " + status.message());
  }

  uint64_t seed;
  std::vector<onnx::ModelProto> models;
  std::unique_ptr<ModelMutator> mutator;
};

} // namespace

std::unique_ptr<Cases> modelCases(const std::string &corpus, uint64_t seed) { return std::make_unique<ModelCases>(corpus, seed); }

} // namespace ogc::fuzz
