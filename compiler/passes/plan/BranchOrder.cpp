//===- BranchOrder.cpp - which independent nodes run side by side ---------===//
#include "compiler/passes/plan/BranchOrder.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ogc::plan {

double hiddenShare(const NodeCost &a, const NodeCost &b) {
  double shorter = std::min(a.aloneUs, b.aloneUs);
  if (shorter <= 0)
    return 1;
  double together = std::max({a.aloneUs, b.aloneUs, a.machineUs + b.machineUs});
  return (a.aloneUs + b.aloneUs - together) / shorter;
}

BranchOrder orderBranches(const std::vector<NodeCost> &costs, const std::vector<std::vector<size_t>> &data, double leastShare) {
  size_t count = costs.size();
  BranchOrder result{std::vector<std::vector<size_t>>(count), NodeOrder(count)};
  for (size_t node = 0; node < count; ++node) {
    // The latest predecessors first, so that what they imply needs no edge. Data edges are closed over before the choice.
    NodeOrder &order = result.order;
    std::vector<size_t> kept;
    for (size_t p : addReduced(order, node, data[node]))
      kept.push_back(p);
    for (size_t other = node; other-- > 0;) {
      if (order.precedes(other, node) || hiddenShare(costs[other], costs[node]) >= leastShare)
        continue;
      kept.push_back(other);
      order.add(other, node);
    }
    // An edge of the choice may have made a data edge superfluous.
    llvm::BitVector implied(count);
    for (size_t p : kept)
      implied |= order.ancestors(p);
    llvm::erase_if(kept, [&](size_t p) { return implied.test(p); });
    std::sort(kept.begin(), kept.end());
    result.predecessors[node] = std::move(kept);
  }
  return result;
}

} // namespace ogc::plan
