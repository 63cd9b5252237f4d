//===- RunArrays.cpp - graphs by the shapes of their inputs ---------------===//
#include "runtime_lib/format/DataType.h"
#include "runtime_lib/src/Handles.h"
#include "runtime_lib/src/select/Select.h"

#include <memory>
#include <optional>

using ogc::Code;
using ogc::Result;
using ogc::Status;
using namespace ogc::runtime;

namespace {

Status invalid(std::string what) { return Status(Code::InvalidArgument, std::move(what)); }

/// The status of a call of the C interface.
Status statusOf(ogc_code code) { return code == OGC_OK ? Status() : Status(static_cast<Code>(code), ogc_last_error()); }

Result<std::vector<GivenInput>> givenInputs(const ogc_array *inputs, size_t count) {
  if (!inputs && count != 0)
    return invalid("an argument is null");
  std::vector<GivenInput> given;
  for (size_t i = 0; i < count; ++i) {
    if (!inputs[i].name || (!inputs[i].shape && inputs[i].rank != 0))
      return invalid("array " + std::to_string(i) + " has no name or no shape");
    given.push_back({inputs[i].name, Shape(inputs[i].shape, inputs[i].shape + inputs[i].rank)});
  }
  return given;
}

Result<Selection> select(const ogc::format::Bundle &bundle, const ogc_array *inputs, size_t count) {
  Result<std::vector<GivenInput>> given = givenInputs(inputs, count);
  return given.ok() ? selectGraph(bundle.manifest(), given.value()) : Result<Selection>(given.status());
}

size_t bytesOf(const Shape &shape, size_t elementBytes) {
  size_t bytes = elementBytes;
  for (int64_t size : shape)
    bytes *= static_cast<size_t>(size);
  return bytes;
}

/// One run on arrays: binds them, or copies of them in the graph's shapes, and unbinds all at the end.
class ArrayRun {
public:
  ArrayRun(ogc_context *context, const Selection &selection)
      : context_(context), manifest_(bundleOf(*context).manifest()), selection_(selection),
        graph_(*manifest_.graphs()->Get(unsigned(selection.graph))) {}
  ~ArrayRun() {
    for (size_t index : boundInputs_)
      (void)ogc_bind_input(context_, selection_.graph, index, nullptr, 0, OGC_HOST);
    for (size_t index : boundOutputs_)
      (void)ogc_bind_output(context_, selection_.graph, index, nullptr, 0, OGC_HOST);
  }

  Status addInput(const ogc_array &array) {
    std::optional<size_t> index = find(*graph_.inputs(), array.name);
    if (!index)
      return invalid(std::string("there is no input '") + array.name + "'");
    const fb::Binding &binding = *graph_.inputs()->Get(unsigned(*index));
    Shape given = inputShape(manifest_, selection_, *index);
    const void *data = array.data;
    OGC_RETURN_IF_ERROR(check(array, given, binding));
    if (bytesOf(given, elementBytes(binding)) != binding.slice()->size_bytes()) {
      auto &staged = staging_.emplace_back(new char[binding.slice()->size_bytes()]);
      copyRows(array.data, given, staged.get(), graphShape(binding), elementBytes(binding));
      data = staged.get();
    }
    boundInputs_.push_back(*index);
    return statusOf(ogc_bind_input(context_, selection_.graph, *index, data, binding.slice()->size_bytes(), OGC_HOST));
  }

  Status addOutput(const ogc_array &array) {
    std::optional<size_t> index = array.name ? find(*graph_.outputs(), array.name) : std::nullopt;
    if (!index)
      return invalid(std::string("there is no output '") + (array.name ? array.name : "") + "'");
    const fb::Binding &binding = *graph_.outputs()->Get(unsigned(*index));
    Shape given = outputShape(manifest_, selection_, *index);
    OGC_RETURN_IF_ERROR(check(array, given, binding));
    void *data = array.data;
    if (bytesOf(given, elementBytes(binding)) != binding.slice()->size_bytes()) {
      data = staging_.emplace_back(new char[binding.slice()->size_bytes()]).get();
      cuts_.push_back({&binding, data, array.data, given});
    }
    boundOutputs_.push_back(*index);
    return statusOf(ogc_bind_output(context_, selection_.graph, *index, data, binding.slice()->size_bytes(), OGC_HOST));
  }

