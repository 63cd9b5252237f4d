//===- CudaContext.cpp - replays graphs in one arena ----------------------===//
#include "runtime_lib/src/cuda/CudaContext.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <shared_mutex>

namespace ogc::cuda {

Result<std::unique_ptr<runtime::Context>> CudaEngine::createContext(std::shared_ptr<runtime::Engine> self,
                                                                    const ContextOptions &options) {
  return CudaContext::create(std::static_pointer_cast<CudaEngine>(std::move(self)), options);
}

Result<std::unique_ptr<runtime::Context>> CudaContext::create(std::shared_ptr<CudaEngine> engine, const ContextOptions &options) {
  auto context = std::make_unique<CudaContext>(std::move(engine));
  CurrentContext current(context->api_, context->engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(context->initialize(options));
  return std::unique_ptr<runtime::Context>(std::move(context));
}

CudaContext::CudaContext(std::shared_ptr<CudaEngine> engine)
    : engine_(std::move(engine)), api_(engine_->api()), manifest_(engine_->bundle().manifest()) {
  graphs_.resize(manifest_.graphs()->size());
  for (size_t i = 0; i < graphs_.size(); ++i)
    graphs_[i].bound.assign(engine_->bindingTable(i).bindings(), 0);
  execs_.emplace(engine_->execPool(), graphs_.size());
}

Status CudaContext::initialize(const ContextOptions &options) {
  const fb::Arena &arena = *manifest_.arena();
  format::ContextLayout layout = format::contextLayout(arena);
  stream_ = static_cast<CUstream>(options.stream);
  if (!stream_) {
    OGC_CUDA(api_, cuStreamCreate, &stream_, kStreamNonBlocking);
    ownsStream_ = true;
  }
  OGC_CUDA(api_, cuStreamCreate, &captureStream_, kStreamNonBlocking);
  OGC_CUDA(api_, cuEventCreate, &staged_, kEventDisableTiming);
  OGC_CUDA(api_, cuEventCreate, &begin_, 0);
  OGC_CUDA(api_, cuEventCreate, &end_, 0);
  Result<VirtualRegion> region = VirtualRegion::map(api_, engine_->ordinal(), layout.total, arena.context_address());
  if (!region.ok())
    return region.status().withContext("arena");
  region_ = std::move(region.value());
  CUdeviceptr base = region_.address();
  addresses_ = {{engine_->weights(), base + layout.state, base + layout.inputs, base + layout.outputs, base + layout.scratch}};
  if (layout.total != 0)
    OGC_CUDA(api_, cuMemsetD8Async, base, 0, layout.total, stream_);
  if (uint64_t bytes = arena.inputs_bytes() + arena.outputs_bytes()) {
    void *pinned = nullptr;
    OGC_CUDA(api_, cuMemHostAlloc, &pinned, bytes, 0);
    pinned_ = static_cast<std::byte *>(pinned);
  }
  size_t outputs = 0;
  for (const fb::Graph *graph : *manifest_.graphs())
    outputs = std::max<size_t>(outputs, graph->outputs()->size());
  pending_.reserve(outputs);
  return Status();
}

CudaContext::~CudaContext() {
  CurrentContext current(api_, engine_->context());
  // Work that still runs uses the memory below. Failures cannot be reported from here.
  if (stream_)
    api_.cuStreamSynchronize(stream_);
  execs_.reset();
  region_ = VirtualRegion();
  if (pinned_)
    api_.cuMemFreeHost(pinned_);
  for (CUevent event : {staged_, begin_, end_})
    if (event)
      api_.cuEventDestroy(event);
  if (captureStream_)
    api_.cuStreamDestroy(captureStream_);
  if (ownsStream_ && stream_)
    api_.cuStreamDestroy(stream_);
}

Status CudaContext::checkNotCapturing() const {
  int status = kCaptureStatusNone;
  if (!ownsStream_)
    OGC_CUDA(api_, cuStreamIsCapturing, stream_, &status);
  return status == kCaptureStatusNone ? Status() : Status(Code::FailedPrecondition, "the stream is capturing");
}

Status CudaContext::prepare(size_t graph) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  bool isChanged = false;
  Result<ExecPool::Lease> lease = acquire(graph, isChanged);
  if (!lease.ok())
    return lease.status();
  if (!isChanged)
    return Status();
  // Off the path of the next launch, which would do it otherwise.
  OGC_CUDA(api_, cuGraphUpload, lease.value()->exec->exec(), captureStream_);
  OGC_CUDA(api_, cuStreamSynchronize, captureStream_);
  return Status();
}

Result<ExecPool::Lease> CudaContext::acquire(size_t graph, bool &isChanged) {
  ExecPool::Lease lease = engine_->execPool().acquire(*execs_, graph, description(graph).topology());
  OGC_RETURN_IF_ERROR(makeOwn(lease, graph, isChanged));
  return lease;
}

Status CudaContext::makeOwn(ExecPool::Lease &lease, size_t graph, bool &isChanged) {
  ExecPool::Entry &entry = *lease;
  const std::vector<CUdeviceptr> &wanted = graphs_[graph].bound;
  isChanged = !entry.exec || lease.isForeign() || entry.bound != wanted;
  if (!isChanged)
    return Status();
  if (entry.exec) {
    Status changed = lease.isForeign() ? switchTo(*entry.exec, graph) : patch(entry, graph);
    if (!changed.ok()) {
      // The driver refused, and nothing is known of the nodes any more.
      ++engine_->execPool().refused;
      entry.exec.reset();
    } else if (lease.isForeign()) {
      ++engine_->execPool().switched;
    }
  }
  if (!entry.exec)
    OGC_RETURN_IF_ERROR(instantiate(entry, graph));
  lease.setOwn();
  entry.bound = wanted;
  graphs_[graph].executableNodes = entry.exec->size();
  return Status();
}

Status CudaContext::instantiate(ExecPool::Entry &entry, size_t graph) {
  Result<std::unique_ptr<BuiltGraph>> built =
      GraphBuilder(*engine_, addressesOf(graph), captureStream_).build(description(graph), 0, description(graph).nodes()->size());
  if (!built.ok())
    return built.status();
  Result<std::unique_ptr<ExecutableGraph>> exec = ExecutableGraph::create(api_, std::move(built.value()), description(graph));
  if (!exec.ok())
    return exec.status();
  entry.exec = std::move(exec.value());
  ++engine_->execPool().instantiated;
  return Status();
}

Status CudaContext::switchTo(ExecutableGraph &exec, size_t graph) {
  const fb::Graph &target = description(graph);
  ExecSwitch how = engine_->execSwitch();
  if (how != ExecSwitch::Update && exec.canSetParameters(*engine_, target)) {
    nodeIndices_.resize(target.nodes()->size());
    std::iota(nodeIndices_.begin(), nodeIndices_.end(), 0u);
    return exec.setParameters(*engine_, target, addressesOf(graph), nodeIndices_, parameters_);
  }
  Result<std::unique_ptr<BuiltGraph>> built =
      GraphBuilder(*engine_, addressesOf(graph), captureStream_).build(target, 0, target.nodes()->size());
  if (!built.ok())
    return built.status();
  return exec.update(std::move(built.value()), target);
}

Status CudaContext::patch(ExecPool::Entry &entry, size_t graph) {
  const std::vector<CUdeviceptr> &wanted = graphs_[graph].bound;
  const BindingTable &table = engine_->bindingTable(graph);
  nodeIndices_.clear();
  for (size_t i = 0; i < wanted.size(); ++i)
    if (entry.bound[i] != wanted[i])
      nodeIndices_.insert(nodeIndices_.end(), table.nodesOf(i).begin(), table.nodesOf(i).end());
  // A node that uses several of the bindings is set once.
  std::sort(nodeIndices_.begin(), nodeIndices_.end());
  nodeIndices_.erase(std::unique(nodeIndices_.begin(), nodeIndices_.end()), nodeIndices_.end());
  engine_->execPool().patched += nodeIndices_.size();
  return entry.exec->setParameters(*engine_, description(graph), addressesOf(graph), nodeIndices_, parameters_);
}

Result<bool> CudaContext::bindInPlace(size_t graph, size_t binding, void *buffer) {
  CUdeviceptr address = reinterpret_cast<CUdeviceptr>(buffer);
  bool isDeviceMemory = true;
  if (buffer) {
    CurrentContext current(api_, engine_->context());
    OGC_RETURN_IF_ERROR(current.status());
    OGC_RETURN_IF_ERROR(checkDevicePointer(buffer, isDeviceMemory));
  }
  const fb::Graph &target = description(graph);
  unsigned inputs = target.inputs()->size(), index = static_cast<unsigned>(binding);
  uint64_t size = (index < inputs ? target.inputs()->Get(index) : target.outputs()->Get(index - inputs))->slice()->size_bytes();
  bool isOwn = runtime::overlaps(buffer, size, devicePointer(region_.address()), region_.bytes());
  bool isInPlace = buffer && !isOwn && isDeviceMemory && address % runtime::kBufferAlignment == 0 &&
                   engine_->bindingTable(graph).canReplace(binding);
  graphs_[graph].bound[binding] = isInPlace ? address : 0;
  return isInPlace;
}

Status CudaContext::checkDevicePointer(const void *pointer, bool &isDeviceMemory) const {
  int attributes[] = {kPointerMemoryType, kPointerDeviceOrdinal, kPointerIsManaged};
  unsigned type = 0, isManaged = 0;
  int ordinal = -1;
  void *values[] = {&type, &ordinal, &isManaged};
  OGC_CUDA(api_, cuPointerGetAttributes, 3, attributes, values, reinterpret_cast<CUdeviceptr>(pointer));
  if (type == 0)
    return Status(Code::InvalidArgument, "the buffer is no memory that the device can reach");
  // The device's own memory is used in place; pinned and managed memory, which a graph may not swap for it, is copied.
  isDeviceMemory = type == kMemoryTypeDevice && !isManaged;
  if (isDeviceMemory && ordinal != engine_->ordinal())
    return Status(Code::InvalidArgument, "the buffer is memory of cuda:" + std::to_string(ordinal) +
                                             ", the context is on cuda:" + std::to_string(engine_->ordinal()));
  return Status();
}

Status CudaContext::launch(size_t graph) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  // Outputs of an earlier run that still wait in pinned memory must reach their user before this run writes there.
  if (!pending_.empty())
    OGC_RETURN_IF_ERROR(synchronizeCurrent());
  return enqueue(graph);
}

