//===- ArenaPlanner.h - offsets for buffers that may share bytes ----------===//
//
// Pure functions: no IR, no target. Offline dynamic storage allocation is NP-hard, so a portfolio of greedy orders is tried, then
// a local search over the best order, until a plan meets the lower bound.
//
#ifndef OGC_PASSES_PLAN_ARENAPLANNER_H
#define OGC_PASSES_PLAN_ARENAPLANNER_H

#include "compiler/passes/plan/NodeOrder.h"

#include <cstdint>
#include <vector>

namespace ogc::plan {

/// A buffer and the closed interval of schedule positions [first, last] between its first and its last access.
struct BufferLifetime {
  int64_t sizeBytes;
  int64_t first;
  int64_t last;
};

/// Pairs of buffers that must not share a byte.
class ConflictGraph {
public:
  explicit ConflictGraph(size_t count) : rows(count, llvm::BitVector(count)) {}
  void add(size_t a, size_t b) {
    rows[a].set(b);
    rows[b].set(a);
  }
  bool test(size_t a, size_t b) const { return rows[a].test(b); }
  const llvm::BitVector &of(size_t buffer) const { return rows[buffer]; }
  size_t size() const { return rows.size(); }

private:
  std::vector<llvm::BitVector> rows;
};

/// Conflicts in any order of the nodes that `order` allows: two buffers may share bytes only if every node that touches one of
/// them precedes every node that touches the other. `touching` holds, for each buffer, the nodes that read or write it.
ConflictGraph conflictsOf(const std::vector<std::vector<size_t>> &touching, const NodeOrder &order);

/// Conflicts when the nodes run one after the other in schedule order: overlapping intervals.
ConflictGraph conflictsOf(const std::vector<BufferLifetime> &buffers);

struct ArenaPlan {
  std::vector<int64_t> offsetBytes; // one a buffer, multiples of the alignment
  int64_t peakBytes = 0;
  int64_t boundBytes = 0; // size of `clique`: no plan needs less
  /// Buffers of which each conflicts with each, the largest such set found: what determines the peak. Ascending.
  std::vector<size_t> clique;
  /// The member of the portfolio that won, for people.
  const char *strategy = "";
};

/// Sizes are rounded up to `alignmentBytes`. A buffer of size zero gets offset zero. Deterministic.
ArenaPlan planArena(const std::vector<BufferLifetime> &buffers, const ConflictGraph &conflicts, int64_t alignmentBytes);

/// The heaviest set of mutually conflicting buffers that a sweep over the schedule and greedy growth find, and its rounded bytes.
/// Fills `clique` and `boundBytes` of the result only.
ArenaPlan boundOf(const std::vector<BufferLifetime> &buffers, const ConflictGraph &conflicts, int64_t alignmentBytes);

} // namespace ogc::plan

#endif
