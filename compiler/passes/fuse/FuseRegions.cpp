//===- FuseRegions.cpp - group tensor operations into kernel regions ------===//
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

#define GEN_PASS_DEF_FUSEREGIONS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;

/// Reports every operation that has no place in a region.
LogicalResult checkInput(func::FuncOp function) {
  bool ok = function.getBody().hasOneBlock();
  if (!ok)
    function.emitError("has more than one block, expected one");
  for (Operation &op : function.getBody().front().without_terminator()) {
    Dialect *dialect = op.getDialect();
    bool isKnown = dialect && (isa<linalg::LinalgDialect, tensor::TensorDialect, kern::KernDialect>(dialect) ||
                               dialect->getNamespace() == "arith" || dialect->getNamespace() == "math");
    if (!isKnown) {
      op.emitOpError("cannot become part of a kernel region");
      ok = false;
    }
    for (Type type : op.getResultTypes()) {
      auto shaped = dyn_cast<ShapedType>(type);
      if (shaped && !shaped.hasStaticShape()) {
        op.emitOpError() << "has a result of type " << type << ", expected static shapes";
        ok = false;
      }
    }
  }
  return success(ok);
}

struct FuseRegions : impl::FuseRegionsBase<FuseRegions> {
  using FuseRegionsBase::FuseRegionsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isDeclaration())
      return;
    if (failed(checkInput(function)))
      return signalPassFailure();
    fuse::Grouping grouping(function, remarks);
    if (vectorChains)
      fuse::growVectorChains(grouping, epilogues);
    fuse::growAnchors(grouping, epilogues);
    fuse::growRows(grouping);
    fuse::groupPointwise(grouping);
    grouping.emitMisses();
    if (failed(fuse::buildRegions(grouping)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc
