// Readers that cannot carry an extent known at run time are refused.
// RUN: ogc-opt %s -ogc-bound-extents -split-input-file -verify-diagnostics

func.func @sum_along(%x: tensor<4xi64>) -> tensor<1xi64> {
  %0 = "onnx.NonZero"(%x) : (tensor<4xi64>) -> tensor<1x?xi64>
  %axes = onnx.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  // expected-error @+1 {{ReduceSum: operand 0 has an extent in dimension 1 that is known only at run time, which this operator cannot carry}}
  %1 = "onnx.ReduceSum"(%0, %axes) {keepdims = 0 : i64, noop_with_empty_axes = 0 : i64} : (tensor<1x?xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %1 : tensor<1xi64>
}

// -----

func.func @two_extents(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<1x?xi64> {
  %0 = "onnx.NonZero"(%x) : (tensor<4xi64>) -> tensor<1x?xi64>
  %1 = "onnx.NonZero"(%y) : (tensor<4xi64>) -> tensor<1x?xi64>
  // expected-error @+1 {{Add: operand 0 has an extent in dimension 1 that is known only at run time, which this operator cannot carry}}
  %2 = "onnx.Add"(%0, %1) : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi64>
  return %2 : tensor<1x?xi64>
}
