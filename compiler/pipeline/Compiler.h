//===- Compiler.h - from an ONNX file to a bundle -------------------------===//
#ifndef OGC_PIPELINE_COMPILER_H
#define OGC_PIPELINE_COMPILER_H

#include "compiler/pipeline/Options.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace ogc {

/// Registers and loads the dialects of all phases.
void loadDialects(mlir::MLIRContext &context);

/// Compiles a model as the options say. Every problem is reported as a diagnostic of the context, all of a phase before it fails;
/// on failure no file is left behind.
mlir::LogicalResult compile(mlir::MLIRContext &context, const CompileOptions &options);

/// What a model is like in some shapes, found without generating code.
struct ModelFacts {
  /// One dictionary a named dimension of the inputs (`ogc-prove-padding`).
  mlir::ArrayAttr padding;
  std::vector<std::string> graphs;
  int64_t weightsBytes = 0;
  /// Of a context: inputs, outputs and scratch of the largest graph. 0 unless asked for.
  int64_t contextBytes = 0;
};

/// Compiles a model up to the specialize phase, or with `withMemory` up to the plan phase. Problems are reported as by `compile`.
mlir::FailureOr<ModelFacts> examine(mlir::MLIRContext &context, const CompileOptions &options, bool withMemory);

/// The named dimensions of a model's inputs, in order of appearance; inputs whose values are given are none.
mlir::FailureOr<std::vector<std::string>> readSymbols(mlir::MLIRContext &context, const CompileOptions &options);

} // namespace ogc

#endif
