// Operators of com.microsoft by their bodies, and what the bodies refuse.
// RUN: split-file %s %t
// RUN: ogc-opt %t/right.mlir -ogc-expand-functions='keep=Gelu,Attention,LessOrEqual,TensorScatter' | FileCheck %s
// RUN: not ogc-opt %t/refused.mlir -ogc-expand-functions 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK-LABEL: func @fast_gelu
// CHECK: "onnx.Add"
// CHECK: "onnx.Gelu"({{.*}}) {approximate = "tanh"}
// CHECK-LABEL: func @shared_buffer
// CHECK: "onnx.TensorScatter"{{.*}} -> tensor<1x1x8x8xf32>
// CHECK: "onnx.LessOrEqual"
// CHECK: "onnx.Attention"

//--- right.mlir
func.func @fast_gelu(%x: tensor<2x8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.com.microsoft.FastGelu"(%x, %b) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func @shared_buffer(%q: tensor<1x1x16xf32>, %k: tensor<1x1x8xf32>, %past: tensor<1x1x8x8xf32>, %n: tensor<1xi32>, %t: tensor<i32>)
    -> (tensor<1x1x16xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) {
  %0:3 = "onnx.com.microsoft.GroupQueryAttention"(%q, %k, %k, %past, %past, %n, %t) {kv_num_heads = 1 : i64, num_heads = 2 : i64}
      : (tensor<1x1x16xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1xi32>, tensor<i32>)
      -> (tensor<1x1x16xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<1x1x16xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>
}

//--- refused.mlir
// ERROR: com.microsoft.RotaryEmbedding: scale is 2.0{{.*}}, expected 1
func.func @scaled(%x: tensor<1x2x8xf32>, %p: tensor<1x2xi64>, %c: tensor<4x2xf32>) -> tensor<1x2x8xf32> {
  %0 = "onnx.com.microsoft.RotaryEmbedding"(%x, %p, %c, %c) {num_heads = 2 : i64, scale = 2.0 : f32}
      : (tensor<1x2x8xf32>, tensor<1x2xi64>, tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<1x2x8xf32>
  return %0 : tensor<1x2x8xf32>
}
