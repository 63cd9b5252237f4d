//===- RefitCommand.h - ogc refit -----------------------------------------===//
#ifndef OGC_TOOLS_REFIT_COMMAND_H
#define OGC_TOOLS_REFIT_COMMAND_H

#include <CLI/CLI.hpp>

namespace ogc::tools {

/// Adds `refit` to `app`; it runs while `app.parse` does and sets the exit code.
void addRefitCommand(CLI::App &app, int &exitCode);

} // namespace ogc::tools

#endif
