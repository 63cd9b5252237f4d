//===- Passes.h - passes of the fuse phase --------------------------------===//
#ifndef OGC_PASSES_FUSE_PASSES_H
#define OGC_PASSES_FUSE_PASSES_H

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Pass/Pass.h"

namespace ogc {

#define GEN_PASS_DECL
#include "compiler/passes/fuse/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/fuse/Passes.h.inc"

} // namespace ogc

#endif
