//===- MarkProgrammaticEdges.cpp - edges for programmatic launch ----------===//
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace ogc {

#define GEN_PASS_DEF_MARKPROGRAMMATICEDGES
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

class MarkProgrammaticEdges : public impl::MarkProgrammaticEdgesBase<MarkProgrammaticEdges> {
  void runOnOperation() override {
    getOperation().walk([](cg::KernelOp node) {
      SmallVector<int32_t> kinds;
      for (Value dependency : node.getDependencies())
        kinds.push_back(static_cast<int32_t>(
            isa_and_nonnull<cg::KernelOp>(dependency.getDefiningOp()) ? cg::EdgeKind::Programmatic : cg::EdgeKind::Full));
      if (!kinds.empty())
        node.setEdgeKinds(kinds);
    });
  }
};

} // namespace
} // namespace ogc
