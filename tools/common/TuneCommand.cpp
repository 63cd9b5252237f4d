//===- TuneCommand.cpp - ogc tune -----------------------------------------===//
#include "tools/common/Commands.h"
#include "tools/common/Session.h"
#include "tools/common/TuneSearch.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

namespace ogc::tools {

namespace {

struct TuneCommandOptions : SessionOptions {
  std::string output;
  TuneOptions search;
};

/// The problems of a graph, and which variant of which kernel each choice is.
struct Tunables {
  std::vector<TuneProblem> problems;
  /// [problem][choice]: (kernel, variant); kernels with the same problem change together.
  std::vector<std::vector<std::vector<std::pair<uint32_t, uint32_t>>>> variants;
};

Tunables findTunables(const fb::Manifest &manifest, const fb::Graph &graph) {
  Tunables found;
  std::map<std::string, size_t> indices;
  std::vector<bool> seen(manifest.kernels()->size(), false);
  for (const fb::Node *node : *graph.nodes()) {
    bool hasKernel = node->kind() == fb::NodeKind::Kernel || node->kind() == fb::NodeKind::Gemm;
    if (!hasKernel || seen[node->kernel()])
      continue;
    seen[node->kernel()] = true;
    const auto *variants = manifest.kernels()->Get(node->kernel())->variants();
    for (uint32_t i = 0; variants && i < variants->size(); ++i) {
      const fb::CudaVariant &variant = *variants->Get(i);
      auto [entry, isNew] = indices.try_emplace(variant.problem()->str(), found.problems.size());
      if (isNew) {
        found.problems.push_back({variant.problem()->str(), {}});
        found.variants.emplace_back();
      }
      std::vector<std::string> &choices = found.problems[entry->second].choices;
      size_t choice = std::find(choices.begin(), choices.end(), variant.knobs()->str()) - choices.begin();
      if (choice == choices.size()) {
        choices.push_back(variant.knobs()->str());
        found.variants[entry->second].emplace_back();
      }
      found.variants[entry->second][choice].push_back({node->kernel(), i});
    }
  }
  return found;
}

/// Measures assignments in one context, which remembers the last one.
class Bench {
public:
  Bench(runtime::Context &context, size_t graph, const Tunables &tunables)
      : context_(context), graph_(graph), tunables_(tunables), applied_(tunables.problems.size(), 0) {}

  Result<double> operator()(const Assignment &assignment, unsigned replays) {
    for (size_t problem = 0; problem < assignment.size(); ++problem) {
      if (assignment[problem] == applied_[problem])
        continue;
      for (auto [kernel, variant] : tunables_.variants[problem][assignment[problem]])
        OGC_RETURN_IF_ERROR(context_.selectVariant(kernel, variant));
      applied_[problem] = assignment[problem];
    }
    OGC_RETURN_IF_ERROR(context_.prepare(graph_));
    std::vector<double> times(replays);
    double warmup = 0;
    for (unsigned i = 0; i < 3; ++i)
      OGC_RETURN_IF_ERROR(context_.timeLaunch(graph_, warmup));
    for (double &time : times)
      OGC_RETURN_IF_ERROR(context_.timeLaunch(graph_, time));
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }

private:
  runtime::Context &context_;
  size_t graph_;
  const Tunables &tunables_;
  Assignment applied_;
};

/// The lines of a table by problem; an unreadable file has none.
std::map<std::string, std::string> readTable(const std::string &path) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    size_t equal = line.find(" = ");
    if (line.empty() || line[0] == '#' || equal == std::string::npos)
      continue;
    lines[line.substr(0, equal)] = line.substr(equal + 3);
  }
  return lines;
}

/// Adds the choices to the table at `path`: problems that it had from other graphs stay.
Status writeTable(const std::string &path, const Tunables &tunables, const Assignment &assignment) {
  std::map<std::string, std::string> lines = readTable(path);
  for (size_t problem = 0; problem < assignment.size(); ++problem)
    lines[tunables.problems[problem].name] = tunables.problems[problem].choices[assignment[problem]];
  std::string temporary = path + ".part";
  {
    std::ofstream file(temporary);
    file << "# Choices measured in whole graphs; written by ogc tune.\n";
    for (const auto &[problem, knobs] : lines)
      file << problem << " = " << knobs << "\n";
    if (!file.flush())
      return Status(Code::Internal, "cannot write '" + temporary + "'");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    return Status(Code::Internal, "cannot write '" + path + "'");
  return Status();
}

Status tune(const TuneCommandOptions &options) {
  Result<Session> session = openSession(options);
  if (!session.ok())
    return session.status();
  Tunables tunables = findTunables(session.value().bundle->manifest(), *session.value().graph);
  if (tunables.problems.empty())
    return Status(Code::InvalidArgument, "the bundle holds no choices to measure: compile it with --tuning-candidates");
  Result<std::unique_ptr<runtime::Context>> context = openContext(session.value(), options.device, options);
  if (!context.ok())
    return context.status();
  OGC_RETURN_IF_ERROR(uploadInputs(session.value(), *context.value()));
  Bench bench(*context.value(), session.value().graphIndex, tunables);
  Result<TuneResult> result = searchChoices(tunables.problems, options.search, std::ref(bench), [](const std::string &line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  if (!result.ok())
    return result.status();
  if (!options.output.empty())
    OGC_RETURN_IF_ERROR(writeTable(options.output, tunables, result.value().best));
  std::printf("%zu problems, %zu measurements: %.1f us before, %.1f us after\n", tunables.problems.size(),
              result.value().measurements, result.value().firstUs, result.value().bestUs);
  return Status();
}

} // namespace

void addTuneCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<TuneCommandOptions>();
  options->randomWeights = true; // times do not depend on values
  options->device = "cuda:0";
  CLI::App *command = app.add_subcommand("tune", "measures the choices in a bundle made with 'compile --tuning-candidates'");
  addSessionOptions(*command, *options);
  command->add_option("--output", options->output, "tuning table that gets the best choices, for 'compile --tuning'");
  command->add_option("--starts", options->search.starts, "searches, each from another point")->capture_default_str();
  command->add_option("--passes", options->search.passes, "passes over all problems a search")->capture_default_str();
  command->add_option("--replays", options->search.replays, "replays for a first look at a choice")
      ->capture_default_str()
      ->check(CLI::Range(1u, 100000u));
  command->add_option("--seconds", options->search.seconds, "begins no new problem after this time")->capture_default_str();
  command->callback([options, &exitCode] { runAction(exitCode, [&] { return tune(*options); }); });
}

} // namespace ogc::tools
