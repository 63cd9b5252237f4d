//===- Reshape.cpp - reshapes as views ------------------------------------===//
#include "compiler/passes/fuse/Reshape.h"

#include "compiler/passes/fuse/Grouping.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

namespace ogc::fuse {

Value createReshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  Value root = stripReshapes(value);
  auto rootType = cast<RankedTensorType>(root.getType());
  if (rootType.getShape() == shape)
    return root;
  auto resultType = RankedTensorType::get(shape, type.getElementType());
  if (std::optional<SmallVector<ReassociationIndices>> groups = getReassociationIndicesForReshape(rootType, resultType)) {
    if (static_cast<int64_t>(shape.size()) < rootType.getRank())
      return tensor::CollapseShapeOp::create(builder, loc, resultType, root, *groups);
    return tensor::ExpandShapeOp::create(builder, loc, resultType, root, *groups);
  }
  // Through one dimension.
  Value flat = root;
  if (rootType.getRank() != 1) {
    ReassociationIndices all;
    for (int64_t i = 0; i < rootType.getRank(); ++i)
      all.push_back(i);
    SmallVector<ReassociationIndices> groups;
    if (!all.empty())
      groups.push_back(all);
    auto flatType = RankedTensorType::get({rootType.getNumElements()}, type.getElementType());
    if (all.empty())
      flat = tensor::ExpandShapeOp::create(builder, loc, flatType, root, groups);
    else
      flat = tensor::CollapseShapeOp::create(builder, loc, flatType, root, groups);
  }
  if (shape.size() == 1)
    return flat;
  if (shape.empty())
    return tensor::CollapseShapeOp::create(builder, loc, resultType, flat, ArrayRef<ReassociationIndices>{});
  ReassociationIndices all;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    all.push_back(i);
  return tensor::ExpandShapeOp::create(builder, loc, resultType, flat, ArrayRef<ReassociationIndices>{all});
}

} // namespace ogc::fuse
