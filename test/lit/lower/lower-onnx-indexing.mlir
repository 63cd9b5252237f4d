// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// A gather reads through tensor.extract; an index wraps when negative and is clamped.
// CHECK-LABEL: func @gather
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<2x3xi64>) outs(%{{.*}} : tensor<2x3x8xf32>)
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: tensor.extract %arg0
func.func @gather(%x: tensor<5x8xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x8xf32> {
  %0 = "onnx.Gather"(%x, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// Constant indices in a sequence are a slice.
// CHECK-LABEL: func @gather_constant
// CHECK-NOT: tensor.extract %
// CHECK: tensor.extract_slice %arg0[4, 0] [1, 8] [1, 1]
func.func @gather_constant(%x: tensor<5x8xf32>) -> tensor<8xf32> {
  %i = onnx.constant {value = dense<-1> : tensor<i64>} : tensor<i64>
  %0 = "onnx.Gather"(%x, %i) {axis = 0 : i64} : (tensor<5x8xf32>, tensor<i64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Scatters in pull form: an element goes over the updates; a single update needs no loop.
// CHECK-LABEL: func @scatter_nd
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]{{.*}} outs(%arg0 :
// CHECK: arith.select
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
func.func @scatter_nd(%x: tensor<5x8xf32>, %i: tensor<3x1xi64>, %u: tensor<3x8xf32>, %j: tensor<1x2xi64>, %v: tensor<1xf32>) -> tensor<5x8xf32> {
  %0 = "onnx.ScatterND"(%x, %i, %u) {reduction = "none"} : (tensor<5x8xf32>, tensor<3x1xi64>, tensor<3x8xf32>) -> tensor<5x8xf32>
  %1 = "onnx.ScatterND"(%0, %j, %v) {reduction = "add"} : (tensor<5x8xf32>, tensor<1x2xi64>, tensor<1xf32>) -> tensor<5x8xf32>
  return %1 : tensor<5x8xf32>
}
