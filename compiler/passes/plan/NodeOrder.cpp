//===- NodeOrder.cpp - which nodes precede which --------------------------===//
#include "compiler/passes/plan/NodeOrder.h"

#include <algorithm>
#include <functional>

namespace ogc::plan {

std::vector<size_t> addReduced(NodeOrder &order, size_t node, std::vector<size_t> predecessors) {
  // From the latest on: whatever precedes a kept predecessor is implied, and nothing can precede a later one.
  std::sort(predecessors.begin(), predecessors.end(), std::greater<>());
  std::vector<size_t> kept;
  for (size_t predecessor : predecessors) {
    if (order.precedes(predecessor, node))
      continue;
    kept.push_back(predecessor);
    order.add(predecessor, node);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

} // namespace ogc::plan
