//===- CarriedExtents.cpp - operators that carry run-time extents on ------===//
#include "compiler/passes/specialize/CarriedExtents.h"

#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/passes/specialize/RenumberedDim.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ogc::specialize {

static RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

static bool isElementwise(StringRef type) {
  static const llvm::StringSet<> names{"Abs",
                                       "Acos",
                                       "Acosh",
                                       "Add",
                                       "And",
                                       "Asin",
                                       "Asinh",
                                       "Atan",
                                       "Atanh",
                                       "BitShift",
                                       "BitwiseAnd",
                                       "BitwiseNot",
                                       "BitwiseOr",
                                       "BitwiseXor",
                                       "Cast",
                                       "CastLike",
                                       "Ceil",
                                       "Celu",
                                       "Clip",
                                       "Cos",
                                       "Cosh",
                                       "Div",
                                       "Elu",
                                       "Equal",
                                       "Erf",
                                       "Exp",
                                       "Floor",
                                       "Gelu",
                                       "Greater",
                                       "GreaterOrEqual",
                                       "HardSigmoid",
                                       "HardSwish",
                                       "Identity",
                                       "IsInf",
                                       "IsNaN",
                                       "LeakyRelu",
                                       "Less",
                                       "LessOrEqual",
                                       "Log",
                                       "Max",
                                       "Mean",
                                       "Min",
                                       "Mish",
                                       "Mod",
                                       "Mul",
                                       "Neg",
                                       "Not",
                                       "Or",
                                       "Pow",
                                       "PRelu",
                                       "Reciprocal",
                                       "Relu",
                                       "Round",
                                       "Selu",
                                       "Shrink",
                                       "Sigmoid",
                                       "Sign",
                                       "Sin",
                                       "Sinh",
                                       "Softplus",
                                       "Softsign",
                                       "Sqrt",
                                       "Sub",
                                       "Sum",
                                       "Tan",
                                       "Tanh",
                                       "ThresholdedRelu",
                                       "Where",
                                       "Xor"};
  return names.contains(type);
}

static bool biasBroadcasts(Operation *op) {
  if (op->getNumOperands() < 3 || onnx::isAbsent(op->getOperand(2)))
    return true;
  auto bias = typeOf(op->getOperand(2));
  return bias && (bias.getRank() < 2 || bias.getDimSize(0) == 1);
}

using Dim = std::optional<int64_t>;

/// All bounded operands have one count in one dimension of the result, and the others repeat there.
static Dim broadcastDim(Operation *op, RankedTensorType out, const Bounds &bounds) {
  Dim dim;
  Value count;
  for (Value operand : op->getOperands())
    if (auto it = bounds.find(operand); it != bounds.end()) {
      int64_t here = it->second.dim + out.getRank() - typeOf(operand).getRank();
      if ((dim && *dim != here) || (count && count != it->second.count))
        return {};
      dim = here;
      count = it->second.count;
    }
  for (Value operand : op->getOperands()) {
    auto type = typeOf(operand);
    if (!type || bounds.contains(operand))
      continue;
    int64_t here = *dim - (out.getRank() - type.getRank());
    if (here >= 0 && type.getDimSize(here) != 1)
      return {};
  }
  return dim;
}

static Dim gatherDim(Operation *op, unsigned operand, int64_t dim, bool isNd) {
  onnx::OnnxOp view(op);
  auto data = typeOf(op->getOperand(0)), indices = typeOf(op->getOperand(1));
  if (isNd) {
    bool isRow = operand == 1 && view.getI64("batch_dims") == 0 && dim < indices.getRank() - 1;
    return isRow ? Dim(dim) : Dim();
  }
  int64_t axis = onnx::wrapAxis(view.getI64("axis"), data.getRank());
  if (operand == 1)
    return axis + dim;
  if (dim == axis)
    return {};
  return dim < axis ? dim : dim + indices.getRank() - 1;
}

static int64_t transposedDim(Operation *op, int64_t dim, int64_t rank) {
  SmallVector<int64_t> permutation = onnx::OnnxOp(op).getI64s("perm");
  for (int64_t d = rank; permutation.size() < static_cast<size_t>(rank);)
    permutation.push_back(--d);
  return llvm::find(permutation, dim) - permutation.begin();
}

static Dim concatDim(Operation *op, int64_t dim, int64_t rank, const Bounds &bounds) {
  if (onnx::wrapAxis(onnx::OnnxOp(op).getI64("axis"), rank) == dim)
    return {};
  Value count = bounds.lookup(op->getOperand(0)).count;
  for (Value operand : op->getOperands()) {
    Bound bound = bounds.lookup(operand);
    if (!bound.count || bound.count != count || bound.dim != dim)
      return {};
  }
  return dim;
}

/// The axes that `operand` lists, as dimension numbers; nothing where they are not known, or `dim` is one of them.
static std::optional<SmallVector<int64_t>> axesBeside(Operation *op, unsigned operand, int64_t rank, int64_t dim) {
  if (operand >= op->getNumOperands())
    return {};
  std::optional<SmallVector<int64_t>> axes = onnx::getConstantInts(op->getOperand(operand));
  if (axes)
    llvm::transform(*axes, axes->begin(), [&](int64_t axis) { return onnx::wrapAxis(axis, rank); });
  return axes && !llvm::is_contained(*axes, dim) ? axes : std::nullopt;
}

static Dim reduceDim(Operation *op, int64_t rank, int64_t dim) {
  std::optional<SmallVector<int64_t>> axes = axesBeside(op, 1, rank, dim);
  if (!axes || axes->empty())
    return {};
  if (onnx::OnnxOp(op).getI64("keepdims", 1))
    return dim;
  return dim - llvm::count_if(*axes, [&](int64_t axis) { return axis < dim; });
}

Dim carriedDim(Operation *op, ArrayRef<unsigned> bounded, const Bounds &bounds) {
  StringRef type = onnx::getOpType(op);
  unsigned operand = bounded.front();
  int64_t dim = bounds.lookup(op->getOperand(operand)).dim;
  onnx::OnnxOp view(op);
  auto in = typeOf(op->getOperand(operand));
  auto out = typeOf(op->getResult(0));
  if (op->getNumResults() != 1 || !out || !out.hasStaticShape())
    return {};
  if (isElementwise(type))
    return broadcastDim(op, out, bounds);
  if (type == "Concat")
    return concatDim(op, dim, in.getRank(), bounds);
  if (bounded.size() > 1)
    return {};
  if (type == "Transpose")
    return transposedDim(op, dim, in.getRank());
  if (type == "Gather" || type == "GatherND")
    return gatherDim(op, operand, dim, type == "GatherND");
  if (type == "Softmax" || type == "LogSoftmax" || type == "Hardmax")
    return onnx::wrapAxis(view.getI64("axis", -1), in.getRank()) != dim ? Dim(dim) : Dim();
  if (operand != 0)
    return {};
  if (type == "Unsqueeze" || type == "Squeeze" || type == "Reshape" || type == "Flatten")
    return renumberedDim(op, in, out, dim);
  if (type == "MatMul" && dim < in.getRank() - 1 && typeOf(op->getOperand(1)) && typeOf(op->getOperand(1)).getRank() == 2)
    return dim;
  if (type == "Gemm" && view.getI64("transA") == 0 && dim == 0)
    return biasBroadcasts(op) ? Dim(dim) : Dim();
  if (type == "Slice")
    return axesBeside(op, 3, in.getRank(), dim) ? Dim(dim) : Dim();
  if (type.starts_with("Reduce"))
    return reduceDim(op, in.getRank(), dim);
  return {};
}

} // namespace ogc::specialize
