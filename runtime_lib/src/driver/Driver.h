//===- Driver.h - what the cpu and the cuda driver have in common ---------===//
#ifndef OGC_RUNTIME_DRIVER_DRIVER_H
#define OGC_RUNTIME_DRIVER_DRIVER_H

#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ogc::runtime {

namespace fb = format::fb;

struct EngineOptions {
  /// The raw weights section of a bundle that does not hold its weights. Where it is empty, an external section is looked for in
  /// "<bundle path>.weights".
  std::string weightsFile;
  /// Fill weights that are nowhere with small random numbers of `seed`; equal on every device. Without it, missing weights are an
  /// error.
  bool randomWeights = false;
  uint64_t seed = 0;
  /// Threads a context of the cpu device uses, at least 1.
  unsigned threads = 1;
};

struct ContextOptions {
  /// A stream of the caller (CUstream) to run on; null: a stream of the context's own. Unused on the cpu device.
  void *stream = nullptr;
};

/// One arena and what is needed to run the graphs of a bundle in it. One thread at a time; results of `launch` and of the copies
/// are there after `synchronize`. Graph indices and ranges must be valid: callers check them.
class Context {
public:
  virtual ~Context() = default;

  /// Builds what `launch` of `graph` needs. Done by the first launch otherwise.
  virtual Status prepare(size_t graph) = 0;

  /// Enqueues one run of `graph`. After `prepare`, allocates nothing.
  virtual Status launch(size_t graph) = 0;

  /// Runs the nodes [begin, end) of `graph` and waits. For checking, not for speed.
  virtual Status runNodes(size_t graph, size_t begin, size_t end) = 0;

  virtual Status synchronize() = 0;

  /// Copies host bytes into a section; `host` may be reused when this returns.
  virtual Status copyIn(fb::Section section, uint64_t offset, const void *host, uint64_t size) = 0;

  /// Copies bytes of a section to the host; they are there after `synchronize`.
  virtual Status copyOut(fb::Section section, uint64_t offset, void *host, uint64_t size) = 0;

  /// The same between a section and memory of the device, ordered with the launches.
  virtual Status copyInDevice(fb::Section section, uint64_t offset, const void *device, uint64_t size) = 0;
  virtual Status copyOutDevice(fb::Section section, uint64_t offset, void *device, uint64_t size) = 0;

  /// Fills a section of the context with a byte.
  virtual Status fill(fb::Section section, uint8_t value) = 0;

  /// Address of a section in the memory of the device.
  virtual void *address(fb::Section section) const = 0;

  /// The CUstream, or null on the cpu device.
  virtual void *stream() const = 0;

  /// One run of `graph`, waited for; `outMicroseconds` is the time on the device.
  virtual Status timeLaunch(size_t graph, double &outMicroseconds) = 0;

  /// Nodes of the executable graph after `prepare`; a library node may have become several.
  virtual size_t executableNodes(size_t graph) const = 0;

  /// Runs the nodes in a random topological order of `seed` from now on, or in schedule order where `seed` is 0. Only on the cpu
  /// device.
  virtual Status setOrder(uint64_t seed) = 0;
};

/// A bundle on a device, its weights there once for all contexts. Safe to use from several threads.
class Engine {
public:
  virtual ~Engine() = default;
  /// `self` is the engine's own pointer, which the context keeps alive.
  virtual Result<std::unique_ptr<Context>> createContext(std::shared_ptr<Engine> self, const ContextOptions &options) = 0;
  virtual const format::Bundle &bundle() const = 0;
  /// For people: "cpu", or the name of the GPU.
  virtual std::string deviceName() const = 0;
};

using BundlePtr = std::shared_ptr<const format::Bundle>;

Result<std::shared_ptr<Engine>> createCpuEngine(BundlePtr bundle, const EngineOptions &options);
Result<std::shared_ptr<Engine>> createCudaEngine(BundlePtr bundle, int device, const EngineOptions &options);

/// `device` is "cpu", "cuda" (the first GPU) or "cuda:N".
Result<std::shared_ptr<Engine>> createEngine(BundlePtr bundle, const std::string &device, const EngineOptions &options);

} // namespace ogc::runtime

#endif
