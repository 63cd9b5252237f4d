// Transposes that must stay stay once; constants are transposed as constants.
// RUN: ogc-opt %s -split-input-file -ogc-propagate-layout | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// The element-wise operation takes the transposition into its maps, as nothing else reads it in the other layout.
// CHECK: #[[$T:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func @fold_into_producer
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#[[$T]], #{{.*}}]
// CHECK-SAME: ins(%arg0 : tensor<4x8xf32>) outs(%{{.*}} : tensor<8x4xf32>)
func.func @fold_into_producer(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func @returned
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0
// CHECK: return %[[T]]
func.func @returned(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %0 : tensor<8x4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// A chain whose every step is returned would need more transposes than it has: it stays as it is.
// CHECK-LABEL: func @never_more
// CHECK-COUNT-1: linalg.transpose
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @never_more(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %1, %2, %3 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// A constant of full size is transposed itself, so that it is read along with the other operand.
// CHECK-LABEL: func @constant
// CHECK: %[[C:.*]] = arith.constant
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[C]]
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[T]] : tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: kern.attention
func.func @constant(%x: tensor<2x3xf32>) -> tensor<1x2x1x3xf32> {
  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %e = tensor.empty() : tensor<3x2xf32>
  %0 = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %c : tensor<3x2xf32>, tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<3x2xf32>
  %f = tensor.empty() : tensor<2x3xf32>
  %2 = linalg.transpose ins(%1 : tensor<3x2xf32>) outs(%f : tensor<2x3xf32>) permutation = [1, 0]
  %3 = tensor.expand_shape %2 [[0, 1], [2, 3]] output_shape [1, 2, 1, 3] : tensor<2x3xf32> into tensor<1x2x1x3xf32>
  %4 = kern.attention %3, %3, %3 {scale = 1.0 : f32} : (tensor<1x2x1x3xf32>, tensor<1x2x1x3xf32>, tensor<1x2x1x3xf32>) -> tensor<1x2x1x3xf32>
  return %4 : tensor<1x2x1x3xf32>
}

// -----

// Dimensions of extent one move by a reshape.
// CHECK-LABEL: func @unit
// CHECK-NOT: linalg.transpose
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0
// CHECK: tensor.expand_shape %[[C]] {{.*}} : tensor<1x16xf32> into tensor<1x16x1x1xf32>
func.func @unit(%x: tensor<1x1x1x16xf32>) -> tensor<1x16x1x1xf32> {
  %e = tensor.empty() : tensor<1x16x1x1xf32>
  %0 = linalg.transpose ins(%x : tensor<1x1x1x16xf32>) outs(%e : tensor<1x16x1x1xf32>) permutation = [0, 3, 1, 2]
  return %0 : tensor<1x16x1x1xf32>
}
