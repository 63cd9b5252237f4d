//===- ScratchBuffers.h - the scratch buffers of an unplanned graph -------===//
#ifndef OGC_PASSES_PLAN_SCRATCHBUFFERS_H
#define OGC_PASSES_PLAN_SCRATCHBUFFERS_H

#include "compiler/dialect/cg/Cg.h"
#include "compiler/passes/plan/ArenaPlanner.h"

#include <optional>
#include <vector>

namespace ogc::plan {

/// Before planning, buffers lie apart from each other: a buffer is a union of scratch ranges that overlap. Parts of it may be
/// written by different nodes (a concatenation), and read as a whole or in parts.
struct ScratchBuffers {
  std::vector<int64_t> beginBytes; ///< ascending
  std::vector<BufferLifetime> lifetimes;
  std::vector<std::vector<size_t>> touching; ///< positions of the nodes that read or write the buffer, ascending

  /// The buffer that holds a byte, or nothing.
  std::optional<size_t> find(int64_t offsetBytes) const;
};

/// Collects the buffers of a graph. Fails with an error at each node that reads bytes that no earlier node writes.
mlir::FailureOr<ScratchBuffers> collectScratch(const std::vector<mlir::Operation *> &nodes);

/// True for slices that a plan moves: bytes of scratch.
bool isScratch(cg::SliceAttr slice);

} // namespace ogc::plan

#endif
