// The operators where an unknown shape comes from are errors; what follows from them is not listed.
// RUN: ogc-opt %s -ogc-verify-static -split-input-file -verify-diagnostics

func.func @main(%x: tensor<4xf32>) -> tensor<?x1xi64> {
  // expected-error @+1 {{NonZero: output 0 has type 'tensor<1x?xi64>', expected a static shape: its shape depends on the data}}
  %0 = "onnx.NonZero"(%x) : (tensor<4xf32>) -> tensor<1x?xi64>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 1, 0>} : (tensor<1x?xi64>) -> tensor<?x1xi64>
  return %1 : tensor<?x1xi64>
}

// -----

// An input whose value would decide the shape is named, also behind other operators; data is not.
// expected-remark @+1 {{the shape may be known when compiling with the value of input 'counts': --value 'counts=…'}}
func.func @main(%x: tensor<2x3xf32> {onnx.name = "x"}, %counts: tensor<2xi32> {onnx.name = "counts"}) -> tensor<?x?xf32> {
  %0 = "onnx.Cast"(%counts) {to = 7 : i64} : (tensor<2xi32>) -> tensor<2xi64>
  // expected-error @+1 {{Reshape: output 0 has type 'tensor<?x?xf32>', expected a static shape: its shape depends on the data}}
  %1 = "onnx.Reshape"(%x, %0) {allowzero = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
