//===- Passes.td - passes of the cpu code generator -------------------------===//
#ifndef OGC_CODEGEN_CPU_PASSES_TD
#define OGC_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitCpuKernelsPass : Pass<"ogc-emit-cpu-kernels", "::mlir::ModuleOp"> {
  let summary = "replace kernels by the functions that the cpu target compiles";
  let description = [{
    Shows what the schedules of the cpu target make of each `kern.kernel`: a `func.func` over flat buffers and a range of units, in `scf`,
    `memref`, `vector`, `arith` and `math`, before it is lowered to LLVM. The number of units is attached as `ogc.units`.

    ```mlir
    kern.kernel @relu attributes {schedule = #kern.schedule<pointwise>} { ... }
    // becomes
    func.func @relu(%x: memref<64xf32>, %y: memref<64xf32>, %begin: index, %end: index) attributes {ogc.units = 1 : i64} { ... }
    ```
  }];
  let options = [Option<"cpu", "cpu", "std::string", "\"host\"", "processor, in LLVM's spelling">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::mlir::math::MathDialect"];
}

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
