//===- ConvolutionForms.h - the forms that convolutions are computed in ---===//
#ifndef OGC_PASSES_LOWER_CONVOLUTIONFORMS_H
#define OGC_PASSES_LOWER_CONVOLUTIONFORMS_H

#include "compiler/passes/lower/Window.h"

namespace ogc::lower {

/// A convolution over [N, C, spatial...] with a filter [F, C / groups, kernel...].
struct Conv {
  mlir::Value input, filter, bias; ///< bias may be null
  Window window;
  int64_t groups;
};

/// The convolution [N, F, out...], plus the bias, in the type `element`: in the form of anchors that suits it, or as genericConv.
mlir::Value convolve(Node &n, Conv conv, mlir::Type element);

/// Any groups, rank and element type: a reduction over [c, kernel...] of the padded input.
mlir::Value genericConv(Node &n, const Conv &conv, mlir::Type element);

} // namespace ogc::lower

#endif
