//===- CodeGeneration.h - the code of a bundle for all its targets --------===//
#ifndef OGC_PIPELINE_CODEGENERATION_H
#define OGC_PIPELINE_CODEGENERATION_H

#include "compiler/bundle/BundleWriter.h"
#include "compiler/pipeline/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace ogc {

/// Why a target cannot be compiled for; "" where it can.
std::string refuseTarget(llvm::StringRef target);

/// Checks the list of targets: `cpu` or `sm_XX`, at least one, none twice. Emits an error for each that is wrong.
mlir::LogicalResult checkTargets(mlir::MLIRContext &context, const CompileOptions &options);

/// Reads the tuning table that the options name, whichever the targets: a name that is wrong is wrong before anything is
/// compiled.
mlir::LogicalResult checkTuning(mlir::MLIRContext &context, const CompileOptions &options);

/// Compiles the kernels of `module` for all targets and fills in everything of the bundle that the module does not say.
mlir::LogicalResult generateCode(mlir::ModuleOp module, const CompileOptions &options, bundle::BundleParts &parts);

} // namespace ogc

#endif
