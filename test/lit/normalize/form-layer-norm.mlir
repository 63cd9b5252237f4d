// Decomposed layer and RMS normalization become one operator.
// RUN: ogc-opt %s -ogc-form-layer-norm | FileCheck %s

// CHECK-LABEL: func @layer_norm
// CHECK-NEXT:  %[[Y:.*]] = "onnx.LayerNormalization"(%arg0, %arg1, %arg2) {axis = -1 : i64, epsilon = 9.99999974E-6 : f32, stash_type = 1 : i64}
// CHECK-NEXT:  return %[[Y]]
func.func @layer_norm(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %axes = onnx.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %two = onnx.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %eps = onnx.constant {value = dense<9.99999974E-6> : tensor<f32>} : tensor<f32>
  %0 = "onnx.ReduceMean"(%x, %axes) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<2x8xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %1 = "onnx.Sub"(%x, %0) : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %2 = "onnx.Pow"(%1, %two) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %3 = "onnx.ReduceMean"(%2, %axes) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<2x8xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = "onnx.Add"(%3, %eps) : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = "onnx.Sqrt"(%4) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = "onnx.Div"(%1, %5) : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %7 = "onnx.Mul"(%6, %w) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %8 = "onnx.Add"(%b, %7) : (tensor<8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %8 : tensor<2x8xf32>
}

// Without a scale; the square is a product, the root inverted. A bias does not belong to RMS normalization.
// CHECK-LABEL: func @rms_norm
// CHECK:       %[[ONES:.*]] = onnx.constant {value = dense<1.000000e+00> : tensor<8xf32>}
// CHECK:       %[[N:.*]] = "onnx.RMSNormalization"(%arg0, %[[ONES]]) {axis = -1 : i64
// CHECK:       "onnx.Add"(%[[N]], %arg1)
func.func @rms_norm(%x: tensor<2x8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %axes = onnx.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %eps = onnx.constant {value = dense<9.99999974E-6> : tensor<f32>} : tensor<f32>
  %2 = "onnx.Mul"(%x, %x) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = "onnx.ReduceMean"(%2, %axes) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<2x8xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = "onnx.Add"(%3, %eps) : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = "onnx.Sqrt"(%4) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = "onnx.Reciprocal"(%5) : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %7 = "onnx.Mul"(%x, %6) : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %8 = "onnx.Add"(%7, %b) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %8 : tensor<2x8xf32>
}

// The mean is over the first axis: something else.
// CHECK-LABEL: func @other_axis
// CHECK-NOT:   Normalization
func.func @other_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %axes = onnx.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %eps = onnx.constant {value = dense<9.99999974E-6> : tensor<f32>} : tensor<f32>
  %2 = "onnx.Mul"(%x, %x) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = "onnx.ReduceMean"(%2, %axes) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<8x8xf32>, tensor<1xi64>) -> tensor<1x8xf32>
  %4 = "onnx.Add"(%3, %eps) : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %5 = "onnx.Sqrt"(%4) : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %6 = "onnx.Div"(%x, %5) : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}
