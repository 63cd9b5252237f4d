//===- GraphImporter.cpp - graphs, their scopes and their nodes ------------===//
#include "compiler/import/GraphImporter.h"

#include "compiler/dialect/onnx/TypeLattice.h"
#include "compiler/import/NodeNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

namespace ogc {
namespace {

/// Functions that call each other twice can describe far more nodes than a file holds.
constexpr int64_t maxNodes = 1 << 20;

} // namespace

void Problems::add(Twine text) {
  std::string line = text.str();
  if (seen.try_emplace(line, true).second)
    texts.push_back(std::move(line));
}

Value Scope::lookup(StringRef name) const {
  for (const Scope *scope = this; scope; scope = scope->parent)
    if (auto it = scope->values.find(name); it != scope->values.end())
      return it->second;
  return {};
}

GraphImporter::GraphImporter(std::shared_ptr<const ::onnx::ModelProto> model, ExternalData &external, Problems &problems)
    : model(std::move(model)), external(external), problems(problems) {
  frame.opsets = readOpsets(this->model->opset_import(), "the model");
  for (const ::onnx::FunctionProto &function : this->model->functions())
    if (!functions.try_emplace({canonicalDomain(function.domain()), function.name(), function.overload()}, &function).second)
      problems.add("function '" + function.name() + "' of domain '" + function.domain() + "' is defined twice" +
                   (function.overload().empty() ? "" : " with overload '" + function.overload() + "'"));
}

GraphImporter::Opsets GraphImporter::readOpsets(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &list,
                                                StringRef where) {
  Opsets opsets;
  for (const auto &entry : list) {
    std::string domain = canonicalDomain(entry.domain());
    opsets[domain] = entry.version();
    if (domain.empty() && (entry.version() < 1 || entry.version() > onnx::newestOpset()))
      problems.add(where + " uses opset version " + Twine(entry.version()) + ", expected 1 to " + Twine(onnx::newestOpset()));
  }
  // Files of the first IR versions say nothing.
  opsets.try_emplace("", 1);
  return opsets;
}

FailureOr<ElementsAttr> GraphImporter::importInitializer(MLIRContext *context, const ::onnx::TensorProto &tensor,
                                                         std::string &reason) {
  if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL)
    return onnx::importTensor(context, tensor, model, reason);
  FailureOr<RankedTensorType> type = onnx::importTensorType(context, tensor, reason);
  if (failed(type))
    return failure();
  FailureOr<onnx::TensorBytes> bytes = external.read(tensor, onnx::rawByteSize(*type), reason);
  if (failed(bytes))
    return failure();
  return onnx::importRawTensor(*type, *bytes, tensor.name(), reason);
}

void GraphImporter::importInitializers(OpBuilder &builder, const ::onnx::GraphProto &graph, Scope &scope,
                                       const llvm::StringSet<> &given) {
  for (const ::onnx::TensorProto &tensor : graph.initializer()) {
    if (given.contains(tensor.name()))
      continue;
    std::string reason;
    Value value;
    FailureOr<ElementsAttr> attr = importInitializer(builder.getContext(), tensor, reason);
    if (succeeded(attr))
      value = onnx::createConstant(builder, NameLoc::get(builder.getStringAttr(tensor.name())), *attr, tensor.name());
    else if (StringRef(reason).starts_with("external data file") && StringRef(reason).contains("cannot be read"))
      problems.add(reason); // once for the file, not once a tensor
    else
      problems.add("initializer '" + tensor.name() + "' " + reason);
    if (!scope.bind(tensor.name(), value))
      problems.add("initializer '" + tensor.name() + "' is defined twice");
  }
  for (const ::onnx::SparseTensorProto &sparse : graph.sparse_initializer()) {
    const std::string &name = sparse.values().name();
    if (given.contains(name))
      continue;
    std::string reason;
    Value value;
    FailureOr<ElementsAttr> values = importInitializer(builder.getContext(), sparse.values(), reason), dense = failure();
    FailureOr<ElementsAttr> indices =
        succeeded(values) ? importInitializer(builder.getContext(), sparse.indices(), reason) : dense;
    if (succeeded(indices))
      dense = onnx::densify(*values, *indices, SmallVector<int64_t>(sparse.dims().begin(), sparse.dims().end()), name, reason);
    if (succeeded(dense))
      value = onnx::createConstant(builder, NameLoc::get(builder.getStringAttr(name)), *dense, name);
    else
      problems.add("initializer '" + name + "' " + reason);
    if (!scope.bind(name, value))
      problems.add("initializer '" + name + "' is defined twice");
  }
}

