//===- Passes.h - passes of CUDA code generation --------------------------===//
#ifndef OGC_CODEGEN_CUDA_PASSES_H
#define OGC_CODEGEN_CUDA_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ogc::codegen {

#define GEN_PASS_DECL
#include "compiler/codegen/cuda/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/codegen/cuda/Passes.h.inc"

} // namespace ogc::codegen

#endif
