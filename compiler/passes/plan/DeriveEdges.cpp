//===- DeriveEdges.cpp - edges from byte-range hazards --------------------===//
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallSet.h"

namespace ogc {

#define GEN_PASS_DEF_DERIVEEDGES
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

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

/// Drops predecessors that another one already follows. `ancestors[n]` holds every node that precedes n through kept edges.
std::vector<size_t> reduceTransitively(std::vector<size_t> predecessors, size_t node, std::vector<llvm::BitVector> &ancestors) {
  llvm::sort(predecessors, std::greater<>());
  predecessors.erase(std::unique(predecessors.begin(), predecessors.end()), predecessors.end());
  std::vector<size_t> kept;
  for (size_t p : predecessors) {
    if (ancestors[node].test(p))
      continue;
    kept.push_back(p);
    ancestors[node] |= ancestors[p];
    ancestors[node].set(p);
  }
  llvm::sort(kept);
  return kept;
}

class DeriveEdges : public impl::DeriveEdgesBase<DeriveEdges> {
public:
  using DeriveEdgesBase::DeriveEdgesBase;

private:
  void runOnOperation() override {
    for (cg::GraphOp graph : getOperation().getOps<cg::GraphOp>())
      serial ? chain(graph) : fromHazards(graph);
  }

  static void chain(cg::GraphOp graph) {
    Operation *previous = nullptr;
    for (Operation &node : graph.getBody().front()) {
      node.setOperands(previous ? ValueRange(previous->getResults()) : ValueRange());
      previous = &node;
    }
  }

  static void fromHazards(cg::GraphOp graph) {
    std::vector<Operation *> nodes;
    for (Operation &node : graph.getBody().front())
      nodes.push_back(&node);
    std::vector<llvm::BitVector> ancestors(nodes.size(), llvm::BitVector(nodes.size()));
    std::map<cg::Section, SectionHistory> history;
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::vector<size_t> predecessors;
      for (cg::SliceAttr slice : cg::nodeSlices(nodes[i]))
        if (slice.getSection() != cg::Section::Weights && slice.getSizeBytes() > 0)
          history[slice.getSection()].access(slice, i, predecessors);
      SmallVector<Value> operands;
      for (size_t p : reduceTransitively(std::move(predecessors), i, ancestors))
        operands.push_back(nodes[p]->getResult(0));
      nodes[i]->setOperands(operands);
    }
  }
};

} // namespace
} // namespace ogc
