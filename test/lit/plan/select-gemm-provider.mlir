// RUN: ogc-opt %s -split-input-file -ogc-select-gemm-provider -verify-diagnostics | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#column = affine_map<(d0, d1, d2) -> (d2)>

// Bias and relu; each node gets a workspace of its own behind the scratch that there is. The kernel's arguments come into the order of the node's.
// CHECK-LABEL: kern.kernel @bias_relu
// CHECK: ^bb0(%[[A:.*]]: tensor<1x4x8xf32>, %[[B:.*]]: tensor<1x8x16xf32>, %[[BIAS:.*]]: tensor<16xf32>):
// CHECK: kern.matmul %[[A]], %[[B]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[BIAS]] :
kern.kernel @bias_relu attributes {schedule = #kern.schedule<matmul>} {
^bb0(%bias: tensor<16xf32>, %a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>):
  %0 = kern.matmul %a, %b {math = #kern.math<tf32>} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %zero = arith.constant 0.0 : f32
  %1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %bias : tensor<1x4x16xf32>, tensor<16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<1x4x16xf32>
  kern.yield %1 : tensor<1x4x16xf32>
}
// CHECK-LABEL: cg.graph @g
// CHECK-SAME: scratch_bytes = 131328
// CHECK: cg.gemm @bias_relu [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 256, 512, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<scratch, 0, 256, write>, #cg.slice<scratch, 256, 65536, write>]
// CHECK-SAME: activation = "relu", batch = 1 : i64, element_type = f32, has_bias, has_workspace, k = 8 : i64, m = 4 : i64, n = 16 : i64, result_type = f32, tf32
// CHECK: cg.gemm @bias_relu {{.*}}#cg.slice<outputs, 0, 256, write>, #cg.slice<scratch, 65792, 65536, write>]
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 256 : i64, scratch_bound_bytes = 256 : i64} {
  %0 = cg.kernel @bias_relu [#cg.slice<weights, 0, 64, read>, #cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 256, 512, read>, #cg.slice<scratch, 0, 256, write>]
  %1 = cg.kernel @bias_relu [#cg.slice<weights, 0, 64, read>, #cg.slice<inputs, 256, 128, read>, #cg.slice<weights, 256, 512, read>, #cg.slice<outputs, 0, 256, write>]
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#last4 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>

// Batches, a transposed right operand, reshapes on the way, f16 rounded in between; bias and residual in two operations.
kern.kernel @residual attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<3x32xf16>, %b: tensor<3x16x8xf16>, %bias: tensor<2x8xf16>, %c: tensor<3x4x16xf16>):
  %l = tensor.expand_shape %a [[0], [1, 2]] output_shape [3, 4, 8] : tensor<3x32xf16> into tensor<3x4x8xf16>
  %0 = kern.matmul %l, %b {transpose_rhs} : (tensor<3x4x8xf16>, tensor<3x16x8xf16>) -> tensor<3x4x16xf32>
  %e = tensor.empty() : tensor<3x4x16xf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<3x4x16xf32>) outs(%e : tensor<3x4x16xf16>) {
  ^bb0(%x: f32, %out: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<3x4x16xf16>
  %2 = tensor.expand_shape %1 [[0], [1], [2, 3]] output_shape [3, 4, 2, 8] : tensor<3x4x16xf16> into tensor<3x4x2x8xf16>
  %e4 = tensor.empty() : tensor<3x4x2x8xf16>
  %3 = linalg.generic {indexing_maps = [#last4, #id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%bias, %2 : tensor<2x8xf16>, tensor<3x4x2x8xf16>) outs(%e4 : tensor<3x4x2x8xf16>) {
  ^bb0(%x: f16, %y: f16, %out: f16):
    %xw = arith.extf %x : f16 to f32
    %yw = arith.extf %y : f16 to f32
    %s = arith.addf %xw, %yw : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<3x4x2x8xf16>
  %4 = tensor.collapse_shape %3 [[0], [1], [2, 3]] : tensor<3x4x2x8xf16> into tensor<3x4x16xf16>
  %5 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%4, %c : tensor<3x4x16xf16>, tensor<3x4x16xf16>) outs(%e : tensor<3x4x16xf16>) {
  ^bb0(%x: f16, %y: f16, %out: f16):
    %s = arith.addf %x, %y : f16
    linalg.yield %s : f16
  } -> tensor<3x4x16xf16>
  kern.yield %5 : tensor<3x4x16xf16>
}

// Rows of all batches where the right operand has one; gelu in its tanh form.
kern.kernel @gelu attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<3x4x8xf32>, %b: tensor<1x8x16xf32>):
  %0 = kern.matmul %a, %b : (tensor<3x4x8xf32>, tensor<1x8x16xf32>) -> tensor<3x4x16xf32>
  %e = tensor.empty() : tensor<3x4x16xf32>
  %third = arith.constant 4.471500e-02 : f32
  %root = arith.constant 0.797884583 : f32
  %half = arith.constant 5.000000e-01 : f32
  %one = arith.constant 1.000000e+00 : f32
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<3x4x16xf32>) outs(%e : tensor<3x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %3 = arith.mulf %x, %x : f32
    %4 = arith.mulf %3, %x : f32
    %5 = arith.mulf %4, %third : f32
    %6 = arith.addf %x, %5 : f32
    %7 = arith.mulf %6, %root : f32
    %8 = math.tanh %7 : f32
    %9 = arith.mulf %x, %half : f32
    %10 = arith.addf %8, %one : f32
    %11 = arith.mulf %9, %10 : f32
    linalg.yield %11 : f32
  } -> tensor<3x4x16xf32>
  kern.yield %1 : tensor<3x4x16xf32>
}

