//===- UnusedKernels.h - kernels that no node launches --------------------===//
#ifndef OGC_PASSES_PLAN_UNUSEDKERNELS_H
#define OGC_PASSES_PLAN_UNUSEDKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace ogc::plan {

/// Erases the kernels that no node of any graph launches or falls back on.
void eraseUnusedKernels(mlir::ModuleOp module);

} // namespace ogc::plan

#endif
