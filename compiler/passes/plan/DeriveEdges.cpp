//===- DeriveEdges.cpp - edges from byte-range hazards --------------------===//
#include "compiler/passes/plan/Hazards.h"
#include "compiler/passes/plan/NodeOrder.h"
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace ogc {

#define GEN_PASS_DEF_DERIVEEDGES
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

class DeriveEdges : public impl::DeriveEdgesBase<DeriveEdges> {
public:
  using DeriveEdgesBase::DeriveEdgesBase;

private:
  void runOnOperation() override {
    for (cg::GraphOp graph : getOperation().getOps<cg::GraphOp>())
      serial ? chain(graph) : fromHazards(graph);
  }

  static void chain(cg::GraphOp graph) {
    Operation *previous = nullptr;
    for (Operation &node : graph.getBody().front()) {
      node.setOperands(previous ? ValueRange(previous->getResults()) : ValueRange());
      previous = &node;
    }
  }

  static void fromHazards(cg::GraphOp graph) {
    std::vector<Operation *> nodes = plan::nodesOf(graph);
    llvm::DenseMap<Operation *, size_t> position;
    std::vector<std::vector<size_t>> predecessors = plan::hazardsOf(nodes);
    plan::NodeOrder order(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      position[nodes[i]] = i;
      for (Value given : cg::nodeDependencies(nodes[i]))
        predecessors[i].push_back(position.at(given.getDefiningOp()));
      SmallVector<Value> operands;
      for (size_t p : plan::addReduced(order, i, std::move(predecessors[i])))
        operands.push_back(nodes[p]->getResult(0));
      nodes[i]->setOperands(operands);
    }
  }
};

} // namespace
} // namespace ogc
