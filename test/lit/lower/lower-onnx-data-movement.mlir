// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// CHECK-DAG: #[[$BACKWARDS:.*]] = affine_map<(d0) -> (d0 * -3 + 7)>

// A reshape goes through the finest common grouping: only what changes is collapsed.
// CHECK-LABEL: func @reshape
// CHECK: tensor.collapse_shape %arg0 {{\[}}[0], [1, 2], [3]] : tensor<2x3x4x5xf32> into tensor<2x12x5xf32>
// CHECK: tensor.expand_shape {{.*}} into tensor<2x6x2x5xf32>
func.func @reshape(%x: tensor<2x3x4x5xf32>) -> tensor<2x6x2x5xf32> {
  %s = onnx.constant {value = dense<[2, 6, 2, 5]> : tensor<4xi64>} : tensor<4xi64>
  %0 = "onnx.Reshape"(%x, %s) {allowzero = 0 : i64} : (tensor<2x3x4x5xf32>, tensor<4xi64>) -> tensor<2x6x2x5xf32>
  return %0 : tensor<2x6x2x5xf32>
}

// A positive step is a slice, a negative one an index map.
// CHECK-LABEL: func @slice
// CHECK: tensor.extract_slice %arg0[1] [3] [2]
// CHECK: linalg.generic {indexing_maps = [#[[$BACKWARDS]],
func.func @slice(%x: tensor<8xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %one = onnx.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %six = onnx.constant {value = dense<6> : tensor<1xi64>} : tensor<1xi64>
  %two = onnx.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %last = onnx.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %begin = onnx.constant {value = dense<-9223372036854775808> : tensor<1xi64>} : tensor<1xi64>
  %back = onnx.constant {value = dense<-3> : tensor<1xi64>} : tensor<1xi64>
  %no = onnx.absent
  %0 = "onnx.Slice"(%x, %one, %six, %no, %two) : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, none, tensor<1xi64>) -> tensor<3xf32>
  %1 = "onnx.Slice"(%x, %last, %begin, %no, %back) : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, none, tensor<1xi64>) -> tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: func @split_concat
// CHECK: %[[A:.*]] = tensor.extract_slice %arg0[0, 0] [4, 3] [1, 1]
// CHECK: %[[B:.*]] = tensor.extract_slice %arg0[0, 3] [4, 5] [1, 1]
// CHECK: tensor.concat dim(1) %[[B]], %[[A]]
func.func @split_concat(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %s = onnx.constant {value = dense<[3, 5]> : tensor<2xi64>} : tensor<2xi64>
  %0:2 = "onnx.Split"(%x, %s) {axis = -1 : i64} : (tensor<4x8xf16>, tensor<2xi64>) -> (tensor<4x3xf16>, tensor<4x5xf16>)
  %1 = "onnx.Concat"(%0#1, %0#0) {axis = 1 : i64} : (tensor<4x5xf16>, tensor<4x3xf16>) -> tensor<4x8xf16>
  return %1 : tensor<4x8xf16>
}

// Negative pads crop before positive ones pad.
// CHECK-LABEL: func @pad
// CHECK: %[[C:.*]] = tensor.extract_slice %arg0[0, 0] [2, 2] [1, 1]
// CHECK: tensor.pad %[[C]] low[0, 1] high[0, 0]
func.func @pad(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %p = onnx.constant {value = dense<[1, -1]> : tensor<2xi64>} : tensor<2xi64>
  %v = onnx.constant {value = dense<9.0> : tensor<f32>} : tensor<f32>
  %a = onnx.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = "onnx.Pad"(%x, %p, %v, %a) {mode = "constant"} : (tensor<2x3xf32>, tensor<2xi64>, tensor<f32>, tensor<1xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
