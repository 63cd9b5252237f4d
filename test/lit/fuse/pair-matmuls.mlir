// Two products of one value that meet in an element-wise operation become one with interleaved columns, and one region with what follows.
// RUN: ogc-opt %s -split-input-file -ogc-pair-matmuls | FileCheck %s
// RUN: ogc-opt %s -split-input-file -ogc-pair-matmuls -ogc-fuse-regions -ogc-select-schedule | FileCheck %s --check-prefix=REGION

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// The last panel of both products has four columns; together they are forty, which need three panels of the four.
// CHECK-LABEL: func @gated
// CHECK-DAG: %[[V:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] output_shape [2, 8, 16, 1]
// CHECK-DAG: %[[C:.*]] = tensor.concat dim(3) {{.*}} -> tensor<2x8x16x2xf32>
// CHECK: %[[W:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [3, 8, 16] [1, 1, 1] : tensor<4x8x16xf32> to tensor<3x8x16xf32>
// CHECK: %[[M:.*]] = kern.matmul %arg0, %[[W]] {packed} : (tensor<1x4x8xf32>, tensor<3x8x16xf32>) -> tensor<1x4x40xf32>
// CHECK-NOT: kern.matmul
// CHECK-DAG: %[[A:.*]] = tensor.extract_slice %[[M]][0, 0, 0] [1, 4, 20] [1, 1, 2]
// CHECK-DAG: %[[B:.*]] = tensor.extract_slice %[[M]][0, 0, 1] [1, 4, 20] [1, 1, 2]
// CHECK: linalg.generic {{.*}} ins(%[[A]] :
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[B]] :

// REGION-LABEL: func @gated
// REGION: kern.region({{.*}}schedule = #kern.schedule<matmul>
// REGION: kern.matmul {{.*}} -> tensor<1x4x40xf32>
// REGION: math.exp
// REGION: arith.mulf
// REGION: kern.yield %{{.*}} : tensor<1x4x20xf32>
// REGION-NOT: kern.region
// REGION: return
func.func @gated(%x: tensor<1x4x8xf32>) -> tensor<1x4x20xf32> {
  %w = arith.constant dense<1.0> : tensor<2x8x16xf32>
  %v = arith.constant dense<3.0> : tensor<2x8x16xf32>
  %e = tensor.empty() : tensor<1x4x20xf32>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x4x8xf32>, tensor<2x8x16xf32>) -> tensor<1x4x20xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<1x4x20xf32>) outs(%e : tensor<1x4x20xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    linalg.yield %s : f32
  } -> tensor<1x4x20xf32>
  %2 = kern.matmul %x, %v {packed} : (tensor<1x4x8xf32>, tensor<2x8x16xf32>) -> tensor<1x4x20xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %2 : tensor<1x4x20xf32>, tensor<1x4x20xf32>) outs(%e : tensor<1x4x20xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.mulf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x4x20xf32>
  return %3 : tensor<1x4x20xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#turned = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

// One is read transposed: the products do not meet element by element.
// CHECK-LABEL: func @apart
// CHECK-COUNT-2: kern.matmul %arg0, {{.*}} -> tensor<1x16x16xf32>
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @apart(%x: tensor<1x16x8xf32>) -> tensor<1x16x16xf32> {
  %w = arith.constant dense<1.0> : tensor<1x8x16xf32>
  %v = arith.constant dense<3.0> : tensor<1x8x16xf32>
  %e = tensor.empty() : tensor<1x16x16xf32>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x16x8xf32>, tensor<1x8x16xf32>) -> tensor<1x16x16xf32>
  %1 = kern.matmul %x, %v {packed} : (tensor<1x16x8xf32>, tensor<1x8x16xf32>) -> tensor<1x16x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %1 : tensor<1x16x16xf32>, tensor<1x16x16xf32>) outs(%e : tensor<1x16x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.mulf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x16x16xf32>
  return %2 : tensor<1x16x16xf32>
}
