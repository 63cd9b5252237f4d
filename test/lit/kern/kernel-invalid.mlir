// What an outlined kernel must look like.
// RUN: ogc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{has its result in place of an input, but schedule matmul computes elements more than once}}
kern.kernel @residual attributes {ogc.in_place = 2 : i64, schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x7x8xf32>, %b: tensor<1x8x5xf32>, %residual: tensor<1x7x5xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x7x8xf32>, tensor<1x8x5xf32>) -> tensor<1x7x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]} ins(%residual : tensor<1x7x5xf32>) outs(%0 : tensor<1x7x5xf32>) {
  ^bb0(%r: f32, %acc: f32):
    %sum = arith.addf %r, %acc : f32
    linalg.yield %sum : f32
  } -> tensor<1x7x5xf32>
  kern.yield %1 : tensor<1x7x5xf32>
}

// -----

// expected-error @+1 {{has 2 anchors, expected at most 1}}
kern.kernel @anchors attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x4xf32>, %b: tensor<1x4x4xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %1 = kern.matmul %0, %b : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  kern.yield %1 : tensor<1x4x4xf32>
}
