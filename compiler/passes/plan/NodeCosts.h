//===- NodeCosts.h - estimated times of nodes -----------------------------===//
#ifndef OGC_PASSES_PLAN_NODECOSTS_H
#define OGC_PASSES_PLAN_NODECOSTS_H

#include "compiler/dialect/cg/Cg.h"
#include "compiler/passes/plan/BranchOrder.h"

namespace ogc::plan {

/// Estimates from bytes and floating-point operations against the rates of an H200, and from a least time that every node takes.
/// Good for comparing nodes with each other, not for predicting times. Kernels are looked up in the module around the nodes.
std::vector<NodeCost> estimateCosts(const std::vector<mlir::Operation *> &nodes);

} // namespace ogc::plan

#endif
