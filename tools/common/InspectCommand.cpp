//===- InspectCommand.cpp - ogc inspect -----------------------------------===//
#include "runtime_lib/format/Dump.h"
#include "tools/common/Commands.h"

#include <cstdio>
#include <memory>

namespace ogc::tools {

namespace {

struct InspectOptions {
  std::string bundle;
  bool json = false, ir = false, dot = false, nodes = false;
};

Status inspect(const InspectOptions &options, const CommandHooks &hooks) {
  if (options.ir)
    return hooks.printIr(options.bundle);
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options.bundle);
  if (!bundle.ok())
    return bundle.status();
  std::string text = options.json  ? format::dumpJson(*bundle.value())
                     : options.dot ? format::dumpDot(*bundle.value())
                                   : format::dumpText(*bundle.value(), options.nodes);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status();
}

} // namespace

void addInspectCommand(CLI::App &app, int &exitCode, const CommandHooks &hooks) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App *command = app.add_subcommand("inspect", "verifies a bundle and shows what is in it");
  command->add_option("bundle", options->bundle, "the bundle (model.ogc)")->required();
  CLI::Option *json = command->add_flag("--json", options->json, "a summary as JSON");
  CLI::Option *dot = command->add_flag("--dot", options->dot, "the graphs as Graphviz DOT")->excludes(json);
  CLI::Option *nodes =
      command->add_flag("--nodes", options->nodes, "every node with its slices and edges")->excludes(json)->excludes(dot);
  if (hooks.printIr)
    command->add_flag("--ir", options->ir, "the graphs as IR of the cg dialect")->excludes(json)->excludes(dot)->excludes(nodes);
  command->callback([options, hooks, &exitCode] { runAction(exitCode, [&] { return inspect(*options, hooks); }); });
}

} // namespace ogc::tools