// A product alone, of bf16 with an f32 result.
kern.kernel @plain attributes {schedule = #kern.schedule<matmul>} {
^bb0(%b: tensor<1x8x16xbf16>, %a: tensor<1x4x8xbf16>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xbf16>, tensor<1x8x16xbf16>) -> tensor<1x4x16xf32>
  kern.yield %0 : tensor<1x4x16xf32>
}

// CHECK-LABEL: cg.graph @g
// CHECK: cg.gemm @residual [#cg.slice<inputs, 0, 192, read>, #cg.slice<weights, 0, 768, read>, #cg.slice<weights, 768, 32, read>, #cg.slice<inputs, 256, 384, read>, #cg.slice<scratch, 0, 384, write>, #cg.slice<scratch, 512, 65536, write>]
// CHECK-SAME: activation = "", batch = 3 : i64, element_type = f16, has_bias, has_residual, has_workspace, k = 8 : i64, m = 4 : i64, n = 16 : i64, result_type = f16, transpose_b
// CHECK: cg.gemm @gelu
// CHECK-SAME: activation = "gelu_tanh", batch = 1 : i64, element_type = f32, has_workspace, k = 8 : i64, m = 12 : i64, n = 16 : i64
// CHECK: cg.gemm @plain [#cg.slice<inputs, 0, 64, read>, #cg.slice<weights, 0, 256, read>, #cg.slice<outputs, 0, 256, write>, #cg.slice<scratch, {{.*}}, 65536, write>]
// CHECK-SAME: element_type = bf16, {{.*}}result_type = f32
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 384 : i64, scratch_bound_bytes = 384 : i64} {
  %0 = cg.kernel @residual [#cg.slice<inputs, 0, 192, read>, #cg.slice<weights, 0, 768, read>, #cg.slice<weights, 768, 32, read>, #cg.slice<inputs, 256, 384, read>, #cg.slice<scratch, 0, 384, write>]
  %1 = cg.kernel @gelu [#cg.slice<inputs, 0, 384, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<outputs, 0, 768, write>]
  %2 = cg.kernel @plain [#cg.slice<weights, 0, 256, read>, #cg.slice<inputs, 0, 64, read>, #cg.slice<outputs, 0, 256, write>]
}
