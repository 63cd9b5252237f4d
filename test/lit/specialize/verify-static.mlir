// The operators where an unknown shape comes from are errors; what follows from them is not listed.
// RUN: ogc-opt %s -ogc-verify-static -verify-diagnostics

func.func @main(%x: tensor<4xf32>) -> tensor<?x1xi64> {
  // expected-error @+1 {{NonZero: output 0 has type 'tensor<1x?xi64>', expected a static shape: its shape depends on the data}}
  %0 = "onnx.NonZero"(%x) : (tensor<4xf32>) -> tensor<1x?xi64>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 1, 0>} : (tensor<1x?xi64>) -> tensor<?x1xi64>
  return %1 : tensor<?x1xi64>
}
