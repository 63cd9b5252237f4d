//===- FunctionBody.cpp - operators defined by other operators ------------===//
#include "compiler/dialect/onnx/FunctionBody.h"

#include "compiler/dialect/onnx/ContributedSchema.h"
#include "compiler/dialect/onnx/InferenceContext.h"
#include "compiler/dialect/onnx/NodeBuilder.h"
#include "compiler/dialect/onnx/OnnxOps.h"
#include "onnx/defs/function.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ogc::onnx {
namespace {

/// Shows an operation to the builder of a context dependent body.
class BodyContext final : public contributed::BodyContext {
public:
  explicit BodyContext(Operation *op) : op(op), context(op) {}
  const ::onnx::AttributeProto *getAttribute(const std::string &name) const override { return context.getAttribute(name); }
  bool hasInput(int i) const override { return getInputType(i) != nullptr; }
  bool hasOutput(int i) const override { return i >= 0 && i < static_cast<int>(op->getNumResults()); }
  const ::onnx::TypeProto *getInputType(int i) const override { return i < 0 ? nullptr : context.getInputType(i); }
  int numInputs() const override { return static_cast<int>(op->getNumOperands()); }
  const ::onnx::TensorProto *getInputData(int i) const override { return i < 0 ? nullptr : context.getInputData(i); }

private:
  Operation *op;
  OperationContext context;
};

/// A body of our own for operators that other operators express best. The operands have static shapes.
std::optional<::onnx::FunctionProto> ownBody(Operation *operation) {
  OnnxOp op(operation);
  if (op.opType() != "MaxUnpool")
    return std::nullopt;
  // A scatter into zeros of the extents that the windows say; a larger output_shape has zeros behind them.
  RankedTensorType input = op.inputType(0), output = op.outputType(0);
  SmallVector<int64_t> kernel = op.getI64s("kernel_shape"), pads = op.getI64s("pads"), strides = op.getI64s("strides");
  size_t rank = kernel.size();
  if (strides.empty())
    strides.assign(rank, 1);
  if (pads.empty())
    pads.assign(2 * rank, 0);
  if (!input || !output || !input.hasStaticShape() || !output.hasStaticShape() || strides.size() != rank ||
      pads.size() != 2 * rank || input.getRank() != static_cast<int64_t>(rank) + 2 || output.getRank() != input.getRank())
    return std::nullopt;
  std::vector<int64_t> extents(input.getShape().begin(), input.getShape().end()), behind(2 * extents.size(), 0);
  int64_t total = extents[0] * extents[1];
  for (size_t d = 0; d < rank; ++d) {
    int64_t &extent = extents[d + 2];
    extent = (extent - 1) * strides[d] - pads[d] - pads[rank + d] + kernel[d];
    behind[extents.size() + d + 2] = output.getDimSize(static_cast<int64_t>(d) + 2) - extent;
    total *= extent;
  }
  if (total <= 0)
    return std::nullopt;
  ::onnx::FunctionProto body;
  ::onnx::FunctionBuilder builder(body);
  builder.AddOpset("", 18);
  builder.Const("Flat", std::vector<int64_t>{-1}).Const("Total", std::vector<int64_t>{total});
  builder.Const("Extents", extents).Const("Behind", behind);
  builder.Add("X_flat = Reshape(X, Flat)").Add("I_flat = Reshape(I, Flat)");
  builder.Add("Zeros = ConstantOfShape(Total)").Add("Empty = CastLike(Zeros, X_flat)");
  builder.Add("Filled = ScatterElements<axis=0>(Empty, I_flat, X_flat)").Add("Shaped = Reshape(Filled, Extents)");
  builder.Add("Y = Pad(Shaped, Behind)");
  for (const char *name : {"X", "I"})
    body.add_input(name);
  body.add_output("Y");
  return body;
}

bool hasSubgraphs(const ::onnx::FunctionProto &body) {
  return llvm::any_of(body.node(), [](const ::onnx::NodeProto &node) {
    return llvm::any_of(node.attribute(), [](const ::onnx::AttributeProto &attribute) { return attribute.has_g(); });
  });
}

/// The body of an operator in its newest form; empty when it has none here, or one with loops in it; then `reason` may say why.
std::optional<::onnx::FunctionProto> findBody(Operation *op, std::string &reason) {
  const ::onnx::OpSchema *schema = findNewestSchema(getOpType(op));
  if (!schema)
    return std::nullopt;
  try {
    if (std::optional<::onnx::FunctionProto> own = ownBody(op))
      return own;
    ::onnx::FunctionProto body;
    if (!schema->HasContextDependentFunction() || !schema->BuildContextDependentFunction(BodyContext(op), body)) {
      const ::onnx::FunctionProto *fixed = schema->GetFunction();
      if (!fixed)
        return std::nullopt;
      body = *fixed;
    }
    if (!hasSubgraphs(body))
      return body;
  } catch (const std::exception &error) {
    // A builder that cannot cope with the operands: as if there were none.
    reason = oneLine(error.what());
  }
  return std::nullopt;
}

/// Builds the nodes of one body.
class BodyBuilder {
public:
  BodyBuilder(OpBuilder &builder, Operation *op, const ::onnx::FunctionProto &body, std::string &reason)
      : builder(builder), op(op), body(body), reason(reason) {
    for (const auto &entry : body.opset_import())
      opsets[entry.domain() == "ai.onnx" ? "" : entry.domain()] = entry.version();
    opsets.try_emplace("", newestOpset());
    if (const ::onnx::OpSchema *schema = findNewestSchema(getOpType(op)); schema && contributed::isContributed(*schema))
      opsets[""] = contributed::bodyOpset;
  }