Status CudaContext::enqueue(size_t graph) {
  std::shared_lock weights(engine_->weightsMutex());
  bool isChanged = false;
  Result<ExecPool::Lease> lease = acquire(graph, isChanged);
  if (!lease.ok())
    return lease.status();
  if (stagingUsed_) {
    OGC_CUDA(api_, cuEventRecord, staged_, stream_);
    stagingUsed_ = false;
    stagingBusy_ = true;
  }
  OGC_CUDA(api_, cuGraphLaunch, lease.value()->exec->exec(), stream_);
  return Status();
}

Result<std::unique_ptr<ExecutableGraph>> CudaContext::instantiatePart(size_t graph, size_t begin, size_t end) {
  Result<std::unique_ptr<BuiltGraph>> built =
      GraphBuilder(*engine_, {addresses_, nullptr, {}}, captureStream_).build(description(graph), begin, end);
  if (!built.ok())
    return built.status();
  return ExecutableGraph::create(api_, std::move(built.value()), description(graph));
}

Status CudaContext::runNodes(size_t graph, size_t begin, size_t end) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  std::shared_lock weights(engine_->weightsMutex());
  Result<std::unique_ptr<ExecutableGraph>> exec = instantiatePart(graph, begin, end);
  if (!exec.ok())
    return exec.status();
  OGC_CUDA(api_, cuGraphLaunch, exec.value()->exec(), stream_);
  return synchronizeCurrent();
}

