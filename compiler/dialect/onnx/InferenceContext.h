//===- InferenceContext.h - an operation as the onnx package's contexts ---===//
#ifndef OGC_DIALECT_ONNX_INFERENCECONTEXT_H
#define OGC_DIALECT_ONNX_INFERENCECONTEXT_H

#include "compiler/dialect/onnx/Proto.h"
#include "compiler/dialect/onnx/Schemas.h"
#include <map>
#include <vector>

namespace ogc::onnx {

/// Shows an operation to a schema: its attributes, operand types and small constant operands. Serves shape inference and the
/// builders of function bodies.
class OperationContext final : public ::onnx::InferenceContext {
public:
  explicit OperationContext(mlir::Operation *op);

  /// Checks the element types of the operands against the type constraints of a schema, then runs its inference. No exception
  /// leaves; a failure is explained in `reason`, on one line.
  mlir::LogicalResult run(const ::onnx::OpSchema &schema, std::string &reason);
  const ::onnx::TypeProto &resultType(unsigned i) const { return resultTypes[i]; }

  const ::onnx::AttributeProto *getAttribute(const std::string &name) const override;
  size_t getNumInputs() const override { return operandTypes.size(); }
  const ::onnx::TypeProto *getInputType(size_t i) const override;
  bool hasInput(size_t i) const override { return getInputType(i) != nullptr; }
  const ::onnx::TensorProto *getInputData(size_t i) const override;
  size_t getNumOutputs() const override { return resultTypes.size(); }
  ::onnx::TypeProto *getOutputType(size_t i) override { return i < resultTypes.size() ? &resultTypes[i] : nullptr; }
  ::onnx::GraphInferencer *getGraphAttributeInferencer(const std::string &) override { return nullptr; }
  const ::onnx::SparseTensorProto *getInputSparseData(size_t) const override { return nullptr; }
  const ::onnx::TensorShapeProto *getSymbolicInput(size_t) const override { return nullptr; }

private:
  mlir::LogicalResult checkTypes(const ::onnx::OpSchema &schema, std::string &reason) const;

  mlir::Operation *op;
  std::map<std::string, ::onnx::AttributeProto> attributes;
  std::vector<::onnx::TypeProto> operandTypes, resultTypes;
  mutable std::map<size_t, std::unique_ptr<::onnx::TensorProto>> operandData;
};

/// An exception's text on one line, without the onnx package's prefix in brackets.
std::string oneLine(llvm::StringRef text);

} // namespace ogc::onnx

#endif
