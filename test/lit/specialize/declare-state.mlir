// RUN: ogc-opt %s -ogc-declare-state=states='past=present;n=n_out' | FileCheck %s

// The name of the other one is noted on both.

// CHECK: func.func @main(%{{.*}}: tensor<4xf32> {ogc.state = "present", onnx.name = "past"}, %{{.*}}: tensor<2xf32> {onnx.name = "x"}, %{{.*}}: tensor<1xi64> {ogc.state = "n_out", onnx.name = "n"})
// CHECK-SAME: -> (tensor<2xf32> {onnx.name = "y"}, tensor<4xf32> {ogc.state = "past", onnx.name = "present"}, tensor<1xi64> {ogc.state = "n", onnx.name = "n_out"})
func.func @main(%past: tensor<4xf32> {onnx.name = "past"}, %x: tensor<2xf32> {onnx.name = "x"}, %n: tensor<1xi64> {onnx.name = "n"})
    -> (tensor<2xf32> {onnx.name = "y"}, tensor<4xf32> {onnx.name = "present"}, tensor<1xi64> {onnx.name = "n_out"}) {
  %0 = "onnx.Relu"(%past) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "onnx.Relu"(%n) : (tensor<1xi64>) -> tensor<1xi64>
  return %x, %0, %1 : tensor<2xf32>, tensor<4xf32>, tensor<1xi64>
}
