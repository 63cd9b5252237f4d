// RUN: ogc-opt %s "-ogc-lower-onnx=pack-weights=false" | FileCheck %s

// Constant right operands stay matrices: a library takes no panels.
// CHECK-LABEL: func @weight
// CHECK-NOT: tensor.pad
// CHECK: %[[W:.*]] = arith.constant dense<1.000000e+00> : tensor<1x8x100xf16>
// CHECK: kern.matmul %{{.*}}, %[[W]] : (tensor<1x10x8xf16>, tensor<1x8x100xf16>) -> tensor<1x10x100xf32>
func.func @weight(%x: tensor<2x5x8xf16>) -> tensor<2x5x100xf16> {
  %w = onnx.constant {value = dense<1.0> : tensor<8x100xf16>} : tensor<8x100xf16>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<2x5x8xf16>, tensor<8x100xf16>) -> tensor<2x5x100xf16>
  return %0 : tensor<2x5x100xf16>
}

// Gemm: transB is the product's.
// CHECK-LABEL: func @gemm
// CHECK-NOT: linalg.transpose
// CHECK: kern.matmul {{.*}} {transpose_rhs} : (tensor<1x5x8xf32>, tensor<1x20x8xf32>) -> tensor<1x5x20xf32>
func.func @gemm(%x: tensor<5x8xf32>, %b: tensor<20xf32>) -> tensor<5x20xf32> {
  %w = onnx.constant {value = dense<2.0> : tensor<20x8xf32>} : tensor<20x8xf32>
  %0 = "onnx.Gemm"(%x, %w, %b) {alpha = 1.0 : f32, beta = 1.0 : f32, transA = 0 : i64, transB = 1 : i64}
      : (tensor<5x8xf32>, tensor<20x8xf32>, tensor<20xf32>) -> tensor<5x20xf32>
  return %0 : tensor<5x20xf32>
}

// The filters of a convolution have no other form than panels.
// CHECK-LABEL: func @conv
// CHECK: kern.conv {{.*}}tensor<1x3x16xf32>
func.func @conv(%x: tensor<1x3x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %w = onnx.constant {value = dense<1.0> : tensor<8x3x1x1xf32>} : tensor<8x3x1x1xf32>
  %0 = "onnx.Conv"(%x, %w) {auto_pad = "NOTSET", group = 1 : i64} : (tensor<1x3x4x4xf32>, tensor<8x3x1x1xf32>) -> tensor<1x8x4x4xf32>
  return %0 : tensor<1x8x4x4xf32>
}