  FailureOr<SmallVector<Value>> run() {
    for (auto [i, name] : llvm::enumerate(body.input()))
      values[name] = i < op->getNumOperands() ? op->getOperand(i) : createAbsent(builder, op->getLoc());
    for (const ::onnx::NodeProto &node : body.node())
      if (failed(addNode(node)))
        return failure();
    SmallVector<Value> results;
    for (unsigned i = 0; i < op->getNumResults(); ++i) {
      Value value = i < static_cast<unsigned>(body.output_size()) ? values.lookup(body.output(i)) : Value();
      if (!value && !op->getResult(i).use_empty()) {
        reason = "its function body has no output " + std::to_string(i);
        return failure();
      }
      results.push_back(value);
    }
    return results;
  }

private:
  /// The value of an attribute, null when it refers to one that the operator leaves out.
  FailureOr<Attribute> attributeOf(const ::onnx::AttributeProto &attribute) {
    if (!attribute.ref_attr_name().empty())
      return op->getAttr(attribute.ref_attr_name());
    Attribute value = importAttribute(builder.getContext(), attribute, nullptr, reason);
    if (!value)
      return failure();
    return value;
  }

  LogicalResult addNode(const ::onnx::NodeProto &proto) {
    Location loc = NameLoc::get(builder.getStringAttr(getNodeName(op->getLoc()) + " (" + proto.op_type() + ")"));
    Node node{proto.op_type(), proto.domain() == "ai.onnx" ? "" : proto.domain(), 0, loc, {}, {}, 0, {}, {}};
    auto opset = opsets.find(node.domain);
    node.version = opset == opsets.end() ? 1 : opset->second;
    for (const std::string &name : proto.input()) {
      Value value = name.empty() ? createAbsent(builder, loc) : values.lookup(name);
      if (!value) {
        reason = "its function body uses '" + name + "' before it is defined";
        return failure();
      }
      node.inputs.push_back(value);
    }
    for (const ::onnx::AttributeProto &attribute : proto.attribute()) {
      FailureOr<Attribute> value = attributeOf(attribute);
      if (failed(value))
        return failure();
      if (*value)
        node.attributes.set(attribute.name(), *value);
    }
    for (auto [i, name] : llvm::enumerate(proto.output())) {
      node.usedOutputs.push_back(!name.empty());
      if (!name.empty())
        node.numOutputs = i + 1;
    }
    FailureOr<SmallVector<Value>> results = buildNode(builder, std::move(node), reason);
    if (failed(results)) {
      reason = "in its function body, " + proto.op_type() + ": " + reason;
      return failure();
    }
    for (auto [name, value] : llvm::zip(proto.output(), *results))
      if (!name.empty())
        values[name] = value;
    return success();
  }

  OpBuilder &builder;
  Operation *op;
  const ::onnx::FunctionProto &body;
  std::string &reason;
  std::map<std::string, int64_t> opsets;
  llvm::StringMap<Value> values;
};

} // namespace

/// The bodies of some operators are made by code of the onnx package that takes any string it does not know for one that it does.
static bool hasKnownStrings(Operation *op, std::string &reason) {
  StringRef opType = getOpType(op);
  if (opType != "NegativeLogLikelihoodLoss" && opType != "SoftmaxCrossEntropyLoss")
    return true;
  auto reduction = op->getAttrOfType<StringAttr>("reduction");
  if (!reduction || llvm::is_contained({"none", "sum", "mean"}, reduction.getValue()))
    return true;
  reason = "reduction is '" + reduction.str() + "', expected none, sum or mean";
  return false;
}

/// True for operators that are nothing but their bodies: what the body refuses is refused with its reason.
static bool isOnlyBody(Operation *op) {
  const ::onnx::OpSchema *schema = findNewestSchema(getOpType(op));
  return schema && contributed::isContributed(*schema) && schema->HasContextDependentFunction();
}

bool hasFunctionBody(Operation *op) {
  std::string reason;
  return isOnlyBody(op) || findBody(op, reason).has_value();
}

FailureOr<SmallVector<Value>> expandFunctionBody(OpBuilder &builder, Operation *op, std::string &reason) {
  std::optional<::onnx::FunctionProto> body = findBody(op, reason);
  if (!body) {
    if (reason.empty())
      reason = "has no function body";
    return failure();
  }
  if (!hasKnownStrings(op, reason))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  return BodyBuilder(builder, op, *body, reason).run();
}

} // namespace ogc::onnx
