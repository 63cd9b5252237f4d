//===- VerifyGraph.cpp - prove that the edges order every hazard ----------===//
//
// Shares no code with the passes that plan memory and derive edges: reachability goes backward here, and hazards are all pairs of
// overlapping accesses, not a history of the last ones.
//
#include "compiler/passes/verify/Passes.h"

#include "compiler/dialect/cg/Cg.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/BitVector.h"
#include <algorithm>
#include <map>

namespace ogc {

#define GEN_PASS_DEF_VERIFYGRAPH
#include "compiler/passes/verify/Passes.h.inc"

namespace {

using namespace mlir;

struct Access {
  size_t node;
  cg::SliceAttr slice;
  bool writes() const { return slice.getAccess() != cg::Access::Read; }
  bool reads() const { return slice.getAccess() != cg::Access::Write; }
  int64_t begin() const { return slice.getOffsetBytes(); }
  int64_t end() const { return slice.getOffsetBytes() + slice.getSizeBytes(); }
};

StringRef verb(const Access &access) {
  return access.slice.getAccess() == cg::Access::Read    ? "reads"
         : access.slice.getAccess() == cg::Access::Write ? "writes"
                                                         : "updates";
}

class GraphChecker {
public:
  explicit GraphChecker(cg::GraphOp graph) {
    llvm::DenseMap<Operation *, size_t> position;
    for (Operation &op : graph.getBody().front()) {
      position[&op] = nodes.size();
      nodes.push_back(&op);
    }
    // What can be reached from a node: its successors, and all that they reach.
    reached.assign(nodes.size(), llvm::BitVector(nodes.size()));
    for (size_t i = nodes.size(); i-- > 0;)
      for (Value dependency : cg::nodeDependencies(nodes[i])) {
        llvm::BitVector &from = reached[position.at(dependency.getDefiningOp())];
        from |= reached[i];
        from.set(i);
      }
    // The loop above sees the edges into later nodes first, so that `reached[i]` is complete when it is used.
    for (size_t i = 0; i < nodes.size(); ++i)
      for (cg::SliceAttr slice : cg::nodeSlices(nodes[i]))
        if (slice.getSizeBytes() > 0 && slice.getSection() != cg::Section::Weights)
          accesses[slice.getSection()].push_back({i, slice});
  }

  /// Number of violations.
  unsigned run() {
    for (auto &[section, list] : accesses) {
      llvm::sort(list, [](const Access &a, const Access &b) {
        return std::tuple(a.begin(), a.node, a.end(), a.writes()) < std::tuple(b.begin(), b.node, b.end(), b.writes());
      });
      checkHazards(list);
      if (section == cg::Section::Scratch)
        checkWritten(list);
    }
    checkKinds();
    return violations;
  }

private:
  InFlightDiagnostic report(size_t node) {
    ++violations;
    return nodes[node]->emitOpError();
  }

  /// `list` is sorted by its begin.
  void checkHazards(ArrayRef<Access> list) {
    std::vector<std::pair<Access, Access>> unordered;
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t j = i + 1; j < list.size() && list[j].begin() < list[i].end(); ++j) {
        const Access &a = list[i].node < list[j].node ? list[i] : list[j], &b = list[i].node < list[j].node ? list[j] : list[i];
        if (a.node != b.node && (a.writes() || b.writes()) && cg::overlap(a.slice, b.slice) && !reached[a.node].test(b.node))
          unordered.push_back({a, b});
      }
    llvm::sort(unordered, [](const auto &x, const auto &y) {
      return std::tuple(x.second.node, x.first.node, x.second.begin(), x.first.begin()) <
             std::tuple(y.second.node, y.first.node, y.second.begin(), y.first.begin());
    });
    for (const auto &[a, b] : unordered)
      report(b.node) << "no edge orders node " << b.node << " after node " << a.node << ", which " << verb(a) << " " << a.slice
                     << " while it " << verb(b) << " " << b.slice;
  }

  /// Every byte read must have been written before.
  void checkWritten(ArrayRef<Access> list) {
    for (const Access &read : list) {
      if (!read.reads())
        continue;
      // Writers come in the order of their begins: the bytes up to `covered` are there.
      int64_t covered = read.begin();
      for (const Access &write : list) {
        if (write.begin() > covered || covered >= read.end())
          break;
        if (write.slice.getAccess() == cg::Access::Write && reached[write.node].test(read.node))
          covered = std::max(covered, write.end());
      }
      if (covered < read.end())
        report(read.node) << verb(read) << " " << read.slice << ", of which no node before it writes byte " << covered;
    }
  }

  void checkKinds() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto kinds = nodes[i]->getAttrOfType<DenseI32ArrayAttr>("edge_kinds");
      for (auto [dependency, kind] : llvm::zip(cg::nodeDependencies(nodes[i]), kinds ? kinds.asArrayRef() : ArrayRef<int32_t>()))
        if (kind == static_cast<int32_t>(cg::EdgeKind::Programmatic) &&
            (!isa<cg::KernelOp>(nodes[i]) || !isa<cg::KernelOp>(dependency.getDefiningOp())))
          report(i) << "has a programmatic edge that does not lead from kernel to kernel";
    }
  }

  std::vector<Operation *> nodes;
  std::vector<llvm::BitVector> reached;
  std::map<cg::Section, std::vector<Access>> accesses;
  unsigned violations = 0;
};

struct VerifyGraph : impl::VerifyGraphBase<VerifyGraph> {
  void runOnOperation() override {
    unsigned violations = 0;
    for (cg::GraphOp graph : getOperation().getOps<cg::GraphOp>())
      violations += GraphChecker(graph).run();
    if (violations > 0)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace ogc
