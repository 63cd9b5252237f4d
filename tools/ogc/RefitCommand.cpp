//===- RefitCommand.cpp - ogc refit ---------------------------------------===//
#include "tools/ogc/RefitCommand.h"

#include "tools/common/Commands.h"
#include "tools/ogc/CompileCommand.h"

#include <algorithm>
#include <memory>

namespace ogc::tools {

namespace {

struct RefitOptions {
  std::string bundle, model, output, weights;
  unsigned threads = 0;
};

/// The options that a bundle was compiled with, as its provenance has them. Others, which concern the code that is taken over or
/// are of another version, are left out: what they would change is found when the bundles are compared.
Result<CompileOptions> recordedOptions(const format::Bundle &bundle) {
  CompileOptions options;
  CLI::App parser;
  parser.allow_extras();
  addResultOptions(parser, options);
  std::vector<std::string> flags;
  for (const auto *flag : *bundle.manifest().provenance()->flags())
    flags.push_back(flag->str());
  std::reverse(flags.begin(), flags.end()); // as the parser wants them
  try {
    parser.parse(flags);
  } catch (const CLI::ParseError &error) {
    return Status(Code::Unsupported, std::string("the bundle was compiled with options of another version: ") + error.what());
  }
  return options;
}

const char *modeName(format::fb::WeightsMode mode) {
  return mode == format::fb::WeightsMode::Inline ? "inline" : mode == format::fb::WeightsMode::External ? "external" : "none";
}

Status refit(const RefitOptions &options, int &exitCode) {
  format::OpenOptions open;
  open.checkWeights = false; // they are not used
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options.bundle, open);
  if (!bundle.ok())
    return bundle.status();
  Result<CompileOptions> recorded = recordedOptions(*bundle.value());
  if (!recorded.ok())
    return recorded.status();
  CompileOptions compile = std::move(recorded.value());
  compile.modelPath = options.model;
  compile.outputPath = options.output;
  compile.threads = options.threads;
  compile.weights = options.weights.empty() ? modeName(bundle.value()->manifest().weights_mode()) : options.weights;
  compile.refit = bundle.value();
  exitCode = runCompile(compile);
  return Status();
}

} // namespace

void addRefitCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<RefitOptions>();
  CLI::App *command =
      app.add_subcommand("refit", "gives a bundle the weights of another file of the same model, without compiling kernels");
  command->add_option("bundle", options->bundle, "the bundle (model.ogc)")->required();
  command->add_option("--weights", options->model, "the ONNX file with the new weights")->required();
  command->add_option("-o,--output", options->output, "the new bundle")->required();
  command->add_option("--store-weights", options->weights, "where the weights go; default: as in the bundle")
      ->check(CLI::IsMember({"inline", "external", "none"}));
  command->add_option("--threads", options->threads, "threads, 0: one a core")->capture_default_str();
  command->callback([options, &exitCode] { runAction(exitCode, [&] { return refit(*options, exitCode); }); });
}

} // namespace ogc::tools
