//===- Execute.cpp - compiles and runs one trial --------------------------===//
#include "test/conformance/Execute.h"

#include "test/conformance/Check.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>

namespace ogc::conformance {

namespace {

/// "NAME=VALUE" for each input that may say what shape something has: axes, sizes, counts, scales.
std::vector<std::string> shapeValues(const Case &item) {
  std::vector<std::string> values;
  for (const Tensor &input : item.inputs) {
    bool isScale = input.name.find("scale") != std::string::npos && input.type == "float32";
    bool isNumber = input.type == "int64" || input.type == "int32" || input.type == "bool";
    if ((isNumber || isScale || input.shape.empty()) && input.shape.size() <= 1 && input.data.size() <= 64)
      values.push_back(input.name + "=" + valueText(input));
  }
  return values;
}

/// Runs a bundle's only graph once through the C interface. `problem` gets the reason when the run itself fails.
class Run {
public:
  Run(const Case &item, const std::string &bundle, const std::string &device) : item(item) {
    if (ogc_bundle_open(bundle.c_str(), &file) || ogc_engine_create(file, device.c_str(), nullptr, &engine) ||
        ogc_context_create(engine, nullptr, &context))
      problem = ogc_last_error();
  }
  ~Run() {
    ogc_context_release(context);
    // The first engine of a process stays: the device's context, which takes a tenth of a second to make, lives as long as one.
    static bool isFirst = true;
    if (!isFirst)
      ogc_engine_release(engine);
    isFirst = isFirst && !engine;
    ogc_bundle_close(file);
  }

  /// The first thing that is wrong; `bits` gets the number of all outputs' bytes.
  std::string check(uint64_t &bits) {
    if (problem.empty() && bindInputs() && bindOutputs() && ogc_run(context, 0))
      problem = ogc_last_error();
    if (!problem.empty())
      return "run: " + problem;
    std::string wrong;
    for (auto [i, data] : llvm::enumerate(outputs)) {
      ogc_tensor info;
      if (ogc_bundle_output(file, 0, i, &info))
        return "run: " + std::string(ogc_last_error());
      std::vector<int64_t> shape(info.rank);
      if (ogc_output_shape(context, 0, i, shape.data(), shape.size()))
        return "run: " + std::string(ogc_last_error());
      takeShape(info, data, shape);
      bits = bitsOf(info, data, bits);
      if (wrong.empty())
        wrong = checkOutput(item, i, info, data);
    }
    return wrong;
  }

private:
  /// An output whose extent the run decides lies in its shape at the start of the buffer.
  static void takeShape(ogc_tensor &info, std::vector<char> &data, const std::vector<int64_t> &shape) {
    for (size_t d = 0; d < info.rank; ++d)
      if (info.shape[d] != 0)
        info.bytes = info.bytes / static_cast<size_t>(info.shape[d]) * static_cast<size_t>(shape[d]);
    info.shape = shape.data();
    data.resize(info.bytes);
  }

  bool bindInputs() {
    for (size_t i = 0; i < ogc_bundle_input_count(file, 0); ++i) {
      ogc_tensor info;
      if (ogc_bundle_input(file, 0, i, &info))
        return fails();
      const Tensor *given = nullptr;
      for (const Tensor &input : item.inputs)
        given = input.name == info.name ? &input : given;
      if (!given) {
        problem = std::string("the bundle has an input '") + info.name + "', which the case does not give";
        return false;
      }
      // Empty inputs have no address of their own in the file's map; any will do.
      const char *data = given->data.empty() ? "" : given->data.data();
      if (ogc_bind_input(context, 0, i, data, given->data.size(), OGC_HOST))
        return fails();
    }
    return true;
  }

  bool bindOutputs() {
    size_t count = ogc_bundle_output_count(file, 0);
    if (count != item.outputs.size()) {
      problem = llvm::formatv("the bundle has {0} outputs, expected {1}", count, item.outputs.size());
      return false;
    }
    for (size_t i = 0; i < count; ++i) {
      ogc_tensor info;
      if (ogc_bundle_output(file, 0, i, &info))
        return fails();
      // What the run leaves untouched shows.
      outputs.emplace_back(info.bytes, static_cast<char>(0xA5));
      outputs.back().reserve(1);
      if (ogc_bind_output(context, 0, i, outputs.back().data(), info.bytes, OGC_HOST))
        return fails();
    }
    return true;
  }

  bool fails() {
    problem = ogc_last_error();
    return false;
  }

  const Case &item;
  ogc_bundle *file = nullptr;
  ogc_engine *engine = nullptr;
  ogc_context *context = nullptr;
  std::vector<std::vector<char>> outputs;
  std::string problem;
};

} // namespace

llvm::json::Object execute(const Compile &compile, const Trial &trial, const Settings &settings) {
  auto start = std::chrono::steady_clock::now();
  llvm::json::Object line{{"case", trial.of->name}, {"variant", trial.variant}};
  std::string bundle = settings.bundles + "/" + trial.label() + ".ogc", message;
  std::string status, whenRight = "right";
  uint64_t bits = 0;
  llvm::scope_exit cleanUp([&] {
    if (!settings.keep)
      (void)llvm::sys::fs::remove(bundle);
  });
  bool isCompiled = !compile || compile(trial, settings, bundle, {}, message);
  if (!isCompiled && !message.empty() && (trial.variant == "plain" || trial.variant == "nonsense")) {
    std::vector<std::string> values = shapeValues(*trial.of);
    std::string errors;
    if (!values.empty() && compile(trial, settings, bundle, values, errors)) {
      isCompiled = true;
      whenRight = "given";
      line["given"] = true;
    } else if (!errors.empty()) {
      message = errors; // what is in the way besides
    }
  }
  if (!isCompiled) {
    status = message.empty() ? "wrong" : "refused";
    if (message.empty())
      message = "the compiler failed without a reason";
  } else if (!llvm::sys::fs::exists(bundle)) {
    status = "missing";
    message = "there is no bundle";
  } else if (settings.run) {
    std::string wrong = Run(*trial.of, bundle, settings.device).check(bits);
    status = wrong.empty() ? whenRight : "wrong";
    message = wrong.empty() && whenRight == "given" ? message : wrong;
    line["bits"] = llvm::utohexstr(bits);
  } else {
    status = "compiled";
  }
  line["status"] = status;
  line["message"] = message;
  line["ms"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return line;
}

} // namespace ogc::conformance
