//===- Passes.td - passes of the normalize phase ---------------------------------===//
#ifndef OGC_PASSES_NORMALIZE_PASSES_TD
#define OGC_PASSES_NORMALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif
