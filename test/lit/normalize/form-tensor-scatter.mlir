// A row written into a cache becomes one operator, whichever way the exporter writes it.
// RUN: ogc-opt %s -ogc-form-tensor-scatter | FileCheck %s

// Rows were transposed to the front for it, and are not any more.
// CHECK-LABEL: func @scatter_nd
// CHECK:       %[[P:.*]] = "onnx.Reshape"(%arg2,
// CHECK:       %[[R:.*]] = "onnx.TensorScatter"(%arg0, %arg1, %[[P]]) {axis = 2 : i64, mode = "linear"}
// CHECK:       %[[T:.*]] = "onnx.Transpose"(%[[R]]) {perm = array<i64: 0, 1, 3, 2>}
// CHECK:       return %[[R]], %[[T]]
func.func @scatter_nd(%cache: tensor<1x8x512x64xf32>, %row: tensor<1x8x1x64xf32>, %at: tensor<1x1xi64>) -> (tensor<1x8x512x64xf32>, tensor<1x8x64x512xf32>) {
  %0 = "onnx.Transpose"(%cache) {perm = array<i64: 2, 0, 1, 3>} : (tensor<1x8x512x64xf32>) -> tensor<512x1x8x64xf32>
  %1 = "onnx.Transpose"(%row) {perm = array<i64: 2, 0, 1, 3>} : (tensor<1x8x1x64xf32>) -> tensor<1x1x8x64xf32>
  %2 = "onnx.ScatterND"(%0, %at, %1) {reduction = "none"} : (tensor<512x1x8x64xf32>, tensor<1x1xi64>, tensor<1x1x8x64xf32>) -> tensor<512x1x8x64xf32>
  %3 = "onnx.Transpose"(%2) {perm = array<i64: 1, 2, 0, 3>} : (tensor<512x1x8x64xf32>) -> tensor<1x8x512x64xf32>
  %4 = "onnx.Transpose"(%2) {perm = array<i64: 1, 2, 3, 0>} : (tensor<512x1x8x64xf32>) -> tensor<1x8x64x512xf32>
  return %3, %4 : tensor<1x8x512x64xf32>, tensor<1x8x64x512xf32>
}

// The position is repeated for every element, in 32 bits; batches share it.
// CHECK-LABEL: func @scatter_elements
// CHECK:       %[[C:.*]] = "onnx.Cast"(%{{.*}}) {{.*}} -> tensor<1xi64>
// CHECK:       %[[P:.*]] = "onnx.Expand"(%[[C]], %{{.*}}) : {{.*}} -> tensor<2xi64>
// CHECK:       "onnx.TensorScatter"(%arg0, %arg1, %[[P]]) {axis = 2 : i64, mode = "linear"}
func.func @scatter_elements(%cache: tensor<2x8x512x64xf32>, %row: tensor<2x8x1x64xf32>, %at: tensor<1xi32>) -> tensor<2x8x512x64xf32> {
  %shape = onnx.constant {value = dense<[2, 8, 1, 64]> : tensor<4xi64>} : tensor<4xi64>
  %0 = "onnx.Expand"(%at, %shape) : (tensor<1xi32>, tensor<4xi64>) -> tensor<2x8x1x64xi32>
  %1 = "onnx.ScatterElements"(%cache, %0, %row) {axis = -2 : i64, reduction = "none"} : (tensor<2x8x512x64xf32>, tensor<2x8x1x64xi32>, tensor<2x8x1x64xf32>) -> tensor<2x8x512x64xf32>
  return %1 : tensor<2x8x512x64xf32>
}

// Several rows may be anywhere, rows that are added are none that replace, and batches are no rows.
// CHECK-LABEL: func @others
// CHECK-NOT:   TensorScatter
func.func @others(%cache: tensor<4x8x64xf32>, %two: tensor<2x4x64xf32>, %row: tensor<1x4x64xf32>, %at2: tensor<2x1xi64>, %at: tensor<1x1xi64>) -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<4x8x64xf32>) {
  %0 = "onnx.Transpose"(%cache) {perm = array<i64: 1, 0, 2>} : (tensor<4x8x64xf32>) -> tensor<8x4x64xf32>
  %1 = "onnx.ScatterND"(%0, %at2, %two) {reduction = "none"} : (tensor<8x4x64xf32>, tensor<2x1xi64>, tensor<2x4x64xf32>) -> tensor<8x4x64xf32>
  %2 = "onnx.ScatterND"(%0, %at, %row) {reduction = "add"} : (tensor<8x4x64xf32>, tensor<1x1xi64>, tensor<1x4x64xf32>) -> tensor<8x4x64xf32>
  %3 = "onnx.Transpose"(%row) {perm = array<i64: 0, 1, 2>} : (tensor<1x4x64xf32>) -> tensor<1x4x64xf32>
  %4 = "onnx.Transpose"(%2) {perm = array<i64: 1, 0, 2>} : (tensor<8x4x64xf32>) -> tensor<4x8x64xf32>
  return %1, %2, %4 : tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<4x8x64xf32>
}