  Status run() {
    OGC_RETURN_IF_ERROR(statusOf(ogc_run(context_, selection_.graph)));
    for (const Cut &cut : cuts_)
      copyRows(cut.source, graphShape(*cut.binding), cut.target, cut.shape, elementBytes(*cut.binding));
    return Status();
  }

private:
  struct Cut {
    const fb::Binding *binding;
    void *source, *target;
    Shape shape;
  };

  static size_t elementBytes(const fb::Binding &binding) { return ogc::format::elementBytes(binding.type()); }
  static Shape graphShape(const fb::Binding &binding) { return Shape(binding.shape()->begin(), binding.shape()->end()); }

  static Status check(const ogc_array &array, const Shape &shape, const fb::Binding &binding) {
    size_t expected = bytesOf(shape, elementBytes(binding));
    if (array.bytes != expected)
      return invalid("'" + binding.name()->str() + "' has " + std::to_string(expected) + " bytes in this shape, the array " +
                     std::to_string(array.bytes));
    return array.data || expected == 0 ? Status() : invalid("the array of '" + binding.name()->str() + "' is null");
  }

  static std::optional<size_t> find(const flatbuffers::Vector<flatbuffers::Offset<fb::Binding>> &bindings, const char *name) {
    for (unsigned i = 0; i < bindings.size(); ++i)
      if (bindings.Get(i)->name()->string_view() == name)
        return i;
    return std::nullopt;
  }

  ogc_context *context_;
  const fb::Manifest &manifest_;
  const Selection &selection_;
  const fb::Graph &graph_;
  std::vector<std::unique_ptr<char[]>> staging_;
  std::vector<size_t> boundInputs_, boundOutputs_;
  std::vector<Cut> cuts_;
};

} // namespace

extern "C" {

ogc_code ogc_bundle_select(const ogc_bundle *bundle, const ogc_array *inputs, size_t input_count, size_t *out_graph) {
  return reported([&]() -> Status {
    if (!bundle || !out_graph)
      return invalid("an argument is null");
    Result<Selection> selection = select(bundleOf(*bundle), inputs, input_count);
    if (!selection.ok())
      return selection.status();
    *out_graph = selection.value().graph;
    return Status();
  });
}

ogc_code ogc_bundle_selected_shape(const ogc_bundle *bundle, const ogc_array *inputs, size_t input_count, size_t index,
                                   int64_t *out_shape) {
  return reported([&]() -> Status {
    if (!bundle || !out_shape)
      return invalid("an argument is null");
    Result<Selection> selection = select(bundleOf(*bundle), inputs, input_count);
    if (!selection.ok())
      return selection.status();
    const fb::Manifest &manifest = bundleOf(*bundle).manifest();
    if (index >= manifest.graphs()->Get(unsigned(selection.value().graph))->outputs()->size())
      return invalid("there is no output " + std::to_string(index));
    Shape shape = outputShape(manifest, selection.value(), index);
    std::copy(shape.begin(), shape.end(), out_shape);
    return Status();
  });
}

ogc_code ogc_run_arrays(ogc_context *context, const ogc_array *inputs, size_t input_count, const ogc_array *outputs,
                        size_t output_count, size_t *out_graph) {
  return reported([&]() -> Status {
    if (!context || (!outputs && output_count != 0))
      return invalid("an argument is null");
    Result<Selection> selection = select(bundleOf(*context), inputs, input_count);
    if (!selection.ok())
      return selection.status();
    ArrayRun run(context, selection.value());
    for (size_t i = 0; i < input_count; ++i)
      OGC_RETURN_IF_ERROR(run.addInput(inputs[i]));
    for (size_t i = 0; i < output_count; ++i)
      OGC_RETURN_IF_ERROR(run.addOutput(outputs[i]));
    OGC_RETURN_IF_ERROR(run.run());
    if (out_graph)
      *out_graph = selection.value().graph;
    return Status();
  });
}

} // extern "C"
