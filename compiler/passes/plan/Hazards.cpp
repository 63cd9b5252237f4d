//===- Hazards.cpp - byte-range hazards between the nodes of a graph ------===//
#include "compiler/passes/plan/Hazards.h"

#include <algorithm>
#include <map>

namespace ogc::plan {

using namespace mlir;

namespace {

/// An access that a later node may conflict with.
struct Access {
  int64_t begin, end; // bytes of the section
  size_t node;
  bool writes;
};

/// The accesses to one section that are not yet hidden by a later write of the same bytes.
class SectionHistory {
public:
  /// Adds the nodes that must precede this access to `predecessors`, then records the access.
  void access(cg::SliceAttr slice, size_t node, std::vector<size_t> &predecessors) {
    int64_t begin = slice.getOffsetBytes(), end = begin + slice.getSizeBytes();
    bool writes = slice.getAccess() != cg::Access::Read;
    for (const Access &earlier : accesses)
      if (earlier.node != node && earlier.begin < end && begin < earlier.end && (writes || earlier.writes))
        predecessors.push_back(earlier.node);
    // Whoever conflicts with a byte overwritten here conflicts with this write too, and this write follows the earlier ones.
    if (writes)
      llvm::erase_if(accesses, [&](const Access &earlier) { return begin <= earlier.begin && earlier.end <= end; });
    accesses.push_back({begin, end, node, writes});
  }

private:
  std::vector<Access> accesses;
};

} // namespace

std::vector<Operation *> nodesOf(cg::GraphOp graph) {
  std::vector<Operation *> nodes;
  for (Operation &node : graph.getBody().front())
    nodes.push_back(&node);
  return nodes;
}

std::vector<std::vector<size_t>> hazardsOf(const std::vector<Operation *> &nodes) {
  std::vector<std::vector<size_t>> predecessors(nodes.size());
  std::map<cg::Section, SectionHistory> history;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (cg::SliceAttr slice : cg::nodeSlices(nodes[i]))
      if (slice.getSection() != cg::Section::Weights && slice.getSizeBytes() > 0)
        history[slice.getSection()].access(slice, i, predecessors[i]);
    std::sort(predecessors[i].begin(), predecessors[i].end());
    predecessors[i].erase(std::unique(predecessors[i].begin(), predecessors[i].end()), predecessors[i].end());
  }
  return predecessors;
}

} // namespace ogc::plan
