//===- CompileCommand.h - ogc compile -------------------------------------===//
#ifndef OGC_TOOLS_OGC_COMPILECOMMAND_H
#define OGC_TOOLS_OGC_COMPILECOMMAND_H

#include "compiler/pipeline/Options.h"

#include <CLI/CLI.hpp>

namespace ogc::tools {

/// Adds `compile` to the program; `exitCode` is set when it ran.
void addCompileCommand(CLI::App &app, int &exitCode);

/// Adds the options that change what a bundle does. They are what the provenance of a bundle records, and what `ogc refit`
/// compiles by.
void addResultOptions(CLI::App &command, CompileOptions &options);

/// Compiles, and prints diagnostics as lines on standard error; the exit code.
int runCompile(const CompileOptions &options);

} // namespace ogc::tools

#endif
