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

// -----

func.func @scale_shape(%x: tensor<2x4x4x8xf16>, %w: tensor<1x8x16xf16>, %s: tensor<1x1x1x8xf16>) -> tensor<2x4x4x16xf32> {
  // expected-error @+1 {{scale has shape [1, 1, 1, 8], expected [2, 1, 1, 8]}}
  %0 = kern.conv %x, %w, scale %s {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x4x4x8xf16>, tensor<1x8x16xf16>, tensor<1x1x1x8xf16>) -> tensor<2x4x4x16xf32>
  return %0 : tensor<2x4x4x16xf32>
}

// -----

func.func @scale_type(%x: tensor<1x4x4x8xf16>, %w: tensor<1x8x16xf16>, %s: tensor<1x1x1x8xf32>) -> tensor<1x4x4x16xf32> {
  // expected-error @+1 {{scale element type is 'f32', expected 'f16'}}
  %0 = kern.conv %x, %w, scale %s {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x4x8xf16>, tensor<1x8x16xf16>, tensor<1x1x1x8xf32>) -> tensor<1x4x4x16xf32>
  return %0 : tensor<1x4x4x16xf32>
}

// -----

func.func @scale_padding(%x: tensor<1x4x4x8xf16>, %w: tensor<1x8x16xf16>, %s: tensor<1x1x1x8xf16>) -> tensor<1x6x6x16xf32> {
  // expected-error @+1 {{has a scale, expected kernel 1x1 without padding}}
  %0 = kern.conv %x, %w, scale %s {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>} : (tensor<1x4x4x8xf16>, tensor<1x8x16xf16>, tensor<1x1x1x8xf16>) -> tensor<1x6x6x16xf32>
  return %0 : tensor<1x6x6x16xf32>
}

// -----

func.func @norm_name(%x: tensor<1x1x8xf16>, %w: tensor<1x8x16xf16>) -> tensor<1x1x16xf32> {
  // expected-error @+1 {{ogc.row_norm is "median", expected "root_mean_square" or "standard_deviation"}}
  %0 = kern.matmul %x, %w {packed, ogc.row_norm = "median", ogc.epsilon = 1.0e-5 : f32} : (tensor<1x1x8xf16>, tensor<1x8x16xf16>) -> tensor<1x1x16xf32>
  return %0 : tensor<1x1x16xf32>
}

// -----

func.func @norm_epsilon(%x: tensor<1x1x8xf16>, %w: tensor<1x8x16xf16>) -> tensor<1x1x16xf32> {
  // expected-error @+1 {{ogc.epsilon is 1.000000e+00 : f64, expected a number of type f32}}
  %0 = kern.matmul %x, %w {packed, ogc.row_norm = "root_mean_square", ogc.epsilon = 1.0 : f64} : (tensor<1x1x8xf16>, tensor<1x8x16xf16>) -> tensor<1x1x16xf32>
  return %0 : tensor<1x1x16xf32>
}

// -----

func.func @norm_packed(%x: tensor<1x1x8xf16>, %w: tensor<1x8x16xf16>) -> tensor<1x1x16xf32> {
  // expected-error @+1 {{has a norm, expected a packed rhs}}
  %0 = kern.matmul %x, %w {ogc.row_norm = "root_mean_square", ogc.epsilon = 1.0 : f32} : (tensor<1x1x8xf16>, tensor<1x8x16xf16>) -> tensor<1x1x16xf32>
  return %0 : tensor<1x1x16xf32>
}

// -----

func.func @statistics_of_odd_rows(%x: tensor<1x40x100xf16>) -> tensor<1x40x1xf32> {
  // expected-error @+1 {{input is 'tensor<1x40x100xf16>', expected a static tensor of floats whose rows have a multiple of 64 elements}}
  %m, %q = kern.row_statistics %x : tensor<1x40x100xf16> -> tensor<1x40x1xf32>
  return %m : tensor<1x40x1xf32>
}

// -----

func.func @statistics_shape(%x: tensor<1x40x128xf16>) -> tensor<1x40x1xf32> {
  // expected-error @+1 {{result has shape [1, 40, 1], expected [1, 40, 2]}}
  %m, %q = kern.row_statistics %x : tensor<1x40x128xf16> -> tensor<1x40x1xf32>
  return %m : tensor<1x40x1xf32>
}

// -----

func.func @merged_shape(%m: tensor<1x40x2xf32>) -> tensor<1x2xf32> {
  // expected-error @+1 {{result has shape [1, 2], expected [1, 40]}}
  %f = kern.merge_statistics %m, %m {epsilon = 1.0e-5 : f32} : tensor<1x40x2xf32> -> tensor<1x2xf32>
  return %f : tensor<1x2xf32>
}

// -----

func.func @merged_type(%m: tensor<1x40x2xf16>) -> tensor<1x40xf32> {
  // expected-error @+1 {{means are 'tensor<1x40x2xf16>', expected a static tensor of f32 with rows}}
  %f = kern.merge_statistics %m, %m {epsilon = 1.0e-5 : f32} : tensor<1x40x2xf16> -> tensor<1x40xf32>
  return %f : tensor<1x40xf32>
}

// -----

func.func @mean_shape(%m: tensor<1x40x2xf32>) -> tensor<1x2xf32> {
  // expected-error @+1 {{result has shape [1, 2], expected [1, 40]}}
  %f = kern.merge_means %m : tensor<1x40x2xf32> -> tensor<1x2xf32>
  return %f : tensor<1x2xf32>
}
