//===- Session.cpp - what run, bench and verify begin with ----------------===//
#include "tools/common/Session.h"

#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/src/driver/Random.h"
#include "tools/common/Npy.h"

#include <map>

namespace ogc::tools {

using format::DataType;

namespace {

std::string checkDevice(const std::string &device) {
  bool isNumbered =
      device.size() > 5 && device.starts_with("cuda:") && device.find_first_not_of("0123456789", 5) == std::string::npos;
  return device == "cpu" || device == "cuda" || isNumbered ? "" : "'" + device + "' is not cpu, cuda or cuda:N";
}

std::string checkInput(const std::string &input) {
  size_t equals = input.rfind('=');
  return equals == std::string::npos || equals == 0 || equals + 1 == input.size() ? "'" + input + "' is not NAME=FILE" : "";
}

} // namespace

void addDeviceOption(CLI::App &command, SessionOptions &options) {
  command.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str()->check(checkDevice);
}

void addInputOptions(CLI::App &command, SessionOptions &options) {
  command.add_option("--graph", options.graph,
                     "ID of the graph; default: the only one, or the one that the shapes of the files choose");
  command.add_option("--input", options.inputs, "NAME=FILE.npy; may be repeated. Other inputs are drawn at random")
      ->check(checkInput);
  command.add_option("--seed", options.seed, "seed of random inputs and weights")->capture_default_str();
  command.add_option("--int-range", options.intRange, "random integers are drawn from [0, N)")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t(1), uint64_t(1) << 31));
  command.add_option("--threads", options.threads, "threads of the cpu device")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
}

void addSessionOptions(CLI::App &command, SessionOptions &options) {
  command.add_option("bundle", options.bundle, "the bundle (model.ogc)")->required();
  addDeviceOption(command, options);
  addInputOptions(command, options);
  command.add_option("--pool", options.pool, "executable graphs to keep on a GPU at most")
      ->capture_default_str()
      ->check(CLI::Range(size_t(1), size_t(1) << 20));
  command.add_option("--weights-file", options.weightsFile, "the weights section of a bundle that does not hold it");
}

