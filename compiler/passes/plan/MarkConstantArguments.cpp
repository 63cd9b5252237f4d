//===- MarkConstantArguments.cpp - kernel arguments that no node writes ===//
#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace ogc {

#define GEN_PASS_DEF_MARKCONSTANTARGUMENTS
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// True for bytes that are there before the graph starts.
bool comesFromOutside(cg::SliceAttr slice) {
  return slice.getSection() == cg::Section::Weights || slice.getSection() == cg::Section::Inputs ||
         slice.getSection() == cg::Section::State;
}

class MarkConstantArguments : public impl::MarkConstantArgumentsBase<MarkConstantArguments> {
  void runOnOperation() override {
    // Whether each argument of a kernel was constant in all launches so far.
    llvm::MapVector<StringAttr, SmallVector<bool>> constant;
    for (auto graph : getOperation().getOps<cg::GraphOp>()) {
      SmallVector<cg::SliceAttr> written;
      graph.walk([&](Operation *node) {
        if (node->getNumResults() == 1 && isa<cg::NodeType>(node->getResult(0).getType()))
          for (cg::SliceAttr slice : cg::nodeSlices(node))
            if (slice.getAccess() != cg::Access::Read && comesFromOutside(slice))
              written.push_back(slice);
      });
      graph.walk([&](cg::KernelOp node) {
        ArrayAttr args = node.getArgs();
        SmallVector<bool> &flags = constant.try_emplace(node.getKernelAttr().getAttr(), args.size(), true).first->second;
        for (auto [flag, slice] : llvm::zip(flags, args.getAsRange<cg::SliceAttr>())) {
          bool isWritten = llvm::any_of(written, [&, read = slice](cg::SliceAttr other) { return cg::overlap(read, other); });
          flag = flag && comesFromOutside(slice) && !isWritten;
        }
      });
    }
    Builder builder(&getContext());
    for (auto kernel : getOperation().getOps<kern::KernelOp>()) {
      SmallVector<int64_t> indices;
      for (auto [i, flag] : llvm::enumerate(constant.lookup(kernel.getSymNameAttr())))
        if (flag)
          indices.push_back(static_cast<int64_t>(i));
      if (!indices.empty())
        kernel->setAttr("ogc.constant_args", builder.getDenseI64ArrayAttr(indices));
    }
  }
};

} // namespace
} // namespace ogc
