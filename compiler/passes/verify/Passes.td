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

def VerifyGraph : Pass<"ogc-verify-graph", "::mlir::ModuleOp"> {
  let summary = "prove that the edges of each graph order every hazard";
  let description = [{
    Knows nothing of how plan and edges were made. From slices and edges alone it checks that
    - two nodes that touch a common byte, one of them writing it, are joined by a path;
    - every byte of scratch that a node reads was written by a node that precedes it;
    - programmatic edges lead from kernel to kernel.

    Every violation is reported, and the pass fails when there is one.

    ```mlir
    %0 = cg.kernel @a [#cg.slice<scratch, 0, 64, write>]
    %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
    // error: 'cg.kernel' op no edge orders node 1 after node 0, which writes #cg.slice<scratch, 0, 64, write> while it reads #cg.slice<scratch, 0, 64, read>
    ```
  }];
}

#endif
