// Operators that change nothing go away.
// RUN: ogc-opt %s -ogc-drop-identities | FileCheck %s

// CHECK-LABEL: func @chain
// CHECK-NEXT:  return %arg0
func.func @chain(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %shape = onnx.constant {value = dense<[2, -1]> : tensor<2xi64>} : tensor<2xi64>
  %0 = "onnx.Identity"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "onnx.Cast"(%0) {to = 1 : i64, saturate = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "onnx.Transpose"(%1) {perm = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "onnx.Reshape"(%2, %shape) {allowzero = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %4 = "onnx.Concat"(%3) {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5:2 = "onnx.Dropout"(%4) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>)
  return %5#0 : tensor<2x3xf32>
}

// A transpose of a square, training, and a mask that is asked for stay.
// CHECK-LABEL: func @kept
// CHECK:       "onnx.Transpose"
// CHECK:       "onnx.Dropout"
// CHECK:       "onnx.Dropout"
func.func @kept(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xi1>) {
  %ratio = onnx.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %true = onnx.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 1, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = "onnx.Dropout"(%0, %ratio, %true) : (tensor<3x3xf32>, tensor<f32>, tensor<i1>) -> tensor<3x3xf32>
  %2:2 = "onnx.Dropout"(%0) : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xi1>)
  return %1, %2#0, %2#1 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xi1>
}
