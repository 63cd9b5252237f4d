//===- CompileCommand.h - ogc compile -------------------------------------===//
#ifndef OGC_TOOLS_OGC_COMPILECOMMAND_H
#define OGC_TOOLS_OGC_COMPILECOMMAND_H

#include "compiler/pipeline/Options.h"
#include "mlir/IR/MLIRContext.h"
#include <CLI/CLI.hpp>

namespace ogc::tools {

/// Prints diagnostics of a context as lines on standard error, one each.
void printDiagnostics(mlir::MLIRContext &context);

/// Adds `explain` to `app`: why a named dimension may be padded, or not.
void addExplainCommand(CLI::App &app, int &exitCode);

/// Adds `plan` to `app`: shapes to compile for a trace of calls.
void addPlanCommand(CLI::App &app, int &exitCode);

/// Adds `accuracy` to `app`: how far a model in another precision is from f32.
void addAccuracyCommand(CLI::App &app, int &exitCode);

/// Adds `compile` to the program; `exitCode` is set when it ran.
void addCompileCommand(CLI::App &app, int &exitCode);

/// Adds the options that change what a bundle does. They are what the provenance of a bundle records, and what `ogc refit`
/// compiles by.
void addResultOptions(CLI::App &command, CompileOptions &options);

/// Compiles, and prints diagnostics as lines on standard error; the exit code.
int runCompile(const CompileOptions &options);

} // namespace ogc::tools

#endif
