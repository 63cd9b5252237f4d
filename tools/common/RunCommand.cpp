//===- RunCommand.cpp - ogc run -------------------------------------------===//
#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/src/driver/OutputShape.h"
#include "tools/common/Commands.h"
#include "tools/common/FileNames.h"
#include "tools/common/Npy.h"
#include "tools/common/Session.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace ogc::tools {

namespace {

struct RunOptions : SessionOptions {
  std::string outputDir;
};

/// One line for a person: type, shape, range and the first values.
void printSummary(const fb::Binding &binding, const std::vector<int64_t> &shape, const std::vector<std::byte> &data) {
  size_t count = data.size() / format::elementBytes(binding.type());
  double low = INFINITY, high = -INFINITY, sum = 0;
  for (size_t i = 0; i < count; ++i) {
    double value = format::readElement(binding.type(), data.data(), i);
    low = std::fmin(low, value);
    high = std::fmax(high, value);
    sum += value;
  }
  std::printf("%s: %s %s", binding.name()->c_str(), format::typeName(binding.type()), format::shapeText(shape).c_str());
  if (count != 0)
    std::printf(", min %.6g, mean %.6g, max %.6g, first", low, sum / static_cast<double>(count), high);
  for (size_t i = 0; i < std::min<size_t>(count, 4); ++i)
    std::printf(" %.6g", format::readElement(binding.type(), data.data(), i));
  std::printf("\n");
}

size_t bytesOf(const fb::Binding &binding, const std::vector<int64_t> &shape) {
  size_t bytes = format::elementBytes(binding.type());
  for (int64_t extent : shape)
    bytes *= static_cast<size_t>(extent);
  return bytes;
}

Status makeFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? Status(Code::NotFound, "cannot make folder '" + path + "': " + error.message()) : Status();
}

Status run(const RunOptions &options) {
  Result<Session> session = openSession(options);
  if (!session.ok())
    return session.status();
  Result<std::unique_ptr<runtime::Context>> context = openContext(session.value(), options.device, options);
  if (!context.ok())
    return context.status();
  std::vector<std::vector<std::byte>> outputs(session.value().graph->outputs()->size());
  for (uint64_t step = 0; step < options.steps; ++step) {
    OGC_RETURN_IF_ERROR(uploadInputs(session.value(), *context.value(), step));
    OGC_RETURN_IF_ERROR(context.value()->launch(session.value().graphIndex));
    Result<std::vector<std::vector<std::byte>>> result = downloadOutputs(session.value(), *context.value());
    if (!result.ok())
      return result.status();
    for (size_t i = 0; i < outputs.size(); ++i)
      outputs[i].insert(outputs[i].end(), result.value()[i].begin(), result.value()[i].end());
  }

  for (const runtime::Selection::Padding &padding : session.value().selection.paddings)
    std::printf("graph '%s': %s %lld filled up to %lld\n", session.value().graph->id()->c_str(), padding.symbol->name()->c_str(),
                static_cast<long long>(padding.given), static_cast<long long>(padding.size));
  const auto &bindings = *session.value().graph->outputs();
  std::vector<std::string> names;
  for (const fb::Binding *binding : bindings)
    names.push_back(binding->name()->str());
  std::vector<std::string> files = safeFileNames(names);
  if (!options.outputDir.empty())
    OGC_RETURN_IF_ERROR(makeFolder(options.outputDir));
  for (unsigned i = 0; i < bindings.size(); ++i) {
    const fb::Binding &binding = *bindings.Get(i);
    std::vector<std::byte> &data = outputs[i];
    Result<std::vector<int64_t>> full = runtime::readShape(*context.value(), binding);
    if (!full.ok())
      return full.status();
    // What belongs to rows that were filled up is cut off.
    std::vector<int64_t> shape = runtime::outputShape(session.value().bundle->manifest(), session.value().selection, i);
    for (size_t dim = 0; dim < shape.size(); ++dim)
      shape[dim] = std::min(shape[dim], full.value()[dim]);
    if (options.steps > 1) {
      if (binding.extent())
        return Status(Code::InvalidArgument,
                      "output '" + names[i] + "' may have another shape in every step: run one step at a time");
      full.value().insert(full.value().begin(), static_cast<int64_t>(options.steps));
      shape.insert(shape.begin(), static_cast<int64_t>(options.steps));
    }
    std::vector<std::byte> rows(bytesOf(binding, shape));
    data.resize(bytesOf(binding, full.value()));
    runtime::copyRows(data.data(), full.value(), rows.data(), shape, format::elementBytes(binding.type()));
    data = std::move(rows);
    printSummary(binding, shape, data);
    if (options.outputDir.empty())
      continue;
    std::string path = options.outputDir + "/" + files[i] + ".npy";
    OGC_RETURN_IF_ERROR(writeNpy(path, npyDescr(binding.type()), shape, data.data(), data.size()));
  }
  return Status();
}

} // namespace

void addRunCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *command = app.add_subcommand("run", "runs a graph once and prints or writes its outputs");
  addSessionOptions(*command, *options);
  command->add_option("--output-dir", options->outputDir,
                      "writes every output as .npy into this folder (bfloat16 as uint16, float8 as uint8 bits)");
  command
      ->add_option(
          "--steps", options->steps,
          "runs to make one after the other, in which states advance; an input file with one dimension more, of N, has a "
          "value for each, and so have the outputs that are written")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t(1), uint64_t(1) << 24));
  command->add_flag("--random-weights", options->randomWeights, "makes up weights that the bundle does not hold");
  command->callback([options, &exitCode] { runAction(exitCode, [&] { return run(*options); }); });
}

} // namespace ogc::tools
