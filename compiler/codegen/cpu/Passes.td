//===- Passes.td - passes of the cpu code generator -------------------------===//
#ifndef OGC_CODEGEN_CPU_PASSES_TD
#define OGC_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldConstantsPass : Pass<"ogc-fold-constants", "::mlir::ModuleOp"> {
  let summary = "compute kernel regions whose inputs are all constants";
  let description = [{
    Regions over constants only (packed weights, folded batch normalization, casts to the chosen precision) are evaluated now, by the same
    code generator that compiles them for the cpu target, so that folding cannot disagree with execution. Layout changes and float
    casts of one constant run as a copy loop of the compiler's own.

    ```mlir
    %w = arith.constant dense<1.0> : tensor<64x32xf32>
    %p = kern.region(%w) schedule = #kern<schedule pointwise> : (tensor<64x32xf32>) -> tensor<32x64xf32> { ... }
    // becomes
    %p = arith.constant dense<1.0> : tensor<32x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::math::MathDialect"];
}

#endif
