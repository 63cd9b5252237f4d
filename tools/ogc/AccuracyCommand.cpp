//===- AccuracyCommand.cpp - ogc accuracy ---------------------------------===//
#include "runtime_lib/format/Bundle.h"
#include "tools/common/Accuracy.h"
#include "tools/common/Commands.h"
#include "tools/common/FileNames.h"
#include "tools/ogc/CompileCommand.h"

#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace ogc::tools {

namespace {

struct AccuracyOptions {
  CompileOptions compile;
  SessionOptions session;
  std::string precision = "fp16", inputFolder, target = "sm_90";
  bool values = false, json = false;
  size_t top = 20;
};

/// A folder that goes with all that is in it.
class TemporaryFolder {
public:
  TemporaryFolder() { failed_ = static_cast<bool>(llvm::sys::fs::createUniqueDirectory("ogc-accuracy", path_)); }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!failed_)
      std::filesystem::remove_all(path_.c_str(), ignored);
  }
  bool failed() const { return failed_; }
  std::string file(const std::string &name) const { return path_.str().str() + "/" + name; }

private:
  llvm::SmallString<128> path_;
  bool failed_ = false;
};

/// Compiles the model; false after errors on standard error.
bool compileFor(const AccuracyOptions &options, const std::string &target, const std::string &precision,
                const std::string &path) {
  CompileOptions compile = options.compile;
  compile.targets = {target};
  compile.precision = precision;
  compile.outputPath = path;
  compile.summary = false;
  return runCompile(compile) == 0;
}

/// Adds the files of a folder that are named after inputs, as `ogc run` names those of outputs.
Status addFolder(const std::string &folder, const std::string &bundlePath, std::vector<std::string> &inputs) {
  if (!std::filesystem::is_directory(folder))
    return Status(Code::NotFound, "--inputs: there is no folder '" + folder + "'");
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(bundlePath);
  if (!bundle.ok())
    return bundle.status();
  std::vector<std::string> names;
  for (const fb::Binding *binding : *bundle.value()->manifest().graphs()->Get(0)->inputs())
    names.push_back(binding->name()->str());
  std::vector<std::string> files = safeFileNames(names);
  size_t before = inputs.size();
  for (size_t i = 0; i < names.size(); ++i) {
    std::string path = folder + "/" + files[i] + ".npy";
    if (std::filesystem::exists(path))
      inputs.push_back(names[i] + "=" + path);
  }
  if (inputs.size() == before)
    return Status(Code::NotFound, "'" + folder + "' has no file for any input, expected '" + (files.empty() ? "" : files[0]) +
                                      ".npy' and the like");
  return Status();
}

Status accuracy(AccuracyOptions options, int &exitCode) {
  bool onCpu = options.session.device == "cpu";
  if (onCpu && options.precision == "tf32")
    return Status(Code::InvalidArgument,
                  "the cpu target computes products of tf32 exactly, so there is nothing to compare: give a GPU with --device");
  TemporaryFolder folder;
  if (folder.failed())
    return Status(Code::Internal, "cannot make a temporary folder");
  std::string reference = folder.file("fp32.ogc"), reduced = folder.file(options.precision + ".ogc");
  if (!compileFor(options, "cpu", "fp32", reference) ||
      !compileFor(options, onCpu ? "cpu" : options.target, options.precision, reduced)) {
    exitCode = 1;
    return Status();
  }
  if (!options.inputFolder.empty())
    OGC_RETURN_IF_ERROR(addFolder(options.inputFolder, reference, options.session.inputs));
  options.session.bundle = reference;
  Result<Session> expected = openSession(options.session);
  if (!expected.ok())
    return expected.status();
  options.session.bundle = reduced;
  Result<Session> actual = openSession(options.session);
  if (!actual.ok())
    return actual.status();
  format::DataType storage = options.precision == "fp16"   ? format::DataType::F16
                             : options.precision == "bf16" ? format::DataType::BF16
                                                           : format::DataType::F32;
  Result<AccuracyReport> report =
      compareAccuracy(expected.value(), actual.value(), options.session.device, storage, options.session.threads);
  if (!report.ok())
    return report.status();
  size_t shown = options.values ? (options.top ? options.top : report.value().stored.size()) : 0;
  std::string text =
      options.json ? accuracyJson(report.value(), options.precision, shown) + "\n" : accuracyText(report.value(), shown);
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const auto *values : {&report.value().inputs, &report.value().stored, &report.value().outputs})
    for (const ValueAccuracy &value : *values)
      if (value.overflows())
        std::fprintf(stderr, "warning: %s\n", overflowText(value).c_str());
  return Status();
}

} // namespace

void addAccuracyCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<AccuracyOptions>();
  CLI::App *command = app.add_subcommand("accuracy", "how far the outputs and stored values of a model in another precision are "
                                                     "from f32 on the cpu, on given or random inputs");
  command->add_option("model", options->compile.modelPath, "the ONNX file, with f32 numbers")->required();
  command->add_option("--precision", options->precision, "the precision to compare with fp32")
      ->check(CLI::IsMember({"fp16", "bf16", "tf32"}))
      ->capture_default_str();
  command->add_option("--shapes", options->compile.shapes, "shapes of graphs, as for 'compile'");
  command->add_option("--value", options->compile.values, "value of an input, as for 'compile'");
  command->add_option("--state", options->compile.states, "INPUT=OUTPUT that are one state, as for 'compile'");
  command->add_option("--inputs", options->inputFolder, "folder with NAME.npy for some inputs");
  addDeviceOption(*command, options->session);
  command->add_option("--target", options->target, "architecture of a GPU that --device names")->capture_default_str();
  addInputOptions(*command, options->session);
  command->add_flag("--values", options->values, "also the values that kernels store, worst first");
  command->add_option("--top", options->top, "stored values to show at most, 0: all")->capture_default_str();
  command->add_flag("--json", options->json, "prints JSON");
  command->callback([options, &exitCode] { runAction(exitCode, [&] { return accuracy(*options, exitCode); }); });
}

} // namespace ogc::tools
