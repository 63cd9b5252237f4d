//===- OperandRules.h - what lowerings may take for granted ----------------===//
#ifndef OGC_PASSES_LOWER_OPERANDRULES_H
#define OGC_PASSES_LOWER_OPERANDRULES_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include <optional>
#include <string>

namespace ogc::lower {

/// Why an operator's operands have ranks, or its axis attributes values, that its definition does not allow: shape inference
/// leaves many of them alone. Nothing when they are right; lowerings index shapes without a check then. All types are static
/// tensors.
std::optional<std::string> refuseOperands(mlir::Operation *op);

} // namespace ogc::lower

#endif
