//===- PhaseRunner.h - runs the passes of a phase, with dumps and times ---===//
#ifndef OGC_PIPELINE_PHASERUNNER_H
#define OGC_PIPELINE_PHASERUNNER_H

#include "compiler/pipeline/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ogc {

/// Runs phases one after the other on a module: prints or dumps the IR after each as the options ask, and measures their wall
/// times.
class PhaseRunner {
public:
  explicit PhaseRunner(const CompileOptions &options) : options(options) {}

  /// Runs `addPasses`' passes over the module, then `ogc-verify-phase` for this phase. Fails when a pass fails.
  mlir::LogicalResult runPasses(Phase phase, mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> addPasses);

  /// Runs a phase that is no pass pipeline.
  mlir::LogicalResult runStep(Phase phase, llvm::function_ref<mlir::LogicalResult()> step);

  /// Writes the module's IR to `path`, or to standard output for "-"; large constants are elided.
  static mlir::LogicalResult writeIr(mlir::ModuleOp module, llvm::StringRef path);

  /// Prints the times of the phases to standard error.
  void printTimes() const;

private:
  mlir::LogicalResult dump(Phase phase, mlir::ModuleOp module);

  const CompileOptions &options;
  std::vector<std::pair<Phase, double>> seconds;
};

} // namespace ogc

#endif
