//===- InterleavedParts.cpp - a result whose columns alternate ------------===//
#include "compiler/analysis/InterleavedParts.h"

using namespace mlir;

namespace ogc {

/// True for slices of all rows and every `count`-th column.
static bool isPart(tensor::ExtractSliceOp slice, int64_t count) {
  RankedTensorType source = slice.getSourceType(), type = slice.getType();
  unsigned last = source.getRank() - 1;
  if (!source.hasStaticShape() || type.getRank() != source.getRank() || ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
      ShapedType::isDynamicShape(slice.getStaticStrides()))
    return false;
  for (unsigned dim = 0; dim < last; ++dim)
    if (type.getDimSize(dim) != source.getDimSize(dim) || slice.getStaticStrides()[dim] != 1)
      return false;
  return slice.getStaticStrides()[last] == count && slice.getStaticOffsets()[last] < count &&
         type.getDimSize(last) * count == source.getDimSize(last);
}

InterleavedParts interleavedParts(Value value) {
  auto first = value.use_empty() ? tensor::ExtractSliceOp() : dyn_cast<tensor::ExtractSliceOp>(*value.user_begin());
  if (!first || first.getSourceType().getRank() == 0)
    return {};
  InterleavedParts result;
  result.count = first.getStaticStrides().back();
  if (result.count != 2 && result.count != 4)
    return {};
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    if (!slice || !isPart(slice, result.count))
      return {};
    result.parts.push_back({slice.getStaticOffsets().back(), slice.getResult()});
  }
  return result;
}

} // namespace ogc
