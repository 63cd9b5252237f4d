//===- Proto.cpp - ONNX protobuf ↔ MLIR types and attributes --------------===//
#include "compiler/dialect/onnx/Proto.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::TensorProto;

namespace ogc::onnx {

Type importElementType(MLIRContext *context, int32_t dataType) {
  auto integer = [&](unsigned width, bool isUnsigned) {
    return IntegerType::get(context, width, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (dataType) {
  case TensorProto::FLOAT:
    return Float32Type::get(context);
  case TensorProto::DOUBLE:
    return Float64Type::get(context);
  case TensorProto::FLOAT16:
    return Float16Type::get(context);
  case TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case TensorProto::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case TensorProto::FLOAT6E2M3:
    return Float6E2M3FNType::get(context);
  case TensorProto::FLOAT6E3M2:
    return Float6E3M2FNType::get(context);
  case TensorProto::BOOL:
    return integer(1, false);
  case TensorProto::INT2:
    return integer(2, false);
  case TensorProto::INT4:
    return integer(4, false);
  case TensorProto::INT8:
    return integer(8, false);
  case TensorProto::INT16:
    return integer(16, false);
  case TensorProto::INT32:
    return integer(32, false);
  case TensorProto::INT64:
    return integer(64, false);
  case TensorProto::UINT2:
    return integer(2, true);
  case TensorProto::UINT4:
    return integer(4, true);
  case TensorProto::UINT8:
    return integer(8, true);
  case TensorProto::UINT16:
    return integer(16, true);
  case TensorProto::UINT32:
    return integer(32, true);
  case TensorProto::UINT64:
    return integer(64, true);
  case TensorProto::COMPLEX64:
    return ComplexType::get(Float32Type::get(context));
  case TensorProto::COMPLEX128:
    return ComplexType::get(Float64Type::get(context));
  default:
    return {};
  }
}

int32_t exportElementType(Type type) {
  // The inverse by trial: one table to keep right.
  for (int32_t dataType = TensorProto::DataType_MIN; dataType <= TensorProto::DataType_MAX; ++dataType)
    if (importElementType(type.getContext(), dataType) == type)
      return dataType;
  return TensorProto::UNDEFINED;
}

std::string dataTypeName(int32_t dataType) {
  return ::onnx::TensorProto_DataType_IsValid(dataType)
             ? ::onnx::TensorProto_DataType_Name(static_cast<::onnx::TensorProto_DataType>(dataType))
             : "data type " + std::to_string(dataType);
}

FailureOr<TensorType> importType(MLIRContext *context, const ::onnx::TypeProto &type, std::string &reason) {
  if (!type.has_tensor_type()) {
    reason = type.has_sequence_type()   ? "is a sequence, expected a tensor"
             : type.has_optional_type() ? "is an optional, expected a tensor"
             : type.has_map_type()      ? "is a map, expected a tensor"
                                        : "has no tensor type";
    return failure();
  }
  const ::onnx::TypeProto_Tensor &tensor = type.tensor_type();
  Type element = importElementType(context, tensor.elem_type());
  if (!element) {
    reason = "has element type " + dataTypeName(tensor.elem_type()) + ", which is not supported";
    return failure();
  }
  if (!tensor.has_shape())
    return TensorType(UnrankedTensorType::get(element));
  SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() < 0 && dim.dim_value() != -1) {
      reason = "has dimension " + std::to_string(dim.dim_value());
      return failure();
    }
    // Exporters write -1 for an unknown dimension.
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : ShapedType::kDynamic);
  }
  return TensorType(RankedTensorType::get(shape, element));
}

::onnx::TypeProto exportType(Type type) {
  ::onnx::TypeProto proto;
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor)
    return proto;
  proto.mutable_tensor_type()->set_elem_type(exportElementType(tensor.getElementType()));
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return proto;
  ::onnx::TensorShapeProto *shape = proto.mutable_tensor_type()->mutable_shape();
  for (int64_t size : ranked.getShape()) {
    ::onnx::TensorShapeProto_Dimension *dim = shape->add_dim();
    if (!ShapedType::isDynamic(size))
      dim->set_dim_value(size);
  }
  return proto;
}

