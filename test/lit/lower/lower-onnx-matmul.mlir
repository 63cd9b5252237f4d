// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// A constant weight is packed into panels by structured operations; the leading dimensions are rows; the f32 result is rounded in the shape of the anchor.
// CHECK-LABEL: func @weight
// CHECK: %[[ROWS:.*]] = tensor.expand_shape {{.*}} into tensor<1x10x8xf16>
// CHECK: %[[P:.*]] = tensor.pad %{{.*}} low[0, 0] high[0, 28]
// CHECK: %[[E:.*]] = tensor.expand_shape %[[P]] {{.*}} into tensor<8x2x64xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[E]] : tensor<8x2x64xf16>) {{.*}} permutation = [1, 0, 2]
// CHECK: %[[ACC:.*]] = kern.matmul %[[ROWS]], %[[T]] {packed} : (tensor<1x10x8xf16>, tensor<2x8x64xf16>) -> tensor<1x10x100xf32>
// CHECK: linalg.generic {{.*}} ins(%[[ACC]] : tensor<1x10x100xf32>) outs(%{{.*}} : tensor<1x10x100xf16>)
func.func @weight(%x: tensor<2x5x8xf16>) -> tensor<2x5x100xf16> {
  %w = onnx.constant {value = dense<1.0> : tensor<8x100xf16>} : tensor<8x100xf16>
  %c = "onnx.Identity"(%w) : (tensor<8x100xf16>) -> tensor<8x100xf16>
  %n = onnx.constant {value = dense<2> : tensor<8x100xi32>} : tensor<8x100xi32>
  %f = "onnx.Cast"(%n) {to = 10 : i64} : (tensor<8x100xi32>) -> tensor<8x100xf16>
  %0 = "onnx.MatMul"(%x, %f) : (tensor<2x5x8xf16>, tensor<8x100xf16>) -> tensor<2x5x100xf16>
  return %0 : tensor<2x5x100xf16>
}

// A transpose in front of a computed operand becomes transpose_rhs, heads are the batch.
// CHECK-LABEL: func @scores
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
// CHECK: kern.matmul {{.*}} {transpose_rhs} : (tensor<6x5x8xf32>, tensor<6x7x8xf32>) -> tensor<6x5x7xf32>
func.func @scores(%q: tensor<2x3x5x8xf32>, %k: tensor<2x7x3x8xf32>) -> tensor<2x3x5x7xf32> {
  %t = "onnx.Transpose"(%k) {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x7x3x8xf32>) -> tensor<2x3x8x7xf32>
  %0 = "onnx.MatMul"(%q, %t) : (tensor<2x3x5x8xf32>, tensor<2x3x8x7xf32>) -> tensor<2x3x5x7xf32>
  return %0 : tensor<2x3x5x7xf32>
}

// Gemm: transB goes into the packing, alpha, beta and the bias into one epilogue.
// CHECK-LABEL: func @gemm
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK: %[[ACC:.*]] = kern.matmul {{.*}} {packed} : (tensor<1x5x8xf32>, tensor<1x8x32xf32>) -> tensor<1x5x20xf32>
// CHECK: linalg.generic {{.*}} ins(%[[ACC]], %arg1 : tensor<1x5x20xf32>, tensor<20xf32>)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: tensor.collapse_shape {{.*}} into tensor<5x20xf32>
func.func @gemm(%x: tensor<5x8xf32>, %b: tensor<20xf32>) -> tensor<5x20xf32> {
  %n = onnx.constant {value = dense<2> : tensor<20x8xi32>} : tensor<20x8xi32>
  %w = "onnx.Cast"(%n) {to = 1 : i64} : (tensor<20x8xi32>) -> tensor<20x8xf32>
  %0 = "onnx.Gemm"(%x, %w, %b) {alpha = 0.5 : f32, beta = 1.0 : f32, transA = 0 : i64, transB = 1 : i64}
      : (tensor<5x8xf32>, tensor<20x8xf32>, tensor<20xf32>) -> tensor<5x20xf32>
  return %0 : tensor<5x20xf32>
}

// Integers have no anchor: a reduction in their own type.
// CHECK-LABEL: func @integers
// CHECK-NOT: kern.matmul
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.muli {{.*}} : i64
func.func @integers(%x: tensor<2x3xi64>, %y: tensor<3x4xi64>) -> tensor<2x4xi64> {
  %0 = "onnx.MatMul"(%x, %y) : (tensor<2x3xi64>, tensor<3x4xi64>) -> tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}

// A product without terms is zero.
// CHECK-LABEL: func @no_terms
// CHECK-NOT: kern.matmul
// CHECK: linalg.fill
func.func @no_terms(%x: tensor<2x0xf32>, %y: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %0 = "onnx.MatMul"(%x, %y) : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
