//===- NarrowPanels.cpp - panels of weights that few rows meet ------------===//
#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/fuse/ConstantOps.h"
#include "compiler/passes/fuse/Panels.h"
#include "compiler/passes/fuse/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

#define GEN_PASS_DEF_NARROWPANELS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

struct NarrowPanels : impl::NarrowPanelsBase<NarrowPanels> {
  static constexpr int64_t mostRows = 2, width = 16;

  struct Use {
    kern::MatmulOp matmul;
    llvm::SetVector<Attribute> roots;
  };

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && function.getBody().hasOneBlock())
        collect(function.getBody().front());
    for (Use &use : uses)
      if (llvm::all_of(use.roots, [&](Attribute root) { return rows.lookup(root) <= mostRows; }))
        narrow(use.matmul);
    uses.clear();
    rows.clear();
  }

  void collect(Block &block) {
    fuse::ConstantOps constants(block);
    for (Operation &op : block) {
      auto matmul = dyn_cast<kern::MatmulOp>(op);
      auto conv = dyn_cast<kern::ConvOp>(op);
      if ((!matmul || !matmul.getPacked()) && !conv)
        continue;
      Value weight = matmul ? matmul.getRhs() : conv.getFilter();
      if (!constants.contains(weight))
        continue;
      llvm::SetVector<Attribute> roots = fuse::ConstantOps::rootsOf(weight);
      int64_t count = matmul ? shapeOf(matmul.getLhs())[1] : std::numeric_limits<int64_t>::max();
      for (Attribute root : roots)
        rows[root] = std::max(rows.lookup(root), count);
      if (matmul && shapeOf(weight)[2] > width)
        uses.push_back({matmul, std::move(roots)});
    }
  }

  void narrow(kern::MatmulOp matmul) {
    OpBuilder builder(matmul);
    matmul.getRhsMutable().assign(
        fuse::splitPanels(builder, matmul.getLoc(), matmul.getRhs(), width, shapeOf(matmul.getResult())[2]));
  }

  SmallVector<Use> uses;
  llvm::DenseMap<Attribute, int64_t> rows; ///< the most that any product of each constant has
};

} // namespace
} // namespace ogc
