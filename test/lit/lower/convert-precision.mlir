// RUN: ogc-opt %s -ogc-convert-precision=precision=fp16 | FileCheck %s
// RUN: ogc-opt %s -ogc-convert-precision=precision=tf32 | FileCheck %s --check-prefix=TF32
// RUN: not ogc-opt %s -ogc-convert-precision=precision=fp8 2>&1 | FileCheck %s --check-prefix=BAD

// TF32: module attributes {ogc.math = "tf32"}
// TF32-NOT: f16
// BAD: precision is 'fp8', expected fp32, tf32, fp16 or bf16

// Inputs and outputs stay f32; finite constants beyond the range of f16 become its largest value, infinities stay.
// CHECK-LABEL: func @main(%arg0: tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[X:.*]] = "onnx.Cast"(%arg0) {to = 10 : i64} : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: %[[C:.*]] = onnx.constant {{.*}}dense<[6.550400e+04, 0x7C00, 9.997550e-02, -6.550400e+04]> : tensor<4xf16>
// CHECK: %[[A:.*]] = "onnx.Add"(%[[X]], %[[C]])
// CHECK: %[[Y:.*]] = "onnx.Cast"(%[[A]]) {to = 1 : i64}
// CHECK: return %[[Y]]
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = onnx.constant {value = dense<[1.0e10, 0x7F800000, 0.1, -1.0e10]> : tensor<4xf32>, name = "c"} : tensor<4xf32>
  %0 = "onnx.Add"(%x, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A Cast to f32 becomes one to f16; a running sum stays in f32 between two Casts.
// CHECK-LABEL: func @keeps_f32
// CHECK: "onnx.Cast"(%arg0) {to = 10 : i64} : (tensor<4xi64>) -> tensor<4xf16>
// CHECK: %[[W:.*]] = "onnx.Cast"({{.*}}) {to = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
// CHECK: "onnx.CumSum"(%[[W]], {{.*}} -> tensor<4xf32>
func.func @keeps_f32(%i: tensor<4xi64>) -> tensor<4xf32> {
  %a = onnx.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %0 = "onnx.Cast"(%i) {to = 1 : i64} : (tensor<4xi64>) -> tensor<4xf32>
  %1 = "onnx.CumSum"(%0, %a) {exclusive = 0 : i64, reverse = 0 : i64} : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Positions times frequencies stay in f32 up to the sine; what it gives is f16 again.
// CHECK-LABEL: func @angles
// CHECK: %[[P:.*]] = "onnx.Cast"(%arg0) {to = 1 : i64} : (tensor<3xi64>) -> tensor<3xf32>
// CHECK: %[[N:.*]] = "onnx.Cast"(%[[P]]) {to = 10 : i64}
// CHECK: %[[M:.*]] = "onnx.Mul"(%[[P]], {{.*}}) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// CHECK: %[[S:.*]] = "onnx.Sin"(%[[M]]) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK: "onnx.Cast"(%[[S]]) {to = 10 : i64}
// CHECK: "onnx.Relu"({{.*}}) : (tensor<3xf16>) -> tensor<3xf16>
func.func @angles(%i: tensor<3xi64>) -> tensor<3xf32> {
  %f = onnx.constant {value = dense<[1.0, 0.1, 0.01]> : tensor<3xf32>} : tensor<3xf32>
  %0 = "onnx.Cast"(%i) {to = 1 : i64} : (tensor<3xi64>) -> tensor<3xf32>
  %1 = "onnx.Mul"(%0, %f) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = "onnx.Sin"(%1) : (tensor<3xf32>) -> tensor<3xf32>
  %3 = "onnx.Relu"(%2) : (tensor<3xf32>) -> tensor<3xf32>
  return %3 : tensor<3xf32>
}
