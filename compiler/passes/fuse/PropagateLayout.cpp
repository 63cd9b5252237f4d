//===- PropagateLayout.cpp - remove transposes ----------------------------===//
#include "compiler/passes/fuse/LayoutPropagator.h"
#include "compiler/passes/fuse/Passes.h"

namespace ogc {

#define GEN_PASS_DEF_PROPAGATELAYOUT
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

struct PropagateLayout : impl::PropagateLayoutBase<PropagateLayout> {
  void runOnOperation() override {
    mlir::func::FuncOp function = getOperation();
    if (!function.isDeclaration() && function.getBody().hasOneBlock())
      fuse::LayoutPropagator(function).run();
  }
};

} // namespace
} // namespace ogc
