// Sizes whose products leave 64 bits are refused before anything counts bytes.
// RUN: ogc-opt %s -ogc-verify-static -verify-diagnostics

func.func @main(%x: tensor<1073741824x1xf32>, %y: tensor<1x1073741824xf32>) -> tensor<1073741824x1073741824xf32> {
  // expected-error @+1 {{MatMul: output 0 has type 'tensor<1073741824x1073741824xf32>', which is larger than any device}}
  %0 = "onnx.MatMul"(%x, %y) : (tensor<1073741824x1xf32>, tensor<1x1073741824xf32>) -> tensor<1073741824x1073741824xf32>
  return %0 : tensor<1073741824x1073741824xf32>
}
