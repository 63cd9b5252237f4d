//===- NodeOrder.h - which nodes precede which ----------------------------===//
#ifndef OGC_PASSES_PLAN_NODEORDER_H
#define OGC_PASSES_PLAN_NODEORDER_H

#include "llvm/ADT/BitVector.h"

#include <cassert>
#include <vector>

namespace ogc::plan {

/// The strict order that the edges of a graph make, closed transitively. Nodes are positions of the schedule; edges must be added
/// front to back: none may enter a node once one has left it.
class NodeOrder {
public:
  explicit NodeOrder(size_t count) : rows(count, llvm::BitVector(count)) {}

  void add(size_t from, size_t to) {
    assert(from < to);
    rows[to] |= rows[from];
    rows[to].set(from);
  }
  bool precedes(size_t a, size_t b) const { return rows[b].test(a); }
  const llvm::BitVector &ancestors(size_t node) const { return rows[node]; }
  size_t size() const { return rows.size(); }

private:
  std::vector<llvm::BitVector> rows;
};

/// Adds edges from `predecessors` to `node`, but for those that others imply. Returns the ones added, ascending.
std::vector<size_t> addReduced(NodeOrder &order, size_t node, std::vector<size_t> predecessors);

} // namespace ogc::plan

#endif
