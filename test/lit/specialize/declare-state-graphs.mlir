// RUN: not ogc-opt %s -ogc-declare-state=states=a=y 2>&1 | FileCheck %s

// Graphs share their states: one shape for all.

// CHECK: error: --state: input 'a' has type 'tensor<4xf32>' in one graph and 'tensor<8xf32>' in graph 'two'; graphs share their states
func.func @main_one(%a: tensor<4xf32> {onnx.name = "a"}) -> (tensor<4xf32> {onnx.name = "y"}) attributes {ogc.graph_id = "one"} {
  return %a : tensor<4xf32>
}
func.func @main_two(%a: tensor<8xf32> {onnx.name = "a"}) -> (tensor<8xf32> {onnx.name = "y"}) attributes {ogc.graph_id = "two"} {
  return %a : tensor<8xf32>
}
