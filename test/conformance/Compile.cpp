//===- Compile.cpp - the compiler of ogc-conformance ----------------------===//
#include "compiler/pipeline/Compiler.h"
#include "test/conformance/Execute.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <unistd.h>

namespace ogc::conformance {

static bool compileTrial(mlir::MLIRContext &context, const Trial &trial, const Settings &settings, const std::string &bundle,
                         const std::vector<std::string> &values, std::string &errors) {
  CompileOptions options;
  options.modelPath = trial.modelPath;
  options.outputPath = bundle;
  options.targets = settings.targets;
  options.precision = settings.precision;
  options.cacheDir = settings.cacheDir;
  options.threads = 1;
  options.values = values;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      errors += (errors.empty() ? "" : "\n") + diagnostic.str();
    return mlir::success();
  });
  return mlir::succeeded(compile(context, options));
}

/// Pays once, before the processes are forked, for what every compilation sets up: schemas, passes, the code generator.
static void warmUp(const Compile &compile, const Cases &cases, const Settings &settings) {
  Settings warm = settings;
  warm.targets = {"cpu"};
  warm.device = "cpu";
  warm.keep = false;
  Case none{"warmup", 0, 0, {}, {}};
  int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
  dup2(null, STDOUT_FILENO);
  (void)execute(compile, {&none, "warmup", cases.warmUpModel()}, warm);
  llvm::outs().flush();
  dup2(out, STDOUT_FILENO);
}

Compile makeCompile(const Cases &cases, const Settings &settings) {
  auto context = std::make_shared<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  loadDialects(*context);
  Compile compile = [context](const Trial &trial, const Settings &used, const std::string &bundle,
                              const std::vector<std::string> &values,
                              std::string &errors) { return compileTrial(*context, trial, used, bundle, values, errors); };
  warmUp(compile, cases, settings);
  return compile;
}

} // namespace ogc::conformance
