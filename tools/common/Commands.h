//===- Commands.h - the commands that ogc and ogc-rt share ----------------===//
#ifndef OGC_TOOLS_COMMON_COMMANDS_H
#define OGC_TOOLS_COMMON_COMMANDS_H

#include "runtime_lib/format/Status.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace ogc::tools {

/// What a tool adds to the shared commands.
struct CommandHooks {
  /// Prints the IR of the bundle at `path` to stdout (`inspect --ir`); empty where the tool has no compiler in it.
  std::function<Status(const std::string &path)> printIr;
};

/// Gives a program `--version`, and one line on stderr for usage errors.
void setUpProgram(CLI::App &app);

/// The exit code of a program, 1 with a line on stderr where standard output could not take all that was written.
int finishOutput(int exitCode);

/// Adds `run`, `bench`, `inspect`, `verify` and `tune` to `app`. They run while `app.parse` does; `exitCode` becomes 1 where one
/// fails, after a line on stderr that says why. Arguments of a wrong form make `app.parse` throw; so do, in all commands that
/// `app` has by then, numbers that are negative or not finite.
void addRuntimeCommands(CLI::App &app, int &exitCode, const CommandHooks &hooks = {});

void addRunCommand(CLI::App &app, int &exitCode);
void addBenchCommand(CLI::App &app, int &exitCode);
void addInspectCommand(CLI::App &app, int &exitCode, const CommandHooks &hooks);
void addVerifyCommand(CLI::App &app, int &exitCode);
void addTuneCommand(CLI::App &app, int &exitCode);

/// Runs `action`, reports its failure on stderr and sets the exit code. No exception passes.
void runAction(int &exitCode, const std::function<Status()> &action);

} // namespace ogc::tools

#endif
