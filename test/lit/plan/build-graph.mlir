// RUN: ogc-opt %s -split-input-file -ogc-build-graph | FileCheck %s

// A launch result that is returned lies in the outputs section; other values get scratch of their own; reshapes are views.

// CHECK: cg.weight "w" at 0 = dense
kern.kernel @k0 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
  kern.yield %a : tensor<8xf32>
}

// CHECK: cg.graph @default
// CHECK-SAME: inputs [#cg.binding<"x", tensor<2x4xf32>, ["n", ""], inputs, 0, 32>]
// CHECK-SAME: outputs [#cg.binding<"y", tensor<8xf32>, [""], outputs, 0, 32>]
// CHECK: cg.kernel @k0 [#cg.slice<inputs, 0, 32, read>, #cg.slice<weights, 0, 32, read>, #cg.slice<scratch, 0, 32, write>]
// CHECK: cg.kernel @k0 [#cg.slice<scratch, 0, 32, read>, #cg.slice<weights, 0, 32, read>, #cg.slice<outputs, 0, 32, write>]
func.func @main(%x: tensor<2x4xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> (tensor<8xf32> {onnx.name = "y"})
    attributes {ogc.graph_id = "default"} {
  %w = arith.constant {onnx.name = "w"} dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %v = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %0 = kern.launch @k0(%v, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = kern.launch @k0(%0, %w) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Equal constants share a place; an input, a constant and a value returned twice are copied to their outputs.

// CHECK: cg.weight {{.*}} at 0
// CHECK-NOT: cg.weight
// CHECK: cg.graph @main
// CHECK: cg.kernel @k0 [#cg.slice<inputs, 0, 8, read>, #cg.slice<outputs, 0, 8, write>]
// CHECK: cg.memcpy <outputs, 0, 8, read> to <outputs, 256, 8, write>
// CHECK: cg.memcpy <inputs, 0, 8, read> to <outputs, 512, 8, write>
// CHECK: cg.memcpy <weights, 0, 8, read> to <outputs, 768, 8, write>
kern.kernel @k0 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<2xf32>):
  kern.yield %a : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>, tensor<2xf32>) {
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %w2 = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %0 = kern.launch @k0(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %0, %x, %w2, %w : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>, tensor<2xf32>
}

// -----

// A constant that begins another one of the same name, in whichever graph, lies in it.

// CHECK: cg.weight "table" at 0 = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK: cg.weight "other" at 256 = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK: cg.weight "table" at 512 = dense<[2.000000e+00, 3.000000e+00]>
// CHECK-NOT: cg.weight
// CHECK: cg.graph @short
// CHECK: cg.kernel @k0 [#cg.slice<inputs, 0, 8, read>, #cg.slice<weights, 0, 8, read>, #cg.slice<weights, 256, 12, read>, #cg.slice<weights, 512, 8, read>,
// CHECK: cg.graph @long
// CHECK: cg.kernel @k1 [#cg.slice<inputs, 0, 16, read>, #cg.slice<weights, 0, 16, read>,
kern.kernel @k0 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>, %d: tensor<2xf32>):
  kern.yield %a : tensor<2xf32>
}
kern.kernel @k1 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
  kern.yield %a : tensor<4xf32>
}
func.func @short(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant {onnx.name = "table"} dense<[1.0, 2.0]> : tensor<2xf32>
  %other = arith.constant {onnx.name = "other"} dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %end = arith.constant {onnx.name = "table"} dense<[2.0, 3.0]> : tensor<2xf32>
  %0 = kern.launch @k0(%x, %w, %other, %end) : (tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @long(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = arith.constant {onnx.name = "table"} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = kern.launch @k1(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A launch that produces nothing is dropped, and with it its kernel.

// CHECK-NOT: kern.kernel
// CHECK: cg.graph @main
// CHECK-NOT: cg.kernel
kern.kernel @k0 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<0xf32>):
  kern.yield %a : tensor<0xf32>
}
func.func @main(%x: tensor<0xf32>) -> tensor<0xf32> {
  %0 = kern.launch @k0(%x) : (tensor<0xf32>) -> tensor<0xf32>
  return %0 : tensor<0xf32>
}

// -----

// A large output of one byte repeated is filled and not stored; a small one, and one of other bytes, is copied from the weights.

// CHECK: cg.weight {{.*}} = dense<1> : tensor<4xi8>
// CHECK: cg.weight {{.*}} = dense<1.000000e+00> : tensor<1048577xf32>
// CHECK-NOT: cg.weight
// CHECK: cg.graph @fills
// CHECK: cg.memset <outputs, 0, 1048577, write> = 1
// CHECK: cg.memset <outputs, 1048832, 1048577, write> = 255
// CHECK: cg.memcpy <weights, 0, 4, read>
// CHECK: cg.memcpy <weights, {{.*}}, 4194308, read>
func.func @fills() -> (tensor<1048577xi1>, tensor<1048577xi8>, tensor<4xi8>, tensor<1048577xf32>) {
  %mask = arith.constant dense<true> : tensor<1048577xi1>
  %ones = arith.constant dense<-1> : tensor<1048577xi8>
  %short = arith.constant dense<1> : tensor<4xi8>
  %other = arith.constant dense<1.0> : tensor<1048577xf32>
  return %mask, %ones, %short, %other : tensor<1048577xi1>, tensor<1048577xi8>, tensor<4xi8>, tensor<1048577xf32>
}
