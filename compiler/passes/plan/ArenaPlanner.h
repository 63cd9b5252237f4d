//===- ArenaPlanner.h - offsets for buffers with known lifetimes ----------===//
//
// A pure function: no IR, no target. Offline dynamic storage allocation is NP-hard, so a small portfolio of greedy orders is
// tried and the best result kept; on the graphs of real networks at least one of them meets the lower bound nearly always.
//
#ifndef OGC_PASSES_PLAN_ARENAPLANNER_H
#define OGC_PASSES_PLAN_ARENAPLANNER_H

#include <cstdint>
#include <vector>

namespace ogc::plan {

/// A buffer and the closed interval of schedule positions [first, last] in which its bytes must not be touched by others.
struct BufferLifetime {
  int64_t sizeBytes;
  int64_t first;
  int64_t last;
};

struct ArenaPlan {
  std::vector<int64_t> offsetBytes; // one a buffer, multiples of the alignment
  int64_t peakBytes = 0;
  int64_t boundBytes = 0; // largest sum of sizes alive at one position: no plan needs less
};

/// Sizes are rounded up to `alignmentBytes`. A buffer of size zero gets offset zero and conflicts with nothing.
ArenaPlan planArena(const std::vector<BufferLifetime> &buffers, int64_t alignmentBytes);

/// The largest sum of rounded sizes alive at one position.
int64_t liveBytesBound(const std::vector<BufferLifetime> &buffers, int64_t alignmentBytes);

} // namespace ogc::plan

#endif
