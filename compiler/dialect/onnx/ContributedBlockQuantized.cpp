//===- ContributedBlockQuantized.cpp - weights of few bits in blocks ------===//
#include "compiler/dialect/onnx/ContributedSchema.h"

namespace ogc::onnx::contributed {
namespace {

void inferMatMulNBits(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  int64_t depth = ::onnx::getAttribute(context, "K", 0), columns = ::onnx::getAttribute(context, "N", 0);
  Dims shape;
  if (!partialShape(context, 0, shape))
    return;
  if (shape.empty() || (shape.back() >= 0 && shape.back() != depth))
    fail("operand A has ", shape.empty() ? 1 : shape.back(), " columns, expected K = ", depth);
  shape.back() = columns;
  setShape(context, 0, shape);
}

void inferGatherBlockQuantized(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 2, 0);
  Dims data, indices, shape;
  if (!partialShape(context, 0, data) || !partialShape(context, 1, indices))
    return;
  int64_t rank = static_cast<int64_t>(data.size()), axis = ::onnx::getAttribute(context, "gather_axis", 0);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    fail("gather_axis is out of range");
  // Bytes hold more than one element along the last dimension.
  bool isPacked = context.getInputType(0)->tensor_type().elem_type() == ::onnx::TensorProto::UINT8;
  int64_t bits = ::onnx::getAttribute(context, "bits", 4);
  if (isPacked && data.back() > 0 && bits > 0 && bits <= 8)
    data.back() *= 8 / bits;
  shape.assign(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  setShape(context, 0, shape);
}

} // namespace

void addBlockQuantizedSchemas() {
  // No bodies: their weights stay packed, so both have lowerings.
  addSchema("MatMulNBits", "A:F B:Q scales:F zero_points?:A g_idx?:int32 bias?:F", "Y:F",
            "K:i! N:i! bits:i=4 block_size:i! accuracy_level:i=0 weight_prepacked:i", inferMatMulNBits);
  addSchema("GatherBlockQuantized", "data:Q indices:I scales:F zero_points?:Q", "output:F",
            "gather_axis:i=0 quantize_axis:i=1 block_size:i=128 bits:i=4", inferGatherBlockQuantized);
}

} // namespace ogc::onnx::contributed
