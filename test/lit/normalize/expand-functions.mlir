// Operators without a lowering are expanded by the function bodies of their schemas, which may use further ones.
// RUN: ogc-opt %s -ogc-expand-functions='keep=HardSigmoid,Relu' | FileCheck %s

// CHECK-LABEL: func @hard_swish
// CHECK-NEXT:  %[[GATE:.*]] = "onnx.HardSigmoid"(%arg0) {alpha = 0.166666672 : f32, beta = 5.000000e-01 : f32}
// CHECK-NEXT:  %[[Y:.*]] = "onnx.Mul"(%arg0, %[[GATE]])
// CHECK-NEXT:  return %[[Y]]
func.func @hard_swish(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.HardSwish"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// A body that depends on an attribute.
// CHECK-LABEL: func @gelu
// CHECK-NOT:   onnx.Gelu
// CHECK:       "onnx.Tanh"
func.func @gelu(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.Gelu"(%x) {approximate = "tanh"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// CHECK-LABEL: func @kept
// CHECK-NEXT:  "onnx.Relu"
func.func @kept(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// An operator whose schema has no body gets one of ours: MaxUnpool is a scatter into zeros, with more zeros behind for output_shape.
// CHECK-LABEL: func @unpool
// CHECK:       "onnx.ScatterElements"
// CHECK-NEXT:  {{.*}}"onnx.Reshape"
// CHECK:       "onnx.Pad"
func.func @unpool(%x: tensor<1x1x2x2xf32>, %i: tensor<1x1x2x2xi64>) -> tensor<1x1x4x5xf32> {
  %s = onnx.constant {value = dense<[1, 1, 4, 5]> : tensor<4xi64>} : tensor<4xi64>
  %0 = "onnx.MaxUnpool"(%x, %i, %s) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>, tensor<4xi64>) -> tensor<1x1x4x5xf32>
  return %0 : tensor<1x1x4x5xf32>
}
