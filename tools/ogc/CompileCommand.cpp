//===- CompileCommand.cpp - ogc compile -----------------------------------===//
#include "tools/ogc/CompileCommand.h"

#include "compiler/pipeline/CodeGeneration.h"
#include "compiler/pipeline/Compiler.h"
#include "compiler/pipeline/Diagnostics.h"
#include "compiler/pipeline/Pipelines.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace ogc::tools {

namespace {

/// Prints a diagnostic as one line.
void printDiagnostic(mlir::Diagnostic &diagnostic) {
  llvm::StringRef severity = "error";
  if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
    severity = "warning";
  else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark)
    severity = "remark";
  else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Note)
    return; // notes show IR, which is of use to people who work on the compiler: ogc-opt prints them
  llvm::errs() << severity << ": " << diagnosticText(diagnostic) << "\n";
}

} // namespace

int runCompile(const CompileOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  printDiagnostics(context);
  loadDialects(context);
  return mlir::succeeded(compile(context, options)) ? 0 : 1;
}

void addResultOptions(CLI::App &command, CompileOptions &options) {
  command.add_option("--shapes", options.shapes,
                     "shapes of graphs: 'input=1x3x224x224', 'b8: x=8x3', 'batch=1,2,4 seq=32..512:x2' (product), @buckets.yaml");
  command.add_option("--value", options.values,
                     "value of an input, which the bundle then lacks: 'axes=[0, 2]', 'keep=true' or 'sizes=@FILE' with a tensor");
  command.add_option("--target", options.targets, "targets: cpu, sm_80, sm_90, …")
      ->delimiter(',')
      ->check([](const std::string &target) { return refuseTarget(target); })
      ->capture_default_str();
  command.add_option("--precision", options.precision, "precision of storage and products")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}))
      ->capture_default_str();
  command.add_option("--gemm", options.gemm, "provider of matrix products on CUDA")
      ->check(CLI::IsMember({"own", "cublaslt"}))
      ->capture_default_str();
  command.add_option("--state", options.states,
                     "INPUT=OUTPUT: an input and an output of one shape that are one state of the context, updated in place");
  command
      .add_option("--memory", options.memoryBytes,
                  "most bytes of a context: state, inputs, outputs and scratch (2GiB, 300MB, …); branches that would need more "
                  "do not run side by side")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  command.add_flag("--serial", options.serial, "one chain of nodes in schedule order");
  std::vector<std::string> passes;
  for (llvm::StringRef pass : optionalPasses())
    passes.push_back(pass.str());
  command.add_option("--disable", options.disabled, "optimizations to leave out, to see what each gives")
      ->delimiter(',')
      ->check(CLI::IsMember(passes));
  command.add_flag_callback("--no-pdl", [&options] { options.pdl = false; }, "full edges only, no programmatic ones");
}

void printDiagnostics(mlir::MLIRContext &context) {
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) { printDiagnostic(diagnostic); });
}

void addCompileCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<CompileOptions>();
  auto stopAfter = std::make_shared<std::string>();
  CLI::App *command = app.add_subcommand("compile", "compile an ONNX model to a bundle");
  command->add_option("model", options->modelPath, "the ONNX file")->required();
  command->add_option("-o,--output", options->outputPath, "the bundle; default: the model's name with .ogc");
  addResultOptions(*command, *options);
  command->add_option("--weights", options->weights, "where the weights go")
      ->check(CLI::IsMember({"inline", "external", "none"}))
      ->capture_default_str();
  command->add_option("--cpu", options->cpu, "processor of the cpu target: host, or an LLVM name such as x86-64-v3")
      ->capture_default_str();
  command->add_option("--tuning", options->tuning, "tuning table for CUDA kernels, before the shipped one; none: rules alone");
  command->add_flag("--tuning-candidates", options->tuningCandidates,
                    "also compile all choices of each CUDA kernel, for 'tune' to measure");
  command->add_option("--threads", options->threads, "threads of the compiler, 0: one a core")->capture_default_str();
  command->add_option("--cache-dir", options->cacheDir,
                      "folder of compiled kernels; default: $OGC_CACHE_DIR/kernels or ~/.cache/ogc/kernels");
  std::vector<std::string> names;
  for (Phase phase : phases)
    names.push_back(phaseName(phase).str());
  command->add_option("--stop-after", *stopAfter, "stop after a phase and print its IR (to the output, if given)")
      ->check(CLI::IsMember(names));
  command->add_flag("--print-ir-after-all", options->printIrAfterAll, "print the IR after each pass to standard error");
  command->add_flag("--timing", options->timing, "print the time of each phase to standard error");
  command->add_option("--dump-dir", options->dumpDir, "write the IR after each phase and the kernels' text to this folder");
  command->callback([options, stopAfter, &exitCode] {
    options->stopAfter = parsePhase(*stopAfter);
    exitCode = runCompile(*options);
  });
}

} // namespace ogc::tools
