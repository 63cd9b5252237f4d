//===- PlanArena.cpp - order of branches, and scratch buffers that share bytes ===//
#include "compiler/passes/plan/ArenaPlanner.h"
#include "compiler/passes/plan/BranchOrder.h"
#include "compiler/passes/plan/Hazards.h"
#include "compiler/passes/plan/NodeCosts.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/ScratchBuffers.h"

#include "mlir/IR/BuiltinOps.h"
#include <algorithm>
#include <limits>

namespace ogc {

#define GEN_PASS_DEF_PLANARENA
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// Side by side branches may take this many times the scratch of the chain, or so many bytes more, where --memory does not say
/// otherwise.
constexpr double mostGrowth = 1.5, alwaysAllowed = 16 << 20;

/// Shares of the shorter node's time that must be hidden for two nodes to run side by side, tried in turn until the memory
/// suffices; the last one makes a chain.
constexpr double leastShares[] = {0.5, 0.75, 0.95, 2.0};

/// One way to run a graph: its order, and the memory it takes.
struct Candidate {
  plan::BranchOrder branches;
  plan::ArenaPlan arena;
};

/// Bytes of the sections that a context holds besides scratch.
int64_t bytesOfBindings(ModuleOp module) {
  int64_t end[cg::getMaxEnumValForSection() + 1] = {};
  for (cg::GraphOp graph : module.getOps<cg::GraphOp>())
    for (ArrayAttr bindings : {graph.getInputs(), graph.getOutputs()})
      for (auto binding : bindings.getAsRange<cg::BindingAttr>()) {
        int64_t &section = end[static_cast<size_t>(binding.getSection())];
        section = std::max(section, binding.getOffsetBytes() + binding.getSizeBytes());
      }
  int64_t bytes = 0;
  for (int64_t section : end)
    bytes += section;
  return bytes;
}

class PlanArena : public impl::PlanArenaBase<PlanArena> {
public:
  using PlanArenaBase::PlanArenaBase;

private:
  void runOnOperation() override {
    bool failedAny = false;
    int64_t bound = bytesOfBindings(getOperation()), limit = memory - bound;
    for (cg::GraphOp graph : getOperation().getOps<cg::GraphOp>()) {
      std::vector<Operation *> nodes = plan::nodesOf(graph);
      FailureOr<plan::ScratchBuffers> buffers = plan::collectScratch(nodes);
      if (failed(buffers)) {
        failedAny = true;
        continue;
      }
      Candidate chosen = choose(nodes, *buffers, limit);
      apply(graph, nodes, *buffers, chosen);
      if (memory > 0 && chosen.arena.peakBytes > limit) {
        failedAny = true;
        reportMemory(graph, nodes, *buffers, chosen.arena, bound + chosen.arena.peakBytes);
      }
    }
    if (failedAny)
      signalPassFailure();
  }

  /// The candidate with the most parallelism whose scratch is within the limit; the chain when there is none.
  Candidate choose(const std::vector<Operation *> &nodes, const plan::ScratchBuffers &buffers, int64_t limit) {
    std::vector<plan::NodeCost> costs = plan::estimateCosts(nodes);
    std::vector<std::vector<size_t>> hazards = plan::hazardsOf(nodes);
    auto candidate = [&](double leastShare) {
      Candidate result{plan::orderBranches(costs, hazards, leastShare), {}};
      result.arena = plan::planArena(buffers.lifetimes, plan::conflictsOf(buffers.touching, result.branches.order),
                                     cg::bufferAlignmentBytes);
      return result;
    };
    Candidate chain = candidate(std::end(leastShares)[-1]);
    if (serial)
      return chain;
    double least = static_cast<double>(chain.arena.peakBytes);
    double most = memory > 0 ? static_cast<double>(limit) : std::max(mostGrowth * least, least + alwaysAllowed);
    for (double leastShare : ArrayRef(leastShares).drop_back()) {
      Candidate result = candidate(leastShare);
      if (static_cast<double>(result.arena.peakBytes) <= most)
        return result;
    }
    return chain;
  }

  static void apply(cg::GraphOp graph, const std::vector<Operation *> &nodes, const plan::ScratchBuffers &buffers,
                    const Candidate &chosen) {
    auto moved = [&](cg::SliceAttr slice) -> cg::SliceAttr {
      if (!plan::isScratch(slice))
        return slice;
      size_t index = *buffers.find(slice.getOffsetBytes());
      return slice.withOffset(chosen.arena.offsetBytes[index] + slice.getOffsetBytes() - buffers.beginBytes[index]);
    };
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](cg::SliceAttr slice) -> std::optional<Attribute> { return moved(slice); });
    for (size_t i = 0; i < nodes.size(); ++i) {
      replacer.replaceElementsIn(nodes[i]);
      SmallVector<Value> operands;
      for (size_t p : chosen.branches.predecessors[i])
        operands.push_back(nodes[p]->getResult(0));
      nodes[i]->setOperands(operands);
    }
    Builder builder(graph.getContext());
    graph.setScratchBytesAttr(builder.getI64IntegerAttr(chosen.arena.peakBytes));
    graph.setScratchBoundBytesAttr(builder.getI64IntegerAttr(chosen.arena.boundBytes));
    recordPeak(graph, buffers, chosen.arena);
  }

  /// What determines the peak: the buffers that all need bytes of their own, and the node from which on all of them exist.
  static void recordPeak(cg::GraphOp graph, const plan::ScratchBuffers &buffers, const plan::ArenaPlan &arena) {
    if (arena.clique.empty())
      return;
    int64_t node = 0;
    SmallVector<Attribute> slices;
    for (size_t index : arena.clique) {
      node = std::max(node, buffers.lifetimes[index].first);
      slices.push_back(cg::SliceAttr::get(graph.getContext(), cg::Section::Scratch, arena.offsetBytes[index],
                                          buffers.lifetimes[index].sizeBytes, cg::Access::ReadWrite));
    }
    Builder builder(graph.getContext());
    graph.setPeakNodeAttr(builder.getI64IntegerAttr(node));
    graph.setPeakBuffersAttr(builder.getArrayAttr(slices));
  }

  void reportMemory(cg::GraphOp graph, const std::vector<Operation *> &nodes, const plan::ScratchBuffers &buffers,
                    const plan::ArenaPlan &arena, int64_t needed) {
    InFlightDiagnostic diagnostic = graph.emitError();
    diagnostic << "graph '" << graph.getSymName() << "' needs " << needed << " bytes for state, inputs, outputs and scratch, "
               << "--memory allows " << memory.getValue();
    if (arena.clique.empty())
      return;
    int64_t node = 0;
    for (size_t index : arena.clique)
      node = std::max(node, buffers.lifetimes[index].first);
    diagnostic << "; " << arena.clique.size() << " buffers of " << arena.boundBytes << " bytes are alive at node " << node;
    if (auto name = nodes[static_cast<size_t>(node)]->getLoc()->findInstanceOf<NameLoc>())
      diagnostic << " (" << name.getName().getValue() << ")";
  }
};

} // namespace
} // namespace ogc
