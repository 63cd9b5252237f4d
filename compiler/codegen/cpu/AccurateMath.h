//===- AccurateMath.h - f32 functions over their whole range --------------===//
#ifndef OGC_CODEGEN_CPU_ACCURATEMATH_H
#define OGC_CODEGEN_CPU_ACCURATEMATH_H

#include "mlir/IR/PatternMatch.h"

namespace ogc::codegen {

/// Adds patterns for f32 powf, sinh, cosh, asinh, acosh, atanh, sin, cos and tan, for the arguments where the expansions of the
/// math dialect are wrong or inexact: negative bases, arguments near zero, large arguments. They take precedence over those, have
/// no branches, and leave exp, expm1, log, log1p, sqrt and operations with an instruction. sin, cos and tan are exact to 2e-7
/// (tan: relative) up to 1e6, lose digits beyond 1e9 and stay bounded (sin, cos) for any finite argument.
void populateAccurateMathPatterns(mlir::RewritePatternSet &patterns);

} // namespace ogc::codegen

#endif
