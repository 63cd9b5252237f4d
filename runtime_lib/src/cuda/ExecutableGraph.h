//===- ExecutableGraph.h - an instantiated graph that can be changed ------===//
#ifndef OGC_RUNTIME_CUDA_EXECUTABLE_GRAPH_H
#define OGC_RUNTIME_CUDA_EXECUTABLE_GRAPH_H

#include "runtime_lib/src/cuda/GraphBuilder.h"

#include <span>

namespace ogc::cuda {

/// An instantiated graph. Changes hold for launches that begin after them; what already runs is not disturbed. After a failed
/// change the graph is of no use any more. The context must be current when it is destroyed, which may be while it runs.
class ExecutableGraph {
public:
  /// Instantiates `built`.
  static Result<std::unique_ptr<ExecutableGraph>> create(const DriverApi &api, std::unique_ptr<BuiltGraph> built,
                                                         const fb::Graph &graph);
  explicit ExecutableGraph(const DriverApi &api) : api_(api) {}
  ~ExecutableGraph();
  ExecutableGraph(const ExecutableGraph &) = delete;
  ExecutableGraph &operator=(const ExecutableGraph &) = delete;

  CUgraphExec exec() const { return exec_; }
  /// Nodes of the CUDA graph.
  size_t size() const { return origin_->size(); }

  /// Gives the nodes of `indices` the kernels, launch shapes and addresses that they have in `graph`, whose topology is that of
  /// this one. Nodes that a library recorded cannot be changed so.
  Status setParameters(CudaEngine &engine, const fb::Graph &graph, const GraphAddresses &addresses,
                       std::span<const uint32_t> indices, NodeParameters &scratch);

  /// True where `setParameters` of all nodes makes this the executable form of `graph`: no library nodes, and clusters, which are
  /// no parameter, of the same sizes.
  bool canSetParameters(const CudaEngine &engine, const fb::Graph &graph) const;

  /// Makes this the executable form of `graph` with all nodes as in `built`.
  Status update(std::unique_ptr<BuiltGraph> built, const fb::Graph &graph);

private:
  Status setNode(CudaEngine &engine, const fb::Node &node, CUgraphNode handle, NodeParameters &scratch);

  const DriverApi &api_;
  /// What it was instantiated from; its nodes name those of the executable graph for ever.
  std::unique_ptr<BuiltGraph> origin_;
  /// What it was last updated from, kept as the origin is: a library recorded some of its nodes.
  std::unique_ptr<BuiltGraph> current_;
  /// The graph whose nodes it last had.
  const fb::Graph *graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
};

} // namespace ogc::cuda

#endif
