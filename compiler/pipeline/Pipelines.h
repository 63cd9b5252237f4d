//===- Pipelines.h - the passes of each phase -----------------------------===//
#ifndef OGC_PIPELINE_PIPELINES_H
#define OGC_PIPELINE_PIPELINES_H

#include "compiler/pipeline/Options.h"
#include "mlir/Pass/PassManager.h"

namespace ogc {

/// Adds the passes of a phase that rewrites IR (import to plan), in order.
void addPhasePasses(Phase phase, const CompileOptions &options, mlir::OpPassManager &manager);

} // namespace ogc

#endif
