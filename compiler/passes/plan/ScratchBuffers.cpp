//===- ScratchBuffers.cpp - the scratch buffers of an unplanned graph -----===//
#include "compiler/passes/plan/ScratchBuffers.h"

#include <algorithm>

namespace ogc::plan {

using namespace mlir;

bool isScratch(cg::SliceAttr slice) { return slice.getSection() == cg::Section::Scratch && slice.getSizeBytes() > 0; }

std::optional<size_t> ScratchBuffers::find(int64_t offsetBytes) const {
  auto after = std::upper_bound(beginBytes.begin(), beginBytes.end(), offsetBytes);
  if (after == beginBytes.begin())
    return std::nullopt;
  size_t index = static_cast<size_t>(after - beginBytes.begin()) - 1;
  if (offsetBytes >= beginBytes[index] + lifetimes[index].sizeBytes)
    return std::nullopt;
  return index;
}

/// Joins overlapping ranges.
static ScratchBuffers joinRanges(const std::vector<Operation *> &nodes) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (Operation *node : nodes)
    for (cg::SliceAttr slice : cg::nodeSlices(node))
      if (isScratch(slice))
        ranges.push_back({slice.getOffsetBytes(), slice.getOffsetBytes() + slice.getSizeBytes()});
  std::sort(ranges.begin(), ranges.end());
  ScratchBuffers buffers;
  int64_t end = -1;
  for (auto [begin, rangeEnd] : ranges) {
    if (begin >= end) {
      buffers.beginBytes.push_back(begin);
      buffers.lifetimes.push_back({0, -1, -1});
      end = rangeEnd;
    }
    end = std::max(end, rangeEnd);
    buffers.lifetimes.back().sizeBytes = end - buffers.beginBytes.back();
  }
  buffers.touching.resize(buffers.lifetimes.size());
  return buffers;
}

FailureOr<ScratchBuffers> collectScratch(const std::vector<Operation *> &nodes) {
  ScratchBuffers buffers = joinRanges(nodes);
  bool ok = true;
  for (size_t position = 0; position < nodes.size(); ++position) {
    SmallVector<cg::SliceAttr> slices = cg::nodeSlices(nodes[position]);
    auto touch = [&](cg::SliceAttr slice, bool writes) {
      size_t index = *buffers.find(slice.getOffsetBytes());
      BufferLifetime &lifetime = buffers.lifetimes[index];
      if (lifetime.first < 0 && !writes) {
        nodes[position]->emitOpError() << "reads " << slice << ", which no earlier node writes";
        ok = false;
        return;
      }
      if (lifetime.first < 0)
        lifetime.first = static_cast<int64_t>(position);
      lifetime.last = static_cast<int64_t>(position);
      if (buffers.touching[index].empty() || buffers.touching[index].back() != position)
        buffers.touching[index].push_back(position);
    };
    // Reads first: what a node reads it cannot have written itself.
    for (bool writes : {false, true})
      for (cg::SliceAttr slice : slices)
        if (isScratch(slice) && (slice.getAccess() == cg::Access::Write) == writes)
          touch(slice, writes);
  }
  if (!ok)
    return failure();
  return buffers;
}

} // namespace ogc::plan
