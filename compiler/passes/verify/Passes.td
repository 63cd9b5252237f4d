//===- Passes.td - passes of the verify phase -----------------------------===//
#ifndef OGC_PASSES_VERIFY_PASSES_TD
#define OGC_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyPhase : Pass<"ogc-verify-phase", "::mlir::ModuleOp"> {
  let summary = "check what may not exist any more after a phase";
  let description = [{
    Every violation is reported with the operation and the ONNX node it comes from; the pass fails when there is one.

    | after | operations allowed | besides |
    |---|---|---|
    | import | builtin, func, onnx | ranked tensors |
    | normalize | the same | |
    | specialize | the same | static shapes |
    | lower | func, linalg, tensor, arith, math, kern anchors | static shapes, signless integers |
    | fuse | func, kern regions, kernels and launches, tensor constants, reshapes; in regions and kernels what lower allows | schedules, static shapes |
    | plan | cg, `kern.kernel` and its body | |

    ```mlir
    // ogc-verify-phase="phase=lower" on
    %0 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("relu_1 (Relu)")
    // error: 'onnx.Relu' op may not exist after phase lower [node "relu_1 (Relu)"]
    ```
  }];
  let options = [Option<"phase", "phase", "std::string", "\"\"", "import, normalize, specialize, lower, fuse or plan">];
}

#endif
