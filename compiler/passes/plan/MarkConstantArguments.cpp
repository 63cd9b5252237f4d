//===- MarkConstantArguments.cpp - kernel arguments that are always weights ===//
#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace ogc {

#define GEN_PASS_DEF_MARKCONSTANTARGUMENTS
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

class MarkConstantArguments : public impl::MarkConstantArgumentsBase<MarkConstantArguments> {
  void runOnOperation() override {
    // Whether each argument of a kernel was a weight in all launches so far.
    llvm::MapVector<StringAttr, SmallVector<bool>> constant;
    getOperation().walk([&](cg::KernelOp node) {
      ArrayAttr args = node.getArgs();
      SmallVector<bool> &flags = constant.try_emplace(node.getKernelAttr().getAttr(), args.size(), true).first->second;
      for (auto [flag, slice] : llvm::zip(flags, args.getAsRange<cg::SliceAttr>()))
        flag = flag && slice.getSection() == cg::Section::Weights;
    });
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
