//===- ogc/runtime.hpp - the C interface as C++ objects -------------------===//
//
// Header only, over ogc/runtime.h. Handles are released by destructors; a failure is thrown as ogc::Error. What runtime.h says
// about threads and lifetimes holds here.
//
#ifndef OGC_RUNTIME_HPP
#define OGC_RUNTIME_HPP

#include "ogc/runtime.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ogc {

class Error : public std::runtime_error {
public:
  Error(ogc_code code, const char *message) : std::runtime_error(message), code_(code) {}
  ogc_code code() const { return code_; }

private:
  ogc_code code_;
};

/// Throws where `code` is a failure.
inline void check(ogc_code code) {
  if (code != OGC_OK)
    throw Error(code, ogc_last_error());
}

namespace rt {

class Bundle {
public:
  explicit Bundle(const std::string &path) {
    ogc_bundle *bundle = nullptr;
    check(ogc_bundle_open(path.c_str(), &bundle));
    handle_.reset(bundle);
  }
  size_t graphCount() const { return ogc_bundle_graph_count(get()); }
  std::string graphId(size_t graph) const {
    const char *id = ogc_bundle_graph_id(get(), graph);
    return id ? id : "";
  }
  size_t findGraph(const std::string &id) const {
    size_t graph = 0;
    check(ogc_bundle_find_graph(get(), id.c_str(), &graph));
    return graph;
  }
  std::vector<ogc_tensor> inputs(size_t graph) const { return tensors(graph, ogc_bundle_input_count, ogc_bundle_input); }
  std::vector<ogc_tensor> outputs(size_t graph) const { return tensors(graph, ogc_bundle_output_count, ogc_bundle_output); }
  size_t findInput(size_t graph, const std::string &name) const { return find(graph, name, ogc_bundle_find_input); }
  size_t findOutput(size_t graph, const std::string &name) const { return find(graph, name, ogc_bundle_find_output); }
  bool isState(size_t graph, size_t input) const { return ogc_bundle_input_is_state(get(), graph, input) != 0; }
  /// The graph for inputs of these names and shapes.
  size_t select(const std::vector<ogc_array> &inputs) const {
    size_t graph = 0;
    check(ogc_bundle_select(get(), inputs.data(), inputs.size(), &graph));
    return graph;
  }
  /// The shape of output `index`, of this rank, for such inputs.
  std::vector<int64_t> selectedShape(const std::vector<ogc_array> &inputs, size_t index, size_t rank) const {
    std::vector<int64_t> shape(rank);
    check(ogc_bundle_selected_shape(get(), inputs.data(), inputs.size(), index, shape.data()));
    return shape;
  }
  ogc_bundle *get() const { return handle_.get(); }

private:
  template <typename Count, typename Query> std::vector<ogc_tensor> tensors(size_t graph, Count count, Query query) const {
    std::vector<ogc_tensor> result(count(get(), graph));
    for (size_t i = 0; i < result.size(); ++i)
      check(query(get(), graph, i, &result[i]));
    return result;
  }
  template <typename Query> size_t find(size_t graph, const std::string &name, Query query) const {
    size_t index = 0;
    check(query(get(), graph, name.c_str(), &index));
    return index;
  }
  struct Close {
    void operator()(ogc_bundle *bundle) const { ogc_bundle_close(bundle); }
  };
  std::unique_ptr<ogc_bundle, Close> handle_;
};

class Engine {
public:
  Engine(const Bundle &bundle, const std::string &device, const ogc_engine_options &options = {}) {
    ogc_engine *engine = nullptr;
    check(ogc_engine_create(bundle.get(), device.c_str(), &options, &engine));
    handle_.reset(engine);
  }
  std::string deviceName() const { return ogc_engine_device_name(get()); }
  /// Replaces the weights by those of a bundle that differs in them alone.
  void refit(const Bundle &refitted, const char *weightsFile = nullptr) {
    check(ogc_engine_refit(get(), refitted.get(), weightsFile));
  }
  ogc_exec_stats execStats() const {
    ogc_exec_stats stats = {};
    check(ogc_engine_exec_stats(get(), &stats));
    return stats;
  }
  ogc_engine *get() const { return handle_.get(); }

private:
  struct Release {
    void operator()(ogc_engine *engine) const { ogc_engine_release(engine); }
  };
  std::unique_ptr<ogc_engine, Release> handle_;
};

class Context {
public:
  explicit Context(const Engine &engine, const ogc_context_options &options = {}) {
    ogc_context *context = nullptr;
    check(ogc_context_create(engine.get(), &options, &context));
    handle_.reset(context);
  }
  void prepare(size_t graph) { check(ogc_context_prepare(get(), graph)); }
  void bindInput(size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory = OGC_HOST) {
    check(ogc_bind_input(get(), graph, index, data, bytes, memory));
  }
  /// The shape of an output after the last run, for which this waits.
  std::vector<int64_t> outputShape(size_t graph, size_t index, size_t rank) {
    std::vector<int64_t> shape(rank);
    check(ogc_output_shape(get(), graph, index, shape.data(), rank));
    return shape;
  }
  void bindOutput(size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory = OGC_HOST) {
    check(ogc_bind_output(get(), graph, index, data, bytes, memory));
  }
  void writeState(size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory = OGC_HOST) {
    check(ogc_state_write(get(), graph, index, data, bytes, memory));
  }
  void readState(size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory = OGC_HOST) {
    check(ogc_state_read(get(), graph, index, data, bytes, memory));
  }
  /// Addresses on the device, of the buffers that the graph uses when nothing is bound.
  void *inputBuffer(size_t graph, size_t index) { return buffer(graph, index, ogc_input_buffer); }
  void *outputBuffer(size_t graph, size_t index) { return buffer(graph, index, ogc_output_buffer); }
  bool isInputInPlace(size_t graph, size_t index) const { return ogc_input_in_place(get(), graph, index) != 0; }
  bool isOutputInPlace(size_t graph, size_t index) const { return ogc_output_in_place(get(), graph, index) != 0; }
  void resetStates() { check(ogc_state_reset(get())); }
  /// Runs the graph for the shapes of the inputs and waits; returns it.
  size_t runArrays(const std::vector<ogc_array> &inputs, const std::vector<ogc_array> &outputs) {
    size_t graph = 0;
    check(ogc_run_arrays(get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), &graph));
    return graph;
  }
  void run(size_t graph) { check(ogc_run(get(), graph)); }
  void runAsync(size_t graph) { check(ogc_run_async(get(), graph)); }
  void synchronize() { check(ogc_context_synchronize(get())); }
  /// The CUDA stream, null on the cpu device.
  void *stream() const { return ogc_context_stream(get()); }
  ogc_context *get() const { return handle_.get(); }

private:
  template <typename Query> void *buffer(size_t graph, size_t index, Query query) {
    void *data = nullptr;
    check(query(get(), graph, index, &data));
    return data;
  }
  struct Release {
    void operator()(ogc_context *context) const { ogc_context_release(context); }
  };
  std::unique_ptr<ogc_context, Release> handle_;
};

} // namespace rt
} // namespace ogc

#endif
