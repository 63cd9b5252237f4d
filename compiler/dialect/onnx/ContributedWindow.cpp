//===- ContributedWindow.cpp - windows of contributed convolutions, pools -===//
#include "compiler/dialect/onnx/ContributedWindow.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace ogc::onnx::contributed {

SpatialWindow::SpatialWindow(::onnx::InferenceContext &context, Dims kernelExtents) : kernel(std::move(kernelExtents)) {
  auto list = [&](llvm::StringRef name, int64_t otherwise, size_t size) {
    Dims values;
    ::onnx::getRepeatedAttribute(context, name.str(), values);
    if (values.empty())
      values.assign(size, otherwise);
    if (values.size() != size || (name != "pads" && llvm::any_of(values, [](int64_t v) { return v < 1; })))
      fail("attribute ", name.str(), " is not ", size, name == "pads" ? " numbers" : " positive numbers");
    return values;
  };
  strides = list("strides", 1, rank());
  dilations = list("dilations", 1, rank());
  pads = list("pads", 0, 2 * rank());
  autoPad = ::onnx::getAttribute(context, "auto_pad", std::string("NOTSET"));
  ceil = ::onnx::getAttribute(context, "ceil_mode", 0) != 0;
}

int64_t SpatialWindow::extent(size_t d, int64_t in) const {
  if (in < 0 || kernel[d] < 0)
    return -1;
  int64_t stride = strides[d];
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")
    return llvm::divideCeilSigned(in, stride);
  int64_t begin = autoPad == "VALID" ? 0 : pads[d], end = autoPad == "VALID" ? 0 : pads[d + rank()];
  int64_t span = begin + in + end - dilations[d] * (kernel[d] - 1) - 1;
  if (span < 0)
    fail("the kernel of extent ", kernel[d], " does not fit the padded input of extent ", begin + in + end);
  int64_t windows = (ceil ? llvm::divideCeilSigned(span, stride) : span / stride) + 1;
  // A window that begins in the padding behind the input does not exist.
  return ceil && (windows - 1) * stride >= in + begin ? windows - 1 : windows;
}

} // namespace ogc::onnx::contributed
