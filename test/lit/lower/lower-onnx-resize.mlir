// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// The input positions of each output position are constants; nearest is one gather over all axes.
// CHECK-LABEL: func @nearest
// CHECK: arith.constant dense<{{\[}}[0], [0], [1], [1]]> : tensor<4x1xi64>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x4x2xf16>)
// CHECK: tensor.extract %arg0
func.func @nearest(%x: tensor<1x1x2x2xf16>) -> tensor<1x1x4x2xf16> {
  %no = onnx.absent
  %s = onnx.constant {value = dense<[1.0, 1.0, 2.0, 1.0]> : tensor<4xf32>} : tensor<4xf32>
  %0 = "onnx.Resize"(%x, %no, %s) {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
      : (tensor<1x1x2x2xf16>, none, tensor<4xf32>) -> tensor<1x1x4x2xf16>
  return %0 : tensor<1x1x4x2xf16>
}

// Linear: a weighted sum over two taps for each axis, in f32.
// CHECK-LABEL: func @linear
// CHECK-DAG: arith.constant dense<{{.*}}> : tensor<4x2xi64>
// CHECK-DAG: arith.constant dense<{{.*}}> : tensor<4x2xf32>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
func.func @linear(%x: tensor<1x1x1x2xf16>) -> tensor<1x1x1x4xf16> {
  %no = onnx.absent
  %s = onnx.constant {value = dense<[1, 1, 1, 4]> : tensor<4xi64>} : tensor<4xi64>
  %0 = "onnx.Resize"(%x, %no, %no, %s) {mode = "linear", coordinate_transformation_mode = "half_pixel"}
      : (tensor<1x1x1x2xf16>, none, none, tensor<4xi64>) -> tensor<1x1x1x4xf16>
  return %0 : tensor<1x1x1x4xf16>
}
