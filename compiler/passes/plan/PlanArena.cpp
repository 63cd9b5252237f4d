//===- PlanArena.cpp - let scratch buffers share bytes --------------------===//
#include "compiler/passes/plan/ArenaPlanner.h"
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include <algorithm>

namespace ogc {

#define GEN_PASS_DEF_PLANARENA
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// Device memory is addressed in units of this many bytes: vector loads and bulk copies need 16, L2 sectors and cuBLASLt prefer
/// more.
constexpr int64_t alignmentBytes = 256;

/// The scratch buffers of a graph in order of definition: ranges before planning are disjoint.
struct ScratchBuffers {
  std::map<int64_t, size_t> byOffset; // offset before planning → index
  std::vector<int64_t> oldOffset;
  std::vector<plan::BufferLifetime> lifetimes;

  /// The buffer that holds a byte, or null.
  std::optional<size_t> find(int64_t offset) const {
    auto it = byOffset.upper_bound(offset);
    if (it == byOffset.begin())
      return std::nullopt;
    size_t index = std::prev(it)->second;
    if (offset >= oldOffset[index] + std::max<int64_t>(lifetimes[index].sizeBytes, 1))
      return std::nullopt;
    return index;
  }
};

/// Visits the scratch slices of a node that move bytes.
template <typename Fn> void forEachScratchSlice(Operation *node, Fn fn) {
  for (cg::SliceAttr slice : cg::nodeSlices(node))
    if (slice.getSection() == cg::Section::Scratch && slice.getSizeBytes() > 0)
      fn(slice);
}

LogicalResult collectBuffers(cg::GraphOp graph, ScratchBuffers &buffers) {
  int64_t position = 0;
  for (Operation &node : graph.getBody().front()) {
    WalkResult ok = WalkResult::advance();
    forEachScratchSlice(&node, [&](cg::SliceAttr slice) {
      if (slice.getAccess() == cg::Access::Read)
        return;
      if (std::optional<size_t> index = buffers.find(slice.getOffsetBytes())) {
        if (slice.getOffsetBytes() + slice.getSizeBytes() > buffers.oldOffset[*index] + buffers.lifetimes[*index].sizeBytes) {
          node.emitOpError() << "writes " << slice << ", which overlaps a scratch buffer without lying inside it";
          ok = WalkResult::interrupt();
        }
        return;
      }
      buffers.byOffset[slice.getOffsetBytes()] = buffers.lifetimes.size();
      buffers.oldOffset.push_back(slice.getOffsetBytes());
      buffers.lifetimes.push_back({slice.getSizeBytes(), position, position});
    });
    forEachScratchSlice(&node, [&](cg::SliceAttr slice) {
      std::optional<size_t> index = buffers.find(slice.getOffsetBytes());
      if (!index) {
        node.emitOpError() << "reads " << slice << ", which no earlier node writes";
        ok = WalkResult::interrupt();
        return;
      }
      buffers.lifetimes[*index].last = position;
    });
    if (ok.wasInterrupted())
      return failure();
    ++position;
  }
  return success();
}

class PlanArena : public impl::PlanArenaBase<PlanArena> {
  void runOnOperation() override {
    bool failedAny = false;
    for (cg::GraphOp graph : getOperation().getOps<cg::GraphOp>()) {
      ScratchBuffers buffers;
      if (failed(collectBuffers(graph, buffers))) {
        failedAny = true;
        continue;
      }
      apply(graph, buffers, plan::planArena(buffers.lifetimes, alignmentBytes));
    }
    if (failedAny)
      signalPassFailure();
  }

  static void apply(cg::GraphOp graph, const ScratchBuffers &buffers, const plan::ArenaPlan &plan) {
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](cg::SliceAttr slice) -> std::optional<Attribute> {
      if (slice.getSection() != cg::Section::Scratch || slice.getSizeBytes() == 0)
        return std::nullopt;
      std::optional<size_t> index = buffers.find(slice.getOffsetBytes());
      if (!index)
        return std::nullopt;
      int64_t offset = plan.offsetBytes[*index] + slice.getOffsetBytes() - buffers.oldOffset[*index];
      return cg::SliceAttr::get(slice.getContext(), slice.getSection(), offset, slice.getSizeBytes(), slice.getAccess());
    });
    for (Operation &node : graph.getBody().front())
      replacer.replaceElementsIn(&node);
    Builder builder(graph.getContext());
    graph.setScratchBytesAttr(builder.getI64IntegerAttr(plan.peakBytes));
    graph.setScratchBoundBytesAttr(builder.getI64IntegerAttr(plan.boundBytes));
  }
};

} // namespace
} // namespace ogc
