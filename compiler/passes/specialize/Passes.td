//===- Passes.td - passes of the specialize phase ---------------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_PASSES_TD
#define OGC_PASSES_SPECIALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpecializeShapes : Pass<"ogc-specialize-shapes", "mlir::ModuleOp"> {
  let summary = "make one function a graph ID, with static argument types";
  let description = [{
    Takes the only function of the module and the shapes asked for, and makes one copy a graph ID whose argument types are static. A named
    dimension that one input fixes holds for all inputs that name it. Wrong names, ranks and values are errors that list the model's inputs.

    `shapes` holds the graphs, separated by `;`: an optional `ID: ` (the colon is followed by a space; without it the graph is `default`),
    then `name=AxBxC` for each input that is not static already, separated by `,`. An empty shape is a scalar.

    ```mlir
    // shapes=ids=1x128
    func.func @main(%ids: tensor<?x?xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]})
    // becomes
    func.func @main(%ids: tensor<1x128xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]}) attributes {ogc.graph_id = "default"}
    ```
  }];
  let options = [Option<"shapes", "shapes", "std::string", "", "shapes of the inputs, by graph ID">];
}

def FoldShapes : Pass<"ogc-fold-shapes", "mlir::func::FuncOp"> {
  let summary = "infer all types and evaluate the shape arithmetic";
  let description = [{
    One walk in program order: each operator gets the most exact result types, and becomes a constant when it is small (at most 4096
    elements) and its operands are constants or it only asks for a known shape. An If with a constant condition is replaced by the branch
    taken. Floats are folded only where one rounding of the exact result is the operator's definition. Operators that need real evaluation
    (a weight transposed or scaled) are left alone.

    ```mlir
    %0 = "onnx.Shape"(%x) : (tensor<2x3x4xf32>) -> tensor<3xi64>
    %1 = "onnx.Gather"(%0, %one) {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
    // becomes
    %1 = onnx.constant {value = dense<3> : tensor<1xi64>} : tensor<1xi64>
    ```
  }];
  let dependentDialects = ["ogc::onnx::OnnxDialect"];
}

def VerifyStatic : Pass<"ogc-verify-static", "mlir::func::FuncOp"> {
  let summary = "fail when a value is not a static tensor";
  let description = [{
    Emits an error for each operator that makes a value of unknown shape from operands of known shape: the places where the shape depends
    on the data. What only follows from these is not listed.

    ```mlir
    %0 = "onnx.NonZero"(%x) : (tensor<4xf32>) -> tensor<1x?xi64> // error: NonZero node 'n': output 0 has type 'tensor<1x?xi64>', …
    ```
  }];
}

def DeclareState : Pass<"ogc-declare-state", "mlir::ModuleOp"> {
  let summary = "declare inputs and outputs as one state";
  let description = [{
    `states` holds pairs `INPUT=OUTPUT`, separated by `;`. Both must exist, be named once and have one static type, which is the same in all
    graphs. They are marked with the name of the other; `ogc-build-graph` gives them one place.

    ```mlir
    // states=past=present
    func.func @main(%past: tensor<4xf32> {onnx.name = "past"}) -> (tensor<4xf32> {onnx.name = "present"})
    // becomes
    func.func @main(%past: tensor<4xf32> {onnx.name = "past", ogc.state = "present"}) -> (tensor<4xf32> {onnx.name = "present", ogc.state = "past"})
    ```
  }];
  let options = [Option<"states", "states", "std::string", "", "pairs of an input and an output">];
}

#endif
