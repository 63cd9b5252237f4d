//===- Reshape.cpp - reshapes as views ------------------------------------===//
#include "compiler/passes/fuse/Reshape.h"

#include "compiler/passes/fuse/Grouping.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

namespace ogc::fuse {

namespace {

/// The finest shape that both `from` and `to` collapse to, and how they do.
struct CommonShape {
  SmallVector<int64_t> shape;
  SmallVector<ReassociationIndices> from, to;
};

/// Walks both shapes, closing a group when the products agree; dimensions of extent one that follow belong to the group before.
CommonShape commonShape(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  CommonShape common;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    ReassociationIndices fromGroup{static_cast<int64_t>(i)}, toGroup{static_cast<int64_t>(j)};
    int64_t fromProduct = from[i++], toProduct = to[j++];
    while (fromProduct != toProduct) {
      if (fromProduct < toProduct && i < from.size()) {
        fromGroup.push_back(i);
        fromProduct *= from[i++];
      } else if (j < to.size()) {
        toGroup.push_back(j);
        toProduct *= to[j++];
      } else {
        break;
      }
    }
    common.shape.push_back(fromProduct);
    common.from.push_back(fromGroup);
    common.to.push_back(toGroup);
  }
  // What is left has extent one.
  for (; i < from.size() && !common.from.empty(); ++i)
    common.from.back().push_back(i);
  for (; j < to.size() && !common.to.empty(); ++j)
    common.to.back().push_back(j);
  return common;
}

/// For tensors without elements products say nothing: everything is one group.
CommonShape flatShape(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  CommonShape common{{0}, {{}}, {{}}};
  for (size_t i = 0; i < from.size(); ++i)
    common.from[0].push_back(i);
  for (size_t j = 0; j < to.size(); ++j)
    common.to[0].push_back(j);
  return common;
}

} // namespace

Value createReshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  Value root = stripReshapes(value);
  auto rootType = cast<RankedTensorType>(root.getType());
  if (rootType.getShape() == shape)
    return root;
  CommonShape common =
      rootType.getNumElements() == 0 ? flatShape(rootType.getShape(), shape) : commonShape(rootType.getShape(), shape);
  Value result = root;
  if (common.shape.size() != static_cast<size_t>(rootType.getRank()))
    result = tensor::CollapseShapeOp::create(builder, loc, type.clone(common.shape), result, common.from);
  if (common.shape.size() != shape.size())
    result = tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), result, common.to);
  return result;
}

} // namespace ogc::fuse
