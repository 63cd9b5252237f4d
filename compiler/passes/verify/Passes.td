//===- Passes.td - passes of the verify phase ---------------------------------===//
#ifndef OGC_PASSES_VERIFY_PASSES_TD
#define OGC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif
