//===- main.cpp - ogc-fuzz: damaged models and bundles must be refused or work ---===//
#include "test/fuzz/Cases.h"
#include "test/fuzz/Isolate.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace {

struct Options {
  std::string corpus, keep, kind = "models";
  uint64_t seed = 1, first = 0, runs = 1000;
  bool verbose = false;
  ogc::fuzz::Limits limits;
};

void writeFile(const std::filesystem::path &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// The line of a log that says most: a sanitizer's summary, or the last one.
std::string headline(const std::string &log) {
  for (const char *mark : {"SUMMARY: ", "runtime error: ", "fuzz: "})
    if (size_t at = log.rfind(mark); at != std::string::npos)
      return log.substr(at, log.find('\n', at) - at);
  size_t end = log.find_last_not_of('\n');
  if (end == std::string::npos)
    return "nothing written";
  size_t begin = log.rfind('\n', end);
  return log.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin));
}

int run(const Options &options) {
  std::unique_ptr<ogc::fuzz::Cases> cases = options.kind == "models" ? ogc::fuzz::modelCases(options.corpus, options.seed)
                                                                     : ogc::fuzz::bundleCases(options.corpus, options.seed);
  if (cases->size() == 0) {
    std::cerr << "error: '" << options.corpus << "' holds nothing to begin with\n";
    return 1;
  }
  auto start = std::chrono::steady_clock::now();
  ogc::fuzz::Outcome outcome =
      ogc::fuzz::runIsolated(options.runs, options.limits, [&](uint64_t i) { return cases->run(options.first + i); });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const ogc::fuzz::Finding &finding : outcome.findings) {
    uint64_t index = options.first + finding.index;
    std::cout << options.kind << " case " << index << ": " << finding.what << ": " << headline(finding.log) << "\n";
    if (options.keep.empty())
      continue;
    std::filesystem::path stem = std::filesystem::path(options.keep) / (options.kind + "-" + std::to_string(index));
    std::filesystem::create_directories(options.keep);
    writeFile(stem.string() + cases->suffix(), cases->make(index));
    writeFile(stem.string() + ".log", finding.log);
  }
  std::cout << options.kind << ": " << outcome.begun << " cases of seed " << options.seed << " from " << cases->size()
            << " files in " << static_cast<uint64_t>(seconds) << " s, " << outcome.accepted << " accepted, "
            << outcome.findings.size() << " findings\n";
  return outcome.findings.empty() && outcome.begun != 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("ogc-fuzz: compiles damaged models, or opens damaged bundles, each in a process under limits", "ogc-fuzz");
  Options options;
  app.add_option("kind", options.kind, "models or bundles")->check(CLI::IsMember({"models", "bundles"}))->required();
  app.add_option("--corpus", options.corpus, "folder of the models, or bundles, to damage")->required();
  app.add_option("--seed", options.seed, "seed of all cases")->capture_default_str();
  app.add_option("--first", options.first, "index of the first case")->capture_default_str();
  app.add_option("--runs", options.runs, "number of cases")->capture_default_str();
  app.add_option("--seconds", options.limits.seconds, "begin no case after this time; 0: no limit")->capture_default_str();
  app.add_option("--hang", options.limits.hangSeconds, "seconds that one case may take")->capture_default_str();
  app.add_option("--jobs", options.limits.jobs, "processes at a time")->capture_default_str();
  app.add_option("--keep", options.keep, "folder for the files of findings, and their logs");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
