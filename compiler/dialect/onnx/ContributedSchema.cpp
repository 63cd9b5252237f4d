//===- ContributedSchema.cpp ----------------------------------------------===//
#include "compiler/dialect/onnx/ContributedSchema.h"

#include "onnx/defs/function.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using llvm::Twine;
using ::onnx::AttributeProto;
using ::onnx::OpSchema;

namespace ogc::onnx::contributed {

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

int Body::indexOf(StringRef input) const {
  for (auto [i, formal] : llvm::enumerate(schema.inputs()))
    if (input == formal.GetName())
      return static_cast<int>(i);
  refuse("has no input '" + input + "'");
}

bool Body::has(StringRef input) const { return context.hasInput(indexOf(input)); }

int Body::variadicCount(StringRef input) const { return std::max(0, context.numInputs() - indexOf(input)); }

std::string Body::variadicName(StringRef input, int i) const { return (input + "__" + Twine(i)).str(); }

bool Body::hasOutput(StringRef output) const {
  for (auto [i, formal] : llvm::enumerate(schema.outputs()))
    if (output == formal.GetName())
      return context.hasOutput(static_cast<int>(i));
  return false;
}

Dims Body::shape(StringRef input) const {
  const ::onnx::TypeProto *type = context.getInputType(indexOf(input));
  if (!type || !type->tensor_type().has_shape())
    refuse("the shape of input '" + input + "' is unknown");
  Dims dims;
  for (const auto &dim : type->tensor_type().shape().dim()) {
    if (!dim.has_dim_value())
      refuse("the shape of input '" + input + "' is not static");
    dims.push_back(dim.dim_value());
  }
  return dims;
}

int32_t Body::type(StringRef input) const {
  const ::onnx::TypeProto *type = context.getInputType(indexOf(input));
  return type ? type->tensor_type().elem_type() : 0;
}

int64_t Body::constantInteger(StringRef input, int64_t otherwise) const {
  const ::onnx::TensorProto *data = context.getInputData(indexOf(input));
  if (!data || data->data_type() != ::onnx::TensorProto::INT32)
    return otherwise;
  std::vector<int32_t> values = ::onnx::ParseData<int32_t>(data);
  return values.size() == 1 ? values.front() : otherwise;
}

int64_t Body::integer(StringRef name, int64_t otherwise) const {
  const AttributeProto *attribute = context.getAttribute(name.str());
  return attribute ? attribute->i() : otherwise;
}

float Body::real(StringRef name, float otherwise) const {
  const AttributeProto *attribute = context.getAttribute(name.str());
  return attribute ? attribute->f() : otherwise;
}

std::string Body::text(StringRef name) const {
  const AttributeProto *attribute = context.getAttribute(name.str());
  return attribute ? attribute->s() : "";
}

std::vector<float> Body::reals(StringRef name) const {
  const AttributeProto *attribute = context.getAttribute(name.str());
  return attribute ? std::vector<float>(attribute->floats().begin(), attribute->floats().end()) : std::vector<float>();
}

Dims Body::integers(StringRef name) const {
  const AttributeProto *attribute = context.getAttribute(name.str());
  return attribute ? Dims(attribute->ints().begin(), attribute->ints().end()) : Dims();
}

void Body::add(const Twine &nodes) { ::onnx::FunctionBuilder(proto).Add(nodes.str().c_str()); }

std::string Body::fresh(StringRef base) { return (base + "__" + Twine(numNames++)).str(); }

std::string Body::make(const Twine &expression) {
  std::string name = fresh();
  add(name + " = " + expression);
  return name;
}

std::string Body::ints(llvm::ArrayRef<int64_t> values) { return make("Constant <value_ints = " + listOf(values) + "> ()"); }

std::string Body::scalar(double value) {
  std::string name = fresh();
  ::onnx::FunctionBuilder(proto).Const(name, static_cast<float>(value)); // as a tensor: infinities have no text
  return name;
}

std::string Body::scalar(double value, StringRef like) { return make("CastLike (" + scalar(value) + ", " + like + ")"); }

std::string Body::reshape(StringRef value, llvm::ArrayRef<int64_t> shape) {
  std::string dims = ints(shape);
  return make("Reshape <allowzero = 1> (" + value + ", " + dims + ")");
}

std::string Body::transpose(StringRef value, llvm::ArrayRef<int64_t> permutation) {
  return make("Transpose <perm = " + listOf(permutation) + "> (" + value + ")");
}

std::string Body::slice(StringRef value, int64_t axis, int64_t begin, int64_t end) {
  std::string first = ints(begin), last = ints(end), dim = ints(axis);
  return make("Slice (" + value + ", " + first + ", " + last + ", " + dim + ")");
}

std::string Body::activate(StringRef value, StringRef activation, llvm::ArrayRef<float> parameters) {
  auto parameter = [&](size_t i, float otherwise) { return literal(i < parameters.size() ? parameters[i] : otherwise); };
  if (activation.empty())
    return value.str();
  if (llvm::is_contained({"Relu", "Tanh", "Sigmoid", "Softplus", "Softsign", "Gelu"}, activation))
    return make(activation + " (" + value + ")");
  if (activation == "LeakyRelu" || activation == "Elu" || activation == "ThresholdedRelu")
    return make(activation + " <alpha = " + parameter(0, activation == "LeakyRelu" ? 0.01f : 1.0f) + "> (" + value + ")");
  if (activation == "HardSigmoid")
    return make("HardSigmoid <alpha = " + parameter(0, 0.2f) + ", beta = " + parameter(1, 0.5f) + "> (" + value + ")");
  if (activation == "Clip" && parameters.size() == 2) {
    std::string low = scalar(parameters[0], value), high = scalar(parameters[1], value);
    return make("Clip (" + value + ", " + low + ", " + high + ")");
  }
  refuse("activation is '" + activation + "', which is not supported");
}

void Body::refuse(const Twine &reason) const { throw std::runtime_error(reason.str()); }

std::string literal(double value) {
  std::string digits = llvm::formatv("{0:e9}", value).str();
  return digits;
}

std::string listOf(llvm::ArrayRef<int64_t> values) {
  std::string text = "[";
  for (auto [i, value] : llvm::enumerate(values))
    text += (i ? ", " : "") + std::to_string(value);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

static std::vector<std::string> typesOf(char variable) {
  auto tensors = [](llvm::ArrayRef<StringRef> elements) {
    std::vector<std::string> types;
    for (StringRef element : elements)
      types.push_back(("tensor(" + element + ")").str());
    return types;
  };
  switch (variable) {
  case 'F':
    return tensors({"float", "float16", "bfloat16", "double"});
  case 'Q':
    return tensors({"int8", "uint8", "int16", "uint16", "int32", "int4", "uint4", "int2", "uint2", "float8e4m3fn",
                    "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"});
  case 'I':
    return tensors({"int32", "int64"});
  default:
    return OpSchema::all_tensor_types_ir4();
  }
}

/// Splits "name?:type" and adds the parameter through `add(name, type, option)`; collects type variables.
template <typename Add> static void eachParameter(StringRef words, std::vector<std::string> &variables, Add add) {
  llvm::SmallVector<StringRef> list;
  words.split(list, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : list) {
    auto [name, type] = word.split(':');
    auto option = OpSchema::Single;
    if (name.consume_back("?"))
      option = OpSchema::Optional;
    else if (name.consume_back("*"))
      option = OpSchema::Variadic;
    bool isVariable = llvm::isUpper(type.front());
    if (isVariable && !llvm::is_contained(variables, type.str()))
      variables.push_back(type.str());
    add(name.str(), isVariable ? type.str() : ("tensor(" + type + ")").str(), option);
  }
}

static void addAttribute(OpSchema &schema, StringRef word) {
  auto [left, value] = word.split('=');
  bool hasDefault = left.size() != word.size(), isRequired = left.consume_back("!");
  auto [name, kind] = left.split(':');
  auto type = kind == "i"    ? AttributeProto::INT
              : kind == "f"  ? AttributeProto::FLOAT
              : kind == "s"  ? AttributeProto::STRING
              : kind == "is" ? AttributeProto::INTS
                             : AttributeProto::FLOATS;
  std::string attribute = name.str();
  if (!hasDefault) {
    schema.Attr(attribute, "", type, isRequired);
  } else if (type == AttributeProto::INT) {
    schema.Attr(attribute, "", type, static_cast<int64_t>(std::stoll(value.str())));
  } else if (type == AttributeProto::FLOAT) {
    schema.Attr(attribute, "", type, std::stof(value.str()));
  } else {
    schema.Attr(attribute, "", type, value.str());
  }
}

/// A variadic parameter becomes one for each operand, named as Body::variadicName says.
static void nameVariadics(const OpSchema &schema, const Body &body, ::onnx::FunctionProto &proto) {
  if (schema.inputs().empty() || schema.inputs().back().GetOption() != OpSchema::Variadic)
    return;
  std::string name = schema.inputs().back().GetName();
  proto.mutable_input()->RemoveLast();
  for (int i = 0; i < body.variadicCount(name); ++i)
    proto.add_input(body.variadicName(name, i));
}

bool isContributed(const OpSchema &schema) { return schema.file() == std::string(__FILE__); }

void addSchema(StringRef name, StringRef inputs, StringRef outputs, StringRef attributes, Infer infer, WriteBody body,
               StringRef domain, int version) {
  OpSchema schema(name.str(), __FILE__, __LINE__);
  schema.SetDomain(domain.str()).SinceVersion(version);
  std::vector<std::string> variables;
  int number = 0;
  eachParameter(inputs, variables, [&](std::string parameter, std::string type, OpSchema::FormalParameterOption option) {
    schema.Input(number++, std::move(parameter), "", std::move(type), option, /*is_homogeneous=*/false);
  });
  number = 0;
  eachParameter(outputs, variables, [&](std::string parameter, std::string type, OpSchema::FormalParameterOption option) {
    schema.Output(number++, std::move(parameter), "", std::move(type), option, /*is_homogeneous=*/false);
  });
  for (const std::string &variable : variables)
    schema.TypeConstraint(variable, typesOf(variable.front()), "");
  llvm::SmallVector<StringRef> words;
  attributes.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    addAttribute(schema, word);
  schema.TypeAndShapeInferenceFunction(infer);
  if (body)
    schema.SetContextDependentFunctionBodyBuilder(
        [body](const ::onnx::FunctionBodyBuildContext &context, const OpSchema &own, ::onnx::FunctionProto &proto) {
          Body written(dynamic_cast<const BodyContext &>(context), own, proto);
          body(written);
          own.BuildFunction(proto);
          nameVariadics(own, written, proto);
          auto *opset = proto.add_opset_import();
          opset->set_domain("");
          opset->set_version(bodyOpset);
          return true;
        });
  ::onnx::OpSchemaRegistry::OpSchemaRegisterOnce registered(std::move(schema));
  (void)registered;
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

void inferLikeFirst(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  if (::onnx::hasInputShape(context, 0))
    ::onnx::propagateShapeFromInputToOutput(context, 0, 0);
}

bool partialShape(::onnx::InferenceContext &context, size_t input, Dims &shape) {
  if (input >= context.getNumInputs() || !::onnx::hasInputShape(context, input))
    return false;
  for (const auto &dim : ::onnx::getInputShape(context, input).dim())
    shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  return true;
}

bool knownShape(::onnx::InferenceContext &context, size_t input, Dims &shape) {
  return partialShape(context, input, shape) && llvm::none_of(shape, [](int64_t extent) { return extent < 0; });
}

void setShape(::onnx::InferenceContext &context, size_t output, llvm::ArrayRef<int64_t> shape) {
  if (output >= context.getNumOutputs())
    return;
  ::onnx::TensorShapeProto proto;
  for (int64_t extent : shape) {
    auto *dim = proto.add_dim();
    if (extent >= 0)
      dim->set_dim_value(extent);
  }
  ::onnx::updateOutputShape(context, output, proto);
}

} // namespace ogc::onnx::contributed
