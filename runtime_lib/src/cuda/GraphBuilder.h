//===- GraphBuilder.h - from the node list to a CUDA graph ----------------===//
#ifndef OGC_RUNTIME_CUDA_GRAPH_BUILDER_H
#define OGC_RUNTIME_CUDA_GRAPH_BUILDER_H

#include "runtime_lib/src/cuda/CudaEngine.h"
#include "runtime_lib/src/cuda/GraphAddresses.h"
#include "runtime_lib/src/cuda/NodeParameters.h"

#include <vector>

namespace ogc::cuda {

class GemmRecorder;

/// A CUDA graph. The context must be current when it is destroyed.
class BuiltGraph {
public:
  explicit BuiltGraph(const DriverApi &api) : api_(api) {}
  ~BuiltGraph();
  BuiltGraph(const BuiltGraph &) = delete;
  BuiltGraph &operator=(const BuiltGraph &) = delete;

  CUgraph graph() const { return graph_; }
  /// Nodes of the CUDA graph; a library node may have become several.
  size_t size() const { return size_; }
  /// The CUDA node of each node of the bundle; null where it became none, or was recorded by a library.
  const std::vector<CUgraphNode> &nodes() const { return nodes_; }
  bool hasLibraryNodes() const { return hasLibraryNodes_; }

private:
  friend class GraphBuilder;
  friend class ExecutableGraph;
  const DriverApi &api_;
  CUgraph graph_ = nullptr;
  size_t size_ = 0;
  bool hasLibraryNodes_ = false;
  std::vector<CUgraphNode> nodes_;
};

/// Builds nodes and edges explicitly. The one recording is a library call, captured straight into the graph under construction.
class GraphBuilder {
public:
  /// `captureStream` is only used to record library calls.
  GraphBuilder(CudaEngine &engine, const GraphAddresses &addresses, CUstream captureStream)
      : engine_(engine), api_(engine.api()), addresses_(addresses), captureStream_(captureStream) {}

  /// Builds the nodes [begin, end) of `graph` and the edges between them.
  Result<std::unique_ptr<BuiltGraph>> build(const fb::Graph &graph, size_t begin, size_t end);

private:
  Status addNode(const fb::Node &node, uint32_t index);
  Status addKernel(const fb::Node &node);
  Status addGemm(const fb::Node &node);
  Status record(GemmRecorder &recorder);
  Status addMemcpy(const fb::Node &node);
  Status addMemset(const fb::Node &node);
  Status connect(CUgraphNode node);

  CudaEngine &engine_;
  const DriverApi &api_;
  GraphAddresses addresses_;
  CUstream captureStream_;
  std::unique_ptr<BuiltGraph> out_;
  /// The CUDA nodes that later nodes wait for, of each node of the bundle.
  std::vector<std::vector<CUgraphNode>> leaves_;
  /// Incoming edges and addresses of the node being added.
  std::vector<CUgraphNode> dependencies_;
  std::vector<EdgeData> edgeData_;
  std::vector<CUgraphNode> *nodeLeaves_ = nullptr;
  CUgraphNode *created_ = nullptr;
  NodeParameters parameters_;
};

} // namespace ogc::cuda

#endif
