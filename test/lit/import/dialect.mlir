// Operators of the onnx dialect come from the schemas: they parse, print, merge when equal (Add is commutative), and vanish when unused.
// RUN: ogc-opt %s -cse -canonicalize | FileCheck %s

// CHECK-LABEL: func @equal_operators
// CHECK-NEXT:  %[[SUM:.*]] = "onnx.Add"(%arg0, %arg1)
// CHECK-NEXT:  return %[[SUM]], %[[SUM]]
func.func @equal_operators(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "onnx.Add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "onnx.Add"(%b, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %unused = "onnx.Sub"(%b, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Random numbers are drawn once for each operator.
// CHECK-LABEL: func @random_operators
// CHECK-COUNT-2: "onnx.RandomNormal"
func.func @random_operators() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = "onnx.RandomNormal"() {shape = array<i64: 2>} : () -> tensor<2xf32>
  %1 = "onnx.RandomNormal"() {shape = array<i64: 2>} : () -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func @bodies
// CHECK:       %[[NONE:.*]] = onnx.absent
// CHECK:       "onnx.Conv"(%arg0, %arg1, %[[NONE]])
// CHECK:       "onnx.If"(%arg2) ({
// CHECK:         onnx.yield
func.func @bodies(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %c: tensor<i1>) -> tensor<1x4x6x6xf32> {
  %no = onnx.absent
  %0 = "onnx.Conv"(%x, %w, %no) {group = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<1x4x6x6xf32>
  %1 = "onnx.If"(%c) ({
    %t = "onnx.Relu"(%0) : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
    onnx.yield %t : tensor<1x4x6x6xf32>
  }, {
    onnx.yield %0 : tensor<1x4x6x6xf32>
  }) : (tensor<i1>) -> tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}
