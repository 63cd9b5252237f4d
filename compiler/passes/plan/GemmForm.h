//===- GemmForm.h - kernels that are one library product ------------------===//
#ifndef OGC_PASSES_PLAN_GEMMFORM_H
#define OGC_PASSES_PLAN_GEMMFORM_H

#include "compiler/dialect/kern/Kern.h"

#include <optional>

namespace ogc::plan {

/// The whole work of a kernel in the terms of cg.gemm.
struct GemmForm {
  int64_t batch = 0, m = 0, n = 0, k = 0;
  mlir::Type elementType, resultType;
  bool transposeB = false, hasBias = false, hasResidual = false, tf32 = false;
  llvm::StringRef activation; ///< "", "relu" or "gelu_tanh"
  /// Positions of A, B, bias and residual among the kernel's block arguments: each argument once.
  llvm::SmallVector<unsigned> order;
};

/// The form of `kernel`, or nothing when a library product would compute something else.
std::optional<GemmForm> matchGemm(kern::KernelOp kernel);

} // namespace ogc::plan

#endif
