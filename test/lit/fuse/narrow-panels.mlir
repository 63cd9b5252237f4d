// Weights that only one or two rows meet, in any function, get panels of 16 columns.
// RUN: ogc-opt %s -ogc-narrow-panels | FileCheck %s

// The last panel of 64 has 6 columns: of its four panels one is needed.
// CHECK-LABEL: func @one_row
// CHECK: %[[E:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] output_shape [2, 8, 4, 16]
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[E]] : tensor<2x8x4x16xf32>) outs(%{{.*}}) permutation = [0, 2, 1, 3]
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0, 1], [2], [3]] : tensor<2x4x8x16xf32> into tensor<8x8x16xf32>
// CHECK: %[[W:.*]] = tensor.extract_slice %[[C]][0, 0, 0] [5, 8, 16] [1, 1, 1]
// CHECK: kern.matmul %arg0, %[[W]] {packed} : (tensor<1x1x8xf32>, tensor<5x8x16xf32>) -> tensor<1x1x70xf32>
// CHECK: kern.matmul %arg0, %{{.*}} {packed} : (tensor<1x1x8xf32>, tensor<2x8x64xf32>) -> tensor<1x1x128xf32>
func.func @one_row(%x: tensor<1x1x8xf32>) -> (tensor<1x1x70xf32>, tensor<1x1x128xf32>) {
  %w = arith.constant dense<1.0> : tensor<2x8x64xf32>
  %v = arith.constant dense<2.0> : tensor<2x8x64xf32>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x1x8xf32>, tensor<2x8x64xf32>) -> tensor<1x1x70xf32>
  %1 = kern.matmul %x, %v {packed} : (tensor<1x1x8xf32>, tensor<2x8x64xf32>) -> tensor<1x1x128xf32>
  return %0, %1 : tensor<1x1x70xf32>, tensor<1x1x128xf32>
}

// The same weight as one of the above: both keep its panels.
// CHECK-LABEL: func @three_rows
// CHECK: kern.matmul %arg0, %{{.*}} {packed} : (tensor<1x3x8xf32>, tensor<2x8x64xf32>) -> tensor<1x3x128xf32>
func.func @three_rows(%x: tensor<1x3x8xf32>) -> tensor<1x3x128xf32> {
  %v = arith.constant dense<2.0> : tensor<2x8x64xf32>
  %0 = kern.matmul %x, %v {packed} : (tensor<1x3x8xf32>, tensor<2x8x64xf32>) -> tensor<1x3x128xf32>
  return %0 : tensor<1x3x128xf32>
}
