//===- OnnxOps.cpp - reading and building operations of the onnx dialect --===//
#include "compiler/dialect/onnx/OnnxOps.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ogc::onnx {

bool isOperator(Operation *op) {
  return op && isa_and_nonnull<OnnxDialect>(op->getDialect()) && !isa<AbsentOp, ConstantOp, YieldOp>(op);
}

StringRef getOpType(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.consume_front("onnx.") ? name : StringRef();
}

bool isOp(Operation *op, StringRef type) { return op && getOpType(op) == type; }

std::string getNodeName(Location loc) {
  std::string name;
  loc->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    // "node name (OpType)"
    StringRef text = named.getName().getValue();
    name = text.ends_with(")") ? text.rsplit(" (").first.str() : text.str();
    return WalkResult::interrupt();
  });
  return name;
}

bool isAbsent(Value value) { return !value || value.getDefiningOp<AbsentOp>(); }

ElementsAttr getConstant(Value value) {
  auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp();
  return constant ? constant.getValue() : ElementsAttr();
}

namespace {

/// The raw little-endian bytes of a mapped tensor, or an empty reference when they are not all there.
ArrayRef<char> resourceBytes(DenseResourceElementsAttr attr, size_t elementBytes) {
  AsmResourceBlob *blob = attr.getRawHandle().getBlob();
  if (!blob || blob->getData().size() != elementBytes * static_cast<size_t>(attr.getType().getNumElements()))
    return {};
  return blob->getData();
}

APInt readInt(const char *bytes, unsigned bits) {
  uint64_t value = 0;
  memcpy(&value, bytes, bits / 8);
  return APInt(bits, value, /*isSigned=*/false, /*implicitTrunc=*/true);
}

int64_t toInt64(const APInt &value, Type type) {
  return type.isInteger(1) || type.isUnsignedInteger() ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
}

double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

} // namespace

std::optional<SmallVector<int64_t>> getInts(ElementsAttr attr) {
  auto type = attr ? dyn_cast<IntegerType>(attr.getElementType()) : IntegerType();
  if (!type || type.getWidth() > 64)
    return std::nullopt;
  SmallVector<int64_t> values;
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    values.reserve(dense.getNumElements());
    for (const APInt &value : dense.getValues<APInt>())
      values.push_back(toInt64(value, type));
    return values;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(attr);
  unsigned bytes = type.getWidth() / 8;
  if (!resource || bytes == 0)
    return std::nullopt;
  ArrayRef<char> data = resourceBytes(resource, bytes);
  if (data.empty() && resource.getType().getNumElements() != 0)
    return std::nullopt;
  for (size_t i = 0; i < data.size(); i += bytes)
    values.push_back(toInt64(readInt(data.data() + i, type.getWidth()), type));
  return values;
}

std::optional<SmallVector<double>> getFloats(ElementsAttr attr) {
  auto type = attr ? dyn_cast<FloatType>(attr.getElementType()) : FloatType();
  if (!type)
    return std::nullopt;
  SmallVector<double> values;
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    values.reserve(dense.getNumElements());
    for (const APFloat &value : dense.getValues<APFloat>())
      values.push_back(toDouble(value));
    return values;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(attr);
  unsigned bytes = type.getWidth() / 8;
  if (!resource || bytes == 0 || bytes > 8)
    return std::nullopt;
  ArrayRef<char> data = resourceBytes(resource, bytes);
  if (data.empty() && resource.getType().getNumElements() != 0)
    return std::nullopt;
  for (size_t i = 0; i < data.size(); i += bytes)
    values.push_back(toDouble(APFloat(type.getFloatSemantics(), readInt(data.data() + i, type.getWidth()))));
  return values;
}

std::optional<SmallVector<int64_t>> getConstantInts(Value value) { return getInts(getConstant(value)); }
std::optional<SmallVector<double>> getConstantFloats(Value value) { return getFloats(getConstant(value)); }

Value OnnxOp::input(int i) const {
  if (i < 0 || i >= numInputs() || isAbsent(op->getOperand(i)))
    return {};
  return op->getOperand(i);
}

Value OnnxOp::output(int i) const { return i < 0 || i >= numOutputs() ? Value() : op->getResult(i); }

RankedTensorType OnnxOp::inputType(int i) const {
  Value value = input(i);
  return value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
}

RankedTensorType OnnxOp::outputType(int i) const {
  Value value = output(i);
  return value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
}

Attribute OnnxOp::get(StringRef name) const {
  for (NamedAttribute attr : op->getAttrs()) {
    if (attr.getName() != name)
      continue;
    if (!llvm::is_contained(consumed, attr.getName().getValue()))
      consumed.push_back(attr.getName().getValue());
    return attr.getValue();
  }
  return {};
}

