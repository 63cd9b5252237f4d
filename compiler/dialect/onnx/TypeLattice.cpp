//===- TypeLattice.cpp - more and less exact tensor types -----------------===//
#include "compiler/dialect/onnx/TypeLattice.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ogc::onnx {

TensorType unknownType(MLIRContext *context) { return UnrankedTensorType::get(IndexType::get(context)); }
bool isKnownElement(TensorType type) { return !type.getElementType().isIndex(); }

TensorType meetTypes(TensorType a, TensorType b) {
  if (!isKnownElement(a))
    return b;
  if (!isKnownElement(b))
    return a;
  if (a.getElementType() != b.getElementType())
    return {};
  if (!a.hasRank())
    return b;
  if (!b.hasRank())
    return a;
  if (a.getRank() != b.getRank())
    return {};
  SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip(a.getShape(), b.getShape())) {
    if (!ShapedType::isDynamic(x) && !ShapedType::isDynamic(y) && x != y)
      return {};
    shape.push_back(ShapedType::isDynamic(x) ? y : x);
  }
  return RankedTensorType::get(shape, a.getElementType());
}

TensorType joinTypes(TensorType a, TensorType b) {
  if (a.getElementType() != b.getElementType())
    return {};
  if (!a.hasRank() || !b.hasRank() || a.getRank() != b.getRank())
    return UnrankedTensorType::get(a.getElementType());
  SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip(a.getShape(), b.getShape()))
    shape.push_back(x == y ? x : ShapedType::kDynamic);
  return RankedTensorType::get(shape, a.getElementType());
}

TensorType insertDim(TensorType type, int64_t axis, int64_t size) {
  if (!type.hasRank())
    return type;
  int64_t rank = type.getRank() + 1, at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    return {};
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + at, size);
  return RankedTensorType::get(shape, type.getElementType());
}

TensorType removeDim(TensorType type, int64_t axis, int64_t &size) {
  size = ShapedType::kDynamic;
  if (!type.hasRank())
    return type;
  int64_t at = axis < 0 ? axis + type.getRank() : axis;
  if (at < 0 || at >= type.getRank())
    return {};
  size = type.getDimSize(at);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + at);
  return RankedTensorType::get(shape, type.getElementType());
}

} // namespace ogc::onnx
