//===- ProgramBody.h - copies of a program's body for a target ------------===//
#ifndef OGC_CODEGEN_SCALAR_PROGRAMBODY_H
#define OGC_CODEGEN_SCALAR_PROGRAMBODY_H

#include "compiler/dialect/kern/Kern.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace ogc::codegen {

/// Emits the loop of a `kern.parallel`: gets its operation and a function that emits one iteration at the insertion point.
using EmitParallel = llvm::function_ref<void(kern::ParallelOp, llvm::function_ref<void(mlir::Value iteration)>)>;

/// Copies the operations of a program's body to the insertion point. `mapping` holds the group's number and the buffers for the
/// block arguments; a buffer of bytes may stand for one of `i1`.
void emitProgramBody(mlir::OpBuilder &builder, mlir::Block &body, mlir::IRMapping &mapping, EmitParallel emitParallel);

} // namespace ogc::codegen

#endif
