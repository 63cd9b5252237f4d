// Sizes that an operator refuses are named with their symbols; a result that contradicts its declared symbol is a warning.
// RUN: ogc-opt %s -split-input-file -ogc-fold-shapes -ogc-verify-static -verify-diagnostics

// expected-error @+1 {{graph 'a': m = 4, n = 3 does not fit the model}}
func.func @contradiction(%a: tensor<3xf32> {onnx.symbols = ["n"]}, %b: tensor<4xf32> {onnx.symbols = ["m"]}) -> tensor<?xf32>
    attributes {ogc.graph_id = "a", ogc.symbols = {m = 4 : i64, n = 3 : i64}} {
  // expected-error @+1 {{Add}}
  %0 = "onnx.Add"(%a, %b) : (tensor<3xf32>, tensor<4xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-warning @+1 {{output 0 has size 6 in dimension 0, which the model names 'n', but that is 3}}
func.func @declared(%a: tensor<3xf32> {onnx.symbols = ["n"]}) -> (tensor<?xf32> {onnx.symbols = ["n"]})
    attributes {ogc.graph_id = "a", ogc.symbols = {n = 3 : i64}} {
  %0 = "onnx.Concat"(%a, %a) {axis = 0 : i64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
