//===- Passes.td - passes of the fuse phase ---------------------------------===//
#ifndef OGC_PASSES_FUSE_PASSES_TD
#define OGC_PASSES_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif
