// RUN: not ogc-opt %s -ogc-declare-state=states='a;a=y;a=z;b=y' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not ogc-opt %s -ogc-declare-state=states='nope=y;a=nothing;b=z' 2>&1 | FileCheck %s --check-prefix=NAMES

// Every problem is told, wrong names once although there are two graphs.

// TEXT: error: --state 'a': expected INPUT=OUTPUT
// TEXT: error: --state: input 'a' is used twice
// TEXT: error: --state: output 'y' is used twice
// NAMES: error: --state: the model has no input 'nope'; its inputs are 'a', 'b'
// NAMES: error: --state: the model has no output 'nothing'; its outputs are 'y', 'z'
// NAMES: error: --state: input 'b' has type 'tensor<2xf32>', but output 'z' has type 'tensor<2xi64>'; a state has one shape and type
// NAMES-NOT: nope
func.func @main_one(%a: tensor<4xf32> {onnx.name = "a"}, %b: tensor<2xf32> {onnx.name = "b"})
    -> (tensor<4xf32> {onnx.name = "y"}, tensor<2xi64> {onnx.name = "z"}) attributes {ogc.graph_id = "one"} {
  %0 = "onnx.Cast"(%b) {to = 7 : i64} : (tensor<2xf32>) -> tensor<2xi64>
  return %a, %0 : tensor<4xf32>, tensor<2xi64>
}
func.func @main_two(%a: tensor<4xf32> {onnx.name = "a"}, %b: tensor<2xi64> {onnx.name = "b"})
    -> (tensor<4xf32> {onnx.name = "y"}, tensor<2xi64> {onnx.name = "z"}) attributes {ogc.graph_id = "two"} {
  return %a, %b : tensor<4xf32>, tensor<2xi64>
}
