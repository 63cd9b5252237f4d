//===- ContributedWindow.h - windows of contributed convolutions and pools ===//
#ifndef OGC_DIALECT_ONNX_CONTRIBUTEDWINDOW_H
#define OGC_DIALECT_ONNX_CONTRIBUTEDWINDOW_H

#include "compiler/dialect/onnx/ContributedSchema.h"

namespace ogc::onnx::contributed {

/// The window of a node along its spatial dimensions, from the attributes strides, dilations, pads, auto_pad and ceil_mode.
/// Inference ends where these do not fit the number of dimensions, or strides and dilations are not positive.
class SpatialWindow {
public:
  SpatialWindow(::onnx::InferenceContext &context, Dims kernel);

  size_t rank() const { return kernel.size(); }
  /// The extent of the result along dimension `d` of an input with extent `in`; -1 where one of them is unknown.
  int64_t extent(size_t d, int64_t in) const;

private:
  Dims kernel, strides, dilations, pads;
  std::string autoPad;
  bool ceil;
};

} // namespace ogc::onnx::contributed

#endif
