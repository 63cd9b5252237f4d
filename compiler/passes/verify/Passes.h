//===- Passes.h - passes of the verify phase ------------------------------===//
#ifndef OGC_PASSES_VERIFY_PASSES_H
#define OGC_PASSES_VERIFY_PASSES_H

#include "mlir/Pass/Pass.h"

namespace ogc {

#define GEN_PASS_DECL
#include "compiler/passes/verify/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/verify/Passes.h.inc"

} // namespace ogc

#endif
