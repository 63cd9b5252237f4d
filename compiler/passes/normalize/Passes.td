//===- Passes.td - passes of the normalize phase ---------------------------------===//
#ifndef OGC_PASSES_NORMALIZE_PASSES_TD
#define OGC_PASSES_NORMALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Ogc_NormalizePass<string flag> : Pass<flag, "mlir::func::FuncOp"> {
  let dependentDialects = ["ogc::onnx::OnnxDialect"];
}

def DropIdentities : Ogc_NormalizePass<"ogc-drop-identities"> {
  let summary = "drop operators that change nothing";
  let description = [{
    Identity, Dropout outside of training, Cast to the same type, Concat and the like of one operand, a Transpose that keeps the order, and
    Reshape, Expand, Squeeze, Unsqueeze and Flatten to the static shape that the operand has.

    ```mlir
    %0 = "onnx.Identity"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "onnx.Relu"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %1 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}

def FoldBatchNorm : Ogc_NormalizePass<"ogc-fold-batch-norm"> {
  let summary = "fold BatchNormalization into the convolution before it";
  let description = [{
    Only when the convolution has no other user, and its filter, its bias and all parameters of the normalization are constants. The
    arithmetic on constants stays in the module and is evaluated with all other constants.

    ```mlir
    %0 = "onnx.Conv"(%x, %w) …
    %1 = "onnx.BatchNormalization"(%0, %scale, %bias, %mean, %var) {epsilon = …} …
    // becomes
    %s = scale / sqrt(var + epsilon)
    %1 = "onnx.Conv"(%x, %w * %s, (-%mean) * %s + %bias) …
    ```
  }];
}

def FormLayerNorm : Ogc_NormalizePass<"ogc-form-layer-norm"> {
  let summary = "recognise decomposed layer and RMS normalization";
  let description = [{
    Over the last axis, with whatever scale and bias of one row follow; a missing scale becomes ones. The root may be divided by, or
    inverted and multiplied with.

    ```mlir
    (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) * w + b   // becomes
    %0 = "onnx.LayerNormalization"(%x, %w, %b) {axis = -1 : i64, epsilon = e}

    x / sqrt(mean(x^2) + e) * w                               // becomes
    %0 = "onnx.RMSNormalization"(%x, %w) {axis = -1 : i64, epsilon = e}
    ```
  }];
}

def FormGelu : Ogc_NormalizePass<"ogc-form-gelu"> {
  let summary = "recognise decomposed GELU, by erf and by tanh";
  let description = [{
    The factors may be multiplied in any order; constants must agree as far as the element type can tell.

    ```mlir
    0.5 * x * (1 + erf(x / sqrt(2)))                              // becomes
    %0 = "onnx.Gelu"(%x) {approximate = "none"}
    0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))     // becomes
    %0 = "onnx.Gelu"(%x) {approximate = "tanh"}
    ```
  }];
}

def FormTensorScatter : Ogc_NormalizePass<"ogc-form-tensor-scatter"> {
  let summary = "recognise a row that is written into a cache";
  let description = [{
    Exporters write the key or value of a new position by ScatterND on a cache whose rows they have transposed to the front, or by
    ScatterElements with the position repeated for every element. Both become TensorScatter, which attention reads through. One row in
    the same place of each batch; a negative position counts from the end.

    ```mlir
    %t = "onnx.Transpose"(%cache) {perm = array<i64: 2, 0, 1, 3>}
    %u = "onnx.Transpose"(%row) {perm = array<i64: 2, 0, 1, 3>}
    %s = "onnx.ScatterND"(%t, %position, %u) …
    %o = "onnx.Transpose"(%s) {perm = array<i64: 1, 2, 0, 3>}
    // becomes
    %o = "onnx.TensorScatter"(%cache, %row, %position) {axis = 2 : i64, mode = "linear"}
    ```
  }];
}

def FormAttention : Ogc_NormalizePass<"ogc-form-attention"> {
  let summary = "recognise decomposed scaled dot product attention";
  let description = [{
    Matches MatMul(q, kT), scaled by scalars before (also below reshapes and transposes) or after, plus additive masks, between which the
    leading dimensions may be reshaped, softmax over the last axis, optionally NaN → 0 (rows
    that are masked out give zero anyway), MatMul with v. Needs static shapes, because a broadcast batch dimension would be something else;
    run it after the specialize phase. Transposes and reshapes stay outside, the one that made kT is undone. Key and value heads that were
    repeated for grouped queries are taken before they are repeated.

    ```mlir
    %s = "onnx.MatMul"(%q, %kt) …
    %m = "onnx.Mul"(%s, %c) …
    %a = "onnx.Add"(%m, %mask) …
    %p = "onnx.Softmax"(%a) {axis = -1 : i64} …
    %o = "onnx.MatMul"(%p, %v) …
    // becomes
    %o = "onnx.Attention"(%q, %k, %v, %mask) {scale = …} : [B, H, S, D] …
    ```
  }];
}

def ExpandFunctions : Ogc_NormalizePass<"ogc-expand-functions"> {
  let summary = "expand operators without a lowering by their function bodies";
  let description = [{
    The schema of an operator may define it by other operators. Where there is no lowering for an operator, its body takes its place, again
    and again until nothing is left to expand.

    ```mlir
    %0 = "onnx.HardSwish"(%x) …
    // becomes
    %1 = "onnx.HardSigmoid"(%x) {alpha = 0.166666672 : f32, beta = 5.000000e-01 : f32} …
    %0 = "onnx.Mul"(%x, %1) …
    ```
  }];
  let options = [ListOption<"keep", "keep", "std::string", "operators that have a lowering">];
}

#endif
