//===- Passes.td - passes of the specialize phase ---------------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_PASSES_TD
#define OGC_PASSES_SPECIALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif
