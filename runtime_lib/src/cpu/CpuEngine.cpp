//===- CpuEngine.cpp - runs the node list on the processor ----------------===//
#include "runtime_lib/format/FileHeader.h"
#include "runtime_lib/format/Refit.h"
#include "runtime_lib/src/cpu/CpuFeatures.h"
#include "runtime_lib/src/cpu/SharedObject.h"
#include "runtime_lib/src/cpu/ThreadPool.h"
#include "runtime_lib/src/driver/Order.h"
#include "runtime_lib/src/driver/Weights.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <shared_mutex>
#include <unistd.h>

namespace ogc::runtime {

namespace {

class CpuEngine final : public Engine {
public:
  static Result<std::shared_ptr<Engine>> create(BundlePtr bundle, const EngineOptions &options);

  Result<std::unique_ptr<Context>> createContext(std::shared_ptr<Engine> self, const ContextOptions &options) override;
  const format::Bundle &bundle() const override { return *bundle_; }
  std::string deviceName() const override { return "cpu"; }
  Status refit(const BundlePtr &refitted, const std::string &weightsFile) override;

  unsigned threads() const { return threads_; }
  const std::byte *weights() const { return weights_.bytes().data(); }
  CpuKernelFn kernel(uint32_t index) const { return kernels_[index]; }
  /// Held shared while a graph runs, and alone while weights are replaced.
  std::shared_mutex &weightsMutex() { return weightsMutex_; }
  /// Raised when the weights have moved; read under the mutex.
  uint64_t weightsVersion() const { return weightsVersion_; }

private:
  BundlePtr bundle_;
  HostWeights weights_;
  std::shared_mutex weightsMutex_;
  uint64_t weightsVersion_ = 0;
  std::unique_ptr<SharedObject> code_;
  std::vector<CpuKernelFn> kernels_;
  unsigned threads_ = 1;
};

struct Free {
  void operator()(std::byte *memory) const { std::free(memory); }
};
using ArenaMemory = std::unique_ptr<std::byte, Free>;

/// A node with its addresses.
struct BoundNode {
  const fb::Node *node;
  CpuKernelFn kernel = nullptr;
  int64_t units = 0;
  std::vector<void *> buffers;
};

struct BoundGraph {
  bool prepared = false;
  /// Of the weights that the addresses are for.
  uint64_t weightsVersion = 0;
  /// For each binding the caller's buffer, null for the own one.
  std::vector<std::byte *> bound;
  std::vector<BoundNode> nodes;
  std::vector<uint32_t> order;
};

class CpuContext final : public Context {
public:
  CpuContext(std::shared_ptr<Engine> engine, ArenaMemory arena)
      : engine_(std::move(engine)), arena_(std::move(arena)), pool_(cpu().threads()), graphs_(manifest().graphs()->size()) {
    layout_ = format::contextLayout(*manifest().arena());
    for (size_t i = 0; i < graphs_.size(); ++i)
      graphs_[i].bound.assign(graph(i).inputs()->size() + graph(i).outputs()->size(), nullptr);
  }

  Status prepare(size_t graph) override {
    std::shared_lock weights(cpu().weightsMutex());
    prepareLocked(graph);
    return Status();
  }
  Status launch(size_t graph) override;
  Status runNodes(size_t graph, size_t begin, size_t end) override;
  Status synchronize() override { return Status(); }
  Status copyIn(fb::Section section, uint64_t offset, const void *host, uint64_t size) override {
    if (size != 0)
      std::memcpy(static_cast<std::byte *>(address(section)) + offset, host, size);
    return Status();
  }
  Status copyOut(fb::Section section, uint64_t offset, void *host, uint64_t size) override {
    if (size != 0)
      std::memcpy(host, static_cast<std::byte *>(address(section)) + offset, size);
    return Status();
  }
  Status copyInDevice(fb::Section section, uint64_t offset, const void *device, uint64_t size) override {
    return copyIn(section, offset, device, size);
  }
  Status copyOutDevice(fb::Section section, uint64_t offset, void *device, uint64_t size) override {
    return copyOut(section, offset, device, size);
  }
  Result<bool> bindInPlace(size_t graph, size_t binding, void *buffer) override;
  Status fillRange(fb::Section section, uint64_t offset, uint64_t size, uint8_t value) override {
    if (size != 0)
      std::memset(static_cast<std::byte *>(address(section)) + offset, value, size);
    return Status();
  }
  Status fill(fb::Section section, uint8_t value) override {
    return fillRange(section, 0, format::sectionBytes(*manifest().arena(), section), value);
  }
  void *address(fb::Section section) const override;
  void *stream() const override { return nullptr; }
  Status timeLaunch(size_t graph, double &outMicroseconds) override;
  size_t executableNodes(size_t graph) const override {
    return manifest().graphs()->Get(static_cast<unsigned>(graph))->nodes()->size();
  }
  Status setOrder(uint64_t seed) override;

private:
  CpuEngine &cpu() const { return static_cast<CpuEngine &>(*engine_); }
  const fb::Manifest &manifest() const { return engine_->bundle().manifest(); }
  const fb::Graph &graph(size_t index) const { return *manifest().graphs()->Get(static_cast<unsigned>(index)); }
  const fb::Binding &binding(size_t graph, size_t index) const;
  /// Both with the weights held shared.
  void prepareLocked(size_t graph);
  void setAddresses(size_t graph);
  void run(const BoundNode &node);

