//===- OperandRules.cpp - what lowerings may take for granted --------------===//
#include "compiler/passes/lower/OperandRules.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;

namespace ogc::lower {
namespace {

constexpr int64_t any = std::numeric_limits<int64_t>::max();

/// Ranks that operands `first` to `last` may have.
struct RankRule {
  StringRef opType;
  unsigned first, last;
  int64_t least, most;
};

constexpr RankRule rankRules[] = {
    {"AffineGrid", 0, 0, 3, 3},
    {"AveragePool", 0, 0, 3, any},
    {"BatchNormalization", 0, 0, 1, any},
    {"BatchNormalization", 1, 4, 1, 1},
    {"Conv", 0, 1, 3, any},
    {"Conv", 2, 2, 1, 1},
    {"ConvInteger", 0, 1, 3, any},
    {"ConvTranspose", 0, 1, 3, any},
    {"ConvTranspose", 2, 2, 1, 1},
    {"DeformConv", 0, 2, 3, any},
    {"DeformConv", 3, 3, 1, 1},
    {"DeformConv", 4, 4, 3, any},
    {"DepthToSpace", 0, 0, 4, 4},
    {"Det", 0, 0, 2, any},
    {"GRU", 0, 2, 3, 3},
    {"Gemm", 0, 1, 2, 2},
    {"GlobalAveragePool", 0, 0, 2, any},
    {"GlobalLpPool", 0, 0, 2, any},
    {"GlobalMaxPool", 0, 0, 2, any},
    {"GridSample", 0, 1, 3, any},
    {"GroupNormalization", 0, 0, 2, any},
    {"GroupNormalization", 1, 2, 1, 1},
    {"InstanceNormalization", 0, 0, 2, any},
    {"InstanceNormalization", 1, 2, 1, 1},
    {"LRN", 0, 0, 2, any},
    {"LSTM", 0, 2, 3, 3},
    {"LpPool", 0, 0, 3, any},
    {"MaxPool", 0, 0, 3, any},
    {"MaxRoiPool", 0, 0, 4, 4},
    {"MaxRoiPool", 1, 1, 2, 2},
    {"MaxUnpool", 0, 1, 3, any},
    {"NonMaxSuppression", 0, 1, 3, 3},
    {"QLinearConv", 0, 0, 3, any},
    {"QLinearConv", 3, 3, 3, any},
    {"RNN", 0, 2, 3, 3},
    {"ReverseSequence", 0, 0, 2, any},
    {"ReverseSequence", 1, 1, 1, 1},
    {"RoiAlign", 0, 0, 4, 4},
    {"RoiAlign", 1, 1, 2, 2},
    {"RoiAlign", 2, 2, 1, 1},
    {"SpaceToDepth", 0, 0, 4, 4},
    {"Trilu", 0, 0, 2, any},
};

/// The type of an operand; null where it is absent or no ranked tensor.
RankedTensorType operandType(Operation *op, unsigned i) {
  return i < op->getNumOperands() ? dyn_cast<RankedTensorType>(op->getOperand(i).getType()) : RankedTensorType();
}

std::string range(int64_t least, int64_t most) {
  if (least == most)
    return std::to_string(least);
  return most == any ? "at least " + std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
}

std::optional<std::string> refuseRank(Operation *op) {
  for (const RankRule &rule : rankRules) {
    if (rule.opType != onnx::getOpType(op))
      continue;
    for (unsigned i = rule.first; i <= rule.last; ++i) {
      RankedTensorType type = operandType(op, i);
      if (type && (type.getRank() < rule.least || type.getRank() > rule.most))
        return "operand " + std::to_string(i) + " has rank " + std::to_string(type.getRank()) + ", expected " +
               range(rule.least, rule.most);
    }
  }
  return std::nullopt;
}

std::string axisRange(int64_t least, int64_t end) {
  return least == end ? "none, since the operand is a scalar" : range(least, end - 1);
}

/// Axis attributes count dimensions of the first operand; of the result where a dimension is made.
std::optional<std::string> refuseAxis(Operation *op) {
  StringRef opType = onnx::getOpType(op);
  RankedTensorType first = operandType(op, 0);
  if (opType == "OneHot")
    first = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  // Quantization along no axis leaves the attribute unread.
  RankedTensorType scale = operandType(op, 1);
  bool isUnread =
      opType.ends_with("QuantizeLinear") || opType.ends_with("DequantizeLinear") ? !scale || scale.getRank() == 0 : false;
  if (!first || isUnread)
    return std::nullopt;
  // A scalar has no axis, but where axis 0 means that there is nothing to split off.
  int64_t rank = first.getRank(), least = -rank, end = rank;
  if (opType == "Flatten")
    ++end;
  for (StringRef name : {"axis", "batch_axis", "time_axis", "gather_axis", "quantize_axis"})
    if (auto axis = op->getAttrOfType<IntegerAttr>(name); axis && (axis.getInt() < least || axis.getInt() >= end))
      return name.str() + " is " + std::to_string(axis.getInt()) + ", expected " + axisRange(least, end);
  auto axes = op->getAttrOfType<DenseI64ArrayAttr>("axes");
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : axes ? axes.asArrayRef() : ArrayRef<int64_t>()) {
    if (axis < least || axis >= end)
      return "axes has " + std::to_string(axis) + ", expected " + axisRange(least, end);
    if (!seen.insert(axis < 0 ? axis + rank : axis).second)
      return "axes has " + std::to_string(axis) + " twice";
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> refuseOperands(Operation *op) {
  if (std::optional<std::string> reason = refuseRank(op))
    return reason;
  return refuseAxis(op);
}

} // namespace ogc::lower
