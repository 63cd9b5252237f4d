//===- Commands.cpp - the commands that ogc and ogc-rt share --------------===//
#include "tools/common/Commands.h"

#include <cstdio>
#include <exception>
#include <iostream>

namespace ogc::tools {

/// Names from files may hold anything: control characters become spaces, so that a message is one line.
static std::string oneLine(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return text;
}

void setUpProgram(CLI::App &app) {
  app.require_subcommand(1);
  app.set_version_flag("--version", app.get_name() + " " OGC_VERSION);
  app.failure_message([](const CLI::App *program, const CLI::Error &error) {
    return "error: " + oneLine(error.what()) + " (" + program->get_name() + " --help lists what there is)\n";
  });
}

int finishOutput(int exitCode) {
  std::cout.flush();
  bool isWritten = std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout;
  if (!isWritten)
    std::cerr << "error: cannot write to standard output\n";
  return isWritten ? exitCode : 1;
}

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
  std::fprintf(stderr, "error: %s\n", oneLine(status.message()).c_str());
  exitCode = 1;
}

} // namespace ogc::tools
