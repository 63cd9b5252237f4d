//===- ProtoTensor.cpp - ONNX tensors ↔ elements attributes ---------------===//
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/dialect/onnx/Proto.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using ::onnx::TensorProto;

namespace ogc::onnx {
namespace {

static_assert(llvm::endianness::native == llvm::endianness::little, "raw tensor data is little-endian");

/// Tensors below this many bytes are dense attributes, the others resources.
constexpr int64_t resourceThreshold = 1024;

/// Bits of an element in ONNX's raw form.
int64_t elementBits(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth();
}

/// Unpacks elements of 2, 4 and 6 bits to one byte each, the form of such elements in an attribute; the first element is in the
/// low bits.
DenseElementsAttr unpackSmall(RankedTensorType type, ArrayRef<char> bytes) {
  unsigned bits = type.getElementTypeBitWidth();
  SmallVector<char> values;
  values.reserve(type.getNumElements());
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t first = i * bits / 8;
    unsigned word = static_cast<uint8_t>(bytes[first]);
    if (first + 1 < static_cast<int64_t>(bytes.size()))
      word |= static_cast<unsigned>(static_cast<uint8_t>(bytes[first + 1])) << 8;
    values.push_back(static_cast<char>((word >> (i * bits % 8)) & ((1u << bits) - 1)));
  }
  return DenseElementsAttr::getFromRawBuffer(type, values);
}

template <typename T, typename Field> void appendAs(std::vector<char> &bytes, const Field &field) {
  bytes.resize(field.size() * sizeof(T));
  char *out = bytes.data();
  for (auto value : field) {
    T narrow = static_cast<T>(value);
    memcpy(out, &narrow, sizeof(T));
    out += sizeof(T);
  }
}

/// Elements of 6 bits, four in three bytes.
std::vector<char> packSixBits(const google::protobuf::RepeatedField<int32_t> &field) {
  std::vector<char> bytes(llvm::divideCeil(static_cast<uint64_t>(field.size()) * 6, 8));
  for (auto [i, value] : llvm::enumerate(field)) {
    unsigned word = static_cast<unsigned>(value & 63) << (i * 6 % 8);
    bytes[i * 6 / 8] = static_cast<char>(bytes[i * 6 / 8] | word);
    if (word > 255)
      bytes[i * 6 / 8 + 1] = static_cast<char>(word >> 8);
  }
  return bytes;
}

bool hasTypedFields(const TensorProto &tensor) {
  return tensor.float_data_size() || tensor.int32_data_size() || tensor.int64_data_size() || tensor.double_data_size() ||
         tensor.uint64_data_size() || tensor.string_data_size();
}

/// The raw form of a tensor given in the typed fields.
std::vector<char> typedFieldBytes(const TensorProto &tensor, Type element) {
  std::vector<char> bytes;
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
  case TensorProto::COMPLEX64:
    appendAs<float>(bytes, tensor.float_data());
    break;
  case TensorProto::DOUBLE:
  case TensorProto::COMPLEX128:
    appendAs<double>(bytes, tensor.double_data());
    break;
  case TensorProto::INT64:
    appendAs<int64_t>(bytes, tensor.int64_data());
    break;
  case TensorProto::UINT64:
    appendAs<uint64_t>(bytes, tensor.uint64_data());
    break;
  case TensorProto::UINT32:
    appendAs<uint32_t>(bytes, tensor.uint64_data());
    break;
  case TensorProto::INT32:
    appendAs<int32_t>(bytes, tensor.int32_data());
    break;
  default:
    // Everything narrower is in int32_data: 16-bit floats as bit patterns, types of 2 and 4 bits packed as in raw_data, those of
    // 6 bits one in each.
    if (elementBits(element) == 16)
      appendAs<uint16_t>(bytes, tensor.int32_data());
    else if (elementBits(element) == 6)
      bytes = packSixBits(tensor.int32_data());
    else
      appendAs<uint8_t>(bytes, tensor.int32_data());
  }
  return bytes;
}

int64_t alignmentOf(const char *data) {
  uintptr_t address = reinterpret_cast<uintptr_t>(data);
  return address == 0 ? 64 : std::min<int64_t>(64, int64_t(1) << llvm::countr_zero(address));
}

} // namespace

int64_t rawByteSize(RankedTensorType type) {
  return llvm::divideCeil(type.getNumElements() * elementBits(type.getElementType()), 8);
}

