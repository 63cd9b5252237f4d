//===- Compiler.h - from an ONNX file to a bundle -------------------------===//
#ifndef OGC_PIPELINE_COMPILER_H
#define OGC_PIPELINE_COMPILER_H

#include "compiler/pipeline/Options.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace ogc {

/// Registers and loads the dialects of all phases.
void loadDialects(mlir::MLIRContext &context);

/// Compiles a model as the options say. Every problem is reported as a diagnostic of the context, all of a phase before it fails;
/// on failure no file is left behind.
mlir::LogicalResult compile(mlir::MLIRContext &context, const CompileOptions &options);

} // namespace ogc

#endif
