// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// 16-bit floats accumulate in f32; the mean's factor and the rounding come after; kept dimensions are a reshape.
// CHECK-LABEL: func @mean
// CHECK: linalg.fill {{.*}} -> tensor<2x8xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]{{.*}} outs(%{{.*}} : tensor<2x8xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x8xf16>)
// CHECK: arith.mulf
// CHECK: tensor.expand_shape {{.*}} into tensor<2x1x8xf16>
func.func @mean(%x: tensor<2x5x8xf16>) -> tensor<2x1x8xf16> {
  %axes = onnx.constant {value = dense<-2> : tensor<1xi64>} : tensor<1xi64>
  %0 = "onnx.ReduceMean"(%x, %axes) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<2x5x8xf16>, tensor<1xi64>) -> tensor<2x1x8xf16>
  return %0 : tensor<2x1x8xf16>
}

// Without axes and with noop_with_empty_axes only the steps for each element remain.
// CHECK-LABEL: func @noop
// CHECK-NOT: "reduction"
// CHECK: arith.mulf %[[X:.*]], %[[X]]
func.func @noop(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "onnx.ReduceSumSquare"(%x) {keepdims = 1 : i64, noop_with_empty_axes = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// The extreme value, then the first index that holds it.
// CHECK-LABEL: func @arg_max
// CHECK: arith.maximumf
// CHECK: linalg.index 1
// CHECK: arith.minsi
func.func @arg_max(%x: tensor<3x4xf32>) -> tensor<3xi64> {
  %0 = "onnx.ArgMax"(%x) {axis = 1 : i64, keepdims = 0 : i64, select_last_index = 0 : i64} : (tensor<3x4xf32>) -> tensor<3xi64>
  return %0 : tensor<3xi64>
}

// A reduction over no elements is its start value; no loop without an iteration is left.
// CHECK-LABEL: func @nothing
// CHECK-NOT: linalg.generic
// CHECK: %[[START:.*]] = linalg.fill {{.*}} -> tensor<2xf32>
// CHECK-NOT: linalg.generic
// CHECK: return %[[START]]
func.func @nothing(%x: tensor<2x0xf32>) -> tensor<2xf32> {
  %axes = onnx.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %0 = "onnx.ReduceSum"(%x, %axes) {keepdims = 0 : i64, noop_with_empty_axes = 0 : i64} : (tensor<2x0xf32>, tensor<1xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
