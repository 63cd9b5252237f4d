//===- Passes.td - passes of the lower phase ---------------------------------===//
#ifndef OGC_PASSES_LOWER_PASSES_TD
#define OGC_PASSES_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif
