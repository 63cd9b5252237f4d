//===- RenumberedDim.cpp - where reshapes put a dimension -----------------===//
#include "compiler/passes/specialize/RenumberedDim.h"

#include "compiler/dialect/onnx/OnnxOps.h"

#include <numeric>

using namespace mlir;

namespace ogc::specialize {

namespace {

using List = SmallVector<int64_t>;

std::optional<int64_t> squeezed(RankedTensorType in, std::optional<List> axes, int64_t dim) {
  if (!axes) {
    axes.emplace();
    for (int64_t d = 0; d < in.getRank(); ++d)
      if (in.getDimSize(d) == 1)
        axes->push_back(d);
  }
  int64_t before = 0;
  for (int64_t axis : *axes) {
    axis = onnx::wrapAxis(axis, in.getRank());
    if (axis == dim)
      return std::nullopt;
    before += axis < dim;
  }
  return dim - before;
}

std::optional<int64_t> unsqueezed(RankedTensorType out, List axes, int64_t dim) {
  for (int64_t &axis : axes)
    axis = onnx::wrapAxis(axis, out.getRank());
  for (int64_t d = 0; d < out.getRank(); ++d)
    if (!llvm::is_contained(axes, d) && dim-- == 0)
      return d;
  return std::nullopt;
}

/// Sizes are constants, but for one that is copied and one that is left to be computed.
std::optional<int64_t> reshaped(ArrayRef<int64_t> sizes, bool allowsZero, int64_t dim) {
  if (!allowsZero && dim < static_cast<int64_t>(sizes.size()) && sizes[dim] == 0)
    return dim;
  const int64_t *computed = llvm::find(sizes, -1);
  return computed != sizes.end() ? std::optional<int64_t>(computed - sizes.begin()) : std::nullopt;
}

std::optional<int64_t> candidate(Operation *op, RankedTensorType in, RankedTensorType out, int64_t dim) {
  StringRef type = onnx::getOpType(op);
  onnx::OnnxOp view(op);
  if (type == "Flatten") {
    return dim < onnx::wrapAxis(view.getI64("axis", 1), in.getRank()) ? 0 : 1;
  }
  bool hasList = op->getNumOperands() > 1 && !onnx::isAbsent(op->getOperand(1));
  std::optional<List> list = hasList ? onnx::getConstantInts(op->getOperand(1)) : std::nullopt;
  if (type == "Squeeze" && (list || !hasList))
    return squeezed(in, list, dim);
  if (!list)
    return std::nullopt;
  return type == "Unsqueeze" ? unsqueezed(out, *list, dim) : reshaped(*list, view.getI64("allowzero") != 0, dim);
}

/// Elements of the dimensions in front of `end`.
int64_t outside(RankedTensorType type, int64_t end) {
  return std::accumulate(type.getShape().begin(), type.getShape().begin() + end, int64_t{1}, std::multiplies<>());
}

} // namespace

std::optional<int64_t> renumberedDim(Operation *op, RankedTensorType in, RankedTensorType out, int64_t dim) {
  std::optional<int64_t> to = candidate(op, in, out, dim);
  bool isWhole = to && *to < out.getRank() && out.getDimSize(*to) == in.getDimSize(dim) && outside(in, dim) == outside(out, *to);
  return isWhole ? to : std::nullopt;
}

} // namespace ogc::specialize
