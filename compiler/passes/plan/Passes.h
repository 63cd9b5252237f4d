//===- Passes.h - passes of the plan phase --------------------------------===//
#ifndef OGC_PASSES_PLAN_PASSES_H
#define OGC_PASSES_PLAN_PASSES_H

#include "compiler/dialect/cg/Cg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace ogc {

#define GEN_PASS_DECL
#include "compiler/passes/plan/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/plan/Passes.h.inc"

} // namespace ogc

#endif
