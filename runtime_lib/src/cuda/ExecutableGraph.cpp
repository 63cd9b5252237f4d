//===- ExecutableGraph.cpp - an instantiated graph that can be changed ----===//
#include "runtime_lib/src/cuda/ExecutableGraph.h"

#include <string>

namespace ogc::cuda {

Result<std::unique_ptr<ExecutableGraph>> ExecutableGraph::create(const DriverApi &api, std::unique_ptr<BuiltGraph> built,
                                                                 const fb::Graph &graph) {
  auto result = std::make_unique<ExecutableGraph>(api);
  OGC_CUDA(api, cuGraphInstantiate, &result->exec_, built->graph(), 0);
  result->origin_ = std::move(built);
  result->graph_ = &graph;
  return result;
}

ExecutableGraph::~ExecutableGraph() {
  if (exec_)
    api_.cuGraphExecDestroy(exec_);
}

Status ExecutableGraph::setNode(CudaEngine &engine, const fb::Node &node, CUgraphNode handle, NodeParameters &scratch) {
  switch (node.kind()) {
  case fb::NodeKind::Kernel:
  case fb::NodeKind::Gemm: {
    const LoadedKernel *kernel = engine.kernel(node.kernel());
    if (!kernel)
      return Status(Code::Unsupported, "the bundle has no code of its kernel for this device");
    OGC_RETURN_IF_ERROR(scratch.kernel(api_, *kernel));
    OGC_CUDA(api_, cuGraphExecKernelNodeSetParams, exec_, handle, &scratch.parameters());
    return Status();
  }
  case fb::NodeKind::Memcpy: {
    Memcpy3D params = scratch.copy(node);
    OGC_CUDA(api_, cuGraphExecMemcpyNodeSetParams, exec_, handle, &params, engine.context());
    return Status();
  }
  case fb::NodeKind::Memset: {
    MemsetNodeParams params = scratch.fill(node);
    OGC_CUDA(api_, cuGraphExecMemsetNodeSetParams, exec_, handle, &params, engine.context());
    return Status();
  }
  }
  return Status();
}

Status ExecutableGraph::setParameters(CudaEngine &engine, const fb::Graph &graph, const GraphAddresses &addresses,
                                      std::span<const uint32_t> indices, NodeParameters &scratch) {
  for (uint32_t index : indices) {
    const fb::Node &node = *graph.nodes()->Get(index);
    bool isTransfer = node.kind() == fb::NodeKind::Memcpy || node.kind() == fb::NodeKind::Memset;
    if (isTransfer && node.args()->Get(0)->size_bytes() == 0)
      continue; // no node was made of it
    CUgraphNode handle = origin_->nodes()[index];
    if (!handle)
      return Status(Code::Unsupported, "node " + std::to_string(index) + " is of a library");
    scratch.resolve(addresses, node, index);
    OGC_RETURN_IF_ERROR(setNode(engine, node, handle, scratch));
  }
  graph_ = &graph;
  return Status();
}

namespace {

bool isEqual(const fb::Dim3 &a, const fb::Dim3 &b) { return a.x() == b.x() && a.y() == b.y() && a.z() == b.z(); }

} // namespace

bool ExecutableGraph::canSetParameters(const CudaEngine &engine, const fb::Graph &graph) const {
  if (origin_->hasLibraryNodes() || (current_ && current_->hasLibraryNodes()))
    return false;
  for (unsigned i = 0; i < graph.nodes()->size(); ++i) {
    const fb::Node &from = *graph_->nodes()->Get(i), &to = *graph.nodes()->Get(i);
    if (to.kind() == fb::NodeKind::Gemm)
      return false;
    if (to.kind() != fb::NodeKind::Kernel)
      continue;
    const LoadedKernel *old = engine.kernel(from.kernel()), *wanted = engine.kernel(to.kernel());
    if (!old || !wanted || !isEqual(*old->launch->cluster(), *wanted->launch->cluster()))
      return false;
  }
  return true;
}

Status ExecutableGraph::update(std::unique_ptr<BuiltGraph> built, const fb::Graph &graph) {
  ExecUpdateInfo info = {};
  if (CUresult result = api_.cuGraphExecUpdate(exec_, built->graph(), &info); result != 0) {
    Status status = driverError(api_, result, "cuGraphExecUpdate");
    return Status(status.code(), status.message() + ", update result " + std::to_string(info.result));
  }
  current_ = std::move(built);
  graph_ = &graph;
  return Status();
}

} // namespace ogc::cuda
