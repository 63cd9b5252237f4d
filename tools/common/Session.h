//===- Session.h - what run, bench and verify begin with ------------------===//
#ifndef OGC_TOOLS_COMMON_SESSION_H
#define OGC_TOOLS_COMMON_SESSION_H

#include "runtime_lib/src/driver/Driver.h"
#include "runtime_lib/src/select/Select.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace ogc::tools {

namespace fb = format::fb;

/// The options that run, bench and verify share.
struct SessionOptions {
  std::string bundle, device = "cpu", graph, weightsFile;
  std::vector<std::string> inputs; // "name=file.npy"
  uint64_t seed = 0, intRange = 2;
  unsigned threads = 1;
  size_t pool = runtime::kDefaultExecPool;
  /// Runs one after the other; an input may have a value for each.
  uint64_t steps = 1;
  bool randomWeights = false;
};

void addSessionOptions(CLI::App &command, SessionOptions &options);

/// --device alone.
void addDeviceOption(CLI::App &command, SessionOptions &options);

/// Those among them that say what a graph is run on.
void addInputOptions(CLI::App &command, SessionOptions &options);

/// A bundle, the graph that was asked for, and its inputs on the host: the tensor, or one for each step behind each other. A
/// state has none unless its first value was given.
struct Session {
  std::shared_ptr<const format::Bundle> bundle;
  size_t graphIndex = 0;
  const fb::Graph *graph = nullptr;
  std::vector<std::vector<std::byte>> inputs; // in the shapes of the graph
  runtime::Selection selection;               // where these are larger than those of the files
};

runtime::EngineOptions engineOptions(const SessionOptions &options);

/// Opens the bundle, finds the graph by its ID or by the shapes of the files, and reads or draws its inputs.
Result<Session> openSession(const SessionOptions &options);

/// The engine and a context on `device`.
Result<std::unique_ptr<runtime::Context>> openContext(const Session &session, const std::string &device,
                                                      const SessionOptions &options,
                                                      std::shared_ptr<runtime::Engine> *outEngine = nullptr);

/// Enqueues the copies of the inputs of a step into the context's arena; of states before the first step only.
Status uploadInputs(const Session &session, runtime::Context &context, uint64_t step = 0);

/// Sets the states to zero and then does the same for the first step.
Status resetAndUpload(const Session &session, runtime::Context &context);

/// Copies the outputs to the host and waits.
Result<std::vector<std::vector<std::byte>>> downloadOutputs(const Session &session, runtime::Context &context);

/// The same, into `outputs`, whose memory is used again.
Status downloadOutputs(const Session &session, runtime::Context &context, std::vector<std::vector<std::byte>> &outputs);

/// Draws values for a binding: floats from N(0, 1), bool from {0, 1}, integers from [0, intRange). The default range of 2 is safe
/// for token ids, indices and masks alike.
std::vector<std::byte> drawInput(const fb::Binding &binding, uint64_t seed, uint64_t intRange);

} // namespace ogc::tools

#endif
