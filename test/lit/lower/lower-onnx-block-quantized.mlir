// RUN: split-file %s %t
// RUN: ogc-opt %t/product.mlir -ogc-lower-onnx | FileCheck %s
// RUN: not ogc-opt %t/invalid.mlir -ogc-lower-onnx 2>&1 | FileCheck %s --check-prefix=ERROR

// The weights stay bytes: one generic over [m, n, byte] unpacks and multiplies.
// CHECK-LABEL: func @nbits
// CHECK-NOT: tensor<8x64xf32>
// CHECK: linalg.generic {{{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins({{.*}}tensor<8x32xi8>
// CHECK: arith.andi
// CHECK: arith.shrui

// CHECK-LABEL: func @gather
// CHECK: tensor.extract
// CHECK: arith.shrui

//--- product.mlir
func.func @nbits(%x: tensor<2x64xf32>, %w: tensor<8x2x16xui8>, %s: tensor<8x2xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %w, %s) {K = 64 : i64, N = 8 : i64, accuracy_level = 0 : i64, bits = 4 : i64, block_size = 32 : i64}
      : (tensor<2x64xf32>, tensor<8x2x16xui8>, tensor<8x2xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func @gather(%d: tensor<8x16xui8>, %i: tensor<3xi64>, %s: tensor<8x2xf32>) -> tensor<3x32xf32> {
  %0 = "onnx.com.microsoft.GatherBlockQuantized"(%d, %i, %s) {bits = 4 : i64, block_size = 16 : i64, gather_axis = 0 : i64, quantize_axis = 1 : i64}
      : (tensor<8x16xui8>, tensor<3xi64>, tensor<8x2xf32>) -> tensor<3x32xf32>
  return %0 : tensor<3x32xf32>
}

//--- invalid.mlir
// ERROR: com.microsoft.MatMulNBits: bits is 3, expected 2, 4 or 8
func.func @bits(%x: tensor<2x64xf32>, %w: tensor<8x2x12xui8>, %s: tensor<8x2xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %w, %s) {K = 64 : i64, N = 8 : i64, bits = 3 : i64, block_size = 32 : i64}
      : (tensor<2x64xf32>, tensor<8x2x12xui8>, tensor<8x2xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
// ERROR: com.microsoft.MatMulNBits: block_size is 24, expected a power of two of at least 16
func.func @block(%x: tensor<2x64xf32>, %w: tensor<8x3x12xui8>, %s: tensor<8x3xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %w, %s) {K = 64 : i64, N = 8 : i64, bits = 4 : i64, block_size = 24 : i64}
      : (tensor<2x64xf32>, tensor<8x3x12xui8>, tensor<8x3xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
// ERROR: com.microsoft.MatMulNBits: operand B has 128 elements, expected 256
func.func @size(%x: tensor<2x64xf32>, %w: tensor<8x1x16xui8>, %s: tensor<8x2xf32>) -> tensor<2x8xf32> {
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %w, %s) {K = 64 : i64, N = 8 : i64, bits = 4 : i64, block_size = 32 : i64}
      : (tensor<2x64xf32>, tensor<8x1x16xui8>, tensor<8x2xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