  std::shared_ptr<Engine> engine_;
  ArenaMemory arena_;
  format::ContextLayout layout_;
  ThreadPool pool_;
  std::vector<BoundGraph> graphs_;
  uint64_t orderSeed_ = 0;
};

Result<std::shared_ptr<Engine>> CpuEngine::create(BundlePtr bundle, const EngineOptions &options) {
  const fb::Manifest &manifest = bundle->manifest();
  if (!bundle->hasTarget("cpu"))
    return Status(Code::Unsupported, "the bundle was not compiled for the cpu target");
  OGC_RETURN_IF_ERROR(checkCpuFeatures(manifest.cpu_features()->string_view()));
  auto engine = std::make_shared<CpuEngine>();
  Result<HostWeights> weights = HostWeights::find(bundle, options);
  if (!weights.ok())
    return weights.status();
  engine->weights_ = std::move(weights.value());
  engine->threads_ = std::max(options.threads, 1u);
  engine->bundle_ = std::move(bundle);
  engine->kernels_.resize(manifest.kernels()->size(), nullptr);
  auto image = engine->bundle_->sharedObject();
  if (!image)
    return std::shared_ptr<Engine>(engine);
  Result<std::unique_ptr<SharedObject>> code = SharedObject::load(*image);
  if (!code.ok())
    return code.status();
  engine->code_ = std::move(code.value());
  for (unsigned i = 0; i < manifest.kernels()->size(); ++i) {
    const fb::CpuKernel *kernel = manifest.kernels()->Get(i)->cpu();
    if (!kernel)
      continue;
    engine->kernels_[i] = reinterpret_cast<CpuKernelFn>(engine->code_->find(kernel->symbol()->str()));
    if (!engine->kernels_[i])
      return Status(Code::DataLoss, "the shared object has no symbol '" + kernel->symbol()->str() + "'");
  }
  return std::shared_ptr<Engine>(engine);
}

Status CpuEngine::refit(const BundlePtr &refitted, const std::string &weightsFile) {
  OGC_RETURN_IF_ERROR(format::checkRefit(*bundle_, *refitted));
  EngineOptions options;
  options.weightsFile = weightsFile;
  Result<HostWeights> weights = HostWeights::find(refitted, options);
  if (!weights.ok())
    return weights.status();
  std::unique_lock lock(weightsMutex_);
  weights_ = std::move(weights.value());
  ++weightsVersion_;
  return Status();
}

Result<std::unique_ptr<Context>> CpuEngine::createContext(std::shared_ptr<Engine> self, const ContextOptions &) {
  uint64_t bytes = std::max(format::contextLayout(*bundle_->manifest().arena()).total, format::kSectionAlignment);
  // The system promises more memory than there is, and ends the process that uses it.
  uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > memory)
    return Status(Code::OutOfMemory,
                  "the arena needs " + std::to_string(bytes) + " bytes, the machine has " + std::to_string(memory));
  ArenaMemory arena(static_cast<std::byte *>(std::aligned_alloc(format::kSectionAlignment, bytes)));
  if (!arena)
    return Status(Code::OutOfMemory, "cannot allocate an arena of " + std::to_string(bytes) + " bytes");
  std::memset(arena.get(), 0, bytes);
  return std::unique_ptr<Context>(std::make_unique<CpuContext>(std::move(self), std::move(arena)));
}

void *CpuContext::address(fb::Section section) const {
  switch (section) {
  case fb::Section::Weights:
    return const_cast<std::byte *>(cpu().weights()); // the verifier lets no node write here
  case fb::Section::State:
    return arena_.get() + layout_.state;
  case fb::Section::Inputs:
    return arena_.get() + layout_.inputs;
  case fb::Section::Outputs:
    return arena_.get() + layout_.outputs;
  case fb::Section::Scratch:
    return arena_.get() + layout_.scratch;
  }
  return nullptr;
}

const fb::Binding &CpuContext::binding(size_t index, size_t binding) const {
  const fb::Graph &description = graph(index);
  unsigned inputs = description.inputs()->size(), i = static_cast<unsigned>(binding);
  return i < inputs ? *description.inputs()->Get(i) : *description.outputs()->Get(i - inputs);
}

void CpuContext::prepareLocked(size_t index) {
  BoundGraph &bound = graphs_[index];
  if (bound.prepared && bound.weightsVersion == cpu().weightsVersion())
    return;
  if (!bound.prepared) {
    for (const fb::Node *node : *graph(index).nodes()) {
      BoundNode entry{node, nullptr, 0, std::vector<void *>(node->args()->size())};
      if (node->kind() == fb::NodeKind::Kernel || node->kind() == fb::NodeKind::Gemm) {
        entry.kernel = cpu().kernel(node->kernel());
        entry.units = manifest().kernels()->Get(node->kernel())->cpu()->units();
      }
      bound.nodes.push_back(std::move(entry));
    }
    bound.order = topologicalOrder(graph(index), orderSeed_);
  }
  setAddresses(index);
  bound.weightsVersion = cpu().weightsVersion();
  bound.prepared = true;
}

void CpuContext::setAddresses(size_t index) {
  BoundGraph &bound = graphs_[index];
  for (BoundNode &entry : bound.nodes)
    for (unsigned i = 0; i < entry.buffers.size(); ++i) {
      const fb::Slice &slice = *entry.node->args()->Get(i);
      entry.buffers[i] = static_cast<std::byte *>(address(slice.section())) + slice.offset_bytes();
    }
  for (size_t i = 0; i < bound.bound.size(); ++i)
    if (bound.bound[i])
      for (const fb::BindingUse *use : *binding(index, i).uses())
        bound.nodes[use->node()].buffers[use->argument()] = bound.bound[i] + use->offset_bytes();
}

Result<bool> CpuContext::bindInPlace(size_t index, size_t binding, void *buffer) {
  const fb::Binding &description = this->binding(index, binding);
  bool isInPlace = buffer && description.uses() && reinterpret_cast<uintptr_t>(buffer) % kCpuBufferAlignment == 0 &&
                   !overlaps(buffer, description.slice()->size_bytes(), arena_.get(), layout_.total);
  BoundGraph &bound = graphs_[index];
  bound.bound[binding] = isInPlace ? static_cast<std::byte *>(buffer) : nullptr;
  if (bound.prepared && description.uses()) {
    const fb::Slice &slice = *description.slice();
    std::byte *base =
        isInPlace ? bound.bound[binding] : static_cast<std::byte *>(address(slice.section())) + slice.offset_bytes();
    for (const fb::BindingUse *use : *description.uses())
      bound.nodes[use->node()].buffers[use->argument()] = base + use->offset_bytes();
  }
  return isInPlace;
}

void CpuContext::run(const BoundNode &entry) {
  const fb::Slice *target = entry.node->args()->size() ? entry.node->args()->Get(entry.node->args()->size() - 1) : nullptr;
  switch (entry.node->kind()) {
  case fb::NodeKind::Kernel:
  case fb::NodeKind::Gemm:
    // Other orders are for proofs: what a library may overwrite is overwritten.
    if (orderSeed_ != 0 && entry.node->gemm() && entry.node->gemm()->has_workspace())
      std::memset(entry.buffers.back(), 0xFF, target->size_bytes());
    pool_.run(entry.kernel, entry.buffers.data(), entry.units);
    return;
  case fb::NodeKind::Memcpy:
    std::memmove(entry.buffers[1], entry.buffers[0], target->size_bytes());
    return;
  case fb::NodeKind::Memset:
    std::memset(entry.buffers[0], entry.node->value(), target->size_bytes());
    return;
  }
}

Status CpuContext::launch(size_t index) {
  std::shared_lock weights(cpu().weightsMutex());
  prepareLocked(index);
  for (uint32_t node : graphs_[index].order)
    run(graphs_[index].nodes[node]);
  return Status();
}

Status CpuContext::runNodes(size_t index, size_t begin, size_t end) {
  std::shared_lock weights(cpu().weightsMutex());
  prepareLocked(index);
  for (size_t node = begin; node < end; ++node)
    run(graphs_[index].nodes[node]);
  return Status();
}

Status CpuContext::timeLaunch(size_t index, double &outMicroseconds) {
  auto begin = std::chrono::steady_clock::now();
  OGC_RETURN_IF_ERROR(launch(index));
  outMicroseconds = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  return Status();
}

Status CpuContext::setOrder(uint64_t seed) {
  orderSeed_ = seed;
  for (size_t i = 0; i < graphs_.size(); ++i)
    if (graphs_[i].prepared)
      graphs_[i].order = topologicalOrder(graph(i), seed);
  return Status();
}

} // namespace

Result<std::shared_ptr<Engine>> createCpuEngine(BundlePtr bundle, const EngineOptions &options) {
  return CpuEngine::create(std::move(bundle), options);
}

} // namespace ogc::runtime