void GraphImporter::importNodes(OpBuilder &builder, const google::protobuf::RepeatedPtrField<NodeProto> &nodes, Scope &scope,
                                const Frame &frame) {
  for (const NodeProto &node : nodes)
    importNode(builder, node, scope, frame);
}

SmallVector<Value> GraphImporter::outputsOf(const ::onnx::GraphProto &graph, const Scope &scope, StringRef where) {
  SmallVector<Value> values;
  for (const ::onnx::ValueInfoProto &output : graph.output()) {
    if (!scope.has(output.name()))
      problems.add(where + " has output '" + output.name() + "', which nothing defines");
    values.push_back(scope.lookup(output.name()));
  }
  return values;
}

bool GraphImporter::importInputs(OpBuilder &builder, const NodeProto &proto, const Scope &scope, StringRef where, Location loc,
                                 SmallVectorImpl<Value> &inputs) {
  bool isComplete = true;
  for (const std::string &name : proto.input()) {
    if (name.empty()) {
      inputs.push_back(onnx::createAbsent(builder, loc));
      continue;
    }
    if (!scope.has(name))
      problems.add(where + ": input '" + name + "' is not defined before it is used");
    Value value = scope.lookup(name);
    isComplete &= static_cast<bool>(value);
    inputs.push_back(value);
  }
  return isComplete;
}

bool GraphImporter::importAttributes(MLIRContext *context, const NodeProto &proto, const Frame &frame, StringRef where,
                                     NamedAttrList &attributes) {
  bool isComplete = true;
  for (const AttributeProto &attribute : proto.attribute()) {
    if (attribute.has_g() || attribute.type() == AttributeProto::GRAPH)
      continue; // a body
    std::string reason;
    Attribute value;
    if (attribute.ref_attr_name().empty()) {
      value = onnx::importAttribute(context, attribute, model, reason);
    } else if (!frame.parameters) {
      reason =
          "attribute '" + attribute.name() + "' refers to a parameter '" + attribute.ref_attr_name() + "', but is in no function";
    } else {
      auto it = frame.parameters->find(attribute.ref_attr_name());
      if (it == frame.parameters->end())
        continue; // the call leaves it out: so does the node
      value = it->second;
    }
    if (!value) {
      problems.add(where + ": " + reason);
      isComplete = false;
    } else if (attributes.get(attribute.name())) {
      problems.add(where + ": attribute '" + attribute.name() + "' is given twice");
      isComplete = false;
    } else {
      attributes.set(attribute.name(), value);
    }
  }
  return isComplete;
}

void GraphImporter::bindOutputs(const NodeProto &proto, ArrayRef<Value> values, Scope &scope, StringRef where) {
  for (auto [i, name] : llvm::enumerate(proto.output())) {
    if (name.empty())
      continue;
    if (!scope.bind(name, i < values.size() ? values[i] : Value()))
      problems.add(where + ": output '" + name + "' is defined twice");
  }
}

void GraphImporter::importNode(OpBuilder &builder, const NodeProto &proto, Scope &scope, const Frame &frame) {
  std::string where = describe(proto, frame.prefix), domain = canonicalDomain(proto.domain());
  if (++numNodes > maxNodes) {
    if (numNodes == maxNodes + 1)
      problems.add("the model has more than " + Twine(maxNodes) + " nodes after inlining its functions");
    return bindOutputs(proto, {}, scope, where);
  }
  if (auto it = functions.find({domain, proto.op_type(), proto.overload()}); it != functions.end())
    return inlineCall(builder, proto, *it->second, scope, frame);

  auto opset = frame.opsets.find(domain);
  int64_t version = opset == frame.opsets.end() ? 1 : opset->second;
  if (std::string reason = onnx::whyUnknown(proto.op_type(), domain, version); !reason.empty()) {
    if (!proto.overload().empty())
      reason += ", and no function with overload '" + proto.overload() + "'";
    problems.add(where + ": " + reason);
    return bindOutputs(proto, {}, scope, where);
  }
  Location loc = nodeLocation(builder.getContext(), proto, frame.prefix);
  onnx::Node node{proto.op_type(), domain, version, loc, {}, {}, 0, {}, {}};
  for (auto [i, name] : llvm::enumerate(proto.output())) {
    node.usedOutputs.push_back(!name.empty());
    if (!name.empty())
      node.numOutputs = i + 1;
  }
  bool isComplete = importInputs(builder, proto, scope, where, loc, node.inputs);
  isComplete &= importAttributes(builder.getContext(), proto, frame, where, node.attributes);
  importBodies(builder, proto, scope, frame, node, where, isComplete);
  if (!isComplete)
    return bindOutputs(proto, {}, scope, where);
  std::string reason;
  FailureOr<SmallVector<Value>> values = onnx::buildNode(builder, std::move(node), reason);
  if (succeeded(values))
    return bindOutputs(proto, *values, scope, where);
  problems.add(where + ": " + reason);
  bindOutputs(proto, {}, scope, where);
}

