//===- Passes.td - passes of the lower phase ---------------------------------===//
#ifndef OGC_PASSES_LOWER_PASSES_TD
#define OGC_PASSES_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertPrecision : Pass<"ogc-convert-precision", "::mlir::ModuleOp"> {
  let summary = "compute an f32 model in 16-bit floats or tf32";
  let description = [{
    `fp16` and `bf16` change every f32 tensor between operators to the 16-bit type. Inputs and outputs of the model keep their types: a Cast stands
    at each boundary. Constants become a Cast of the f32 constant (small ones are converted here), which is evaluated at compile time; finite
    constants beyond the largest finite f16 (65504) become that value instead of infinity. Integers, booleans and f64 are not touched, nor are
    operators whose meaning needs f32 (Range, CumSum, and operands that a schema fixes to f32): these stay in f32 between two Casts.
    `tf32` only sets `ogc.math` on the module, which lowering hands to the anchors; `fp32` does nothing.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // becomes, with precision=fp16
      %x16 = "onnx.Cast"(%x) {to = 10 : i64, ...} : (tensor<4xf32>) -> tensor<4xf16>
      %0 = "onnx.Relu"(%x16) : (tensor<4xf16>) -> tensor<4xf16>
      %1 = "onnx.Cast"(%0) {to = 1 : i64, ...} : (tensor<4xf16>) -> tensor<4xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "\"fp32\"", "fp32, tf32, fp16 or bf16">];
}

def LowerOnnx : Pass<"ogc-lower-onnx", "::mlir::ModuleOp"> {
  let summary = "replace every onnx operator by structured operations and kern anchors";
  let description = [{
    All shapes must be static. Each operator has one lowering, found by its type in a table; unsigned tensors become signless, and functions remember
    their ONNX types in `onnx.type` attributes on arguments and results. Errors are collected over the whole module: operators without a
    lowering, unsupported types or attribute values, attributes that no code read.

    ```mlir
    %0 = "onnx.Add"(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    // becomes
    %e = tensor.empty() : tensor<4x8xf32>
    %0 = linalg.generic {indexing_maps = [(d0, d1) -> (d0, d1), (d0, d1) -> (d1), (d0, d1) -> (d0, d1)],
                         iterator_types = ["parallel", "parallel"]} ins(%x, %b) outs(%e) { arith.addf ... }
    ```
  }];
  let options = [Option<"packWeights", "pack-weights", "bool", "true",
                        "constant right operands of products in panels; false: as they are, for a library that takes no panels">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::ogc::kern::KernDialect"];
}

#endif
