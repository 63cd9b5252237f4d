//===- ResultBuffer.cpp - where a kernel writes its results ---------------===//
#include "compiler/codegen/scalar/ResultBuffer.h"

using namespace mlir;

namespace ogc::codegen {

RankedTensorType resultBuffer(kern::KernelOp kernel, unsigned number) {
  auto type = cast<RankedTensorType>(kernel.getBody().front().getTerminator()->getOperand(number).getType());
  auto extent = kernel->getAttrOfType<DenseI64ArrayAttr>("ogc.result_extent"); // axis, elements
  if (!extent || extent.size() != 2 || extent[0] < 0 || extent[0] >= type.getRank())
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[static_cast<size_t>(extent[0])] = std::max(extent[1], shape[static_cast<size_t>(extent[0])]);
  return RankedTensorType::get(shape, type.getElementType());
}

std::optional<unsigned> inPlaceArgument(kern::KernelOp kernel) {
  auto argument = kernel->getAttrOfType<IntegerAttr>("ogc.in_place");
  if (!argument || argument.getInt() < 0 || argument.getInt() >= kernel.getBody().getNumArguments())
    return std::nullopt;
  return static_cast<unsigned>(argument.getInt());
}

} // namespace ogc::codegen
