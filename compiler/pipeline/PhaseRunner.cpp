//===- PhaseRunner.cpp - runs the passes of a phase, with dumps and times -===//
#include "compiler/pipeline/PhaseRunner.h"

#include "compiler/passes/verify/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>

namespace ogc {

using namespace mlir;

namespace {

/// Adds the time since its construction to a list when it goes out of scope.
class Stopwatch {
public:
  Stopwatch(Phase phase, std::vector<std::pair<Phase, double>> &seconds) : phase(phase), seconds(seconds) {}
  ~Stopwatch() {
    if (seconds.empty() || seconds.back().first != phase)
      seconds.push_back({phase, 0.0});
    seconds.back().second += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

private:
  Phase phase;
  std::vector<std::pair<Phase, double>> &seconds;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

OpPrintingFlags printingFlags() { return OpPrintingFlags().elideLargeElementsAttrs(16).elideLargeResourceString(64); }

} // namespace

LogicalResult PhaseRunner::runPasses(Phase phase, ModuleOp module, llvm::function_ref<void(OpPassManager &)> addPasses) {
  {
    Stopwatch stopwatch(phase, seconds);
    PassManager manager(module.getContext());
    if (options.printIrAfterAll)
      manager.enableIRPrinting([](Pass *, Operation *) { return false; }, [](Pass *, Operation *) { return true; },
                               /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/true, /*printAfterOnlyOnFailure=*/false,
                               llvm::errs(), printingFlags());
    addPasses(manager);
    VerifyPhaseOptions verify;
    verify.phase = phaseName(phase).str();
    manager.addPass(createVerifyPhase(verify));
    if (failed(manager.run(module)))
      return failure();
  }
  return dump(phase, module);
}

LogicalResult PhaseRunner::runStep(Phase phase, llvm::function_ref<LogicalResult()> step) {
  Stopwatch stopwatch(phase, seconds);
  return step();
}

LogicalResult PhaseRunner::writeIr(ModuleOp module, llvm::StringRef path) {
  std::error_code error;
  auto fail = [&] {
    return emitError(UnknownLoc::get(module.getContext())) << "cannot write '" << path << "': " << error.message();
  };
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_Text);
  if (error)
    return fail();
  module.print(file.os(), printingFlags());
  file.os() << "\n";
  if (path != "-") { // of standard output the program itself says so at its end
    file.os().flush();
    error = file.os().error();
    file.os().clear_error(); // a stream that is destroyed with an error ends the program
  }
  if (error)
    return fail(); // the file goes away
  file.keep();
  return success();
}

LogicalResult PhaseRunner::dump(Phase phase, ModuleOp module) {
  if (options.dumpDir.empty())
    return success();
  llvm::sys::fs::create_directories(options.dumpDir);
  llvm::SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, llvm::formatv("{0}-{1}.mlir", static_cast<int>(phase) + 1, phaseName(phase)).str());
  return writeIr(module, path);
}

void PhaseRunner::printTimes() const {
  double total = 0;
  for (auto [phase, time] : seconds) {
    llvm::errs() << llvm::formatv("{0,-12} {1,8:f3} s\n", phaseName(phase), time);
    total += time;
  }
  llvm::errs() << llvm::formatv("{0,-12} {1,8:f3} s\n", "total", total);
}

} // namespace ogc
