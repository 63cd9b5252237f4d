// Batch normalization goes into the convolution before it, as arithmetic on constants.
// RUN: ogc-opt %s -ogc-fold-batch-norm | FileCheck %s

// CHECK-LABEL: func @folded
// CHECK-DAG:   %[[W:.*]] = onnx.constant {value = dense<1.000000e+00> : tensor<4x3x1x1xf32>}
// CHECK-DAG:   %[[SCALE:.*]] = onnx.constant {value = dense<2.000000e+00>
// CHECK-DAG:   %[[SHIFT:.*]] = onnx.constant {value = dense<3.000000e+00>
// CHECK-DAG:   %[[MEAN:.*]] = onnx.constant {value = dense<4.000000e+00>
// CHECK-DAG:   %[[VAR:.*]] = onnx.constant {value = dense<5.000000e+00>
// CHECK-DAG:   %[[EPS:.*]] = onnx.constant {value = dense<9.99999974E-6> : tensor<f32>}
// CHECK:       %[[SUM:.*]] = "onnx.Add"(%[[VAR]], %[[EPS]])
// CHECK:       %[[ROOT:.*]] = "onnx.Sqrt"(%[[SUM]])
// CHECK:       %[[S:.*]] = "onnx.Div"(%[[SCALE]], %[[ROOT]])
// CHECK:       %[[COLUMN:.*]] = "onnx.Reshape"(%[[S]]
// CHECK:       %[[FILTER:.*]] = "onnx.Mul"(%[[W]], %[[COLUMN]])
// CHECK:       %[[NEG:.*]] = "onnx.Neg"(%[[MEAN]])
// CHECK:       %[[MOVED:.*]] = "onnx.Mul"(%[[NEG]], %[[S]])
// CHECK:       %[[BIAS:.*]] = "onnx.Add"(%[[MOVED]], %[[SHIFT]])
// CHECK:       "onnx.Conv"(%arg0, %[[FILTER]], %[[BIAS]]) {group = 1 : i64}
// CHECK-NOT:   BatchNormalization
func.func @folded(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = onnx.constant {value = dense<1.0> : tensor<4x3x1x1xf32>} : tensor<4x3x1x1xf32>
  %scale = onnx.constant {value = dense<2.0> : tensor<4xf32>} : tensor<4xf32>
  %bias = onnx.constant {value = dense<3.0> : tensor<4xf32>} : tensor<4xf32>
  %mean = onnx.constant {value = dense<4.0> : tensor<4xf32>} : tensor<4xf32>
  %var = onnx.constant {value = dense<5.0> : tensor<4xf32>} : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalization"(%0, %scale, %bias, %mean, %var) {epsilon = 9.99999974E-6 : f32, momentum = 0.9 : f32, training_mode = 0 : i64}
      : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return %1 : tensor<1x4x8x8xf32>
}

// The convolution's own result is needed too.
// CHECK-LABEL: func @second_user
// CHECK:       "onnx.BatchNormalization"
func.func @second_user(%x: tensor<1x3x8x8xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = onnx.constant {value = dense<1.0> : tensor<4x3x1x1xf32>} : tensor<4x3x1x1xf32>
  %p = onnx.constant {value = dense<2.0> : tensor<4xf32>} : tensor<4xf32>
  %0 = "onnx.Conv"(%x, %w) {group = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x8x8xf32>
  %1 = "onnx.BatchNormalization"(%0, %p, %p, %p, %p) {epsilon = 9.99999974E-6 : f32, momentum = 0.9 : f32, training_mode = 0 : i64}
      : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
  return %0, %1 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}
