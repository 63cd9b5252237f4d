//===- ConstantData.cpp - the bytes of tensor constants -------------------===//
#include "compiler/codegen/cpu/ConstantData.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cstdlib>
#include <cstring>

using namespace mlir;

namespace ogc::codegen {

/// Constants of at most so many elements live in the context, where patterns and printers see their values.
static constexpr int64_t inlineElements = 256;

int64_t elementBytes(Type element) { return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8; }

TensorBytes::TensorBytes(int64_t size)
    : memory(static_cast<char *>(std::aligned_alloc(64, (std::max<int64_t>(size, 1) + 63) / 64 * 64))), count(size) {
  if (!memory)
    llvm::report_bad_alloc_error("out of memory for a constant");
}

TensorBytes::~TensorBytes() { std::free(memory); }

ElementsAttr TensorBytes::intoConstant(RankedTensorType type) && {
  int64_t elements = type.getNumElements();
  if (elements <= inlineElements) {
    if (!type.getElementType().isInteger(1))
      return DenseElementsAttr::getFromRawBuffer(type, ArrayRef(memory, count));
    SmallVector<bool> values;
    for (int64_t i = 0; i < elements; ++i)
      values.push_back(memory[i] != 0);
    return DenseElementsAttr::get(type, values);
  }
  char *taken = std::exchange(memory, nullptr);
  AsmResourceBlob blob(ArrayRef(taken, count), 64, [](void *data, size_t, size_t) { std::free(data); }, /*dataIsMutable=*/false);
  return DenseResourceElementsAttr::get(type, "folded", std::move(blob));
}

FailureOr<ConstantView> ConstantView::of(ElementsAttr value) {
  ConstantView view;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    auto type = cast<ShapedType>(resource.getType());
    if (!blob || int64_t(blob->getData().size()) < type.getNumElements() * elementBytes(type.getElementType()))
      return failure();
    view.data = blob->getData().data();
    return view;
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return failure();
  view.isSplat = dense.isSplat();
  if (!dense.getElementType().isInteger(1)) {
    view.data = dense.getRawData().data();
    return view;
  }
  int64_t count = view.isSplat ? 1 : dense.getNumElements();
  view.owner = std::make_shared<TensorBytes>(count);
  auto values = dense.getValues<bool>().begin();
  for (int64_t i = 0; i < count; ++i, ++values)
    view.owner->data()[i] = *values;
  view.data = view.owner->data();
  return view;
}

const char *ConstantView::expand(RankedTensorType type) {
  if (!isSplat)
    return data;
  int64_t width = elementBytes(type.getElementType()), count = type.getNumElements();
  auto all = std::make_shared<TensorBytes>(width * count);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(all->data() + i * width, data, width);
  owner = all;
  data = all->data();
  isSplat = false;
  return data;
}

} // namespace ogc::codegen
