//===- CudaContext.h - an arena, a stream and executable graphs -----------===//
#ifndef OGC_RUNTIME_CUDA_CUDA_CONTEXT_H
#define OGC_RUNTIME_CUDA_CUDA_CONTEXT_H

#include "runtime_lib/src/cuda/ExecPool.h"
#include "runtime_lib/src/cuda/ExecutableGraph.h"

#include <optional>

namespace ogc::cuda {

class CudaContext final : public runtime::Context {
public:
  static Result<std::unique_ptr<runtime::Context>> create(std::shared_ptr<CudaEngine> engine, const ContextOptions &options);
  explicit CudaContext(std::shared_ptr<CudaEngine> engine);
  ~CudaContext() override;

  Status prepare(size_t graph) override;
  Status launch(size_t graph) override;
  Status runNodes(size_t graph, size_t begin, size_t end) override;
  Status synchronize() override;
  Status copyIn(fb::Section section, uint64_t offset, const void *host, uint64_t size) override;
  Status copyOut(fb::Section section, uint64_t offset, void *host, uint64_t size) override;
  Status copyInDevice(fb::Section section, uint64_t offset, const void *device, uint64_t size) override;
  Status copyOutDevice(fb::Section section, uint64_t offset, void *device, uint64_t size) override;
  Result<bool> bindInPlace(size_t graph, size_t binding, void *buffer) override;
  Status fillRange(fb::Section section, uint64_t offset, uint64_t size, uint8_t value) override;
  Status fill(fb::Section section, uint8_t value) override {
    return fillRange(section, 0, format::sectionBytes(*manifest_.arena(), section), value);
  }
  void *address(fb::Section section) const override { return devicePointer(addresses_.base[static_cast<size_t>(section)]); }
  void *stream() const override { return stream_; }
  Status timeLaunch(size_t graph, double &outMicroseconds) override;
  Status timePrefix(size_t graph, size_t count, std::span<double> outMicroseconds) override;
  size_t executableNodes(size_t graph) const override { return graphs_[graph].executableNodes; }
  Status selectVariant(uint32_t kernel, uint32_t variant) override;
  Status setOrder(uint64_t seed) override;

private:
  /// What the context keeps of a graph ID.
  struct GraphState {
    /// For each binding the caller's buffer, 0 for the own one.
    std::vector<CUdeviceptr> bound;
    size_t executableNodes = 0;
  };

  /// A copy that waits in pinned memory for `synchronize`.
  struct PendingCopy {
    void *host;
    const std::byte *staged;
    uint64_t size;
  };

  Status initialize(const ContextOptions &options);
  Status checkNotCapturing() const;
  Status waitForStaging();
  /// Everything below runs with the context current.
  const fb::Graph &description(size_t graph) const { return *manifest_.graphs()->Get(static_cast<unsigned>(graph)); }
  GraphAddresses addressesOf(size_t graph) const { return {addresses_, &engine_->bindingTable(graph), graphs_[graph].bound}; }
  /// An executable graph with the nodes and the buffers that `graph` has now. `isChanged` where it had others before.
  Result<ExecPool::Lease> acquire(size_t graph, bool &isChanged);
  Status makeOwn(ExecPool::Lease &lease, size_t graph, bool &isChanged);
  Status switchTo(ExecutableGraph &exec, size_t graph);
  Status patch(ExecPool::Entry &entry, size_t graph);
  Status instantiate(ExecPool::Entry &entry, size_t graph);
  Status enqueue(size_t graph);
  /// The nodes [begin, end) as a graph of their own, in the context's own buffers.
  Result<std::unique_ptr<ExecutableGraph>> instantiatePart(size_t graph, size_t begin, size_t end);
  Status checkDevicePointer(const void *pointer, bool &isDeviceMemory) const;
  Status synchronizeCurrent();
  Status copyUnstaged(fb::Section section, uint64_t offset, void *host, uint64_t size, bool out);
  CUdeviceptr at(fb::Section section, uint64_t offset) const { return addresses_.base[static_cast<size_t>(section)] + offset; }

  std::shared_ptr<CudaEngine> engine_;
  const DriverApi &api_;
  const fb::Manifest &manifest_;
  VirtualRegion region_;
  SectionAddresses addresses_;
  CUstream stream_ = nullptr, captureStream_ = nullptr;
  bool ownsStream_ = false;
  CUevent staged_ = nullptr, begin_ = nullptr, end_ = nullptr;
  /// Inputs were staged since the last launch; a launch still reads what was staged before it.
  bool stagingUsed_ = false, stagingBusy_ = false;
  /// Pinned memory: the inputs section, then the outputs section.
  std::byte *pinned_ = nullptr;
  std::vector<PendingCopy> pending_;
  std::vector<GraphState> graphs_;
  NodeParameters parameters_;
  std::vector<uint32_t> nodeIndices_;
  std::optional<ExecPool::Owner> execs_;
};

} // namespace ogc::cuda

#endif
