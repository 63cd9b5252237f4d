//===- InferenceContext.cpp - an operation as the onnx package's contexts -===//
#include "compiler/dialect/onnx/InferenceContext.h"

#include "compiler/dialect/onnx/OnnxOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ogc::onnx {

OperationContext::OperationContext(Operation *op) : op(op), resultTypes(op->getNumResults()) {
  for (NamedAttribute attr : op->getAttrs()) {
    std::string name = attr.getName().str();
    ::onnx::AttributeProto proto;
    if (exportAttribute(name, attr.getValue(), proto))
      attributes.emplace(name, std::move(proto));
  }
  for (Value operand : op->getOperands())
    operandTypes.push_back(exportType(operand.getType()));
}

LogicalResult OperationContext::checkTypes(const ::onnx::OpSchema &schema, std::string &reason) const {
  // By type parameter ("T"): the type, and the operand that fixed it.
  std::map<std::string, std::pair<::onnx::DataType, size_t>> bound;
  const std::vector<::onnx::OpSchema::FormalParameter> &formals = schema.inputs();
  for (size_t i = 0; i < operandTypes.size() && !formals.empty(); ++i) {
    if (!hasInput(i) || operandTypes[i].tensor_type().elem_type() == ::onnx::TensorProto::UNDEFINED)
      continue;
    const ::onnx::OpSchema::FormalParameter &formal = formals[std::min(i, formals.size() - 1)];
    ::onnx::DataType type = ::onnx::Utils::DataTypeUtils::ToType(operandTypes[i]);
    auto describe = [](::onnx::DataType t) { return t->substr(0, 7) == "tensor(" ? t->substr(7, t->size() - 8) : *t; };
    if (!formal.GetTypes().count(type)) {
      reason = "input '" + formal.GetName() + "' is of type " + describe(type) + ", which the operator does not take";
      return failure();
    }
    if (formal.GetOption() == ::onnx::OpSchema::Variadic && !formal.GetIsHomogeneous())
      continue;
    auto [it, isNew] = bound.try_emplace(formal.GetTypeStr(), type, i);
    if (!isNew && it->second.first != type) {
      reason = "input " + std::to_string(i) + " is of type " + describe(type) + ", but input " +
               std::to_string(it->second.second) + " of type " + describe(it->second.first) + ", and they must be the same";
      return failure();
    }
  }
  return success();
}

/// "; its inputs have shapes [2, 3], [?, 5]": the package's reasons name none.
static std::string describeOperands(Operation *op) {
  constexpr unsigned shown = 8;
  SmallVector<std::string> texts;
  for (Value operand : op->getOperands().take_front(shown)) {
    auto tensor = dyn_cast<RankedTensorType>(operand.getType());
    if (!tensor) {
      texts.push_back(isa<TensorType>(operand.getType()) ? "[…]" : "(absent)");
      continue;
    }
    auto extent = [](int64_t size) { return ShapedType::isDynamic(size) ? "?" : std::to_string(size); };
    texts.push_back("[" + llvm::join(llvm::map_range(tensor.getShape(), extent), ", ") + "]");
  }
  if (op->getNumOperands() > shown)
    texts.push_back("…");
  return texts.empty() ? "" : "; its inputs have shapes " + llvm::join(texts, ", ");
}

LogicalResult OperationContext::run(const ::onnx::OpSchema &schema, std::string &reason) {
  try {
    if (failed(checkTypes(schema, reason)))
      return failure();
    schema.GetTypeAndShapeInferenceFunction()(*this);
    return success();
  } catch (const std::exception &error) {
    reason = oneLine(error.what()) + describeOperands(op);
    return failure();
  }
}

const ::onnx::AttributeProto *OperationContext::getAttribute(const std::string &name) const {
  auto it = attributes.find(name);
  return it == attributes.end() ? nullptr : &it->second;
}

const ::onnx::TypeProto *OperationContext::getInputType(size_t i) const {
  // A type without a value stands for an absent operand.
  return i < operandTypes.size() && operandTypes[i].has_tensor_type() ? &operandTypes[i] : nullptr;
}

const ::onnx::TensorProto *OperationContext::getInputData(size_t i) const {
  if (i >= op->getNumOperands())
    return nullptr;
  auto [it, isNew] = operandData.try_emplace(i);
  // Values that matter for shapes are small; weights are not worth a copy.
  if (isNew)
    if (ElementsAttr constant = getConstant(op->getOperand(i)))
      it->second = exportTensor(constant, /*maxElements=*/4096);
  return it->second.get();
}

std::string oneLine(StringRef text) {
  text = text.trim();
  if (text.starts_with("["))
    text = text.split("] ").second;
  std::string line = text.str();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

} // namespace ogc::onnx
