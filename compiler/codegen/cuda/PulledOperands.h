//===- PulledOperands.h - what a template asks for by element, as a functor ===//
#ifndef OGC_CODEGEN_CUDA_PULLEDOPERANDS_H
#define OGC_CODEGEN_CUDA_PULLEDOPERANDS_H

#include "compiler/codegen/cuda/Schedules.h"

namespace ogc::codegen {

/// One member function of the functor: the scalar that `emit` computes from `numIndices` indices.
struct PulledElement {
  std::string name;
  unsigned numIndices;
  llvm::function_ref<mlir::Value(KernelBody &, llvm::ArrayRef<mlir::Value> indices)> emit;
};

struct PulledOperands {
  std::string functor;   ///< definition of `struct NAME_Operands`
  std::string construct; ///< `NAME_Operands{p2, p3}`
};

/// Prints the functor through which a template gets operands that are computed in the kernel (device/README.md, "Operand
/// protocol"). It also stores the results of the kernel that are not computed from `anchor`.
mlir::FailureOr<PulledOperands> printPulledOperands(kern::KernelOp kernel, mlir::Operation *anchor,
                                                    llvm::ArrayRef<PulledElement> elements);

} // namespace ogc::codegen

#endif