namespace {

bool isState(const fb::Binding &binding) { return binding.slice()->section() == fb::Section::State; }

std::string list(const flatbuffers::Vector<flatbuffers::Offset<fb::Binding>> &bindings) {
  std::string names;
  for (const fb::Binding *binding : bindings)
    names += (names.empty() ? "'" : ", '") + binding->name()->str() + "'";
  return names.empty() ? "none" : names;
}

using Arrays = std::map<std::string, Array>;

/// Reads the files of NAME=FILE.
Result<Arrays> readFiles(const std::vector<std::string> &inputs) {
  Arrays arrays;
  for (const std::string &input : inputs) {
    size_t equals = input.rfind('=');
    std::string name = input.substr(0, equals);
    if (arrays.contains(name))
      return Status(Code::InvalidArgument, "input '" + name + "' is given twice");
    Result<Array> array = readNpy(input.substr(equals + 1));
    if (!array.ok())
      return array.status().withContext("input '" + name + "'");
    arrays.emplace(name, std::move(array.value()));
  }
  return arrays;
}

/// True for an array with a leading dimension of `steps`: a value for each step of `ogc run --steps`.
bool isOfEachStep(const fb::Binding &binding, const Array &array, uint64_t steps) {
  return steps > 1 && !isState(binding) && array.shape.size() == binding.shape()->size() + 1 &&
         array.shape.front() == static_cast<int64_t>(steps);
}

Result<runtime::Selection> chooseGraph(const format::Bundle &bundle, const SessionOptions &options, const Arrays &arrays) {
  const std::string &id = options.graph;
  const auto &graphs = *bundle.manifest().graphs();
  runtime::Selection selection;
  if (auto index = id.empty() ? std::nullopt : bundle.findGraph(id)) {
    selection.graph = *index;
    return selection;
  }
  if (id.empty() && !arrays.empty()) {
    std::vector<runtime::GivenInput> given;
    for (const auto &[name, array] : arrays) {
      given.push_back({name, array.shape});
      for (const fb::Binding *binding : *graphs.Get(0)->inputs())
        if (binding->name()->string_view() == name && isOfEachStep(*binding, array, options.steps))
          given.back().shape.erase(given.back().shape.begin());
    }
    Result<runtime::Selection> found = runtime::selectGraph(bundle.manifest(), given);
    // Of a lone graph, the first input that does not fit says it better.
    return found.ok() || graphs.size() != 1 ? found : selection;
  }
  if (id.empty() && graphs.size() == 1)
    return selection;
  std::string names;
  for (const fb::Graph *graph : graphs)
    names += (names.empty() ? "'" : ", '") + graph->id()->str() + "'";
  return Status(Code::InvalidArgument, id.empty() ? "the bundle has several graphs, choose one with --graph: " + names
                                                  : "there is no graph '" + id + "', the bundle has " + names);
}

/// The bytes of an input in the graph's shape, filled up with zeros where the graph was selected to be larger.
Result<std::vector<std::byte>> fitInput(const fb::Binding &binding, Array &array, std::vector<int64_t> expected, uint64_t steps) {
  std::string what = "input '" + binding.name()->str() + "': the file ";
  if (!matchesType(array.descr, binding.type()))
    return Status(Code::InvalidArgument, what + "has elements of type " + array.descr + ", expected " + npyDescr(binding.type()) +
                                             " (" + format::typeName(binding.type()) + ")");
  std::vector<int64_t> full(binding.shape()->begin(), binding.shape()->end());
  size_t bytes = binding.slice()->size_bytes();
  if (isOfEachStep(binding, array, steps)) {
    expected.insert(expected.begin(), static_cast<int64_t>(steps));
    full.insert(full.begin(), static_cast<int64_t>(steps));
    bytes *= steps;
  }
  if (array.shape != expected) {
    std::string shape;
    for (int64_t dim : array.shape)
      shape += (shape.empty() ? "" : "x") + std::to_string(dim);
    return Status(Code::InvalidArgument,
                  what + "has shape " + (shape.empty() ? "scalar" : shape) + ", expected " + format::shapeText(binding, false));
  }
  format::normalizeSmallIntegers(binding.type(), array.data.data(), array.data.size());
  if (expected == full)
    return std::move(array.data);
  std::vector<std::byte> padded(bytes);
  runtime::copyRows(array.data.data(), expected, padded.data(), full, format::elementBytes(binding.type()));
  return padded;
}

} // namespace

std::vector<std::byte> drawInput(const fb::Binding &binding, uint64_t seed, uint64_t intRange) {
  std::vector<std::byte> data(binding.slice()->size_bytes());
  size_t bytes = format::elementBytes(binding.type());
  // The name is part of the seed, so that adding an input does not change the others.
  for (char c : binding.name()->string_view())
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  runtime::Random random(seed);
  uint64_t range = binding.type() == DataType::Bool ? 2 : intRange;
  if (binding.type() == DataType::I8 || binding.type() == DataType::U8)
    range = std::min<uint64_t>(range, 128);
  if (binding.type() == DataType::I16 || binding.type() == DataType::U16)
    range = std::min<uint64_t>(range, 32768);
  if (int bits = format::smallIntegerBits(binding.type()))
    range = std::min<uint64_t>(range, 1u << (bits - 1));
  for (size_t i = 0; i < data.size() / bytes; ++i)
    format::writeElement(binding.type(), data.data(), i,
                         format::isFloat(binding.type()) ? random.normal() : static_cast<double>(random.below(range)));
  return data;
}

