//===- Passes.td - passes of CUDA code generation -------------------------===//
#ifndef OGC_CODEGEN_CUDA_PASSES_TD
#define OGC_CODEGEN_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitCuda : Pass<"ogc-emit-cuda", "::mlir::ModuleOp"> {
  let summary = "print the CUDA C++ text of all kernels";
  let description = [{
    Prints every `kern.kernel` of the module as CUDA C++ with its launch shape to standard output, one program for all of them, and leaves
    the IR alone. With `compile` the text is also compiled by NVRTC and the size of the cubins reported, not its bytes.

    ```mlir
    kern.kernel @twice attributes {schedule = #kern.schedule<pointwise>} { … }
    ```
    prints
    ```
    // kernel twice: grid 8, block 128, cluster 1, shared 0
    extern "C" __global__ void __launch_bounds__(128) twice(const float *__restrict__ p0, float *__restrict__ p1) { … }
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_90\"", "CUDA architecture">,
    Option<"compile", "compile", "bool", "false", "compile the text with NVRTC too">,
    Option<"cacheDir", "cache-dir", "std::string", "\"\"", "folder of compiled programs; empty: no cache">,
    Option<"dumpDir", "dump-dir", "std::string", "\"\"", "folder that the programs are written to; empty: nowhere">,
  ];
}

#endif
