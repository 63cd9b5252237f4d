//===- Hazards.h - byte-range hazards between the nodes of a graph --------===//
#ifndef OGC_PASSES_PLAN_HAZARDS_H
#define OGC_PASSES_PLAN_HAZARDS_H

#include "compiler/dialect/cg/Cg.h"

#include <vector>

namespace ogc::plan {

/// The nodes of a graph in schedule order.
std::vector<mlir::Operation *> nodesOf(cg::GraphOp graph);

/// For each node the earlier ones that it must follow, ascending: both touch a common byte, one of them writing. Of hazards that
/// others hide only those remain that are needed: whoever conflicts with bytes that were written since follows the last writer.
std::vector<std::vector<size_t>> hazardsOf(const std::vector<mlir::Operation *> &nodes);

} // namespace ogc::plan

#endif
