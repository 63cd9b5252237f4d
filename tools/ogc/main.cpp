//===- main.cpp - the ogc program -----------------------------------------===//
#include "compiler/bundle/BundleReader.h"
#include "tools/common/Commands.h"
#include "tools/ogc/CompileCommand.h"
#include "tools/ogc/RefitCommand.h"

#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  CLI::App app("ogc: compiles ONNX models to CUDA graphs and runs them", "ogc");
  ogc::tools::setUpProgram(app);
  int exitCode = 0;
  ogc::tools::addCompileCommand(app, exitCode);
  ogc::tools::addExplainCommand(app, exitCode);
  ogc::tools::addPlanCommand(app, exitCode);
  ogc::tools::addRefitCommand(app, exitCode);
  ogc::tools::addAccuracyCommand(app, exitCode);
  ogc::tools::CommandHooks hooks;
  hooks.printIr = [](const std::string &path) { return ogc::bundle::printBundleIr(path, llvm::outs()); };
  ogc::tools::addRuntimeCommands(app, exitCode, hooks);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Help is no error; every other parse error is a matter of usage.
    return app.exit(error) == 0 ? 0 : 2;
  }
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    llvm::outs().clear_error(); // else the stream ends the program when it is destroyed
    llvm::errs() << "error: cannot write to standard output\n";
    return 1;
  }
  return ogc::tools::finishOutput(exitCode);
}
