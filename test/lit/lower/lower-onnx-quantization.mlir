// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// CHECK-DAG: #[[$AXIS:.*]] = affine_map<(d0, d1, d2) -> (d1)>

// One scale for each channel; half to even, then the zero point, then a saturating cast.
// CHECK-LABEL: func @quantize
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$AXIS]], #[[$AXIS]], #{{.*}}]
// CHECK: arith.divf
// CHECK: math.roundeven
// CHECK: arith.uitofp
// CHECK: arith.fptoui
func.func @quantize(%x: tensor<2x3x4xf32>, %s: tensor<3xf32>, %z: tensor<3xui8>) -> tensor<2x3x4xui8> {
  %0 = "onnx.QuantizeLinear"(%x, %s, %z) {axis = 1 : i64, block_size = 0 : i64, output_dtype = 0 : i64, precision = 0 : i64, saturate = 1 : i64}
      : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xui8>) -> tensor<2x3x4xui8>
  return %0 : tensor<2x3x4xui8>
}

// The difference to the zero point is an exact integer.
// CHECK-LABEL: func @dequantize
// CHECK: arith.extsi
// CHECK: arith.subi {{.*}} : i32
// CHECK: arith.sitofp
// CHECK: arith.mulf
func.func @dequantize(%x: tensor<4xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<4xf32> {
  %0 = "onnx.DequantizeLinear"(%x, %s, %z) {axis = 1 : i64} : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
