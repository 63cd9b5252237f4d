//===- FunctionCalls.cpp - calls of a model's functions, inlined ----------===//
#include "compiler/import/GraphImporter.h"
#include "compiler/import/NodeNames.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

namespace ogc {

/// Calls and bodies inside of each other; each level takes stack.
static constexpr int64_t maxDepth = 256;

bool GraphImporter::isTooDeep() {
  if (depth < maxDepth)
    return false;
  problems.add("calls of functions and bodies are nested deeper than " + Twine(maxDepth));
  return true;
}

bool GraphImporter::checkCall(const NodeProto &proto, const ::onnx::FunctionProto &function, const NamedAttrList &attributes,
                              StringRef where) {
  size_t before = problems.list().size();
  if (proto.input_size() > function.input_size())
    problems.add(where + ": has " + Twine(proto.input_size()) + " inputs, expected at most " + Twine(function.input_size()));
  if (proto.output_size() > function.output_size())
    problems.add(where + ": has " + Twine(proto.output_size()) + " outputs, expected at most " + Twine(function.output_size()));
  for (NamedAttribute attr : attributes) {
    bool isKnown = llvm::is_contained(function.attribute(), attr.getName().str()) ||
                   llvm::any_of(function.attribute_proto(), [&](const auto &known) { return known.name() == attr.getName(); });
    if (!isKnown)
      problems.add(where + ": attribute '" + attr.getName().str() + "' is not known to the function");
  }
  llvm::StringSet<> names;
  for (const std::string &input : function.input())
    if (!names.insert(input).second)
      problems.add(where + ": the function has two inputs '" + input + "'");
  return problems.list().size() == before;
}

SmallVector<Value> GraphImporter::importFunction(OpBuilder &builder, const ::onnx::FunctionProto &function,
                                                 ArrayRef<Value> inputs, const NamedAttrList &attributes,
                                                 const std::string &prefix, Location loc, StringRef where) {
  std::map<std::string, Attribute> parameters;
  for (NamedAttribute attr : attributes)
    parameters[attr.getName().str()] = attr.getValue();
  for (const AttributeProto &attribute : function.attribute_proto()) {
    std::string reason;
    if (parameters.count(attribute.name()))
      continue;
    if (Attribute value = onnx::importAttribute(builder.getContext(), attribute, model, reason))
      parameters[attribute.name()] = value;
    else
      problems.add(where + ": " + reason);
  }
  Scope inner;
  for (auto [i, name] : llvm::enumerate(function.input()))
    inner.bind(name, i < inputs.size() ? inputs[i] : onnx::createAbsent(builder, loc));
  importNodes(builder, function.node(), inner, {readOpsets(function.opset_import(), where), &parameters, prefix});
  SmallVector<Value> outputs;
  for (const std::string &output : function.output()) {
    if (!inner.has(output))
      problems.add(where + ": the function's output '" + output + "' is not defined in it");
    outputs.push_back(inner.lookup(output));
  }
  return outputs;
}

void GraphImporter::inlineCall(OpBuilder &builder, const NodeProto &proto, const ::onnx::FunctionProto &function, Scope &scope,
                               const Frame &frame) {
  std::string where = describe(proto, frame.prefix);
  Location loc = nodeLocation(builder.getContext(), proto, frame.prefix);
  SmallVector<Value> inputs, outputs;
  NamedAttrList attributes;
  bool isComplete = importInputs(builder, proto, scope, where, loc, inputs);
  isComplete &= importAttributes(builder.getContext(), proto, frame, where, attributes);
  isComplete &= checkCall(proto, function, attributes, where);
  if (isComplete && !isTooDeep()) {
    if (active.insert(&function).second) {
      ++depth;
      std::string name = proto.name().empty() ? proto.op_type() : proto.name();
      outputs = importFunction(builder, function, inputs, attributes, shorten(frame.prefix + name) + "/", loc, where);
      --depth;
      active.erase(&function);
    } else {
      problems.add(where + ": the function calls itself");
    }
  }
  bindOutputs(proto, outputs, scope, where);
}

} // namespace ogc
