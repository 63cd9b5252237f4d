//===- CompileCommand.h - ogc compile -------------------------------------===//
#ifndef OGC_TOOLS_OGC_COMPILECOMMAND_H
#define OGC_TOOLS_OGC_COMPILECOMMAND_H

#include <CLI/CLI.hpp>

namespace ogc::tools {

/// Adds `compile` to the program; `exitCode` is set when it ran.
void addCompileCommand(CLI::App &app, int &exitCode);

} // namespace ogc::tools

#endif
