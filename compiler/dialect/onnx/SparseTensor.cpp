//===- SparseTensor.cpp - sparse tensors as dense ones --------------------===//
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/dialect/onnx/Proto.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::onnx {

/// Dense tensors of more bytes are refused unless they are less than so many times as large as what the file holds of them.
static constexpr int64_t freeBytes = int64_t(1) << 26, mostGrowth = 8;

/// The values in `bytes` bytes each (one for all types below); they are dense or a resource.
static SmallVector<char> valueBytes(ElementsAttr values, int64_t bytes) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(values))
    return SmallVector<char>(resource.getRawHandle().getBlob()->getData());
  auto dense = cast<DenseElementsAttr>(values);
  if (dense.getElementType().isInteger(1))
    return SmallVector<char>(dense.getValues<bool>());
  if (!dense.isSplat())
    return SmallVector<char>(dense.getRawData());
  SmallVector<char> data;
  for (int64_t i = 0; i < dense.getNumElements(); ++i)
    llvm::append_range(data, dense.getRawData().take_front(bytes));
  return data;
}

/// Position in the flat tensor of each value; false with a reason when one lies outside or they do not ascend.
static bool readPositions(ElementsAttr indices, int64_t count, ArrayRef<int64_t> dims, int64_t elements,
                          SmallVectorImpl<int64_t> &positions, std::string &reason) {
  ShapedType type = indices.getShapedType();
  std::optional<SmallVector<int64_t>> numbers = getInts(indices);
  int64_t rank = dims.size();
  bool isFlat = type.getRank() == 1 && type.getDimSize(0) == count;
  bool isByDimension = type.getRank() == 2 && type.getDimSize(0) == count && type.getDimSize(1) == rank;
  if (!numbers || !type.getElementType().isSignlessInteger(64) || (!isFlat && !isByDimension)) {
    reason = "has sparse indices of the wrong type or shape";
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = isFlat ? (*numbers)[i] : 0;
    bool isInside = isByDimension || (position >= 0 && position < elements);
    for (int64_t d = 0; isByDimension && d < rank; ++d) {
      int64_t index = (*numbers)[i * rank + d];
      isInside &= index >= 0 && index < dims[d];
      position = position * dims[d] + index;
    }
    if (!isInside || (!positions.empty() && position <= positions.back())) {
      reason =
          "has sparse index " + std::to_string(i) + (isInside ? ", which is not above the one before" : " outside of the tensor");
      return false;
    }
    positions.push_back(position);
  }
  return true;
}

FailureOr<ElementsAttr> densify(ElementsAttr values, ElementsAttr indices, ArrayRef<int64_t> dims, StringRef name,
                                std::string &reason) {
  Type element = values.getShapedType().getElementType();
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (values.getShapedType().getRank() != 1 || bits == 0) {
    reason = "has sparse values of rank " + std::to_string(values.getShapedType().getRank()) + " and an element type of " +
             std::to_string(bits) + " bits, expected rank 1 and real numbers";
    return failure();
  }
  int64_t elements = 1, bytes = std::max(1u, bits / 8);
  int64_t held = values.getNumElements() * bytes + indices.getNumElements() * static_cast<int64_t>(sizeof(int64_t));
  int64_t maxBytes = std::max(freeBytes, mostGrowth * held);
  for (int64_t dim : dims)
    if (dim < 0 || llvm::MulOverflow(elements, dim, elements) || elements > maxBytes / bytes) {
      reason = "is sparse, and has a negative dimension or more than " + std::to_string(maxBytes) + " bytes when dense";
      return failure();
    }
  SmallVector<int64_t> positions;
  int64_t count = values.getNumElements();
  if (!readPositions(indices, count, dims, elements, positions, reason))
    return failure();
  auto data = std::make_shared<std::vector<char>>(elements * bytes);
  SmallVector<char> given = valueBytes(values, bytes);
  for (auto [i, position] : llvm::enumerate(positions))
    llvm::copy(ArrayRef<char>(given).slice(i * bytes, bytes), data->begin() + position * bytes);
  auto type = RankedTensorType::get(dims, element);
  if (bits > 1 && bits < 8)
    return ElementsAttr(DenseElementsAttr::getFromRawBuffer(type, *data));
  ArrayRef<char> view(*data);
  return importRawTensor(type, {view, std::move(data)}, name, reason);
}

} // namespace ogc::onnx
