//===- FunctionBody.h - operators defined by other operators --------------===//
#ifndef OGC_DIALECT_ONNX_FUNCTIONBODY_H
#define OGC_DIALECT_ONNX_FUNCTIONBODY_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include <string>

namespace ogc::onnx {

/// True when the schema of an operator defines it by a function, for the operand types and attributes it has here.
bool hasFunctionBody(mlir::Operation *op);

/// Builds the function body of an operator before it and returns the values of its results. On failure `reason` says why; what
/// was built has no users then.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> expandFunctionBody(mlir::OpBuilder &builder, mlir::Operation *op,
                                                                   std::string &reason);

} // namespace ogc::onnx

#endif
