//===- Window.h - the sliding window of convolution and pooling -----------===//
#ifndef OGC_PASSES_LOWER_WINDOW_H
#define OGC_PASSES_LOWER_WINDOW_H

#include "compiler/passes/lower/Node.h"

namespace ogc::lower {

/// One value for each spatial dimension.
struct Window {
  Shape in, out, kernel, strides, dilations, padBegin, padEnd;

  size_t rank() const { return kernel.size(); }
  /// Input position of kernel element `k` of output `o` along dimension d, relative to the input without padding.
  int64_t position(size_t d, int64_t o, int64_t k) const { return o * strides[d] + k * dilations[d] - padBegin[d]; }
  /// The padding at the end that the last window needs (it may be less or more than padEnd).
  int64_t neededEnd(size_t d) const { return std::max<int64_t>(position(d, out[d] - 1, kernel[d] - 1) - in[d] + 1, 0); }
};

/// Reads kernel_shape, strides, dilations, pads and auto_pad of an operator over [N, C, spatial...] with the given result.
/// `kernel` is the default of kernel_shape. Fails with a reason.
mlir::FailureOr<Window> readWindow(Node &n, llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> spatialIn,
                                   llvm::ArrayRef<int64_t> spatialOut);

/// Fails unless input `i`, when there is one, is a vector with an element for each filter.
llvm::LogicalResult checkBias(Node &n, int i, int64_t filters);

/// The input padded with a scalar so that every window lies inside it; `leading` dimensions come before the spatial ones.
mlir::Value padWindow(Node &n, mlir::Value v, const Window &window, size_t leading, mlir::Value scalar);

/// The map expressions o * stride + k * dilation of the spatial dimensions, from the domain dimensions firstOut... and
/// firstKernel...
llvm::SmallVector<mlir::AffineExpr> windowExprs(mlir::MLIRContext *context, const Window &window, unsigned firstOut,
                                                unsigned firstKernel);

} // namespace ogc::lower

#endif
