// RUN: ogc-opt %s -ogc-lower-onnx -verify-diagnostics

// All errors of a module are reported, and operators after a failed one are still checked.
// expected-error@+1 {{input 1: tensor<?xf32> is not a static tensor}}
func.func @many(%x: tensor<4xf32>, %y: tensor<?xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{SequenceLength: has no lowering}}
  %6 = "onnx.SequenceLength"(%x) : (tensor<4xf32>) -> tensor<i64>
  // expected-error@+1 {{NonZero: result 0: tensor<1x?xi64> is not a static tensor}}
  %0 = "onnx.NonZero"(%x) : (tensor<4xf32>) -> tensor<1x?xi64>
  // expected-error@+1 {{Gelu: approximate is 'cubic', expected none or tanh}}
  %1 = "onnx.Gelu"(%x) {approximate = "cubic"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{Relu: attribute strange = 1 : i64 not supported}}
  %2 = "onnx.Relu"(%1) {strange = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = onnx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  // expected-error@+1 {{Reshape: operand 1: tensor<1x?xi64> is not a static tensor}}
  %3 = "onnx.Reshape"(%2, %0) : (tensor<4xf32>, tensor<1x?xi64>) -> tensor<?xf32>
  // expected-error@+1 {{cannot broadcast 'tensor<2xf32>' to 'tensor<4xf32>'}}
  %5 = "onnx.Add"(%2, %4) : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
