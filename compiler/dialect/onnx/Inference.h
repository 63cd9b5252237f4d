//===- Inference.h - result types by the schemas' inference ---------------===//
#ifndef OGC_DIALECT_ONNX_INFERENCE_H
#define OGC_DIALECT_ONNX_INFERENCE_H

#include "compiler/dialect/onnx/OnnxOps.h"

namespace ogc::onnx {

/// Makes the result types of an operator as exact as its schema's inference allows; small constant operands take part by value. A
/// type is never made less exact. Bodies of If, Loop and Scan are inferred along. On failure `reason` says what does not fit.
mlir::LogicalResult inferTypes(mlir::Operation *op, std::string &reason);

/// The same; a failure is emitted as an error on the operator.
mlir::LogicalResult inferTypes(mlir::Operation *op);

/// Infers all operators of a block in order, going on after errors.
mlir::LogicalResult inferBlock(mlir::Block &block);

/// Builds an operator whose result types are inferred. The defaults of the schema are not filled in. Null, with an error emitted
/// at `loc`, when the operands do not fit the operator; the operation is erased then.
mlir::Operation *createInferred(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef opType, mlir::ValueRange operands,
                                llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, unsigned numResults = 1);

} // namespace ogc::onnx

#endif
