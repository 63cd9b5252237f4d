//===- NodeCosts.cpp - estimated times of nodes ---------------------------===//
#include "compiler/passes/plan/NodeCosts.h"

#include "compiler/dialect/kern/Kern.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace ogc::plan {

using namespace mlir;

namespace {

/// What an H200 reaches in kernels at batch one, and what the smallest dependent kernel takes there (docs/graphs.md).
constexpr double bytesPerUs = 3.0e6, tensorFlopsPerUs = 200e6, plainFlopsPerUs = 30e6, leastUs = 2.0;

double elements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? static_cast<double>(type.getNumElements()) : 0;
}

double extent(Value value, unsigned dim) { return static_cast<double>(cast<RankedTensorType>(value.getType()).getDimSize(dim)); }

/// Multiply-adds for each element of an anchor's result.
double productsPerElement(Operation *anchor) {
  if (auto matmul = dyn_cast<kern::MatmulOp>(anchor))
    return extent(matmul.getLhs(), 2);
  if (auto conv = dyn_cast<kern::ConvOp>(anchor))
    return extent(conv.getFilter(), 1);
  if (auto conv = dyn_cast<kern::DepthwiseConvOp>(anchor))
    return extent(conv.getFilter(), 0) * extent(conv.getFilter(), 1);
  if (auto attention = dyn_cast<kern::AttentionOp>(anchor))
    return 2 * extent(attention.getKey(), 1);
  return 1;
}

/// Microseconds that the arithmetic of a kernel takes on the whole machine.
double arithmeticUs(kern::KernelOp kernel) {
  double us = 0;
  for (Operation &op : kernel.getBody().front()) {
    if (kern::isAnchor(&op)) {
      auto mode = op.getAttrOfType<kern::MathModeAttr>("math");
      bool plain = getElementTypeOrSelf(op.getOperand(0)).isF32() && (!mode || mode.getValue() == kern::MathMode::IEEE);
      us += 2 * elements(op.getResult(0)) * productsPerElement(&op) / (plain ? plainFlopsPerUs : tensorFlopsPerUs);
    } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      double points = 1;
      for (int64_t range : structured.getStaticLoopRanges())
        points *= static_cast<double>(std::max<int64_t>(range, 1));
      us += points * static_cast<double>(std::distance(structured.getBlock()->begin(), structured.getBlock()->end())) /
            plainFlopsPerUs;
    }
  }
  return us;
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
