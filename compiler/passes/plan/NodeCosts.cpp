//===- NodeCosts.cpp - estimated times of nodes ---------------------------===//
#include "compiler/passes/plan/NodeCosts.h"

#include "compiler/analysis/KernelWork.h"

#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace ogc::plan {

using namespace mlir;

namespace {

/// What an H200 reaches in kernels at batch one, and what the smallest dependent kernel takes there (docs/graphs.md).
constexpr double bytesPerUs = 3.0e6, tensorFlopsPerUs = 200e6, plainFlopsPerUs = 30e6, leastUs = 2.0;

/// Microseconds that the arithmetic of a kernel takes on the whole machine.
double arithmeticUs(kern::KernelOp kernel) {
  KernelWork work = countWork(kernel);
  bool isPlain = work.productType && work.productType.isF32() && !work.tf32;
  return work.productOperations / (isPlain ? plainFlopsPerUs : tensorFlopsPerUs) + work.otherOperations / plainFlopsPerUs;
}

} // namespace

std::vector<NodeCost> estimateCosts(const std::vector<Operation *> &nodes) {
  std::vector<NodeCost> costs;
  if (nodes.empty())
    return costs;
  std::map<StringRef, double> arithmetic; // of kernels seen
  for (auto kernel : nodes.front()->getParentOfType<ModuleOp>().getOps<kern::KernelOp>())
    arithmetic[kernel.getSymName()] = arithmeticUs(kernel);
  for (Operation *node : nodes) {
    double bytes = 0;
    for (cg::SliceAttr slice : cg::nodeSlices(node))
      bytes += static_cast<double>(slice.getSizeBytes());
    if (auto gemm = dyn_cast<cg::GemmOp>(node); gemm && gemm.getHasWorkspace()) // mostly unused
      bytes -= static_cast<double>(cg::nodeSlices(node).back().getSizeBytes());
    auto symbol = node->getAttrOfType<FlatSymbolRefAttr>(isa<cg::GemmOp>(node) ? "fallback" : "kernel");
    auto known = symbol ? arithmetic.find(symbol.getValue()) : arithmetic.end();
    double machine = std::max(bytes / bytesPerUs, known == arithmetic.end() ? 0 : known->second);
    costs.push_back({std::max(machine, leastUs), machine});
  }
  return costs;
}

} // namespace ogc::plan
