// RUN: ogc-opt %s -ogc-fold-constants | FileCheck %s

// A reshape of a constant is a constant of the other type, dense or mapped, and what reads it is folded.

// CHECK-LABEL: func.func @main
// CHECK-DAG: dense_resource<{{.*}}> : tensor<2x2xf32>
// CHECK-DAG: dense<{{\[\[}}1.000000e+00], [2.000000e+00]{{.*}}> : tensor<4x1xf32>
// CHECK-NOT: tensor.collapse_shape
// CHECK-NOT: tensor.expand_shape
// CHECK-NOT: kern.region
#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
func.func @main() -> (tensor<2x2xf32>, tensor<4x1xf32>, tensor<2x2xf32>) {
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = tensor.expand_shape %w [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %1 = tensor.expand_shape %d [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %2 = kern.region(%0) attributes {schedule = #kern.schedule<pointwise>} : (tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%a: tensor<2x2xf32>):
    %init = tensor.empty() : tensor<2x2xf32>
    %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<2x2xf32>) outs(%init : tensor<2x2xf32>) {
    ^bb0(%e: f32, %o: f32):
      linalg.yield %e : f32
    } -> tensor<2x2xf32>
    kern.yield %t : tensor<2x2xf32>
  }
  return %0, %1, %2 : tensor<2x2xf32>, tensor<4x1xf32>, tensor<2x2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      w: "0x040000000000803F000000400000404000008040"
    }
  }
#-}
