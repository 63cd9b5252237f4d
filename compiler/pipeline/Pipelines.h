//===- Pipelines.h - the passes of each phase -----------------------------===//
#ifndef OGC_PIPELINE_PIPELINES_H
#define OGC_PIPELINE_PIPELINES_H

#include "compiler/pipeline/Options.h"
#include "mlir/Pass/PassManager.h"

namespace ogc {

/// Names, without "ogc-", of the passes that only make results faster or smaller, so that a compilation may leave them out:
/// `CompileOptions::disabled`. "fuse-epilogues" and "vector-chains" are steps of ogc-fuse-regions: anchors take what follows
/// them; small products and sums that follow each other become one kernel.
llvm::ArrayRef<llvm::StringRef> optionalPasses();

/// Adds the passes of a phase that rewrites IR (import to plan), in order.
void addPhasePasses(Phase phase, const CompileOptions &options, mlir::OpPassManager &manager);

} // namespace ogc

#endif
