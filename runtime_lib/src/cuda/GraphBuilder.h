//===- GraphBuilder.h - from the node list to an executable graph ---------===//
#ifndef OGC_RUNTIME_CUDA_GRAPH_BUILDER_H
#define OGC_RUNTIME_CUDA_GRAPH_BUILDER_H

#include "runtime_lib/src/cuda/CudaEngine.h"

#include <vector>

namespace ogc::cuda {

/// Addresses of the sections, indexed by fb::Section.
struct SectionAddresses {
  CUdeviceptr base[5] = {};
  CUdeviceptr of(const fb::Slice &slice) const { return base[static_cast<size_t>(slice.section())] + slice.offset_bytes(); }
};

/// An instantiated graph and the workspaces of its library nodes. The context must be current when it is destroyed.
class ExecutableGraph {
public:
  explicit ExecutableGraph(const DriverApi &api) : api_(api) {}
  ~ExecutableGraph();
  ExecutableGraph(const ExecutableGraph &) = delete;
  ExecutableGraph &operator=(const ExecutableGraph &) = delete;

  CUgraphExec exec() const { return exec_; }
  /// Nodes of the CUDA graph; a library node may have become several.
  size_t nodes() const { return nodes_; }

private:
  friend class GraphBuilder;
  const DriverApi &api_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  size_t nodes_ = 0;
  std::vector<CUdeviceptr> workspaces_;
};

/// Builds nodes and edges explicitly. The one recording is a library call, captured straight into the graph under construction.
class GraphBuilder {
public:
  /// `captureStream` is only used to record library calls.
  GraphBuilder(CudaEngine &engine, const SectionAddresses &addresses, CUstream captureStream)
      : engine_(engine), api_(engine.api()), addresses_(addresses), captureStream_(captureStream) {}

  /// Builds and instantiates the nodes [begin, end) of `graph` and the edges between them.
  Result<std::unique_ptr<ExecutableGraph>> build(const fb::Graph &graph, size_t begin, size_t end);

private:
  Status addNode(const fb::Node &node);
  Status addKernel(const fb::Node &node);
  Status addGemm(const fb::Node &node);
  Status addMemcpy(const fb::Node &node);
  Status addMemset(const fb::Node &node);
  Status connect(CUgraphNode node);

  CudaEngine &engine_;
  const DriverApi &api_;
  SectionAddresses addresses_;
  CUstream captureStream_;
  std::unique_ptr<ExecutableGraph> out_;
  /// The CUDA nodes that later nodes wait for, of each node of the bundle.
  std::vector<std::vector<CUgraphNode>> leaves_;
  /// Incoming edges of the node being added.
  std::vector<CUgraphNode> dependencies_;
  std::vector<EdgeData> edgeData_;
  std::vector<CUgraphNode> *nodeLeaves_ = nullptr;
};

} // namespace ogc::cuda

#endif
