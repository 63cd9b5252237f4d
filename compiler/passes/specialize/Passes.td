//===- Passes.td - passes of the specialize phase ---------------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_PASSES_TD
#define OGC_PASSES_SPECIALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpecializeShapes : Pass<"ogc-specialize-shapes", "mlir::ModuleOp"> {
  let summary = "make one function a graph ID, with static argument types";
  let description = [{
    Takes the only function of the module and the shapes asked for, and makes one copy a graph ID whose argument types are static. A named
    dimension that is fixed once holds for all inputs that name it. Wrong names, ranks and values are errors that list the model's inputs.

    `shapes` holds the requests, separated by `;`: an optional `ID: ` (the colon is followed by a space), then `input=AxBxC` or
    `symbol=A,B,C..D:x2` for whatever is not static already; several values of a name stand for the product (docs/shapes.md). Without an ID
    a lone graph is `default`; others are named after the sizes of the symbols. The function keeps these as `ogc.symbols`.

    ```mlir
    // shapes=ids=1x128
    func.func @main(%ids: tensor<?x?xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]})
    // becomes
    func.func @main(%ids: tensor<1x128xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]})
        attributes {ogc.graph_id = "default", ogc.symbols = {batch = 1 : i64, seq = 128 : i64}}
    ```
  }];
  let options = [Option<"shapes", "shapes", "std::string", "", "shapes of the graphs">];
}

def FoldShapes : Pass<"ogc-fold-shapes", "mlir::func::FuncOp"> {
  let summary = "infer all types and evaluate the shape arithmetic";
  let description = [{
    One walk in program order: each operator gets the most exact result types, and becomes a constant when it is small (at most 4096
    elements) and its operands are constants or it only asks for a known shape. Control flow becomes straight-line code: an If with a constant
    condition the branch taken, any other If both branches and a Where (they must yield the same static types), a Loop with constant trip
    count and conditions and a Scan one copy of their body an iteration (at most 1024 iterations, and 65536 nodes in all). Floats are folded only where one rounding of the exact result is the operator's definition. Operators that need real evaluation
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

def BoundExtents : Pass<"ogc-bound-extents", "mlir::func::FuncOp"> {
  let summary = "give extents that depend on the data a bound, and carry them to the results";
  let description = [{
    NonZero, Compress, Unique, NonMaxSuppression and TopK with a computed k get results of the largest possible extent; what was selected stands first
    along it. How much that is, is computed by operators added here. Element-wise operators (whose other operands repeat along the extent),
    Transpose, Gather and GatherND by such indices, Reshape, Squeeze, Unsqueeze, Slice, Concat, Softmax, reductions and products along other
    dimensions carry the extent on; any other reader is an error. A result of the function with such an extent holds its elements densely at its
    start, names the dimension in `ogc.extent = [dimension, result]`, and that result, marked `ogc.hidden`, is the extent.

    ```mlir
    %0 = "onnx.NonZero"(%x) : (tensor<2x3xf32>) -> tensor<2x?xi64>
    return %0 : tensor<2x?xi64>
    // becomes a function with the result attributes {ogc.extent = [1, 1]} and {ogc.hidden}
    %0 = "onnx.NonZero"(%x) : (tensor<2x3xf32>) -> tensor<2x6xi64>
    %n = "onnx.ReduceSum"(...) : (tensor<2x3xi64>) -> tensor<i64>
    return %packed, %n : tensor<2x6xi64>, tensor<i64>
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

def ProvePadding : Pass<"ogc-prove-padding", "mlir::ModuleOp"> {
  let summary = "prove that a named dimension may be padded, or name the operator that mixes its positions";
  let description = [{
    The module holds two functions in the form after the lower phase, equal but for the size of `symbol` (`ogc.symbols`). They are
    compared operation by operation (compiler/analysis/PaddingSafety.h). The answer becomes the module's `ogc.padding`: whether padding is
    safe, where each output holds the rows (`[output, dimension, elements a row]`), or the operator, node and reason that forbid it.

    ```mlir
    %0 = linalg.generic {… iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x8xf32>) …   // [batch, 8]
    // symbol=batch: ogc.padding = {safe = true, cuts = [array<i64: 0, 0, 1>], …}
    // symbol=seq, the reduced dimension: {safe = false, operator = "ReduceSum", node = "sum", reason = "reduces over it", …}
    ```
  }];
  let options = [Option<"symbol", "symbol", "std::string", "", "name of the dimension">];
}

def TraceSizes : Pass<"ogc-trace-sizes", "mlir::ModuleOp"> {
  let summary = "find arithmetic on the size of a named dimension that makes steps";
  let description = [{
    The module holds two functions before `ogc-fold-shapes`, equal but for the size of `symbol` (`ogc.symbols`). Both are folded side by side.
    An operator whose operands differ between them is tried with every size from 1 to `largest`, its operands taken from the straight line
    through both; where its results leave the straight line through its own, the module gets `ogc.size_step`. Two sizes do not show such a step:
    their results may be equal.

    ```mlir
    %size = "onnx.Shape"(%x) : (tensor<9x4xf32>) -> tensor<2xi64>    // 9 here, 10 there
    %half = "onnx.Div"(%size, %eight)                                // 1 here, 1 there, but 0 for 7:
    // ogc.size_step = {operator = "Div", node = "half"}
    ```
  }];
  let options = [Option<"symbol", "symbol", "std::string", "", "name of the dimension">,
                 Option<"largest", "largest", "int64_t", "64", "the largest size that counts">];
}

#endif
