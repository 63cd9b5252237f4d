//===- FoldMovement.cpp - folding of operators that move elements ---------===//
#include "compiler/passes/specialize/FoldTensor.h"
#include "compiler/passes/specialize/Folder.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;

namespace ogc::specialize {
namespace {

using Inputs = ArrayRef<std::optional<Tensor>>;

const Tensor *at(Inputs inputs, size_t i) { return i < inputs.size() && inputs[i] ? &*inputs[i] : nullptr; }

std::optional<Tensors> one(Tensor tensor) { return Tensors{std::move(tensor)}; }

/// An axis counted from the end becomes one from the start; nothing when out of range.
std::optional<int64_t> normalAxis(int64_t axis, int64_t rank) {
  int64_t normal = onnx::wrapAxis(axis, rank);
  return normal < 0 || normal >= rank ? std::nullopt : std::optional(normal);
}

int64_t linearIndex(ArrayRef<int64_t> position, ArrayRef<int64_t> strides) {
  return std::inner_product(position.begin(), position.end(), strides.begin(), int64_t(0));
}

/// Reshape and its relatives: the same elements under the inferred shape.
std::optional<Tensors> foldReshape(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0);
  RankedTensorType type = op.outputType(0);
  if (!data || !type.hasStaticShape() || type.getNumElements() != data->size())
    return std::nullopt;
  Tensor result = *data;
  result.shape.assign(type.getShape().begin(), type.getShape().end());
  return one(std::move(result));
}

std::optional<Tensors> foldGather(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0), *indices = at(inputs, 1);
  std::optional<int64_t> axis = data ? normalAxis(op.getI64("axis", 0), data->rank()) : std::nullopt;
  if (!axis || !indices || indices->isFloat())
    return std::nullopt;
  int64_t size = data->shape[*axis];
  int64_t outer = llvm::product_of(ArrayRef(data->shape).take_front(*axis)),
          inner = llvm::product_of(ArrayRef(data->shape).drop_front(*axis + 1));
  SmallVector<int64_t> shape(ArrayRef(data->shape).take_front(*axis)), picked;
  llvm::append_range(shape, indices->shape);
  llvm::append_range(shape, ArrayRef(data->shape).drop_front(*axis + 1));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : indices->ints) {
      std::optional<int64_t> normal = normalAxis(index, size);
      if (!normal)
        return std::nullopt;
      for (int64_t i = 0; i < inner; ++i)
        picked.push_back((o * size + *normal) * inner + i);
    }
  return one(pick(*data, picked, shape));
}

std::optional<Tensors> foldGatherND(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0), *indices = at(inputs, 1);
  if (!data || !indices || indices->isFloat() || indices->rank() == 0 || op.getI64("batch_dims", 0) != 0)
    return std::nullopt;
  int64_t depth = indices->shape.back();
  if (depth < 1 || depth > data->rank())
    return std::nullopt;
  SmallVector<int64_t> strides = stridesOf(data->shape), shape(ArrayRef(indices->shape).drop_back()), picked;
  llvm::append_range(shape, ArrayRef(data->shape).drop_front(depth));
  int64_t inner = llvm::product_of(ArrayRef(data->shape).drop_front(depth));
  for (int64_t row = 0; row < indices->size() / depth; ++row) {
    int64_t start = 0;
    for (int64_t d = 0; d < depth; ++d) {
      std::optional<int64_t> normal = normalAxis(indices->ints[row * depth + d], data->shape[d]);
      if (!normal)
        return std::nullopt;
      start += *normal * strides[d];
    }
    for (int64_t i = 0; i < inner; ++i)
      picked.push_back(start + i);
  }
  return one(pick(*data, picked, shape));
}

std::optional<Tensors> foldGatherElements(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0), *indices = at(inputs, 1);
  std::optional<int64_t> axis = data ? normalAxis(op.getI64("axis", 0), data->rank()) : std::nullopt;
  if (!axis || !indices || indices->isFloat() || indices->rank() != data->rank())
    return std::nullopt;
  for (int64_t d = 0; d < data->rank(); ++d)
    if (d != *axis && indices->shape[d] > data->shape[d])
      return std::nullopt;
  SmallVector<int64_t> strides = stridesOf(data->shape), picked;
  bool isInRange = true;
  size_t next = 0;
  forEachPosition(indices->shape, [&](ArrayRef<int64_t> position) {
    std::optional<int64_t> normal = normalAxis(indices->ints[next++], data->shape[*axis]);
    isInRange &= normal.has_value();
    SmallVector<int64_t> source(position);
    source[*axis] = normal.value_or(0);
    picked.push_back(linearIndex(source, strides));
  });
  if (!isInRange)
    return std::nullopt;
  return one(pick(*data, picked, indices->shape));
}

