//===- NodeBuilder.cpp - one ONNX node → one operation in its newest form -===//
#include "compiler/dialect/onnx/NodeBuilder.h"

#include "compiler/dialect/onnx/Inference.h"
#include "compiler/dialect/onnx/Proto.h"
#include "compiler/dialect/onnx/TypeLattice.h"
#include "compiler/dialect/onnx/Upgrade.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::OpSchema;

namespace ogc::onnx {
namespace {

/// The schema a node means: a deprecated one stands for the last form before it.
const OpSchema *schemaOf(StringRef opType, StringRef domain, int64_t version) {
  const OpSchema *schema = findSchema(opType, domain, version);
  while (schema && schema->deprecated())
    schema = schema->SinceVersion() > 1 ? findSchema(opType, domain, schema->SinceVersion() - 1) : nullptr;
  return schema;
}

/// Names in the schema's map come in no stable order: sorted, so that messages and attributes are the same each time.
SmallVector<const OpSchema::Attribute *> sortedAttributes(const OpSchema &schema) {
  SmallVector<const OpSchema::Attribute *> list;
  for (const auto &entry : schema.attributes())
    list.push_back(&entry.second);
  llvm::sort(list, [](const auto *a, const auto *b) { return a->name < b->name; });
  return list;
}

LogicalResult fillDefaults(MLIRContext *context, const OpSchema &schema, NamedAttrList &attributes, std::string &reason) {
  for (const OpSchema::Attribute *attribute : sortedAttributes(schema)) {
    if (attribute->default_value.type() == AttributeProto::UNDEFINED || attributes.get(attribute->name))
      continue;
    Attribute value = importAttribute(context, attribute->default_value, nullptr, reason);
    if (!value)
      return failure();
    attributes.set(attribute->name, value);
  }
  return success();
}

bool hasKind(Attribute value, AttributeProto::AttributeType kind) {
  switch (kind) {
  case AttributeProto::INT:
    return isa<IntegerAttr>(value);
  case AttributeProto::FLOAT:
    return isa<FloatAttr>(value);
  case AttributeProto::STRING:
    return isa<StringAttr>(value);
  case AttributeProto::INTS:
    return isa<DenseI64ArrayAttr>(value);
  case AttributeProto::FLOATS:
    return isa<DenseF32ArrayAttr>(value);
  case AttributeProto::STRINGS:
    return isa<ArrayAttr>(value);
  case AttributeProto::TENSOR:
    return isa<ElementsAttr>(value);
  default:
    return false;
  }
}

/// Shape inference reads integer attributes as 32 bits wide, lowerings as 64: what differs between the two is refused. Only the
/// ends of a Shape are clamped by definition, so that any number means something.
LogicalResult checkIntegers(const Node &node, std::string &reason) {
  auto isWide = [](int64_t value) { return value != static_cast<int32_t>(value); };
  for (NamedAttribute attr : node.attributes) {
    std::optional<int64_t> wide;
    if (auto integer = dyn_cast<IntegerAttr>(attr.getValue()); integer && isWide(integer.getInt()))
      wide = integer.getInt();
    if (auto list = dyn_cast<DenseI64ArrayAttr>(attr.getValue()))
      if (const int64_t *found = llvm::find_if(list.asArrayRef(), isWide); found != list.asArrayRef().end())
        wide = *found;
    if (!wide || node.opType == "Shape")
      continue;
    reason = "attribute '" + attr.getName().str() + "' is " + std::to_string(*wide) + ", which is out of range";
    return failure();
  }
  return success();
}

/// What no version of an operator reads, or only a later one: the writer of the file meant something by it.
LogicalResult checkKnown(const OpSchema &schema, const Node &node, std::string &reason) {
  for (NamedAttribute attr : node.attributes)
    if (!schema.attributes().count(attr.getName().str())) {
      reason = "attribute '" + attr.getName().str() + "' is not known at opset version " + std::to_string(node.version);
      return failure();
    }
  return success();
}

/// Where inference makes nothing of a word that it does not know.
LogicalResult checkDirection(const Node &node, std::string &reason) {
  auto direction = dyn_cast_or_null<StringAttr>(node.attributes.get("direction"));
  bool isRecurrent = node.opType == "RNN" || node.opType == "LSTM" || node.opType == "GRU";
  if (!direction || !isRecurrent || llvm::is_contained({"forward", "reverse", "bidirectional"}, direction.getValue()))
    return success();
  reason = "direction is '" + direction.str() + "', expected forward, reverse or bidirectional";
  return failure();
}

/// Where inference takes a number of dimensions on trust, and reads before the first one.
LogicalResult checkBatchDims(const Node &node, std::string &reason) {
  auto count = dyn_cast_or_null<IntegerAttr>(node.attributes.get("batch_dims"));
  if (!count || count.getInt() >= 0)
    return success();
  reason = "attribute 'batch_dims' is " + std::to_string(count.getInt()) + ", expected at least 0";
  return failure();
}

/// Where inference and lowering take an equation as well formed: spaces go away, a term is letters and at most one '...', and the
/// output has no letter twice.
LogicalResult checkEquation(Node &node, std::string &reason) {
  auto attribute = dyn_cast_or_null<StringAttr>(node.attributes.get("equation"));
  if (node.opType != "Einsum" || !attribute)
    return success();
  std::string equation = attribute.str();
  llvm::erase_if(equation, [](char c) { return llvm::isSpace(c); });
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  terms.push_back(right);
  for (StringRef term : terms) {
    auto [before, after] = term.split("...");
    if (llvm::all_of(before, llvm::isAlpha) && llvm::all_of(after, llvm::isAlpha))
      continue;
    reason = "equation has the term '";
    llvm::raw_string_ostream(reason).write_escaped(term, /*UseHexEscapes=*/true) << "', expected letters and at most one '...'";
    return failure();
  }
  for (char c : right)
    if (c != '.' && right.count(c) > 1) {
      reason = "equation '" + equation + "' has '" + std::string(1, c) + "' twice in its output";
      return failure();
    }
  node.attributes.set("equation", StringAttr::get(attribute.getContext(), equation));
  return success();
}

LogicalResult checkAttributes(const OpSchema &schema, const Node &node, std::string &reason) {
  for (NamedAttribute attr : node.attributes) {
    auto it = schema.attributes().find(attr.getName().str());
    if (it == schema.attributes().end()) {
      reason = "attribute '" + attr.getName().str() + "' is not known at opset version " + std::to_string(node.version);
      return failure();
    }
    if (!hasKind(attr.getValue(), it->second.type)) {
      reason = "attribute '" + attr.getName().str() + "' is not of kind " + AttributeProto::AttributeType_Name(it->second.type);
      return failure();
    }
  }
  for (const OpSchema::Attribute *attribute : sortedAttributes(schema))
    if (attribute->required && attribute->type != AttributeProto::GRAPH && !node.attributes.get(attribute->name)) {
      reason = "attribute '" + attribute->name + "' is missing";
      return failure();
    }
  return success();
}

LogicalResult checkOutputs(const OpSchema &schema, const Node &node, std::string &reason) {
  int64_t count = node.numOutputs;
  if (count < schema.min_output() || count > schema.max_output()) {
    reason = "has " + std::to_string(count) + " outputs, expected " + std::to_string(schema.min_output()) + " to " +
             std::to_string(schema.max_output());
    return failure();
  }
  // Inference makes a list as long as the attribute says, whatever the outputs.
  auto parts = dyn_cast_or_null<IntegerAttr>(node.attributes.get("num_outputs"));
  int64_t listed = std::max<int64_t>(count, node.usedOutputs.size());
  if (node.opType == "Split" && parts && parts.getInt() != listed) {
    reason = "attribute 'num_outputs' is " + std::to_string(parts.getInt()) + ", but the node has " + std::to_string(listed) +
             " outputs";
    return failure();
  }
  return success();
}

LogicalResult checkInputs(const OpSchema &schema, Node &node, std::string &reason) {
  while (!node.inputs.empty() && isAbsent(node.inputs.back()) && static_cast<int>(node.inputs.size()) > schema.min_input())
    node.inputs.pop_back();
  int64_t count = node.inputs.size();
  if (count < schema.min_input() || count > schema.max_input()) {
    reason = "has " + std::to_string(count) + " inputs, expected ";
    reason += count < schema.min_input() ? "at least " + std::to_string(schema.min_input())
                                         : "at most " + std::to_string(schema.max_input());
    return failure();
  }
  for (auto [i, formal] : llvm::enumerate(schema.inputs()))
    if (formal.GetOption() == OpSchema::Single && i < node.inputs.size() && isAbsent(node.inputs[i])) {
      reason = "input '" + formal.GetName() + "' is missing";
      return failure();
    }
  return success();
}

LogicalResult checkBodies(const OpSchema &schema, const Node &node, std::string &reason) {
  size_t graphs = countBodies(schema);
  if (node.bodies.size() == graphs)
    return success();
  reason = "has " + std::to_string(node.bodies.size()) + " graph attributes, expected " + std::to_string(graphs);
  return failure();
}

/// The value of a Constant node as a tensor.
FailureOr<ElementsAttr> constantValue(Builder &builder, Node &node, std::string &reason) {
  auto scalar = [&](Type type) { return RankedTensorType::get({}, type); };
  auto vector = [&](int64_t size, Type type) { return RankedTensorType::get({size}, type); };
  if (node.attributes.getAttrs().size() == 1) {
    NamedAttribute attr = node.attributes.getAttrs().front();
    Attribute value = attr.getValue();
    if (auto elements = dyn_cast<ElementsAttr>(value);
        elements && (attr.getName() == "value" || attr.getName() == "sparse_value"))
      return elements;
    if (auto integer = dyn_cast<IntegerAttr>(value); integer && attr.getName() == "value_int")
      return ElementsAttr(DenseElementsAttr::get(scalar(builder.getI64Type()), integer.getInt()));
    if (auto number = dyn_cast<FloatAttr>(value); number && attr.getName() == "value_float")
      return ElementsAttr(DenseElementsAttr::get(scalar(builder.getF32Type()), number.getValue()));
    if (auto ints = dyn_cast<DenseI64ArrayAttr>(value); ints && attr.getName() == "value_ints")
      return ElementsAttr(DenseElementsAttr::get(vector(ints.size(), builder.getI64Type()), ints.asArrayRef()));
    if (auto floats = dyn_cast<DenseF32ArrayAttr>(value); floats && attr.getName() == "value_floats")
      return ElementsAttr(DenseElementsAttr::get(vector(floats.size(), builder.getF32Type()), floats.asArrayRef()));
    reason = "attribute '" + attr.getName().str() + "' is not supported";
    return failure();
  }
  reason = "has " + std::to_string(node.attributes.getAttrs().size()) + " attributes, expected one value";
  return failure();
}

FailureOr<SmallVector<Value>> createNewest(OpBuilder &builder, Node &node, std::string &reason) {
  const OpSchema *newest = findNewestSchema(qualifiedName(node.opType, node.domain));
  if (!newest) {
    reason = node.domain.empty() ? "is deprecated, and has no newer form"
                                 : "is of domain '" + node.domain + "', which is not supported";
    return failure();
  }
  if (failed(fillDefaults(builder.getContext(), *newest, node.attributes, reason)) ||
      failed(checkAttributes(*newest, node, reason)) || failed(checkIntegers(node, reason)) ||
      failed(checkInputs(*newest, node, reason)) || failed(checkBodies(*newest, node, reason)) ||
      failed(checkOutputs(*newest, node, reason)))
    return failure();
  OperationState state(node.loc, "onnx." + qualifiedName(node.opType, node.domain));
  state.addOperands(node.inputs);
  state.addTypes(SmallVector<Type>(node.numOutputs, unknownType(builder.getContext())));
  state.attributes = node.attributes;
  for (std::unique_ptr<Region> &body : node.bodies)
    state.addRegion(std::move(body));
  Operation *op = builder.create(state);
  if (succeeded(inferTypes(op, reason)))
    return SmallVector<Value>(op->getResults());
  op->erase();
  return failure();
}

} // namespace

ArrayRef<StringRef> bodyAttributes(StringRef opType) {
  static constexpr StringRef branches[] = {"then_branch", "else_branch"}, body[] = {"body"};
  if (opType == "If")
    return branches;
  return opType == "Loop" || opType == "Scan" ? ArrayRef<StringRef>(body) : ArrayRef<StringRef>();
}

std::string whyUnknown(StringRef opType, StringRef domain, int64_t version) {
  if (schemaOf(opType, domain, version))
    return "";
  if (!domain.empty())
    return "unknown operator of domain '" + domain.str() + "'";
  if (findNewestSchema(opType))
    return "unknown operator at opset version " + std::to_string(version);
  return "unknown operator";
}

FailureOr<SmallVector<Value>> buildNode(OpBuilder &builder, Node node, std::string &reason) {
  reason = whyUnknown(node.opType, node.domain, node.version);
  if (!reason.empty())
    return failure();
  if (node.opType == "Constant") {
    FailureOr<ElementsAttr> value = constantValue(builder, node, reason);
    if (failed(value))
      return failure();
    return SmallVector<Value>{createConstant(builder, node.loc, *value)};
  }
  const OpSchema *own = schemaOf(node.opType, node.domain, node.version);
  // What rewrites a node to its newest form takes for granted that the operands are those of the node's own version.
  if (failed(checkKnown(*own, node, reason)) || failed(checkDirection(node, reason)) || failed(checkBatchDims(node, reason)) ||
      failed(checkEquation(node, reason)) || failed(checkInputs(*own, node, reason)) || failed(checkOutputs(*own, node, reason)))
    return failure();
  if (failed(fillDefaults(builder.getContext(), *own, node.attributes, reason)))
    return failure();
  Upgrade upgrade{builder, node, reason, {}};
  if (node.domain.empty() && failed(upgradeNode(upgrade)))
    return failure();
  if (!upgrade.outputs.empty())
    return upgrade.outputs;
  return createNewest(builder, node, reason);
}

} // namespace ogc::onnx