/// The type that an argument of a body has while the body is imported: right in element type and rank; inference makes it exact
/// once the operation is built.
static TensorType bodyArgumentType(MLIRContext *context, const onnx::Node &node, unsigned i,
                                   const ::onnx::ValueInfoProto &declared) {
  auto anyShape = [](TensorType type) -> TensorType {
    if (!type || !type.hasRank())
      return type;
    return RankedTensorType::get(SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic), type.getElementType());
  };
  auto typeOf = [&](size_t input) {
    Value value = input < node.inputs.size() ? node.inputs[input] : Value(); // null when it could not be made
    return value ? dyn_cast<TensorType>(value.getType()) : TensorType();
  };
  TensorType type;
  if (node.opType == "Loop") {
    Builder builder(context);
    type =
        i < 2 ? TensorType(RankedTensorType::get({}, i == 0 ? builder.getI64Type() : builder.getI1Type())) : anyShape(typeOf(i));
  } else if (node.opType == "Scan") {
    auto count = dyn_cast_or_null<IntegerAttr>(node.attributes.get("num_scan_inputs"));
    // The attribute is checked when the operation is built; here it may be any number.
    int64_t numInputs = static_cast<int64_t>(node.inputs.size()), size;
    int64_t numCarried = numInputs - std::clamp(count ? count.getInt() : 0, int64_t(0), numInputs);
    type = anyShape(typeOf(i));
    if (type && i >= numCarried && type.hasRank() && type.getRank() > 0)
      type = onnx::removeDim(type, 0, size);
  }
  if (type)
    return type;
  std::string reason;
  FailureOr<TensorType> fromFile = onnx::importType(context, declared.type(), reason);
  return succeeded(fromFile) ? *fromFile : onnx::unknownType(context);
}

void GraphImporter::importBodies(OpBuilder &builder, const NodeProto &proto, const Scope &scope, const Frame &frame,
                                 onnx::Node &node, StringRef where, bool &isComplete) {
  ArrayRef<StringRef> names = onnx::bodyAttributes(node.opType);
  for (StringRef name : names) {
    auto it = llvm::find_if(proto.attribute(), [&](const AttributeProto &attribute) { return attribute.name() == name; });
    if (it != proto.attribute().end() && it->has_g()) {
      if (isTooDeep()) {
        isComplete = false;
        continue;
      }
      ++depth;
      node.bodies.push_back(importBody(builder, it->g(), scope, frame, node, where, isComplete));
      --depth;
      continue;
    }
    problems.add(where + ": attribute '" + name + "' is missing");
    isComplete = false;
  }
  for (const AttributeProto &attribute : proto.attribute())
    if ((attribute.has_g() || attribute.type() == AttributeProto::GRAPH) && !llvm::is_contained(names, attribute.name())) {
      problems.add(where + ": graph attribute '" + attribute.name() + "' is not supported");
      isComplete = false;
    }
}

std::unique_ptr<Region> GraphImporter::importBody(OpBuilder &builder, const ::onnx::GraphProto &graph, const Scope &outer,
                                                  const Frame &frame, const onnx::Node &node, StringRef where, bool &isComplete) {
  auto region = std::make_unique<Region>();
  Block &block = region->emplaceBlock();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  Scope scope(&outer);
  size_t before = problems.list().size();
  // Scan-8 has an operand more than its body.
  int64_t expected = node.opType == "If" ? 0 : static_cast<int64_t>(node.inputs.size());
  if (graph.input_size() != expected && (node.opType != "Scan" || node.version >= 9)) {
    problems.add(where + ": its body has " + Twine(graph.input_size()) + " inputs, expected " + Twine(expected));
    isComplete = false;
    return region;
  }
  for (auto [i, input] : llvm::enumerate(graph.input())) {
    TensorType type = bodyArgumentType(builder.getContext(), node, i, input);
    if (!scope.bind(input.name(), block.addArgument(type, NameLoc::get(builder.getStringAttr(input.name())))))
      problems.add(where + ": its body has two inputs '" + input.name() + "'");
  }
  importInitializers(builder, graph, scope);
  importNodes(builder, graph.node(), scope, frame);
  SmallVector<Value> values = outputsOf(graph, scope, where);
  if (llvm::is_contained(values, Value()) || problems.list().size() != before)
    isComplete = false;
  else
    onnx::YieldOp::create(builder, node.loc, values);
  return region;
}

} // namespace ogc