FailureOr<RankedTensorType> importTensorType(MLIRContext *context, const TensorProto &tensor, std::string &reason) {
  Type element = importElementType(context, tensor.data_type());
  if (!element) {
    reason = "has element type " + dataTypeName(tensor.data_type()) + ", which is not supported";
    return failure();
  }
  int64_t elements = 1;
  bool isEmpty = llvm::is_contained(tensor.dims(), 0);
  for (int64_t dim : tensor.dims()) {
    if (dim < 0) {
      reason = "has dimension " + std::to_string(dim);
      return failure();
    }
    // Room for the bit count too, so that no later product overflows.
    if (!isEmpty && (llvm::MulOverflow(elements, dim, elements) || elements > std::numeric_limits<int64_t>::max() / 256)) {
      reason = "has more elements than 64 bits count";
      return failure();
    }
  }
  return RankedTensorType::get(SmallVector<int64_t>(tensor.dims().begin(), tensor.dims().end()), element);
}

FailureOr<ElementsAttr> importRawTensor(RankedTensorType type, const TensorBytes &data, StringRef name, std::string &reason) {
  int64_t expected = rawByteSize(type);
  if (static_cast<int64_t>(data.bytes.size()) != expected) {
    reason = "has " + std::to_string(data.bytes.size()) + " bytes of data, expected " + std::to_string(expected);
    return failure();
  }
  Type element = type.getElementType();
  if (element.isInteger(1)) {
    SmallVector<bool> values(llvm::map_range(data.bytes, [](char byte) { return byte != 0; }));
    return ElementsAttr(DenseElementsAttr::get(type, values));
  }
  if (elementBits(element) < 8)
    return ElementsAttr(unpackSmall(type, data.bytes));
  if (expected < resourceThreshold)
    return ElementsAttr(DenseElementsAttr::getFromRawBuffer(type, data.bytes));
  AsmResourceBlob blob;
  if (data.owner)
    blob = UnmanagedAsmResourceBlob::allocateWithAlign(data.bytes, alignmentOf(data.bytes.data()),
                                                       [owner = data.owner](void *, size_t, size_t) mutable { owner.reset(); });
  else
    blob = HeapAsmResourceBlob::allocateAndCopyWithAlign(data.bytes, 64, /*dataIsMutable=*/false);
  return ElementsAttr(DenseResourceElementsAttr::get(type, name.empty() ? "tensor" : name, std::move(blob)));
}

FailureOr<ElementsAttr> importTensor(MLIRContext *context, const TensorProto &tensor, std::shared_ptr<const void> owner,
                                     std::string &reason) {
  FailureOr<RankedTensorType> type = importTensorType(context, tensor, reason);
  if (failed(type))
    return failure();
  if (tensor.has_segment()) {
    reason = "is stored in segments, which is not supported";
    return failure();
  }
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    reason = "has external data, which is only read for initializers";
    return failure();
  }
  // Some writers leave an empty raw_data beside the field that they use.
  if (!tensor.raw_data().empty() && hasTypedFields(tensor)) {
    reason = "has data both as raw bytes and in a field of its type";
    return failure();
  }
  if (tensor.has_raw_data() && !hasTypedFields(tensor))
    return importRawTensor(*type, {ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size()), std::move(owner)},
                           tensor.name(), reason);
  auto bytes = std::make_shared<std::vector<char>>(typedFieldBytes(tensor, type->getElementType()));
  ArrayRef<char> view(*bytes);
  return importRawTensor(*type, {view, std::move(bytes)}, tensor.name(), reason);
}

std::unique_ptr<TensorProto> exportTensor(ElementsAttr attr, int64_t maxElements) {
  auto type = attr ? dyn_cast<RankedTensorType>(attr.getShapedType()) : RankedTensorType();
  if (!type || type.getNumElements() > maxElements)
    return nullptr;
  auto tensor = std::make_unique<TensorProto>();
  int32_t dataType = exportElementType(type.getElementType());
  tensor->set_data_type(dataType);
  tensor->mutable_dims()->Add(type.getShape().begin(), type.getShape().end());
  if (std::optional<SmallVector<int64_t>> ints = getInts(attr)) {
    std::string raw;
    unsigned bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
    if (type.getElementTypeBitWidth() < 8 && !type.getElementType().isInteger(1))
      return nullptr;
    for (int64_t value : *ints)
      raw.append(reinterpret_cast<const char *>(&value), bytes);
    tensor->set_raw_data(std::move(raw));
    return tensor;
  }
  std::optional<SmallVector<double>> floats = getFloats(attr);
  if (!floats)
    return nullptr;
  std::string raw;
  for (double value : *floats) {
    if (dataType == TensorProto::DOUBLE) {
      raw.append(reinterpret_cast<const char *>(&value), sizeof(double));
    } else {
      APFloat converted(value);
      bool losesInfo;
      converted.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      uint64_t bits = converted.bitcastToAPInt().getZExtValue();
      raw.append(reinterpret_cast<const char *>(&bits), std::max(1u, type.getElementTypeBitWidth() / 8));
    }
  }
  tensor->set_raw_data(std::move(raw));
  return tensor;
}

} // namespace ogc::onnx
