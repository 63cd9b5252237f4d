// An operation does not join a region that it depends on through another one; a remark says so.
// RUN: ogc-opt %s -ogc-fuse-regions=remarks=1 -verify-diagnostics | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#outer = affine_map<(d0, d1, d2) -> (d0, d1)>
#stat = affine_map<(d0, d1, d2) -> (d0, d1)>

// x * sum(x): the sum needs all of x first.
// CHECK-LABEL: func @product_with_own_sum
// CHECK: %[[X:.*]] = kern.region(%arg0, %arg1)
// CHECK:   kern.matmul
// CHECK-NOT: linalg.generic
// CHECK:   kern.yield
// CHECK: kern.region(%[[X]])
// CHECK:   linalg.generic {{.*}}"reduction"
// CHECK:   linalg.generic {{.*}}["parallel", "parallel", "parallel"]
func.func @product_with_own_sum(%x: tensor<1x4x8xf32>, %w: tensor<1x8x32xf32>) -> tensor<1x4x32xf32> {
  %0 = kern.matmul %x, %w : (tensor<1x4x8xf32>, tensor<1x8x32xf32>) -> tensor<1x4x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
  // expected-remark @+1 {{not fused: into kern.matmul: not element-wise}}
  %1 = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0 : tensor<1x4x32xf32>) outs(%f : tensor<1x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x4xf32>
  %g = tensor.empty() : tensor<1x4x32xf32>
  // expected-remark @+1 {{not fused: into kern.matmul: another operand depends on it on a way outside}}
  %2 = linalg.generic {indexing_maps = [#id, #stat, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %1 : tensor<1x4x32xf32>, tensor<1x4xf32>) outs(%g : tensor<1x4x32xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.mulf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x4x32xf32>
  return %2 : tensor<1x4x32xf32>
}