std::optional<Tensors> foldSlice(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0), *starts = at(inputs, 1), *ends = at(inputs, 2), *axes = at(inputs, 3),
               *steps = at(inputs, 4);
  if (!data || !starts || !ends || starts->size() != ends->size())
    return std::nullopt;
  SmallVector<int64_t> first(data->rank(), 0), step(data->rank(), 1), shape(data->shape);
  for (int64_t i = 0; i < starts->size(); ++i) {
    if ((axes && i >= axes->size()) || (steps && i >= steps->size()))
      return std::nullopt;
    std::optional<int64_t> axis = normalAxis(axes ? axes->ints[i] : i, data->rank());
    int64_t by = steps ? steps->ints[i] : 1;
    if (!axis || by == 0 || by == std::numeric_limits<int64_t>::min())
      return std::nullopt;
    int64_t size = data->shape[*axis];
    auto clampTo = [&](int64_t value, int64_t low, int64_t high) {
      return std::clamp(value < 0 ? (value < -size - 1 ? low : value + size) : value, low, high);
    };
    int64_t from = by > 0 ? clampTo(starts->ints[i], 0, size) : clampTo(starts->ints[i], 0, size - 1);
    int64_t to = by > 0 ? clampTo(ends->ints[i], 0, size) : clampTo(ends->ints[i], -1, size - 1);
    int64_t span = by > 0 ? to - from : from - to, stride = by > 0 ? by : -by;
    first[*axis] = from;
    step[*axis] = by;
    shape[*axis] = span <= 0 ? 0 : (span - 1) / stride + 1;
  }
  SmallVector<int64_t> strides = stridesOf(data->shape), picked;
  forEachPosition(shape, [&](ArrayRef<int64_t> position) {
    int64_t index = 0;
    for (int64_t d = 0; d < data->rank(); ++d)
      index += (first[d] + position[d] * step[d]) * strides[d];
    picked.push_back(index);
  });
  return one(pick(*data, picked, shape));
}

std::optional<Tensors> foldConcat(const onnx::OnnxOp &op, Inputs inputs) {
  if (inputs.empty() || !llvm::all_of(inputs, [](const auto &input) { return input.has_value(); }))
    return std::nullopt;
  std::optional<int64_t> axis = normalAxis(op.getI64("axis", 0), inputs[0]->rank());
  if (!axis)
    return std::nullopt;
  SmallVector<int64_t> shape(inputs[0]->shape);
  shape[*axis] = 0;
  for (const auto &input : inputs) {
    if (input->rank() != static_cast<int64_t>(shape.size()))
      return std::nullopt;
    shape[*axis] += input->shape[*axis];
  }
  Tensor result{shape, inputs[0]->element, {}, {}};
  int64_t outer = llvm::product_of(ArrayRef(shape).take_front(*axis));
  for (int64_t o = 0; o < outer; ++o)
    for (const auto &input : inputs) {
      int64_t run = input->size() / outer;
      for (int64_t i = o * run; i < (o + 1) * run; ++i)
        input->isFloat() ? result.floats.push_back(input->floats[i]) : result.ints.push_back(input->ints[i]);
    }
  return one(std::move(result));
}

std::optional<Tensors> foldSplit(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0);
  std::optional<int64_t> axis = data ? normalAxis(op.getI64("axis", 0), data->rank()) : std::nullopt;
  if (!axis)
    return std::nullopt;
  Tensors results;
  SmallVector<int64_t> strides = stridesOf(data->shape);
  int64_t start = 0;
  for (int i = 0; i < op.numOutputs(); ++i) {
    RankedTensorType type = op.outputType(i);
    if (!type.hasStaticShape() || type.getRank() != data->rank())
      return std::nullopt;
    SmallVector<int64_t> picked;
    forEachPosition(type.getShape(), [&](ArrayRef<int64_t> position) {
      picked.push_back(linearIndex(position, strides) + start * strides[*axis]);
    });
    start += type.getDimSize(*axis);
    if (start > data->shape[*axis])
      return std::nullopt;
    results.push_back(pick(*data, picked, type.getShape()));
  }
  return results;
}