namespace {

AttributeProto::AttributeType attributeKind(const AttributeProto &attribute) {
  if (attribute.has_type() && attribute.type() != AttributeProto::UNDEFINED)
    return attribute.type();
  // Files of the first IR version carry no kind.
  if (attribute.has_f())
    return AttributeProto::FLOAT;
  if (attribute.has_i())
    return AttributeProto::INT;
  if (attribute.has_s())
    return AttributeProto::STRING;
  if (attribute.has_t())
    return AttributeProto::TENSOR;
  if (attribute.has_g())
    return AttributeProto::GRAPH;
  if (attribute.floats_size())
    return AttributeProto::FLOATS;
  if (attribute.ints_size())
    return AttributeProto::INTS;
  if (attribute.strings_size())
    return AttributeProto::STRINGS;
  if (attribute.has_sparse_tensor())
    return AttributeProto::SPARSE_TENSOR;
  return AttributeProto::UNDEFINED;
}

FailureOr<ElementsAttr> importSparse(MLIRContext *context, const ::onnx::SparseTensorProto &sparse,
                                     std::shared_ptr<const void> owner, std::string &reason) {
  FailureOr<ElementsAttr> values = importTensor(context, sparse.values(), owner, reason);
  if (failed(values))
    return failure();
  FailureOr<ElementsAttr> indices = importTensor(context, sparse.indices(), std::move(owner), reason);
  if (failed(indices))
    return failure();
  return densify(*values, *indices, SmallVector<int64_t>(sparse.dims().begin(), sparse.dims().end()), "sparse", reason);
}

} // namespace

Attribute importAttribute(MLIRContext *context, const AttributeProto &attribute, std::shared_ptr<const void> owner,
                          std::string &reason) {
  Builder builder(context);
  switch (attributeKind(attribute)) {
  case AttributeProto::INT:
    return builder.getI64IntegerAttr(attribute.i());
  case AttributeProto::FLOAT:
    return builder.getF32FloatAttr(attribute.f());
  case AttributeProto::STRING:
    return builder.getStringAttr(attribute.s());
  case AttributeProto::INTS:
    return builder.getDenseI64ArrayAttr(SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
  case AttributeProto::FLOATS:
    return builder.getDenseF32ArrayAttr(SmallVector<float>(attribute.floats().begin(), attribute.floats().end()));
  case AttributeProto::STRINGS: {
    SmallVector<Attribute> texts;
    for (const std::string &text : attribute.strings())
      texts.push_back(builder.getStringAttr(text));
    return builder.getArrayAttr(texts);
  }
  case AttributeProto::TENSOR:
  case AttributeProto::SPARSE_TENSOR: { // a dense one from here on
    FailureOr<ElementsAttr> value = attributeKind(attribute) == AttributeProto::TENSOR
                                        ? importTensor(context, attribute.t(), std::move(owner), reason)
                                        : importSparse(context, attribute.sparse_tensor(), std::move(owner), reason);
    if (failed(value)) {
      reason = "attribute '" + attribute.name() + "' " + reason;
      return {};
    }
    return *value;
  }
  default:
    reason = "attribute '" + attribute.name() + "' is of kind " +
             ::onnx::AttributeProto_AttributeType_Name(attributeKind(attribute)) + ", which is not supported";
    return {};
  }
}

bool exportAttribute(StringRef name, Attribute value, AttributeProto &attribute) {
  attribute.set_name(name.str());
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    attribute.set_type(AttributeProto::INT);
    attribute.set_i(integer.getValue().getSExtValue());
  } else if (auto number = dyn_cast<FloatAttr>(value)) {
    attribute.set_type(AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(number.getValueAsDouble()));
  } else if (auto text = dyn_cast<StringAttr>(value)) {
    attribute.set_type(AttributeProto::STRING);
    attribute.set_s(text.getValue().str());
  } else if (auto ints = dyn_cast<DenseI64ArrayAttr>(value)) {
    attribute.set_type(AttributeProto::INTS);
    attribute.mutable_ints()->Add(ints.asArrayRef().begin(), ints.asArrayRef().end());
  } else if (auto floats = dyn_cast<DenseF32ArrayAttr>(value)) {
    attribute.set_type(AttributeProto::FLOATS);
    attribute.mutable_floats()->Add(floats.asArrayRef().begin(), floats.asArrayRef().end());
  } else if (auto texts = dyn_cast<ArrayAttr>(value)) {
    attribute.set_type(AttributeProto::STRINGS);
    for (Attribute element : texts) {
      auto elementText = dyn_cast<StringAttr>(element);
      if (!elementText)
        return false;
      attribute.add_strings(elementText.getValue().str());
    }
  } else if (auto elements = dyn_cast<ElementsAttr>(value)) {
    std::unique_ptr<TensorProto> tensor = exportTensor(elements, 1 << 16);
    if (!tensor)
      return false;
    attribute.set_type(AttributeProto::TENSOR);
    attribute.mutable_t()->Swap(tensor.get());
  } else {
    return false;
  }
  return true;
}

} // namespace ogc::onnx
