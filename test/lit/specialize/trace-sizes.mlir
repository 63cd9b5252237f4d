// Arithmetic on the size of a named dimension that makes steps is named; arithmetic along a straight line is not.
// RUN: ogc-opt %s -split-input-file -ogc-trace-sizes="symbol=n largest=10" | FileCheck %s

// An eighth of nine is that of ten, but not that of seven.
// CHECK: module attributes {ogc.size_step = {node = "eighth", operator = "Div"}}
func.func @size9(%x: tensor<9x4xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<?xi64> attributes {ogc.symbols = {n = 9 : i64}} {
  %eight = "onnx.constant"() {value = dense<8> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Shape"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<9x4xf32>) -> tensor<?xi64>
  %1 = "onnx.Div"(%0, %eight) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?xi64> loc("eighth (Div)")
  return %1 : tensor<?xi64>
}
func.func @size10(%x: tensor<10x4xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<?xi64> attributes {ogc.symbols = {n = 10 : i64}} {
  %eight = "onnx.constant"() {value = dense<8> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Shape"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<10x4xf32>) -> tensor<?xi64>
  %1 = "onnx.Div"(%0, %eight) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?xi64> loc("eighth (Div)")
  return %1 : tensor<?xi64>
}

// -----

// Exporters ask whether a size is -1: none is.
// CHECK-NOT: ogc.size_step
func.func @size9(%x: tensor<9x4xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<?xi1> attributes {ogc.symbols = {n = 9 : i64}} {
  %m = "onnx.constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Shape"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<9x4xf32>) -> tensor<?xi64>
  %2 = "onnx.Equal"(%0, %m) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?xi1> loc("none (Equal)")
  return %2 : tensor<?xi1>
}
func.func @size10(%x: tensor<10x4xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<?xi1> attributes {ogc.symbols = {n = 10 : i64}} {
  %m = "onnx.constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = "onnx.Shape"(%x) {start = 0 : i64, end = 1 : i64} : (tensor<10x4xf32>) -> tensor<?xi64>
  %2 = "onnx.Equal"(%0, %m) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?xi1> loc("none (Equal)")
  return %2 : tensor<?xi1>
}
