//===- InspectCommand.cpp - ogc inspect -----------------------------------===//
#include "runtime_lib/format/Dump.h"
#include "tools/common/Commands.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace ogc::tools {

namespace {

struct InspectOptions {
  std::string bundle, html;
  bool json = false, ir = false, dot = false, nodes = false;
};

Status writeText(const std::string &path, const std::string &text) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file)
    return Status(Code::NotFound, "cannot write '" + path + "': " + std::strerror(errno));
  bool isWritten = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  isWritten &= std::fflush(file.get()) == 0;
  return isWritten ? Status() : Status(Code::Internal, "cannot write all of '" + path + "'");
}

Status inspect(const InspectOptions &options, const CommandHooks &hooks) {
  if (options.ir)
    return hooks.printIr(options.bundle);
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options.bundle);
  if (!bundle.ok())
    return bundle.status();
  std::error_code error; // of a page that does not exist yet
  if (!options.html.empty() && std::filesystem::equivalent(options.html, options.bundle, error))
    return Status(Code::InvalidArgument, "cannot write '" + options.html + "': it is the bundle");
  if (!options.html.empty())
    return writeText(options.html, format::dumpHtml(*bundle.value()));
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
  CLI::Option *html = command->add_option("--html", options->html, "writes the memory plan and the graph as a page for a browser")
                          ->excludes(json)
                          ->excludes(dot)
                          ->excludes(nodes);
  if (hooks.printIr)
    command->add_flag("--ir", options->ir, "the graphs as IR of the cg dialect")
        ->excludes(json)
        ->excludes(dot)
        ->excludes(nodes)
        ->excludes(html);
  command->callback([options, hooks, &exitCode] { runAction(exitCode, [&] { return inspect(*options, hooks); }); });
}

} // namespace ogc::tools