Status CudaContext::synchronize() {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  return synchronizeCurrent();
}

Status CudaContext::synchronizeCurrent() {
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  OGC_CUDA(api_, cuStreamSynchronize, stream_);
  for (const PendingCopy &copy : pending_)
    std::memcpy(copy.host, copy.staged, copy.size);
  pending_.clear();
  stagingUsed_ = stagingBusy_ = false;
  return Status();
}

Status CudaContext::waitForStaging() {
  if (stagingBusy_)
    OGC_CUDA(api_, cuEventSynchronize, staged_);
  stagingBusy_ = false;
  return Status();
}

Status CudaContext::copyUnstaged(fb::Section section, uint64_t offset, void *host, uint64_t size, bool out) {
  if (out)
    OGC_CUDA(api_, cuMemcpyDtoHAsync, host, at(section, offset), size, stream_);
  else
    OGC_CUDA(api_, cuMemcpyHtoDAsync, at(section, offset), host, size, stream_);
  return synchronizeCurrent();
}

Status CudaContext::copyIn(fb::Section section, uint64_t offset, const void *host, uint64_t size) {
  if (size == 0)
    return Status();
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  if (section != fb::Section::Inputs)
    return copyUnstaged(section, offset, const_cast<void *>(host), size, /*out=*/false);
  // The bytes staged by an earlier run may still be on their way.
  OGC_RETURN_IF_ERROR(waitForStaging());
  std::memcpy(pinned_ + offset, host, size);
  OGC_CUDA(api_, cuMemcpyHtoDAsync, at(section, offset), pinned_ + offset, size, stream_);
  stagingUsed_ = true;
  return Status();
}

