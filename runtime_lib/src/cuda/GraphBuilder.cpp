//===- GraphBuilder.cpp - from the node list to an executable graph -------===//
#include "runtime_lib/src/cuda/GraphBuilder.h"

#include "runtime_lib/src/cuda/GemmRecorder.h"

#include <string>

namespace ogc::cuda {

BuiltGraph::~BuiltGraph() {
  if (graph_)
    api_.cuGraphDestroy(graph_);
}

namespace {

std::string describe(const fb::Graph &graph, size_t index) {
  const fb::Node &node = *graph.nodes()->Get(static_cast<unsigned>(index));
  std::string text =
      "graph '" + graph.id()->str() + "', node " + std::to_string(index) + " (" + format::nodeKindName(node.kind());
  for (unsigned i = 0; node.names() && i < node.names()->size(); ++i)
    text += (i ? ", " : " of ") + node.names()->Get(i)->str();
  return text + ")";
}

} // namespace

Result<std::unique_ptr<BuiltGraph>> GraphBuilder::build(const fb::Graph &graph, size_t begin, size_t end) {
  out_ = std::make_unique<BuiltGraph>(api_);
  OGC_CUDA(api_, cuGraphCreate, &out_->graph_, 0);
  std::vector<std::vector<const fb::Edge *>> incoming(end - begin);
  for (const fb::Edge *edge : *graph.edges())
    if (edge->from() >= begin && edge->to() < end)
      incoming[edge->to() - begin].push_back(edge);
  leaves_.assign(end - begin, {});
  out_->nodes_.assign(end - begin, nullptr);
  for (size_t index = begin; index < end; ++index) {
    dependencies_.clear();
    edgeData_.clear();
    for (const fb::Edge *edge : incoming[index - begin])
      for (CUgraphNode leaf : leaves_[edge->from() - begin]) {
        EdgeData data = {};
        if (edge->kind() == fb::EdgeKind::Programmatic) {
          data.from_port = kPortProgrammatic;
          data.type = kDependencyProgrammatic;
        }
        dependencies_.push_back(leaf);
        edgeData_.push_back(data);
      }
    nodeLeaves_ = &leaves_[index - begin];
    created_ = &out_->nodes_[index - begin];
    const fb::Node &node = *graph.nodes()->Get(static_cast<unsigned>(index));
    OGC_RETURN_IF_ERROR(addNode(node, static_cast<uint32_t>(index)).withContext(describe(graph, index)));
  }
  OGC_CUDA(api_, cuGraphGetNodes, out_->graph_, nullptr, &out_->size_);
  return std::move(out_);
}

Status GraphBuilder::addNode(const fb::Node &node, uint32_t index) {
  parameters_.resolve(addresses_, node, index);
  switch (node.kind()) {
  case fb::NodeKind::Kernel:
    return addKernel(node);
  case fb::NodeKind::Gemm:
    return addGemm(node);
  case fb::NodeKind::Memcpy:
    return addMemcpy(node);
  case fb::NodeKind::Memset:
    return addMemset(node);
  }
  return Status(Code::Internal, "unknown node kind");
}

Status GraphBuilder::connect(CUgraphNode node) {
  nodeLeaves_->push_back(node);
  *created_ = node;
  if (dependencies_.empty())
    return Status();
  std::vector<CUgraphNode> targets(dependencies_.size(), node);
  OGC_CUDA(api_, cuGraphAddDependencies, out_->graph_, dependencies_.data(), targets.data(), edgeData_.data(), targets.size());
  return Status();
}

Status GraphBuilder::addKernel(const fb::Node &node) {
  const LoadedKernel *kernel = engine_.kernel(node.kernel());
  if (!kernel)
    return Status(Code::Unsupported, "the bundle has no code of its kernel for this device");
  const fb::Dim3 &cluster = *kernel->launch->cluster();
  OGC_RETURN_IF_ERROR(parameters_.kernel(api_, *kernel));
  CUgraphNode created = nullptr;
  OGC_CUDA(api_, cuGraphAddKernelNode, &created, out_->graph_, nullptr, 0, &parameters_.parameters());
  if (cluster.x() * cluster.y() * cluster.z() > 1) {
    LaunchAttributeValue value = {};
    value.clusterDim = {cluster.x(), cluster.y(), cluster.z()};
    OGC_CUDA(api_, cuGraphKernelNodeSetAttribute, created, kLaunchAttributeClusterDimension, &value);
  }
  return connect(created);
}

Status GraphBuilder::addMemcpy(const fb::Node &node) {
  Memcpy3D params = parameters_.copy(node);
  if (params.WidthInBytes == 0) {
    // Nothing to copy, and no empty node: later nodes wait for what this one would have waited for.
    *nodeLeaves_ = dependencies_;
    return Status();
  }
  CUgraphNode created = nullptr;
  OGC_CUDA(api_, cuGraphAddMemcpyNode, &created, out_->graph_, nullptr, 0, &params, engine_.context());
  return connect(created);
}

Status GraphBuilder::addMemset(const fb::Node &node) {
  if (node.args()->Get(0)->size_bytes() == 0) {
    *nodeLeaves_ = dependencies_;
    return Status();
  }
  MemsetNodeParams params = parameters_.fill(node);
  CUgraphNode created = nullptr;
  OGC_CUDA(api_, cuGraphAddMemsetNode, &created, out_->graph_, nullptr, 0, &params, engine_.context());
  return connect(created);
}

Status GraphBuilder::addGemm(const fb::Node &node) {
  const fb::Gemm &gemm = *node.gemm();
  if (!canRecord(gemm) || !engine_.blas()) {
    if (engine_.kernel(node.kernel()))
      return addKernel(node);
    return canRecord(gemm) ? engine_.blasStatus()
                           : Status(Code::Unsupported, "no library does this gemm, and its kernel has no code for GPUs");
  }
  Result<BlasHandle> handle = engine_.blasHandle();
  if (!handle.ok())
    return handle.status();
  GemmRecorder recorder(*engine_.blas(), handle.value());
  Status prepared = recorder.prepare(node, parameters_.arguments());
  // The library has no algorithm for this form: our own kernel does it.
  if (prepared.code() == Code::Unsupported && engine_.kernel(node.kernel()))
    return addKernel(node);
  OGC_RETURN_IF_ERROR(prepared);
  return record(recorder);
}

Status GraphBuilder::record(GemmRecorder &recorder) {
  out_->hasLibraryNodes_ = true;
  OGC_CUDA(api_, cuStreamBeginCaptureToGraph, captureStream_, out_->graph_, dependencies_.data(), edgeData_.data(),
           dependencies_.size(), kCaptureModeThreadLocal);
  Status recorded = recorder.record(captureStream_);
  int status = 0;
  unsigned long long id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode *last = nullptr;
  const EdgeData *data = nullptr;
  size_t count = 0;
  CUresult asked = api_.cuStreamGetCaptureInfo(captureStream_, &status, &id, &graph, &last, &data, &count);
  if (asked == 0 && count != 0)
    nodeLeaves_->assign(last, last + count);
  // Always ended, so that the stream can be used again whatever failed before.
  CUresult ended = api_.cuStreamEndCapture(captureStream_, &graph);
  OGC_RETURN_IF_ERROR(recorded);
  if (asked != 0)
    return driverError(api_, asked, "cuStreamGetCaptureInfo");
  if (ended != 0)
    return driverError(api_, ended, "cuStreamEndCapture");
  return Status();
}

} // namespace ogc::cuda
