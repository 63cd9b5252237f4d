//===- Passes.h - passes of the specialize phase --------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_PASSES_H
#define OGC_PASSES_SPECIALIZE_PASSES_H

#include "compiler/dialect/onnx/OnnxDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ogc::specialize {

#define GEN_PASS_DECL
#include "compiler/passes/specialize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/specialize/Passes.h.inc"

} // namespace ogc::specialize

#endif
