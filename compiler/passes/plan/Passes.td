//===- Passes.td - passes of the plan phase ---------------------------------===//
#ifndef OGC_PASSES_PLAN_PASSES_TD
#define OGC_PASSES_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif
