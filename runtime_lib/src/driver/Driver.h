//===- Driver.h - what the cpu and the cuda driver have in common ---------===//
#ifndef OGC_RUNTIME_DRIVER_DRIVER_H
#define OGC_RUNTIME_DRIVER_DRIVER_H

#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ogc::runtime {

namespace fb = format::fb;
using BundlePtr = std::shared_ptr<const format::Bundle>;

inline constexpr size_t kDefaultExecPool = 256;

/// Alignment of every buffer on a GPU, and of a caller's that is to take the place of one. Kernels of the cpu target need none
/// but that they may read up to the next multiple of 16 bytes, which is in the caller's memory where the buffer begins at one.
inline constexpr uint64_t kBufferAlignment = 256, kCpuBufferAlignment = 16;

/// How an executable graph is made to be that of another graph: node by node, by one update from a graph built for it, or by
/// what is the faster of both.
enum class ExecSwitch { Automatic, Parameters, Update };

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
  /// Executable graphs that all contexts together keep on a CUDA device, at least 1.
  size_t execPool = kDefaultExecPool;
  ExecSwitch execSwitch = ExecSwitch::Automatic;
};

/// What became of the executable graphs of an engine so far.
struct ExecStats {
  size_t live = 0, capacity = 0;
  uint64_t instantiated = 0; ///< built from nothing
  uint64_t switched = 0;     ///< updated to another graph of their topology, or to another context
  uint64_t refused = 0;      ///< updates that the driver refused; each was followed by an instantiation
  uint64_t evicted = 0;      ///< destroyed to make room
  uint64_t patched = 0;      ///< nodes whose addresses were changed for bindings
};

struct ContextOptions {
  /// A stream of the caller (CUstream) to run on; null: a stream of the context's own. Unused on the cpu device.
  void *stream = nullptr;
};

/// Whether two ranges of memory share a byte.
inline bool overlaps(const void *a, uint64_t aBytes, const void *b, uint64_t bBytes) {
  uintptr_t x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + bBytes && y < x + aBytes;
}

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

  /// Lets `graph` use `buffer`, memory of the device that is as long as the binding, in place of the context's own; null goes
  /// back to that. It holds from the next launch on. `binding` counts the inputs, then the outputs. False where it cannot be used
  /// in place and has to be copied (no list of uses in the bundle, alignment, a library node, a part of the context's own
  /// memory): then the own buffer is used. InvalidArgument where it is no memory of the device.
  virtual Result<bool> bindInPlace(size_t graph, size_t binding, void *buffer) = 0;

  /// Fills a byte range of a section.
  virtual Status fillRange(fb::Section section, uint64_t offset, uint64_t size, uint8_t value) = 0;

  /// Fills a section of the context with a byte.
  virtual Status fill(fb::Section section, uint8_t value) = 0;

  /// Address of a section in the memory of the device.
  virtual void *address(fb::Section section) const = 0;

  /// The CUstream, or null on the cpu device.
  virtual void *stream() const = 0;

  /// One run of `graph`, waited for; `outMicroseconds` is the time on the device.
  virtual Status timeLaunch(size_t graph, double &outMicroseconds) = 0;

  /// Runs all of `graph` once for each element of `outMicroseconds`, which becomes the time on the device until the first `count`
  /// nodes are done. The others run after them, outside of that time, so that caches and values are those of a whole run. Waits.
  /// Only on a CUDA device: on the cpu nodes run one after the other, and `runNodes` can be timed.
  virtual Status timePrefix(size_t graph, size_t count, std::span<double> outMicroseconds) {
    return Status(Code::Unsupported, "prefixes of a graph are timed only on a CUDA device");
  }

  /// Nodes of the executable graph after `prepare`; a library node may have become several.
  virtual size_t executableNodes(size_t graph) const = 0;

  /// Takes another choice for a kernel (Manifest.kernels()[kernel].variants()[variant]) in graphs prepared from now on, and
  /// forgets those prepared before. Only on a CUDA device; for tuning.
  virtual Status selectVariant(uint32_t kernel, uint32_t variant) {
    return Status(Code::Unsupported, "kernels have variants only on a CUDA device");
  }

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

  /// Replaces the weights by those of `refitted`, a bundle that differs from this one in them alone. Waits for what runs; runs
  /// that begin later see the new ones. On failure the old ones stay, but for a failure of the device while it copies.
  virtual Status refit(const BundlePtr &refitted, const std::string &weightsFile) = 0;

  /// All zero on the cpu device, which has no executable graphs.
  virtual ExecStats execStats() const { return {}; }

  /// Bytes in use on the whole device, by everybody; 0 on the cpu device.
  virtual Result<uint64_t> deviceBytesInUse() const { return uint64_t(0); }
};

Result<std::shared_ptr<Engine>> createCpuEngine(BundlePtr bundle, const EngineOptions &options);
Result<std::shared_ptr<Engine>> createCudaEngine(BundlePtr bundle, int device, const EngineOptions &options);

/// `device` is "cpu", "cuda" (the first GPU) or "cuda:N".
Result<std::shared_ptr<Engine>> createEngine(BundlePtr bundle, const std::string &device, const EngineOptions &options);

} // namespace ogc::runtime

#endif
