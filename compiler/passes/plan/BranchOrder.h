//===- BranchOrder.h - which independent nodes run side by side -----------===//
//
// A pure function over estimated times, see docs/graphs.md for the model.
//
#ifndef OGC_PASSES_PLAN_BRANCHORDER_H
#define OGC_PASSES_PLAN_BRANCHORDER_H

#include "compiler/passes/plan/NodeOrder.h"

#include <vector>

namespace ogc::plan {

/// What a node costs when it runs alone, in microseconds.
struct NodeCost {
  double aloneUs;   ///< from start to end, latencies included
  double machineUs; ///< as much of `aloneUs` as a node that fills the machine would need: at most `aloneUs`
};

/// The share of the shorter node's time that running `a` and `b` side by side hides: 1 when it costs nothing, 0 (or less) when
/// they only take the machine from each other.
double hiddenShare(const NodeCost &a, const NodeCost &b);

/// The order of a graph: `data` predecessors of each node, and an edge between every two nodes in schedule order of which running
/// side by side would hide less than `leastShare` of the shorter one. A share above 1 gives a chain.
struct BranchOrder {
  std::vector<std::vector<size_t>> predecessors; ///< reduced transitively, ascending
  NodeOrder order;
};
BranchOrder orderBranches(const std::vector<NodeCost> &costs, const std::vector<std::vector<size_t>> &data, double leastShare);

} // namespace ogc::plan

#endif