std::optional<int64_t> OnnxOp::findI64(StringRef name) const {
  auto attr = dyn_cast_or_null<IntegerAttr>(get(name));
  return attr ? std::optional<int64_t>(attr.getValue().getSExtValue()) : std::nullopt;
}

int64_t OnnxOp::getI64(StringRef name, int64_t orElse) const { return findI64(name).value_or(orElse); }

std::optional<SmallVector<int64_t>> OnnxOp::findI64s(StringRef name) const {
  auto attr = dyn_cast_or_null<DenseI64ArrayAttr>(get(name));
  return attr ? std::optional(SmallVector<int64_t>(attr.asArrayRef())) : std::nullopt;
}

SmallVector<int64_t> OnnxOp::getI64s(StringRef name, ArrayRef<int64_t> orElse) const {
  return findI64s(name).value_or(SmallVector<int64_t>(orElse));
}

std::optional<float> OnnxOp::findF32(StringRef name) const {
  auto attr = dyn_cast_or_null<FloatAttr>(get(name));
  return attr ? std::optional<float>(static_cast<float>(toDouble(attr.getValue()))) : std::nullopt;
}

float OnnxOp::getF32(StringRef name, float orElse) const { return findF32(name).value_or(orElse); }

SmallVector<float> OnnxOp::getF32s(StringRef name) const {
  auto attr = dyn_cast_or_null<DenseF32ArrayAttr>(get(name));
  return attr ? SmallVector<float>(attr.asArrayRef()) : SmallVector<float>();
}

StringRef OnnxOp::getStr(StringRef name, StringRef orElse) const {
  auto attr = dyn_cast_or_null<StringAttr>(get(name));
  return attr ? attr.getValue() : orElse;
}

SmallVector<StringRef> OnnxOp::getStrs(StringRef name) const {
  SmallVector<StringRef> values;
  if (auto attr = dyn_cast_or_null<ArrayAttr>(get(name)))
    for (Attribute element : attr)
      if (auto text = dyn_cast<StringAttr>(element))
        values.push_back(text.getValue());
  return values;
}

ElementsAttr OnnxOp::getTensor(StringRef name) const { return dyn_cast_or_null<ElementsAttr>(get(name)); }

SmallVector<StringRef> OnnxOp::unreadAttributes() const {
  SmallVector<StringRef> unread;
  // Attributes with a dot belong to other dialects ("ogc.…"), not to the operator.
  for (NamedAttribute attr : op->getAttrs())
    if (!attr.getName().getValue().contains('.') && !llvm::is_contained(consumed, attr.getName().getValue()))
      unread.push_back(attr.getName().getValue());
  return unread;
}

LogicalResult OnnxOp::checkConsumed() const {
  SmallVector<StringRef> unread = unreadAttributes();
  if (unread.empty())
    return success();
  InFlightDiagnostic diag = emitError() << (unread.size() == 1 ? "attribute " : "attributes ");
  llvm::interleaveComma(unread, diag, [&](StringRef name) {
    std::string text;
    llvm::raw_string_ostream(text) << name << " = " << op->getAttr(name);
    diag << text;
  });
  return diag << " not supported";
}

InFlightDiagnostic OnnxOp::emitError() const { return emitNodeError(op); }

InFlightDiagnostic emitNodeError(Operation *op) {
  InFlightDiagnostic diag = op->emitError() << getOpType(op);
  std::string name = getNodeName(op->getLoc());
  if (!name.empty())
    diag << " node '" << name << "'";
  diag << ": ";
  return diag;
}

Operation *createOp(OpBuilder &builder, Location loc, StringRef opType, TypeRange results, ValueRange operands,
                    ArrayRef<NamedAttribute> attributes) {
  OperationState state(loc, ("onnx." + opType).str(), operands, results, attributes);
  return builder.create(state);
}

Value createConstant(OpBuilder &builder, Location loc, ElementsAttr value, StringRef name) {
  return ConstantOp::create(builder, loc, value.getType(), value, name.empty() ? StringAttr() : builder.getStringAttr(name));
}

Value createI64s(OpBuilder &builder, Location loc, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get(static_cast<int64_t>(values.size()), builder.getI64Type());
  return createConstant(builder, loc, DenseElementsAttr::get(type, values));
}

Value createScalar(OpBuilder &builder, Location loc, FloatType type, double value) {
  return createConstant(builder, loc,
                        DenseElementsAttr::get(RankedTensorType::get({}, type), builder.getFloatAttr(type, value).getValue()));
}

Value createAbsent(OpBuilder &builder, Location loc) { return AbsentOp::create(builder, loc, builder.getNoneType()); }

} // namespace ogc::onnx
