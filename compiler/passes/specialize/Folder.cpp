//===- Folder.cpp - evaluation of small operators -------------------------===//
#include "compiler/passes/specialize/Folder.h"

#include "compiler/passes/specialize/FoldTensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ogc::specialize {

int64_t wrapInt(int64_t value, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (width >= 64)
    return value;
  APInt wrapped(width, static_cast<uint64_t>(value), /*isSigned=*/false, /*implicitTrunc=*/true);
  return width == 1 || type.isUnsignedInteger() ? static_cast<int64_t>(wrapped.getZExtValue()) : wrapped.getSExtValue();
}

double roundFloat(double value, Type type) {
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  rounded.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.convertToDouble();
}

/// Types of fewer bits have rules of their own (saturation, patterns without infinity): the kernels know them.
static bool isFoldedElement(Type type) {
  return type.isInteger(1) || !type.isIntOrFloat() || type.getIntOrFloatBitWidth() >= 8 + isa<FloatType>(type);
}

std::optional<Tensor> loadTensor(Value value) {
  ElementsAttr attr = onnx::getConstant(value);
  if (!attr || attr.getNumElements() > maxFoldedElements || attr.getElementType().isUnsignedInteger(64) ||
      !isFoldedElement(attr.getElementType()))
    return std::nullopt;
  Tensor tensor{SmallVector<int64_t>(attr.getShapedType().getShape()), attr.getElementType(), {}, {}};
  if (std::optional<SmallVector<int64_t>> ints = onnx::getInts(attr))
    tensor.ints = std::move(*ints);
  else if (std::optional<SmallVector<double>> floats = onnx::getFloats(attr))
    tensor.floats = std::move(*floats);
  else
    return std::nullopt;
  return tensor;
}

ElementsAttr storeTensor(const Tensor &tensor) {
  auto type = RankedTensorType::get(tensor.shape, tensor.element);
  if (auto floatType = dyn_cast<FloatType>(tensor.element)) {
    SmallVector<APFloat> values;
    for (double value : tensor.floats) {
      APFloat rounded(value);
      bool losesInfo;
      rounded.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(rounded);
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (int64_t value : tensor.ints)
    values.emplace_back(tensor.element.getIntOrFloatBitWidth(), static_cast<uint64_t>(value), /*isSigned=*/false,
                        /*implicitTrunc=*/true);
  return DenseElementsAttr::get(type, values);
}

Tensor pick(const Tensor &source, ArrayRef<int64_t> indices, ArrayRef<int64_t> shape) {
  Tensor result{SmallVector<int64_t>(shape), source.element, {}, {}};
  for (int64_t index : indices) {
    if (source.isFloat())
      result.floats.push_back(source.floats[index]);
    else
      result.ints.push_back(source.ints[index]);
  }
  return result;
}

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

void forEachPosition(ArrayRef<int64_t> shape, function_ref<void(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> position(shape.size(), 0);
  for (;;) {
    visit(position);
    int64_t dim = static_cast<int64_t>(shape.size()) - 1;
    while (dim >= 0 && ++position[dim] == shape[dim])
      position[dim--] = 0;
    if (dim < 0)
      return;
  }
}

namespace {

Tensor vectorOfInts(MLIRContext *context, ArrayRef<int64_t> values) {
  return {{static_cast<int64_t>(values.size())}, IntegerType::get(context, 64), SmallVector<int64_t>(values), {}};
}

/// Operators that ask only for the type of their operand.
std::optional<Tensors> foldQuery(const onnx::OnnxOp &op) {
  StringRef type = op.opType();
  if (type != "Shape" && type != "Size")
    return std::nullopt;
  RankedTensorType input = op.inputType(0);
  if (!input)
    return std::nullopt;
  MLIRContext *context = input.getContext();
  if (type == "Size") {
    if (!input.hasStaticShape())
      return std::nullopt;
    return Tensors{Tensor{{}, IntegerType::get(context, 64), {input.getNumElements()}, {}}};
  }
  int64_t rank = input.getRank();
  auto clampAxis = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  int64_t start = clampAxis(op.getI64("start", 0)), end = clampAxis(op.findI64("end").value_or(rank));
  ArrayRef<int64_t> sizes = input.getShape().slice(start, std::max<int64_t>(0, end - start));
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return std::nullopt;
  return Tensors{vectorOfInts(context, sizes)};
}

/// True when all results are small and of known shape, as folding needs.
bool hasSmallResults(const onnx::OnnxOp &op) {
  for (int i = 0; i < op.numOutputs(); ++i) {
    RankedTensorType type = op.outputType(i);
    if (!type || !isFoldedElement(type.getElementType()))
      return false;
    if (type.hasStaticShape() && type.getNumElements() > maxFoldedElements)
      return false;
  }
  return true;
}

/// True when a folded result has the inferred type, so that no user sees another.
bool fits(const Tensor &tensor, RankedTensorType type) {
  if (tensor.element != type.getElementType() || tensor.rank() != type.getRank())
    return false;
  for (auto [mine, inferred] : llvm::zip(tensor.shape, type.getShape()))
    if (!ShapedType::isDynamic(inferred) && mine != inferred)
      return false;
  return llvm::product_of(tensor.shape) == tensor.size();
}

} // namespace

std::optional<Tensors> evaluateOperator(const onnx::OnnxOp &op, ArrayRef<std::optional<Tensor>> inputs) {
  if (std::optional<Tensors> results = foldQuery(op))
    return results;
  for (int i = 0; i < op.numInputs(); ++i)
    if (op.hasInput(i) && !inputs[i])
      return std::nullopt;
  if (std::optional<Tensors> results = foldMovement(op, inputs))
    return results;
  bool hasManyFloats = llvm::any_of(inputs, [](const std::optional<Tensor> &input) {
    return input && input->isFloat() && static_cast<int64_t>(input->size()) > maxFoldedFloats;
  });
  return hasManyFloats ? std::nullopt : foldArithmetic(op, inputs);
}

std::optional<SmallVector<ElementsAttr>> foldOperator(onnx::OnnxOp op) {
  if (op->getNumRegions() || !hasSmallResults(op))
    return std::nullopt;
  SmallVector<std::optional<Tensor>> inputs;
  for (int i = 0; i < op.numInputs(); ++i)
    inputs.push_back(op.hasInput(i) ? loadTensor(op.input(i)) : std::nullopt);
  std::optional<Tensors> results = evaluateOperator(op, inputs);
  if (!results || static_cast<int>(results->size()) != op.numOutputs())
    return std::nullopt;
  SmallVector<ElementsAttr> attrs;
  for (auto [i, tensor] : llvm::enumerate(*results)) {
    if (!fits(tensor, op.outputType(i)))
      return std::nullopt;
    attrs.push_back(storeTensor(tensor));
  }
  return attrs;
}

} // namespace ogc::specialize
