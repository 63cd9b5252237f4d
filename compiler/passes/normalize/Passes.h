//===- Passes.h - passes of the normalize phase ---------------------------===//
#ifndef OGC_PASSES_NORMALIZE_PASSES_H
#define OGC_PASSES_NORMALIZE_PASSES_H

#include "compiler/dialect/onnx/OnnxDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include <functional>

namespace ogc::normalize {

#define GEN_PASS_DECL
#include "compiler/passes/normalize/Passes.h.inc"

/// ogc-expand-functions with a predicate: operators for which it is true are kept.
std::unique_ptr<mlir::Pass> createExpandFunctions(std::function<bool(llvm::StringRef opType)> hasLowering);

/// True for the names of passes that a pipeline leaves out; it is asked about those alone that are optimizations.
using PassFilter = std::function<bool(llvm::StringRef passName)>;

/// The passes that need no shapes, for the normalize phase.
void addNormalizePasses(mlir::OpPassManager &manager, const PassFilter &isDisabled);
/// The passes that recognise and expand operators. They need static shapes to prove a pattern right, so they run at the end of
/// the specialize phase, after ogc-fold-shapes. `hasLowering` is the predicate of createExpandFunctions.
void addFormPasses(mlir::OpPassManager &manager, std::function<bool(llvm::StringRef opType)> hasLowering,
                   const PassFilter &isDisabled);

#define GEN_PASS_REGISTRATION
#include "compiler/passes/normalize/Passes.h.inc"

} // namespace ogc::normalize

#endif
