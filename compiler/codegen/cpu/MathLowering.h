//===- MathLowering.h - math without a math library -----------------------===//
#ifndef OGC_CODEGEN_CPU_MATHLOWERING_H
#define OGC_CODEGEN_CPU_MATHLOWERING_H

#include "compiler/codegen/cpu/CpuTarget.h"
#include "mlir/IR/BuiltinOps.h"

namespace ogc::codegen {

/// Replaces what would become calls into libm or the compiler's runtime: f32 functions become polynomials, arithmetic on 16-bit
/// floats is done in f32, conversions without an instruction become integer arithmetic. Shared objects of kernels link nothing.
mlir::LogicalResult lowerMath(mlir::ModuleOp module, const CpuTarget &target);

} // namespace ogc::codegen

#endif
