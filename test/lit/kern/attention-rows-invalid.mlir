// New rows of a cache come with their position, and fit.
// RUN: ogc-opt %s -split-input-file -verify-diagnostics

func.func @rows(%q: tensor<1x1x4x8xf16>, %c: tensor<1x6x2x8xf16>, %n: tensor<1x7x2x8xf16>, %p: tensor<1xi64>) -> tensor<1x1x4x8xf32> {
  // expected-error @+1 {{new_key has 7 rows, expected 1 to 6}}
  %0 = kern.attention %q, %c, %c rows %n, %n at %p {scale = 1.0 : f32} : (tensor<1x1x4x8xf16>, tensor<1x6x2x8xf16>, tensor<1x6x2x8xf16>, tensor<1x7x2x8xf16>, tensor<1x7x2x8xf16>, tensor<1xi64>) -> tensor<1x1x4x8xf32>
  return %0 : tensor<1x1x4x8xf32>
}

// -----

func.func @position(%q: tensor<1x1x4x8xf16>, %c: tensor<1x6x2x8xf16>, %n: tensor<1x1x2x8xf16>, %p: tensor<1xf32>) -> tensor<1x1x4x8xf32> {
  // expected-error @+1 {{position has element type 'f32', expected an integer}}
  %0 = kern.attention %q, %c, %c rows %n, %n at %p {scale = 1.0 : f32} : (tensor<1x1x4x8xf16>, tensor<1x6x2x8xf16>, tensor<1x6x2x8xf16>, tensor<1x1x2x8xf16>, tensor<1x1x2x8xf16>, tensor<1xf32>) -> tensor<1x1x4x8xf32>
  return %0 : tensor<1x1x4x8xf32>
}

// -----

func.func @shape(%q: tensor<1x1x4x8xf16>, %c: tensor<1x6x2x8xf16>, %n: tensor<1x1x2x8xf16>, %v: tensor<1x2x2x8xf16>, %p: tensor<1xi64>) -> tensor<1x1x4x8xf32> {
  // expected-error @+1 {{new_value has shape [1, 2, 2, 8], expected [1, 1, 2, 8]}}
  %0 = kern.attention %q, %c, %c rows %n, %v at %p {scale = 1.0 : f32} : (tensor<1x1x4x8xf16>, tensor<1x6x2x8xf16>, tensor<1x6x2x8xf16>, tensor<1x1x2x8xf16>, tensor<1x2x2x8xf16>, tensor<1xi64>) -> tensor<1x1x4x8xf32>
  return %0 : tensor<1x1x4x8xf32>
}
