//===- MemoryPlan.h - which bytes live when, read back from a bundle -------===//
#ifndef OGC_FORMAT_MEMORYPLAN_H
#define OGC_FORMAT_MEMORYPLAN_H

#include "runtime_lib/format/Bundle.h"

#include <string>
#include <vector>

namespace ogc::format {

/// Bytes of a section between the node that writes them and the last one that reads them.
struct PlannedBuffer {
  fb::Section section;
  uint64_t offset, size; ///< bytes
  /// Indices of nodes: -1 before the first one (inputs, state, weights), the number of nodes after the last one (outputs).
  int64_t first, last;
  /// What the bytes are: the name of an input, output or weight, or the ONNX nodes whose work wrote them.
  std::string name;
};

/// The buffers of one graph, in the order in which they come to life, and the place where most of the scratch is in use.
struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;
  /// The node at which the most scratch bytes live, and these bytes. No plan of the same order can do with less.
  size_t peakNode = 0;
  uint64_t peakLiveBytes = 0;
  /// The scratch buffers that live there, the largest first: indices of `buffers`.
  std::vector<size_t> liveAtPeak;
};

/// Computes the plan from the slices of a verified graph: a write begins a buffer, and it lasts until the last read or update in
/// place before other writes have taken its bytes.
MemoryPlan readMemoryPlan(const fb::Manifest &manifest, const fb::Graph &graph);

} // namespace ogc::format

#endif
