//===- Upgrade.cpp - from older operator versions to the newest -----------===//
//
// One table: operator, the version from which the newest form holds in this respect, what changed. Changes of type lists and the
// like need no rule. Source: the operator changelog of the ONNX project.
//
//===----------------------------------------------------------------------===//
#include "compiler/dialect/onnx/Upgrade.h"

#include "compiler/dialect/onnx/Inference.h"
#include "compiler/dialect/onnx/Proto.h"
#include "compiler/dialect/onnx/TypeLattice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>

using namespace mlir;

namespace ogc::onnx {

Value Upgrade::build(StringRef opType, ValueRange operands, ArrayRef<NamedAttribute> attributes) {
  Operation *op = createOp(builder, node.loc, opType, {unknownType(builder.getContext())}, operands, attributes);
  if (succeeded(inferTypes(op, reason)))
    return op->getResult(0);
  reason = ("as " + opType + ": " + reason).str();
  op->erase();
  return {};
}

std::optional<int64_t> Upgrade::takeI64(StringRef name) {
  auto attr = dyn_cast_or_null<IntegerAttr>(take(name));
  return attr ? std::optional(attr.getInt()) : std::nullopt;
}

std::optional<SmallVector<int64_t>> Upgrade::takeI64s(StringRef name) {
  auto attr = dyn_cast_or_null<DenseI64ArrayAttr>(take(name));
  return attr ? std::optional(SmallVector<int64_t>(attr.asArrayRef())) : std::nullopt;
}

std::optional<float> Upgrade::takeF32(StringRef name) {
  auto attr = dyn_cast_or_null<FloatAttr>(take(name));
  return attr ? std::optional(static_cast<float>(attr.getValueAsDouble())) : std::nullopt;
}

TensorType Upgrade::inputType(unsigned i) const {
  return i < node.inputs.size() ? dyn_cast<TensorType>(node.inputs[i].getType()) : TensorType();
}

void Upgrade::setInput(unsigned i, Value value) {
  while (node.inputs.size() <= i)
    node.inputs.push_back(createAbsent(builder, node.loc));
  node.inputs[i] = value;
}

namespace {

using Rule = LogicalResult (*)(Upgrade &);

void moveI64sToInput(Upgrade &u, StringRef name, unsigned input) {
  if (std::optional<SmallVector<int64_t>> values = u.takeI64s(name))
    u.setInput(input, createI64s(u.builder, u.node.loc, *values));
}

/// A scalar constant of the element type of input 0.
LogicalResult moveFloatToInput(Upgrade &u, StringRef name, unsigned input) {
  std::optional<float> value = u.takeF32(name);
  if (!value)
    return success();
  TensorType type = u.inputType(0);
  auto floatType = type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
  if (!floatType)
    return u.fail("input 0 is not of a float type");
  u.setInput(input, createScalar(u.builder, u.node.loc, floatType, *value));
  return success();
}

LogicalResult axesBecameInput(Upgrade &u) {
  moveI64sToInput(u, "axes", 1);
  return success();
}

LogicalResult sliceRangesBecameInputs(Upgrade &u) {
  moveI64sToInput(u, "starts", 1);
  moveI64sToInput(u, "ends", 2);
  moveI64sToInput(u, "axes", 3);
  return success();
}

LogicalResult padAmountsBecameInputs(Upgrade &u) {
  moveI64sToInput(u, "paddings", 1);
  moveI64sToInput(u, "pads", 1);
  return moveFloatToInput(u, "value", 2);
}

LogicalResult clipBoundsBecameInputs(Upgrade &u) {
  // The old defaults mean "no bound".
  auto isDefault = [&](StringRef name, float bound) {
    auto attr = dyn_cast_or_null<FloatAttr>(u.node.attributes.get(name));
    return attr && static_cast<float>(attr.getValueAsDouble()) == bound;
  };
  if (isDefault("min", std::numeric_limits<float>::lowest()))
    u.take("min");
  if (isDefault("max", std::numeric_limits<float>::max()))
    u.take("max");
  return success(succeeded(moveFloatToInput(u, "min", 1)) && succeeded(moveFloatToInput(u, "max", 2)));
}

LogicalResult topKCountBecameInput(Upgrade &u) {
  if (std::optional<int64_t> k = u.takeI64("k"))
    u.setInput(1, createI64s(u.builder, u.node.loc, {*k}));
  return success();
}

LogicalResult splitSizesBecameInput(Upgrade &u) {
  moveI64sToInput(u, "split", 1);
  return success();
}

LogicalResult splitNamesItsCount(Upgrade &u) {
  if (u.node.inputs.size() < 2 || isAbsent(u.node.inputs[1]))
    u.node.attributes.set("num_outputs", u.builder.getI64IntegerAttr(u.node.numOutputs));
  return success();
}

LogicalResult reshapeTargetBecameInput(Upgrade &u) {
  moveI64sToInput(u, "shape", 1);
  return success();
}

LogicalResult tileOldForm(Upgrade &u) {
  return u.fail("the form of opset versions below 6 (tiles along one axis) is not supported");
}

/// Binary operators below 7: with `broadcast`, input 1 lines up with input 0 from dimension `axis` on.
LogicalResult broadcastBecameNumpy(Upgrade &u) {
  std::optional<int64_t> axis = u.takeI64("axis");
  if (u.takeI64("broadcast").value_or(0) == 0 || !axis)
    return success();
  TensorType a = u.inputType(0), b = u.inputType(1);
  if (!a || !b || !a.hasRank() || !b.hasRank())
    return u.fail("broadcast along an axis needs inputs of known rank");
  int64_t first = *axis < 0 ? *axis + a.getRank() : *axis;
  if (first < 0 || first > a.getRank())
    return u.fail("attribute 'axis' is " + Twine(*axis) + ", which is out of range for rank " + Twine(a.getRank()));
  SmallVector<int64_t> newAxes;
  for (int64_t i = b.getRank(); i < a.getRank() - first; ++i)
    newAxes.push_back(i);
  if (newAxes.empty())
    return success();
  Value shaped = u.build("Unsqueeze", {u.node.inputs[1], createI64s(u.builder, u.node.loc, newAxes)});
  u.setInput(1, shaped);
  return success(static_cast<bool>(shaped));
}

LogicalResult dropBroadcastFlag(Upgrade &u) {
  u.take("broadcast");
  return success();
}

/// PRelu below 7: a slope of rank 1 belongs to the channels.
LogicalResult slopeBecameNumpy(Upgrade &u) {
  TensorType x = u.inputType(0), slope = u.inputType(1);
  if (!x || !slope || !x.hasRank() || !slope.hasRank())
    return u.fail("needs inputs of known rank");
  if (slope.getRank() != 1 || x.getRank() <= 2 || slope.getDimSize(0) == 1)
    return success();
  SmallVector<int64_t> newAxes = llvm::to_vector(llvm::seq<int64_t>(1, x.getRank() - 1));
  Value shaped = u.build("Unsqueeze", {u.node.inputs[1], createI64s(u.builder, u.node.loc, newAxes)});
  u.setInput(1, shaped);
  return success(static_cast<bool>(shaped));
}

/// Softmax, LogSoftmax and Hardmax below 13 work on the matrix that Flatten(axis) makes.
LogicalResult flattenBecameAxis(Upgrade &u) {
  TensorType type = u.inputType(0);
  int64_t axis = u.takeI64("axis").value_or(1);
  Attribute last = u.builder.getI64IntegerAttr(-1);
  u.node.attributes.set("axis", last);
  if (type && type.hasRank()) {
    if (axis < -type.getRank() || axis > type.getRank())
      return u.fail("attribute 'axis' is " + Twine(axis) + ", which is out of range for rank " + Twine(type.getRank()));
    if (axis < 0)
      axis += type.getRank();
    if (axis == type.getRank() - 1)
      return success();
    // The same elements when only dimensions of size 1 follow.
    if (axis >= 0 && axis < type.getRank() &&
        llvm::all_of(type.getShape().drop_front(axis + 1), [](int64_t n) { return n == 1; })) {
      u.node.attributes.set("axis", u.builder.getI64IntegerAttr(axis));
      return success();
    }
  }
  NamedAttribute flattenAxis = u.builder.getNamedAttr("axis", u.builder.getI64IntegerAttr(axis));
  NamedAttribute lastAxis = u.builder.getNamedAttr("axis", last);
  Value matrix = u.build("Flatten", u.node.inputs[0], flattenAxis);
  Value done = matrix ? u.build(u.node.opType, matrix, lastAxis) : Value();
  Value shape =
      done ? u.build("Shape", u.node.inputs[0], u.builder.getNamedAttr("start", u.builder.getI64IntegerAttr(0))) : Value();
  Value result =
      shape ? u.build("Reshape", {done, shape}, u.builder.getNamedAttr("allowzero", u.builder.getI64IntegerAttr(1))) : Value();
  u.outputs = {result};
  return success(static_cast<bool>(result));
}

LogicalResult batchNormWithoutTraining(Upgrade &u) {
  u.take("is_test");
  u.take("spatial");
  for (unsigned i = 1; i < u.node.numOutputs; ++i)
    if (u.node.isOutputUsed(i))
      return u.fail("output " + Twine(i) + " is only there in training, which is not supported");
  u.node.numOutputs = 1;
  return success();
}

LogicalResult batchNormSpatial(Upgrade &u) {
  if (u.takeI64("spatial").value_or(1) == 0)
    return u.fail("spatial = 0 is not supported");
  return success();
}

LogicalResult dropoutRatioBecameInput(Upgrade &u) {
  u.take("is_test");
  u.take("ratio");
  return success();
}

LogicalResult castTargetBecameNumber(Upgrade &u) {
  auto name = dyn_cast_or_null<StringAttr>(u.take("to"));
  ::onnx::TensorProto_DataType type;
  if (!name || !::onnx::TensorProto_DataType_Parse(name.getValue().upper(), &type))
    return u.fail("attribute 'to' names no data type");
  u.node.attributes.set("to", u.builder.getI64IntegerAttr(type));
  return success();
}

LogicalResult concatAxisDefault(Upgrade &u) {
  if (!u.node.attributes.get("axis"))
    u.node.attributes.set("axis", u.builder.getI64IntegerAttr(1));
  return success();
}

void setText(Upgrade &u, StringRef name, StringRef value) { u.node.attributes.set(name, u.builder.getStringAttr(value)); }

LogicalResult upsampleScalesBecameInput(Upgrade &u) {
  Builder &b = u.builder;
  SmallVector<float> scales;
  if (auto attr = dyn_cast_or_null<DenseF32ArrayAttr>(u.take("scales")))
    scales.assign(attr.asArrayRef().begin(), attr.asArrayRef().end());
  else if (u.node.attributes.get("height_scale"))
    scales = {1.0f, 1.0f, u.takeF32("height_scale").value_or(1.0f), u.takeF32("width_scale").value_or(1.0f)};
  if (scales.empty())
    return success();
  auto type = RankedTensorType::get(static_cast<int64_t>(scales.size()), b.getF32Type());
  u.setInput(1, createConstant(u.builder, u.node.loc, DenseElementsAttr::get(type, ArrayRef(scales))));
  return success();
}

/// Upsample, and Resize of version 10, sample as an asymmetric Resize that rounds down.
LogicalResult resizeOldSampling(Upgrade &u) {
  if (u.node.inputs.size() != 2)
    return u.fail("has " + Twine(u.node.inputs.size()) + " inputs, expected 2");
  if (auto mode = dyn_cast_or_null<StringAttr>(u.node.attributes.get("mode")); mode && mode.getValue() == "bilinear")
    setText(u, "mode", "linear");
  Value scales = u.node.inputs[1];
  u.node.inputs[1] = createAbsent(u.builder, u.node.loc);
  u.setInput(2, scales);
  setText(u, "coordinate_transformation_mode", "asymmetric");
  setText(u, "nearest_mode", "floor");
  return success();
}

LogicalResult upsampleBecameResize(Upgrade &u) {
  u.node.opType = "Resize";
  u.node.version = std::max<int64_t>(u.node.version, 11);
  return resizeOldSampling(u);
}

/// Exporters write tensors without elements where an input of Resize is left out.
LogicalResult resizeEmptyInputs(Upgrade &u) {
  for (unsigned i = 1; i < u.node.inputs.size(); ++i)
    if (ElementsAttr value = getConstant(u.node.inputs[i]); value && value.getNumElements() == 0)
      u.node.inputs[i] = createAbsent(u.builder, u.node.loc);
  return success();
}

LogicalResult scatterWasRenamed(Upgrade &u) {
  u.node.opType = "ScatterElements";
  return success();
}

LogicalResult gridSampleModes(Upgrade &u) {
  if (auto mode = dyn_cast_or_null<StringAttr>(u.node.attributes.get("mode")))
    setText(u, "mode",
            llvm::StringSwitch<StringRef>(mode.getValue())
                .Case("bilinear", "linear")
                .Case("bicubic", "cubic")
                .Default(mode.getValue()));
  return success();
}

LogicalResult dftAxisBecameInput(Upgrade &u) {
  auto scalar = RankedTensorType::get({}, u.builder.getI64Type());
  if (std::optional<int64_t> axis = u.takeI64("axis"))
    u.setInput(2, createConstant(u.builder, u.node.loc, DenseElementsAttr::get(scalar, *axis)));
  return success();
}

LogicalResult roiAlignSampling(Upgrade &u) {
  setText(u, "coordinate_transformation_mode", "output_half_pixel");
  return success();
}

LogicalResult normOrderBecameInteger(Upgrade &u) {
  if (std::optional<float> p = u.takeF32("p"))
    u.node.attributes.set("p", u.builder.getI64IntegerAttr(static_cast<int64_t>(*p)));
  return success();
}

LogicalResult recurrentOldForm(Upgrade &u) {
  u.take("output_sequence");
  if (auto direction = dyn_cast_or_null<StringAttr>(u.node.attributes.get("direction"));
      direction && direction.getValue() == "foward") // the spelling of the schema's first version
    setText(u, "direction", "forward");
  return success();
}

LogicalResult scanOldForm(Upgrade &u) { return u.fail("the form of opset version 8 (with a batch dimension) is not supported"); }

/// Before 21 scale and bias had one element a group, now one a channel.
LogicalResult groupNormPerChannel(Upgrade &u) {
  TensorType x = u.inputType(0);
  std::optional<int64_t> groups = u.takeI64("num_groups");
  if (!groups || *groups <= 0 || !x || !x.hasRank() || x.getRank() < 2 || x.isDynamicDim(1) || x.getDimSize(1) % *groups)
    return u.fail("needs a known number of channels that num_groups divides");
  u.node.attributes.set("num_groups", u.builder.getI64IntegerAttr(*groups));
  for (unsigned i = 1; i < std::min<size_t>(3, u.node.inputs.size()); ++i) {
    Value column = u.build("Unsqueeze", {u.node.inputs[i], createI64s(u.builder, u.node.loc, {1})});
    Value wide =
        column ? u.build("Expand", {column, createI64s(u.builder, u.node.loc, {*groups, x.getDimSize(1) / *groups})}) : Value();
    Value flat = wide ? u.build("Reshape", {wide, createI64s(u.builder, u.node.loc, {-1})},
                                u.builder.getNamedAttr("allowzero", u.builder.getI64IntegerAttr(0)))
                      : Value();
    if (!flat)
      return failure();
    u.node.inputs[i] = flat;
  }
  return success();
}

struct Entry {
  StringRef opType;
  int64_t below; ///< the rule is for opset versions below this one
  Rule rule;
};

constexpr int64_t always = std::numeric_limits<int64_t>::max();

const Entry table[] = {
    {"Add", 7, broadcastBecameNumpy},
    {"And", 7, broadcastBecameNumpy},
    {"BatchNormalization", 9, batchNormSpatial},
    {"BatchNormalization", 14, batchNormWithoutTraining},
    {"Cast", 6, castTargetBecameNumber},
    {"Clip", 11, clipBoundsBecameInputs},
    {"Concat", 4, concatAxisDefault},
    {"DFT", 20, dftAxisBecameInput},
    {"Div", 7, broadcastBecameNumpy},
    {"Dropout", 12, dropoutRatioBecameInput},
    {"Equal", 7, broadcastBecameNumpy},
    {"GRU", 7, recurrentOldForm},
    {"Gemm", 7, dropBroadcastFlag},
    {"GlobalLpPool", 2, normOrderBecameInteger},
    {"Greater", 7, broadcastBecameNumpy},
    {"GridSample", 20, gridSampleModes},
    {"GroupNormalization", 21, groupNormPerChannel},
    {"Hardmax", 13, flattenBecameAxis},
    {"LSTM", 7, recurrentOldForm},
    {"Less", 7, broadcastBecameNumpy},
    {"LogSoftmax", 13, flattenBecameAxis},
    {"LpPool", 2, normOrderBecameInteger},
    {"Mul", 7, broadcastBecameNumpy},
    {"Or", 7, broadcastBecameNumpy},
    {"PRelu", 7, slopeBecameNumpy},
    {"Pad", 11, padAmountsBecameInputs},
    {"Pow", 7, broadcastBecameNumpy},
    {"RNN", 7, recurrentOldForm},
    {"ReduceL1", 18, axesBecameInput},
    {"ReduceL2", 18, axesBecameInput},
    {"ReduceLogSum", 18, axesBecameInput},
    {"ReduceLogSumExp", 18, axesBecameInput},
    {"ReduceMax", 18, axesBecameInput},
    {"ReduceMean", 18, axesBecameInput},
    {"ReduceMin", 18, axesBecameInput},
    {"ReduceProd", 18, axesBecameInput},
    {"ReduceSum", 13, axesBecameInput},
    {"ReduceSumSquare", 18, axesBecameInput},
    {"Reshape", 5, reshapeTargetBecameInput},
    {"Resize", 11, resizeOldSampling},
    {"Resize", always, resizeEmptyInputs},
    {"RoiAlign", 16, roiAlignSampling},
    {"Scan", 9, scanOldForm},
    {"Scatter", always, scatterWasRenamed},
    {"Slice", 10, sliceRangesBecameInputs},
    {"Softmax", 13, flattenBecameAxis},
    {"Split", 13, splitSizesBecameInput},
    {"Split", 18, splitNamesItsCount},
    {"Squeeze", 13, axesBecameInput},
    {"Sub", 7, broadcastBecameNumpy},
    {"Tile", 6, tileOldForm},
    {"TopK", 10, topKCountBecameInput},
    {"Unsqueeze", 13, axesBecameInput},
    {"Upsample", 9, upsampleScalesBecameInput},
    {"Upsample", always, upsampleBecameResize},
    {"Xor", 7, broadcastBecameNumpy},
};

} // namespace

LogicalResult upgradeNode(Upgrade &upgrade) {
  if (upgrade.node.version < 6)
    upgrade.take("consumed_inputs");
  std::string opType = upgrade.node.opType;
  for (const Entry &entry : table) {
    if (entry.opType != opType || upgrade.node.version >= entry.below)
      continue;
    if (failed(entry.rule(upgrade)))
      return failure();
    if (!upgrade.outputs.empty())
      return success();
  }
  return success();
}

} // namespace ogc::onnx
