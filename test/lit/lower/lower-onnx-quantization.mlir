// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// CHECK-DAG: #[[$AXIS:.*]] = affine_map<(d0, d1, d2) -> (d1)>

// One scale for each channel; half to even, then the zero point, then a saturating cast.
// CHECK-LABEL: func @quantize
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$AXIS]], #[[$AXIS]], #{{.*}}]
// CHECK: arith.uitofp
// CHECK: arith.divf
// CHECK: math.roundeven
// CHECK: arith.addf
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

// Numbers of 4 bits are bytes: clamped to their range, with the number in the byte.
// CHECK-LABEL: func @quantize4(
// CHECK-SAME: -> (tensor<4xi8> {onnx.type = tensor<4xi4>})
// CHECK: arith.constant -8 : i32
// CHECK: arith.maxsi
// CHECK: arith.constant 7 : i32
// CHECK: arith.minsi
// CHECK: arith.trunci {{.*}} : i32 to i8
func.func @quantize4(%x: tensor<4xf32>, %s: tensor<f32>, %z: tensor<i4>) -> tensor<4xi4> {
  %0 = "onnx.QuantizeLinear"(%x, %s, %z) {axis = 0 : i64} : (tensor<4xf32>, tensor<f32>, tensor<i4>) -> tensor<4xi4>
  return %0 : tensor<4xi4>
}

// Small floats are bit patterns: a byte, decoded by one multiplication.
// CHECK-LABEL: func @dequantize8(%arg0: tensor<4xi8> {onnx.type = tensor<4xf8E4M3FN>}
// CHECK: arith.shli
// CHECK: arith.mulf
// CHECK: arith.mulf
func.func @dequantize8(%x: tensor<4xf8E4M3FN>, %s: tensor<f32>) -> tensor<4xf32> {
  %0 = "onnx.DequantizeLinear"(%x, %s) {axis = 0 : i64} : (tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A constant of 4 bits is one byte an element.
// CHECK-LABEL: func @constant4
// CHECK: arith.constant dense<[1, -2, 7]> : tensor<3xi8>
func.func @constant4() -> tensor<3xi4> {
  %c = onnx.constant {value = dense<[1, -2, 7]> : tensor<3xi4>} : tensor<3xi4>
  %0 = "onnx.Identity"(%c) : (tensor<3xi4>) -> tensor<3xi4>
  return %0 : tensor<3xi4>
}

// Products of 8-bit integers: f16 holds the operands, f32 sums of 256 products; longer ones are cut and added in i32.
// CHECK-LABEL: func @product
// CHECK-COUNT-2: kern.matmul {{.*}}xf16>
// CHECK: arith.fptosi
// CHECK: arith.fptosi
// CHECK: arith.addi
func.func @product(%a: tensor<4x300xui8>, %b: tensor<300x8xi8>, %z: tensor<ui8>) -> tensor<4x8xi32> {
  %0 = "onnx.MatMulInteger"(%a, %b, %z) : (tensor<4x300xui8>, tensor<300x8xi8>, tensor<ui8>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

// CHECK-LABEL: func @convolution
// CHECK-COUNT-2: kern.conv
// CHECK: arith.addi
func.func @convolution(%x: tensor<1x32x8x8xui8>, %w: tensor<4x32x3x3xi8>) -> tensor<1x4x6x6xi32> {
  %0 = "onnx.ConvInteger"(%x, %w) {auto_pad = "NOTSET", group = 1 : i64} : (tensor<1x32x8x8xui8>, tensor<4x32x3x3xi8>) -> tensor<1x4x6x6xi32>
  return %0 : tensor<1x4x6x6xi32>
}
