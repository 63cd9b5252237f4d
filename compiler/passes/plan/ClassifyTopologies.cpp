//===- ClassifyTopologies.cpp - graphs that one executable graph can serve ===//
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <map>

namespace ogc {

#define GEN_PASS_DEF_CLASSIFYTOPOLOGIES
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// Everything of a graph that an update of an executable graph cannot change: kinds of nodes and edges. A copy or fill of no
/// bytes counts as a kind of its own, because the runtime makes no node of it.
std::vector<int64_t> topologyOf(cg::GraphOp graph) {
  std::vector<int64_t> key;
  llvm::DenseMap<Operation *, int64_t> indices;
  for (Operation &node : graph.getBody().front()) {
    bool isEmpty = isa<cg::MemcpyOp, cg::MemsetOp>(node) && cg::nodeSlices(&node).front().getSizeBytes() == 0;
    int64_t kind = isa<cg::KernelOp>(node) ? 0 : isa<cg::GemmOp>(node) ? 1 : isa<cg::MemcpyOp>(node) ? 2 : 3;
    int64_t index = static_cast<int64_t>(indices.size());
    indices[&node] = index;
    key.push_back(isEmpty ? 4 + kind : kind);
    OperandRange dependencies = cg::nodeDependencies(&node);
    auto kinds = node.getAttrOfType<DenseI32ArrayAttr>("edge_kinds");
    key.push_back(static_cast<int64_t>(dependencies.size()));
    for (auto [i, dependency] : llvm::enumerate(dependencies)) {
      key.push_back(indices.lookup(dependency.getDefiningOp()));
      key.push_back(kinds ? kinds[static_cast<int64_t>(i)] : 0);
    }
  }
  return key;
}

class ClassifyTopologies : public impl::ClassifyTopologiesBase<ClassifyTopologies> {
  void runOnOperation() override {
    Builder builder(&getContext());
    std::map<std::vector<int64_t>, int64_t> classes;
    for (auto graph : getOperation().getOps<cg::GraphOp>()) {
      auto [found, isNew] = classes.try_emplace(topologyOf(graph), static_cast<int64_t>(classes.size()));
      graph.setTopologyAttr(builder.getI64IntegerAttr(found->second));
    }
  }
};

} // namespace
} // namespace ogc
