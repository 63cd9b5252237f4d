//===- main.cpp - ogc-conformance[-run]: many small models in one process -===//
#include "test/conformance/Execute.h"
#include "test/conformance/Workers.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

namespace ogc::conformance {

namespace {

struct Arguments {
  std::string cases, filter, list, output = "-";
  std::vector<std::string> variants = {"plain"};
  bool compile = true;
  Settings settings;
  WorkerLimits limits;
};

std::string lineOf(llvm::json::Object object) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  return text;
}

int run(Arguments &arguments) {
  llvm::Expected<std::unique_ptr<Cases>> cases = Cases::open(arguments.cases);
  if (!cases) {
    llvm::errs() << "error: " << llvm::toString(cases.takeError()) << "\n";
    return 1;
  }
  llvm::Regex filter(arguments.filter);
  std::vector<Trial> trials;
  for (Trial &trial : (*cases)->trials(arguments.variants))
    if (arguments.filter.empty() || filter.match(trial.of->name))
      trials.push_back(std::move(trial));
  std::error_code error;
  llvm::raw_fd_ostream output(arguments.output, error);
  if (error) {
    llvm::errs() << "error: cannot write '" << arguments.output << "': " << error.message() << "\n";
    return 1;
  }
  Settings &settings = arguments.settings;
  llvm::SmallString<128> temporary;
  if (settings.bundles.empty()) {
    // Memory, where there is such a folder: a bundle lives for milliseconds.
    llvm::sys::fs::createUniqueDirectory(llvm::sys::fs::is_directory("/dev/shm") ? "/dev/shm/ogc-conformance" : "ogc-conformance",
                                         temporary);
    settings.bundles = temporary.str();
  } else {
    llvm::sys::fs::create_directories(settings.bundles);
  }

  Compile compile;
  if (arguments.compile)
    compile = makeCompile(**cases, settings);
  auto print = [&](const std::string &line) {
    output << line << "\n";
    output.flush();
  };
  runInProcesses(
      trials.size(), arguments.limits,
      [&](size_t i) {
        llvm::json::Object line = execute(compile, trials[i], settings);
        // A device error stays with its process: the cases after it would fail too.
        bool isLast = line.getString("message").value_or("").starts_with("run: ");
        return Answer{lineOf(std::move(line)), isLast};
      },
      [&](size_t, const std::string &line) { print(line); },
      [&](size_t i, const std::string &reason) {
        print(lineOf(llvm::json::Object{
            {"case", trials[i].of->name}, {"variant", trials[i].variant}, {"status", "crashed"}, {"message", reason}}));
      });
  if (!temporary.empty())
    llvm::sys::fs::remove_directories(temporary);
  return 0;
}

} // namespace
} // namespace ogc::conformance

int main(int argc, char **argv) {
  using namespace ogc::conformance;
  CLI::App app(
      "Compiles and runs the cases of a folder that cases.py made, each in a process of its own, and writes a line of JSON "
      "for each: right, refused, wrong or crashed",
      "ogc-conformance");
  Arguments arguments;
  Settings &settings = arguments.settings;
  app.add_option("cases", arguments.cases, "the folder of cases")->required();
  app.add_option("-o,--output", arguments.output, "file of the report")->capture_default_str();
  app.add_option("--filter", arguments.filter, "regular expression that names match");
  app.add_option("--variants", arguments.variants, "plain, folded, half")->delimiter(',')->capture_default_str();
  app.add_option("--target", settings.targets, "targets to compile for")->delimiter(',')->capture_default_str();
  app.add_option("--precision", settings.precision, "as of ogc compile")->capture_default_str();
  app.add_option("--cache-dir", settings.cacheDir, "folder of compiled kernels");
  app.add_option("--bundles", settings.bundles, "folder of the bundles; default: a temporary one");
  app.add_flag("--keep", settings.keep, "keep the bundles");
  app.add_flag("!--no-compile", arguments.compile, "run bundles that were kept");
  app.add_flag("!--no-run", settings.run, "compile only");
  app.add_option("--device", settings.device, "device to run on")->capture_default_str();
  app.add_option("--jobs", arguments.limits.jobs, "processes at a time")->capture_default_str();
  app.add_option("--batch", arguments.limits.batch, "cases a process does")->capture_default_str();
  app.add_option("--seconds", arguments.limits.seconds, "a case that takes longer hangs")->capture_default_str();
  app.add_option("--memory", arguments.limits.bytes, "address space of a process in bytes, 0: any")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run(arguments);
}
