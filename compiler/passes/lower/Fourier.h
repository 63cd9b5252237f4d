//===- Fourier.h - discrete Fourier transforms by products ----------------===//
#ifndef OGC_PASSES_LOWER_FOURIER_H
#define OGC_PASSES_LOWER_FOURIER_H

#include "compiler/passes/lower/Node.h"

namespace ogc::lower {

/// Fails for lengths whose tables of factors would fill memory. To be asked before the functions below.
mlir::LogicalResult checkTransformLength(Node &n, int64_t length);

/// The transform of signals [B, N, 1 (real) or 2 (real and imaginary part)] in f32 or f64: [B, N, 2], or the first
/// N / 2 + 1 frequencies. The inverse is scaled by 1 / N.
mlir::Value fourier(Node &n, mlir::Value signals, bool inverse, bool oneSided);

/// The inverse of a one-sided transform: [B, length / 2 + 1, 2] to real signals [B, length, 1].
mlir::Value inverseOfOneSided(Node &n, mlir::Value spectrum, int64_t length);

} // namespace ogc::lower

#endif