std::optional<Tensors> foldTranspose(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0);
  if (!data)
    return std::nullopt;
  SmallVector<int64_t> perm = op.getI64s("perm", llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, data->rank()))));
  if (static_cast<int64_t>(perm.size()) != data->rank())
    return std::nullopt;
  SmallVector<int64_t> strides = stridesOf(data->shape), shape, permuted, picked;
  for (int64_t source : perm) {
    if (source < 0 || source >= data->rank())
      return std::nullopt;
    shape.push_back(data->shape[source]);
    permuted.push_back(strides[source]);
  }
  forEachPosition(shape, [&](ArrayRef<int64_t> position) { picked.push_back(linearIndex(position, permuted)); });
  return one(pick(*data, picked, shape));
}

/// Expand and Tile: the result's shape is inferred.
std::optional<Tensors> foldRepeat(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0);
  RankedTensorType type = op.outputType(0);
  if (!data || !type.hasStaticShape() || type.getRank() < data->rank())
    return std::nullopt;
  SmallVector<int64_t> strides = stridesOf(data->shape), picked;
  int64_t lead = type.getRank() - data->rank();
  for (auto [size, result] : llvm::zip(data->shape, type.getShape().drop_front(lead)))
    if (size == 0 ? result != 0 : result % size != 0)
      return std::nullopt;
  forEachPosition(type.getShape(), [&](ArrayRef<int64_t> position) {
    int64_t index = 0;
    for (int64_t d = 0; d < data->rank(); ++d)
      index += (position[lead + d] % data->shape[d]) * strides[d];
    picked.push_back(index);
  });
  return one(pick(*data, picked, type.getShape()));
}

std::optional<Tensors> foldConstantOfShape(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *shape = at(inputs, 0);
  if (!shape || shape->isFloat())
    return std::nullopt;
  int64_t elements = 1;
  for (int64_t size : shape->ints)
    if (size < 0 || size > maxFoldedElements || (elements *= size) > maxFoldedElements)
      return std::nullopt;
  Tensor result{shape->ints, Float32Type::get(op->getContext()), {}, {}};
  double number = 0;
  int64_t integer = 0;
  if (ElementsAttr value = op.getTensor("value")) {
    result.element = value.getElementType();
    if (auto ints = onnx::getInts(value); ints && ints->size() == 1)
      integer = ints->front();
    else if (auto floats = onnx::getFloats(value); floats && floats->size() == 1)
      number = floats->front();
    else
      return std::nullopt;
  }
  if (result.isFloat())
    result.floats.assign(elements, number);
  else
    result.ints.assign(elements, integer);
  return one(std::move(result));
}

std::optional<Tensors> foldNonZero(Inputs inputs) {
  const Tensor *data = at(inputs, 0);
  if (!data || data->rank() == 0)
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> found;
  int64_t next = 0;
  forEachPosition(data->shape, [&](ArrayRef<int64_t> position) {
    bool isZero = data->isFloat() ? data->floats[next] == 0 : data->ints[next] == 0;
    ++next;
    if (!isZero)
      found.emplace_back(position);
  });
  Tensor result{{data->rank(), static_cast<int64_t>(found.size())}, IntegerType::get(data->element.getContext(), 64), {}, {}};
  for (int64_t d = 0; d < data->rank(); ++d)
    for (const SmallVector<int64_t> &position : found)
      result.ints.push_back(position[d]);
  return one(std::move(result));
}

} // namespace

std::optional<Tensors> foldMovement(const onnx::OnnxOp &op, Inputs inputs) {
  StringRef type = op.opType();
  if (type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten" || type == "Identity")
    return foldReshape(op, inputs);
  if (type == "Gather")
    return foldGather(op, inputs);
  if (type == "GatherND")
    return foldGatherND(op, inputs);
  if (type == "GatherElements")
    return foldGatherElements(op, inputs);
  if (type == "Slice")
    return foldSlice(op, inputs);
  if (type == "Concat")
    return foldConcat(op, inputs);
  if (type == "Split")
    return foldSplit(op, inputs);
  if (type == "Transpose")
    return foldTranspose(op, inputs);
  if (type == "Expand" || type == "Tile")
    return foldRepeat(op, inputs);
  if (type == "ConstantOfShape")
    return foldConstantOfShape(op, inputs);
  if (type == "NonZero")
    return foldNonZero(inputs);
  return std::nullopt;
}

} // namespace ogc::specialize
