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
// The product twice, a scale, and a bias of another type than the result.
kern.kernel @twice attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
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
