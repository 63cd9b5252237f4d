//===- FoldArithmetic.cpp - folding of operators that compute -------------===//
#include "compiler/passes/specialize/FoldTensor.h"
#include "compiler/passes/specialize/Folder.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;

namespace ogc::specialize {
namespace {

using Inputs = ArrayRef<std::optional<Tensor>>;

const Tensor *at(Inputs inputs, size_t i) { return i < inputs.size() && inputs[i] ? &*inputs[i] : nullptr; }

/// Index of the element of `shape` that a position of the broadcast result reads.
int64_t broadcastIndex(ArrayRef<int64_t> position, ArrayRef<int64_t> shape) {
  int64_t index = 0, lead = static_cast<int64_t>(position.size()) - static_cast<int64_t>(shape.size());
  for (auto [d, size] : llvm::enumerate(shape))
    index = index * size + (size == 1 ? 0 : position[lead + d]);
  return index;
}

/// The broadcast shape; nothing when the shapes do not go together or the result is large.
std::optional<SmallVector<int64_t>> broadcastShape(ArrayRef<const Tensor *> tensors) {
  size_t rank = 0;
  for (const Tensor *tensor : tensors)
    rank = std::max(rank, tensor->shape.size());
  SmallVector<int64_t> shape(rank, 1);
  for (const Tensor *tensor : tensors)
    for (auto [d, size] : llvm::enumerate(tensor->shape)) {
      int64_t &common = shape[rank - tensor->shape.size() + d];
      if (size != 1 && common != 1 && size != common)
        return std::nullopt;
      common = common == 1 ? size : common;
    }
  if (llvm::product_of(shape) > maxFoldedElements)
    return std::nullopt;
  return shape;
}

/// Integer results; nothing where the operator has no defined value.
std::optional<int64_t> intBinary(StringRef type, int64_t a, int64_t b, bool cStyleMod) {
  auto wide = [](uint64_t value) { return static_cast<int64_t>(value); };
  if (type == "Add")
    return wide(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  if (type == "Sub")
    return wide(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  if (type == "Mul")
    return wide(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  if (type == "Div" || type == "Mod") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()))
      return std::nullopt;
    if (type == "Div")
      return a / b;
    int64_t rest = a % b; // the sign of a, as in C
    return !cStyleMod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (type == "Min")
    return std::min(a, b);
  if (type == "Max")
    return std::max(a, b);
  return std::nullopt;
}

/// Float results with one rounding left to do; nothing for operators where that would not be exact.
std::optional<double> floatBinary(StringRef type, double a, double b, bool cStyleMod) {
  if (type == "Add")
    return a + b;
  if (type == "Sub")
    return a - b;
  if (type == "Mul")
    return a * b;
  if (type == "Div")
    return a / b;
  if (type == "Mod" && cStyleMod)
    return std::fmod(a, b);
  if (type == "Min")
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
  if (type == "Max")
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
  return std::nullopt;
}

template <typename T> std::optional<bool> compare(StringRef type, T a, T b) {
  if (type == "Equal")
    return a == b;
  if (type == "Less")
    return a < b;
  if (type == "Greater")
    return a > b;
  if (type == "LessOrEqual")
    return a <= b;
  if (type == "GreaterOrEqual")
    return a >= b;
  return std::nullopt;
}

std::optional<bool> logical(StringRef type, bool a, bool b) {
  if (type == "And")
    return a && b;
  if (type == "Or")
    return a || b;
  if (type == "Xor")
    return a != b;
  return std::nullopt;
}

std::optional<Tensor> foldBinary(const onnx::OnnxOp &op, const Tensor &a, const Tensor &b) {
  StringRef type = op.opType();
  std::optional<SmallVector<int64_t>> shape = broadcastShape({&a, &b});
  if (!shape || a.element != b.element)
    return std::nullopt;
  bool cStyleMod = op.getI64("fmod", 0) != 0, isValid = true, isBool = a.element.isInteger(1);
  Tensor result{*shape, op.outputType(0).getElementType(), {}, {}};
  forEachPosition(*shape, [&](ArrayRef<int64_t> position) {
    int64_t i = broadcastIndex(position, a.shape), j = broadcastIndex(position, b.shape);
    std::optional<bool> flag = a.isFloat() ? compare(type, a.floats[i], b.floats[j]) : compare(type, a.ints[i], b.ints[j]);
    if (!flag && isBool)
      flag = logical(type, a.ints[i], b.ints[j]);
    if (flag) {
      result.ints.push_back(*flag);
    } else if (a.isFloat()) {
      std::optional<double> value = floatBinary(type, a.floats[i], b.floats[j], cStyleMod);
      isValid &= value.has_value();
      result.floats.push_back(value ? roundFloat(*value, a.element) : 0);
    } else {
      std::optional<int64_t> value = isBool ? std::nullopt : intBinary(type, a.ints[i], b.ints[j], cStyleMod);
      isValid &= value.has_value();
      result.ints.push_back(wrapInt(value.value_or(0), a.element));
    }
  });
  if (!isValid || result.isFloat() != !result.floats.empty())
    return isValid && result.size() == 0 ? std::optional(result) : std::nullopt;
  return result;
}

/// Min, Max and Sum take any number of operands, the others two.
std::optional<Tensors> foldBinaryChain(const onnx::OnnxOp &op, Inputs inputs) {
  if (inputs.empty() || !llvm::all_of(inputs, [](const auto &input) { return input.has_value(); }))
    return std::nullopt;
  Tensor result = *inputs[0];
  for (const auto &input : inputs.drop_front()) {
    std::optional<Tensor> next = foldBinary(op, result, *input);
    if (!next)
      return std::nullopt;
    result = std::move(*next);
  }
  return Tensors{std::move(result)};
}

std::optional<double> floatUnary(StringRef type, double x) {
  if (type == "Neg")
    return -x;
  if (type == "Abs")
    return std::fabs(x);
  if (type == "Sqrt")
    return std::sqrt(x);
  if (type == "Reciprocal")
    return 1.0 / x;
  if (type == "Floor")
    return std::floor(x);
  if (type == "Ceil")
    return std::ceil(x);
  if (type == "Round")
    return std::nearbyint(x);
  return std::nullopt;
}

std::optional<int64_t> intUnary(StringRef type, int64_t x) {
  uint64_t bits = static_cast<uint64_t>(x);
  if (type == "Neg")
    return static_cast<int64_t>(0 - bits);
  if (type == "Abs")
    return static_cast<int64_t>(x < 0 ? 0 - bits : bits);
  if (type == "Sign")
    return (x > 0) - (x < 0);
  return std::nullopt;
}

std::optional<Tensors> foldUnary(const onnx::OnnxOp &op, Inputs inputs) {
  StringRef type = op.opType();
  const Tensor *data = at(inputs, 0);
  if (!data || inputs.size() != 1)
    return std::nullopt;
  Tensor result{data->shape, op.outputType(0).getElementType(), {}, {}};
  if (type == "Not" || type == "IsNaN") {
    for (int64_t i = 0; i < data->size(); ++i)
      result.ints.push_back(data->isFloat() ? std::isnan(data->floats[i]) : !data->ints[i]);
    return Tensors{std::move(result)};
  }
  for (int64_t i = 0; i < data->size(); ++i) {
    if (data->isFloat()) {
      std::optional<double> value = floatUnary(type, data->floats[i]);
      // Two roundings give the rounding of the exact value only when double has more than twice the digits.
      if (!value)
        return std::nullopt;
      result.floats.push_back(roundFloat(*value, data->element));
    } else {
      std::optional<int64_t> value = intUnary(type, data->ints[i]);
      if (!value)
        return std::nullopt;
      result.ints.push_back(wrapInt(*value, data->element));
    }
  }
  return Tensors{std::move(result)};
}

/// |x| <= bound, also for the integer that has no absolute value.
bool isWithin(int64_t x, int64_t bound) { return x <= bound && x >= -bound; }

std::optional<Tensors> foldCast(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0);
  Type target = op.outputType(0).getElementType();
  if (!data || target.isUnsignedInteger(64))
    return std::nullopt;
  if (auto floatType = dyn_cast<FloatType>(target); floatType && floatType.getWidth() < 16)
    return std::nullopt; // saturation rules of 8-bit floats belong to the lowering
  Tensor result{data->shape, target, {}, {}};
  for (int64_t i = 0; i < data->size(); ++i) {
    double number = data->isFloat() ? data->floats[i] : 0;
    if (isa<FloatType>(target)) {
      // A 64-bit integer may not fit a double: rounded twice, it could differ.
      if (!data->isFloat() && !isWithin(data->ints[i], int64_t(1) << 53))
        return std::nullopt;
      result.floats.push_back(roundFloat(data->isFloat() ? number : static_cast<double>(data->ints[i]), target));
    } else if (target.isInteger(1)) {
      result.ints.push_back(data->isFloat() ? number != 0 : data->ints[i] != 0);
    } else if (data->isFloat()) {
      // Out of range is left to the one rule of the lowering.
      if (!(std::fabs(number) < 9.0e18) || wrapInt(static_cast<int64_t>(number), target) != static_cast<int64_t>(number))
        return std::nullopt;
      result.ints.push_back(static_cast<int64_t>(number));
    } else {
      result.ints.push_back(wrapInt(data->ints[i], target));
    }
  }
  return Tensors{std::move(result)};
}

std::optional<Tensors> foldWhere(Inputs inputs) {
  const Tensor *condition = at(inputs, 0), *x = at(inputs, 1), *y = at(inputs, 2);
  if (!condition || !x || !y || x->element != y->element)
    return std::nullopt;
  std::optional<SmallVector<int64_t>> shape = broadcastShape({condition, x, y});
  if (!shape)
    return std::nullopt;
  Tensor result{*shape, x->element, {}, {}};
  forEachPosition(*shape, [&](ArrayRef<int64_t> position) {
    const Tensor &chosen = condition->ints[broadcastIndex(position, condition->shape)] ? *x : *y;
    int64_t index = broadcastIndex(position, chosen.shape);
    chosen.isFloat() ? result.floats.push_back(chosen.floats[index]) : result.ints.push_back(chosen.ints[index]);
  });
  return Tensors{std::move(result)};
}

/// Of integers. A limit that is left out limits nothing; where the two cross, the upper one holds.
std::optional<Tensors> foldClip(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *x = at(inputs, 0), *low = at(inputs, 1), *high = at(inputs, 2);
  if (!x || x->isFloat() || (op.hasInput(1) && !low) || (op.hasInput(2) && !high))
    return std::nullopt;
  Tensor result = *x;
  for (int64_t &value : result.ints) {
    value = low && low->size() == 1 ? std::max(value, low->ints[0]) : value;
    value = high && high->size() == 1 ? std::min(value, high->ints[0]) : value;
  }
  return Tensors{std::move(result)};
}

std::optional<Tensors> foldRange(Inputs inputs) {
  const Tensor *start = at(inputs, 0), *limit = at(inputs, 1), *delta = at(inputs, 2);
  if (!start || !limit || !delta || start->isFloat() || start->size() != 1 || limit->size() != 1 || delta->size() != 1)
    return std::nullopt;
  int64_t from = start->ints[0], to = limit->ints[0], by = delta->ints[0];
  int64_t span, bound = int64_t(1) << 40;
  if (by == 0 || !isWithin(from, bound) || !isWithin(to, bound) || !isWithin(by, bound))
    return std::nullopt;
  span = by > 0 ? to - from : from - to;
  int64_t count = span <= 0 ? 0 : (span - 1) / std::llabs(by) + 1;
  if (count > maxFoldedElements)
    return std::nullopt;
  Tensor result{{count}, start->element, {}, {}};
  for (int64_t i = 0; i < count; ++i)
    result.ints.push_back(from + i * by);
  return Tensors{std::move(result)};
}

/// ReduceSum, ReduceProd, ReduceMin and ReduceMax over integers.
std::optional<Tensors> foldReduction(const onnx::OnnxOp &op, Inputs inputs) {
  const Tensor *data = at(inputs, 0), *axes = at(inputs, 1);
  StringRef combine = op.opType().drop_front(StringRef("Reduce").size());
  if (!data || data->isFloat() || data->element.isInteger(1))
    return std::nullopt;
  SmallVector<bool> isReduced(data->rank(), !axes || axes->size() == 0);
  if ((!axes || axes->size() == 0) && op.getI64("noop_with_empty_axes", 0) != 0)
    return Tensors{*data};
  for (int64_t axis : axes ? ArrayRef(axes->ints) : ArrayRef<int64_t>()) {
    axis = onnx::wrapAxis(axis, data->rank());
    if (axis < 0 || axis >= data->rank())
      return std::nullopt;
    isReduced[axis] = true;
  }
  StringRef step = combine == "Sum" ? "Add" : combine == "Prod" ? "Mul" : combine;
  SmallVector<int64_t> kept, shape;
  for (auto [size, reduced] : llvm::zip(data->shape, isReduced)) {
    kept.push_back(reduced ? 1 : size);
    if (!reduced || op.getI64("keepdims", 1))
      shape.push_back(reduced ? 1 : size);
  }
  SmallVector<std::optional<int64_t>> sums(llvm::product_of(kept));
  int64_t next = 0;
  forEachPosition(data->shape, [&](ArrayRef<int64_t> position) {
    std::optional<int64_t> &sum = sums[broadcastIndex(position, kept)];
    int64_t value = data->ints[next++];
    sum = sum ? wrapInt(intBinary(step, *sum, value, false).value_or(0), data->element) : value;
  });
  Tensor result{shape, data->element, {}, {}};
  for (const std::optional<int64_t> &sum : sums) {
    if (!sum && step != "Add" && step != "Mul")
      return std::nullopt;
    result.ints.push_back(sum.value_or(step == "Mul" ? 1 : 0));
  }
  return Tensors{std::move(result)};
}

bool isOneOf(StringRef type, ArrayRef<StringRef> list) { return llvm::is_contained(list, type); }

} // namespace

std::optional<Tensors> foldArithmetic(const onnx::OnnxOp &op, Inputs inputs) {
  StringRef type = op.opType();
  if (isOneOf(type, {"Add", "Sub", "Mul", "Div", "Mod", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or",
                     "Xor"}))
    return inputs.size() == 2 ? foldBinaryChain(op, inputs) : std::nullopt;
  if (isOneOf(type, {"Min", "Max"}))
    return foldBinaryChain(op, inputs);
  if (isOneOf(type, {"Neg", "Abs", "Sign", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Not", "IsNaN"}))
    return foldUnary(op, inputs);
  if (type == "Cast" || type == "CastLike")
    return foldCast(op, inputs);
  if (type == "Where")
    return foldWhere(inputs);
  if (type == "Clip")
    return foldClip(op, inputs);
  if (type == "Range")
    return foldRange(inputs);
  if (isOneOf(type, {"ReduceSum", "ReduceProd", "ReduceMin", "ReduceMax"}))
    return foldReduction(op, inputs);
  return std::nullopt;
}

} // namespace ogc::specialize