Result<Session> openSession(const SessionOptions &options) {
  Session session;
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(options.bundle);
  if (!bundle.ok())
    return bundle.status();
  session.bundle = bundle.value();
  Result<Arrays> arrays = readFiles(options.inputs);
  if (!arrays.ok())
    return arrays.status();
  Result<runtime::Selection> selection = chooseGraph(*session.bundle, options, arrays.value());
  if (!selection.ok())
    return selection.status();
  session.selection = selection.value();
  session.graphIndex = session.selection.graph;
  session.graph = session.bundle->manifest().graphs()->Get(static_cast<unsigned>(session.graphIndex));
  for (unsigned i = 0; i < session.graph->inputs()->size(); ++i) {
    const fb::Binding &binding = *session.graph->inputs()->Get(i);
    auto array = arrays.value().find(binding.name()->str());
    if (array == arrays.value().end() && isState(binding)) {
      session.inputs.emplace_back();
      continue;
    }
    if (array == arrays.value().end()) {
      session.inputs.push_back(drawInput(binding, options.seed, options.intRange));
      continue;
    }
    Result<std::vector<std::byte>> data =
        fitInput(binding, array->second, runtime::inputShape(session.bundle->manifest(), session.selection, i), options.steps);
    if (!data.ok())
      return data.status();
    session.inputs.push_back(std::move(data.value()));
    arrays.value().erase(array);
  }
  if (!arrays.value().empty())
    return Status(Code::InvalidArgument,
                  "there is no input '" + arrays.value().begin()->first + "', the graph has " + list(*session.graph->inputs()));
  return session;
}

runtime::EngineOptions engineOptions(const SessionOptions &options) {
  runtime::EngineOptions engine;
  engine.weightsFile = options.weightsFile;
  engine.randomWeights = options.randomWeights;
  engine.seed = options.seed;
  engine.threads = options.threads;
  engine.execPool = options.pool;
  return engine;
}

Result<std::unique_ptr<runtime::Context>> openContext(const Session &session, const std::string &device,
                                                      const SessionOptions &options,
                                                      std::shared_ptr<runtime::Engine> *outEngine) {
  Result<std::shared_ptr<runtime::Engine>> engine = runtime::createEngine(session.bundle, device, engineOptions(options));
  if (!engine.ok())
    return engine.status();
  if (outEngine)
    *outEngine = engine.value();
  return engine.value()->createContext(engine.value(), {});
}

Status uploadInputs(const Session &session, runtime::Context &context, uint64_t step) {
  for (unsigned i = 0; i < session.inputs.size(); ++i) {
    const fb::Binding &binding = *session.graph->inputs()->Get(i);
    const fb::Slice &slice = *binding.slice();
    if (isState(binding) && (session.inputs[i].empty() || step != 0))
      continue;
    const std::byte *data = session.inputs[i].data();
    if (session.inputs[i].size() > slice.size_bytes())
      data += step * slice.size_bytes();
    OGC_RETURN_IF_ERROR(context.copyIn(slice.section(), slice.offset_bytes(), data, slice.size_bytes()));
  }
  return Status();
}

Status resetAndUpload(const Session &session, runtime::Context &context) {
  OGC_RETURN_IF_ERROR(context.fill(fb::Section::State, 0));
  return uploadInputs(session, context);
}

Status downloadOutputs(const Session &session, runtime::Context &context, std::vector<std::vector<std::byte>> &outputs) {
  outputs.resize(session.graph->outputs()->size());
  for (unsigned i = 0; i < outputs.size(); ++i) {
    const fb::Slice &slice = *session.graph->outputs()->Get(i)->slice();
    outputs[i].resize(slice.size_bytes());
    OGC_RETURN_IF_ERROR(context.copyOut(slice.section(), slice.offset_bytes(), outputs[i].data(), slice.size_bytes()));
  }
  return context.synchronize();
}

Result<std::vector<std::vector<std::byte>>> downloadOutputs(const Session &session, runtime::Context &context) {
  std::vector<std::vector<std::byte>> outputs;
  OGC_RETURN_IF_ERROR(downloadOutputs(session, context, outputs));
  return outputs;
}

} // namespace ogc::tools
