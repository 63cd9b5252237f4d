//===- SelectGemmProvider.cpp - matrix products done by a library ---------===//
#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/plan/GemmForm.h"
#include "compiler/passes/plan/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace ogc {

#define GEN_PASS_DEF_SELECTGEMMPROVIDER
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;
using plan::GemmForm;

/// Brings the kernel's inputs into the order A, B, bias, residual.
void permuteArguments(kern::KernelOp kernel, ArrayRef<unsigned> order) {
  Block &body = kernel.getBody().front();
  unsigned count = body.getNumArguments();
  for (unsigned old : order) {
    BlockArgument argument = body.getArgument(old);
    argument.replaceAllUsesWith(body.addArgument(argument.getType(), argument.getLoc()));
  }
  body.eraseArguments(0, count);
}

class SelectGemmProvider : public impl::SelectGemmProviderBase<SelectGemmProvider> {
  void runOnOperation() override {
    llvm::MapVector<StringAttr, GemmForm> forms;
    for (auto kernel : getOperation().getOps<kern::KernelOp>())
      if (std::optional<GemmForm> form = plan::matchGemm(kernel))
        forms.insert({kernel.getSymNameAttr(), *form});
    SmallVector<std::pair<cg::KernelOp, const GemmForm *>> nodes;
    bool ok = true;
    getOperation().walk([&](cg::KernelOp node) {
      auto it = forms.find(node.getKernelAttr().getAttr());
      if (it == forms.end())
        return;
      nodes.push_back({node, &it->second});
      ok &= check(node, it->second);
    });
    if (!ok)
      return signalPassFailure();
    for (auto kernel : getOperation().getOps<kern::KernelOp>())
      if (auto it = forms.find(kernel.getSymNameAttr()); it != forms.end())
        permuteArguments(kernel, it->second.order);
    for (auto &[node, form] : nodes)
      replace(node, *form);
  }

  static bool check(cg::KernelOp node, const GemmForm &form) {
    if (!node.getDependencies().empty() || !node.getNode().use_empty()) {
      node.emitOpError("has edges, expected none before providers are chosen");
      return false;
    }
    if (node.getArgs().size() == form.order.size() + 1)
      return true;
    node.emitOpError() << "has " << node.getArgs().size() << " arguments, expected " << form.order.size() + 1;
    return false;
  }

  /// Partial sums in f32 of a product that is split into eight, within bounds. The library chooses among the algorithms that make
  /// do with it; most need nothing.
  static int64_t workspaceBytes(const GemmForm &form) {
    constexpr double splits = 8, least = 64 << 10, most = 8 << 20;
    double sums = splits * 4 * static_cast<double>(form.batch) * static_cast<double>(form.m) * static_cast<double>(form.n);
    return static_cast<int64_t>(std::clamp(sums, least, most));
  }

  /// A range of scratch behind all others, of this node alone: planning decides who shares its bytes.
  static cg::SliceAttr newScratch(cg::GraphOp graph, int64_t sizeBytes) {
    Builder builder(graph.getContext());
    int64_t offset = llvm::alignTo(graph.getScratchBytes(), cg::bufferAlignmentBytes);
    graph.setScratchBytes(offset + sizeBytes);
    graph.setScratchBoundBytes(offset + sizeBytes);
    return cg::SliceAttr::get(graph.getContext(), cg::Section::Scratch, offset, sizeBytes, cg::Access::Write);
  }

  static void replace(cg::KernelOp node, const GemmForm &form) {
    OpBuilder builder(node);
    SmallVector<Attribute> args;
    for (unsigned old : form.order)
      args.push_back(node.getArgs()[old]);
    args.push_back(node.getArgs()[form.order.size()]);
    args.push_back(newScratch(node->getParentOfType<cg::GraphOp>(), workspaceBytes(form)));
    cg::GemmOp::create(builder, node.getLoc(), node.getNode().getType(), node.getKernelAttr(), builder.getArrayAttr(args),
                       TypeAttr::get(form.elementType), TypeAttr::get(form.resultType), builder.getI64IntegerAttr(form.batch),
                       builder.getI64IntegerAttr(form.m), builder.getI64IntegerAttr(form.n), builder.getI64IntegerAttr(form.k),
                       /*broadcast_b=*/UnitAttr(), unit(builder, form.transposeB), unit(builder, form.hasBias),
                       unit(builder, form.hasResidual), builder.getStringAttr(form.activation), unit(builder, form.tf32),
                       /*has_workspace=*/builder.getUnitAttr(), ValueRange(), DenseI32ArrayAttr());
    node.erase();
  }

  static UnitAttr unit(OpBuilder &builder, bool value) { return value ? builder.getUnitAttr() : UnitAttr(); }
};

} // namespace
} // namespace ogc
