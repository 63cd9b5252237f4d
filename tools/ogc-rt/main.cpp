//===- main.cpp - the ogc-rt program: runs bundles, compiles none ---------===//
#include "tools/common/Commands.h"

int main(int argc, char **argv) {
  CLI::App app("ogc-rt: runs, times, shows and checks bundles", "ogc-rt");
  ogc::tools::setUpProgram(app);
  int exitCode = 0;
  ogc::tools::addRuntimeCommands(app, exitCode);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return ogc::tools::finishOutput(exitCode);
}