Status CudaContext::copyOut(fb::Section section, uint64_t offset, void *host, uint64_t size) {
  if (size == 0)
    return Status();
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  // Staged only while there is room in the list, so that no replay allocates; a second copy of an output has to wait for the
  // first.
  if (section != fb::Section::Outputs || pending_.size() == pending_.capacity())
    return copyUnstaged(section, offset, host, size, /*out=*/true);
  std::byte *staged = pinned_ + manifest_.arena()->inputs_bytes() + offset;
  OGC_CUDA(api_, cuMemcpyDtoHAsync, staged, at(section, offset), size, stream_);
  pending_.push_back({host, staged, size});
  return Status();
}

Status CudaContext::copyInDevice(fb::Section section, uint64_t offset, const void *device, uint64_t size) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  if (size != 0)
    OGC_CUDA(api_, cuMemcpyDtoDAsync, at(section, offset), reinterpret_cast<CUdeviceptr>(device), size, stream_);
  return Status();
}

Status CudaContext::copyOutDevice(fb::Section section, uint64_t offset, void *device, uint64_t size) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  if (size != 0)
    OGC_CUDA(api_, cuMemcpyDtoDAsync, reinterpret_cast<CUdeviceptr>(device), at(section, offset), size, stream_);
  return Status();
}

Status CudaContext::fillRange(fb::Section section, uint64_t offset, uint64_t size, uint8_t value) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  if (size != 0)
    OGC_CUDA(api_, cuMemsetD8Async, at(section, offset), value, size, stream_);
  return Status();
}

Status CudaContext::timeLaunch(size_t graph, double &outMicroseconds) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  {
    std::shared_lock weights(engine_->weightsMutex());
    bool isChanged = false;
    Result<ExecPool::Lease> lease = acquire(graph, isChanged);
    if (!lease.ok())
      return lease.status();
    OGC_CUDA(api_, cuEventRecord, begin_, stream_);
    OGC_CUDA(api_, cuGraphLaunch, lease.value()->exec->exec(), stream_);
    OGC_CUDA(api_, cuEventRecord, end_, stream_);
  }
  OGC_RETURN_IF_ERROR(synchronizeCurrent());
  float milliseconds = 0;
  OGC_CUDA(api_, cuEventElapsedTime, &milliseconds, begin_, end_);
  outMicroseconds = 1000.0 * static_cast<double>(milliseconds);
  return Status();
}

Status CudaContext::timePrefix(size_t graph, size_t count, std::span<double> outMicroseconds) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(checkNotCapturing());
  std::shared_lock weights(engine_->weightsMutex());
  size_t ends[] = {0, count, description(graph).nodes()->size()};
  std::unique_ptr<ExecutableGraph> parts[2]; // null where there are no nodes
  for (int part = 0; part < 2; ++part) {
    if (ends[part] == ends[part + 1])
      continue;
    Result<std::unique_ptr<ExecutableGraph>> exec = instantiatePart(graph, ends[part], ends[part + 1]);
    if (!exec.ok())
      return exec.status();
    parts[part] = std::move(exec.value());
    OGC_CUDA(api_, cuGraphUpload, parts[part]->exec(), stream_);
  }
  for (double &microseconds : outMicroseconds) {
    OGC_CUDA(api_, cuEventRecord, begin_, stream_);
    if (parts[0])
      OGC_CUDA(api_, cuGraphLaunch, parts[0]->exec(), stream_);
    OGC_CUDA(api_, cuEventRecord, end_, stream_);
    if (parts[1])
      OGC_CUDA(api_, cuGraphLaunch, parts[1]->exec(), stream_);
    OGC_RETURN_IF_ERROR(synchronizeCurrent());
    float milliseconds = 0;
    OGC_CUDA(api_, cuEventElapsedTime, &milliseconds, begin_, end_);
    microseconds = 1000.0 * static_cast<double>(milliseconds);
  }
  return Status();
}

Status CudaContext::selectVariant(uint32_t kernel, uint32_t variant) {
  CurrentContext current(api_, engine_->context());
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(synchronizeCurrent());
  execs_.emplace(engine_->execPool(), graphs_.size()); // gives back all that was built with the old choice
  return engine_->selectVariant(kernel, variant);
}

Status CudaContext::setOrder(uint64_t seed) {
  return seed == 0 ? Status() : Status(Code::Unsupported, "a random order is only possible on the cpu device");
}

} // namespace ogc::cuda
