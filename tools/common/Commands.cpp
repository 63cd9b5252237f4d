//===- Commands.cpp - the commands that ogc and ogc-rt share --------------===//
#include "tools/common/Commands.h"

#include <cstdio>
#include <exception>

namespace ogc::tools {

void addRuntimeCommands(CLI::App &app, int &exitCode, const CommandHooks &hooks) {
  addRunCommand(app, exitCode);
  addBenchCommand(app, exitCode);
  addInspectCommand(app, exitCode, hooks);
  addVerifyCommand(app, exitCode);
  addTuneCommand(app, exitCode);
}

void runAction(int &exitCode, const std::function<Status()> &action) {
  Status status;
  try {
    status = action();
  } catch (const std::bad_alloc &) {
    status = Status(Code::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    status = Status(Code::Internal, error.what());
  }
  std::fflush(stdout);
  if (status.ok())
    return;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  exitCode = 1;
}

} // namespace ogc::tools
