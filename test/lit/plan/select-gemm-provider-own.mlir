// RUN: ogc-opt %s -split-input-file -ogc-select-gemm-provider -verify-diagnostics | FileCheck %s

// Products that stay kernels of ours.

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#column = affine_map<(d0, d1, d2) -> (d2)>
#row = affine_map<(d0, d1, d2) -> (d1)>

// CHECK-NOT: cg.gemm
// CHECK: cg.kernel @two_results
// CHECK-NOT: cg.gemm

// A weight in panels.
kern.kernel @packed attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>):
  %0 = kern.matmul %a, %b {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  kern.yield %0 : tensor<1x4x16xf32>
}
// A view that is no reshape.
kern.kernel @view attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x16xf32>, %b: tensor<1x8x16xf32>):
  %v = tensor.extract_slice %a[0, 0, 8] [1, 4, 8] [1, 1, 1] : tensor<1x4x16xf32> to tensor<1x4x8xf32>
  %0 = kern.matmul %v, %b : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  kern.yield %0 : tensor<1x4x16xf32>
}
// A bias along the rows.
kern.kernel @row_bias attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x16x8xf32>, %b: tensor<1x8x16xf32>, %c: tensor<16xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x16x8xf32>, tensor<1x8x16xf32>) -> tensor<1x16x16xf32>
  %e = tensor.empty() : tensor<1x16x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %c : tensor<1x16x16xf32>, tensor<16xf32>) outs(%e : tensor<1x16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x16x16xf32>
  kern.yield %1 : tensor<1x16x16xf32>
}
// An activation and a residual.
kern.kernel @residual_relu attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>, %c: tensor<1x4x16xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %zero = arith.constant 0.0 : f32
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %c : tensor<1x4x16xf32>, tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<1x4x16xf32>
  kern.yield %1 : tensor<1x4x16xf32>
}
// relu in front of the bias.
kern.kernel @relu_bias attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>, %c: tensor<16xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %zero = arith.constant 0.0 : f32
  %1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %c : tensor<1x4x16xf32>, tensor<16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %r = arith.maximumf %x, %zero : f32
    %s = arith.addf %r, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  kern.yield %1 : tensor<1x4x16xf32>
}
// The product many times (a sum of 2^41 addends), a scale, and a bias of another type than the result.
kern.kernel @twice attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s0 = arith.addf %x, %x : f32
    %s1 = arith.addf %s0, %s0 : f32
    %s2 = arith.addf %s1, %s1 : f32
    %s3 = arith.addf %s2, %s2 : f32
    %s4 = arith.addf %s3, %s3 : f32
    %s5 = arith.addf %s4, %s4 : f32
    %s6 = arith.addf %s5, %s5 : f32
    %s7 = arith.addf %s6, %s6 : f32
    %s8 = arith.addf %s7, %s7 : f32
    %s9 = arith.addf %s8, %s8 : f32
    %s10 = arith.addf %s9, %s9 : f32
    %s11 = arith.addf %s10, %s10 : f32
    %s12 = arith.addf %s11, %s11 : f32
    %s13 = arith.addf %s12, %s12 : f32
    %s14 = arith.addf %s13, %s13 : f32
    %s15 = arith.addf %s14, %s14 : f32
    %s16 = arith.addf %s15, %s15 : f32
    %s17 = arith.addf %s16, %s16 : f32
    %s18 = arith.addf %s17, %s17 : f32
    %s19 = arith.addf %s18, %s18 : f32
    %s20 = arith.addf %s19, %s19 : f32
    %s21 = arith.addf %s20, %s20 : f32
    %s22 = arith.addf %s21, %s21 : f32
    %s23 = arith.addf %s22, %s22 : f32
    %s24 = arith.addf %s23, %s23 : f32
    %s25 = arith.addf %s24, %s24 : f32
    %s26 = arith.addf %s25, %s25 : f32
    %s27 = arith.addf %s26, %s26 : f32
    %s28 = arith.addf %s27, %s27 : f32
    %s29 = arith.addf %s28, %s28 : f32
    %s30 = arith.addf %s29, %s29 : f32
    %s31 = arith.addf %s30, %s30 : f32
    %s32 = arith.addf %s31, %s31 : f32
    %s33 = arith.addf %s32, %s32 : f32
    %s34 = arith.addf %s33, %s33 : f32
    %s35 = arith.addf %s34, %s34 : f32
    %s36 = arith.addf %s35, %s35 : f32
    %s37 = arith.addf %s36, %s36 : f32
    %s38 = arith.addf %s37, %s37 : f32
    %s39 = arith.addf %s38, %s38 : f32
    %s40 = arith.addf %s39, %s39 : f32
    linalg.yield %s40 : f32
  } -> tensor<1x4x16xf32>
  kern.yield %1 : tensor<1x4x16xf32>
}
kern.kernel @scaled attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %half = arith.constant 0.5 : f32
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.mulf %x, %half : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  kern.yield %1 : tensor<1x4x16xf32>
}
kern.kernel @half_bias attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf16>, %b: tensor<1x8x16xf16>, %c: tensor<16xf16>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf16>, tensor<1x8x16xf16>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %c : tensor<1x4x16xf32>, tensor<16xf16>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %y: f16, %out: f32):
    %w = arith.extf %y : f16 to f32
    %s = arith.addf %x, %w : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  kern.yield %1 : tensor<1x4x16xf32>
}
// An input that is an operand and the residual.
kern.kernel @two_roles attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x8xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x8xf32>) -> tensor<1x4x8xf32>
  %e = tensor.empty() : tensor<1x4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %a : tensor<1x4x8xf32>, tensor<1x4x8xf32>) outs(%e : tensor<1x4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<1x4x8xf32>
  kern.yield %1 : tensor<1x4x8xf32>
}
// Two results.
kern.kernel @two_results attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x8xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x8xf32>) -> tensor<1x4x8xf32>
  kern.yield %0, %0 : tensor<1x4x8xf32>, tensor<1x4x8xf32>
}
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @packed [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<outputs, 0, 256, write>]
  %1 = cg.kernel @view [#cg.slice<inputs, 0, 256, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<outputs, 0, 256, write>]
  %2 = cg.kernel @row_bias [#cg.slice<inputs, 0, 512, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<weights, 512, 64, read>, #cg.slice<outputs, 0, 1024, write>]
  %3 = cg.kernel @residual_relu [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<inputs, 256, 256, read>, #cg.slice<outputs, 0, 256, write>]
  %4 = cg.kernel @relu_bias [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<weights, 512, 64, read>, #cg.slice<outputs, 0, 256, write>]
  %5 = cg.kernel @twice [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<outputs, 0, 256, write>]
  %6 = cg.kernel @scaled [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 512, read>, #cg.slice<outputs, 0, 256, write>]
  %7 = cg.kernel @half_bias [#cg.slice<inputs, 0, 64, read>, #cg.slice<weights, 0, 256, read>, #cg.slice<weights, 256, 32, read>, #cg.slice<outputs, 0, 256, write>]
  %8 = cg.kernel @two_roles [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 256, read>, #cg.slice<outputs, 0, 128, write>]
  %9 = cg.kernel @two_results [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 256, read>, #cg.slice<outputs, 0, 128, write>, #cg.slice<outputs, 256, 128, write>]
}

// -----

kern.kernel @k attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x8xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x8xf32>) -> tensor<1x4x8xf32>
  kern.yield %0 : tensor<1x4x8xf32>
}
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  // expected-error @+1 {{has edges, expected none before providers are chosen}}
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 128, read>, #cg.slice<weights, 0, 256, read>, #cg.slice<outputs, 0, 128, write>]
  // expected-error @+1 {{has edges, expected none before providers are chosen}}
  %1 = cg.kernel @k [#cg.slice<inputs, 0, 128, read>, #cg.slice<outputs, 0, 128, write>] after %0
}

// -----

kern.kernel @k attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x8xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x8xf32>) -> tensor<1x4x8xf32>
  kern.yield %0 : tensor<1x4x8xf32>
}
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  // expected-error @+1 {{has 2 arguments, expected 3}}
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 128, read>, #cg.slice<outputs, 0, 128, write>]
}
