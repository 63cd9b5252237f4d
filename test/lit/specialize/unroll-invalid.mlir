// Control flow that is not known at compile time is refused by name.
// RUN: ogc-opt %s -ogc-fold-shapes -split-input-file -verify-diagnostics

func.func @trips(%x: tensor<2xf32>, %n: tensor<i64>) -> tensor<2xf32> {
  %none = onnx.absent
  // expected-error @+1 {{Loop: its trip count is known only at run time}}
  %0 = "onnx.Loop"(%n, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
    onnx.yield %go, %carried : tensor<i1>, tensor<2xf32>
  }) : (tensor<i64>, none, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @condition(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
  %n = onnx.constant {value = dense<3> : tensor<i64>} : tensor<i64>
  // expected-error @+1 {{Loop: its condition is known only at run time (before iteration 0)}}
  %0 = "onnx.Loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
    onnx.yield %go, %carried : tensor<i1>, tensor<2xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @endless(%x: tensor<2xf32>) -> tensor<2xf32> {
  %none = onnx.absent
  // expected-error @+1 {{Loop: has more than 1024 iterations, the limit for unrolling}}
  %0 = "onnx.Loop"(%none, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
    onnx.yield %go, %carried : tensor<i1>, tensor<2xf32>
  }) : (none, none, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @branches(%x: tensor<2xf32>, %y: tensor<3xf32>, %c: tensor<i1>) -> tensor<?xf32> {
  // expected-error @+1 {{If: its condition is known only at run time, and its branches yield 'tensor<2xf32>' and 'tensor<3xf32>' for output 0, expected one static type}}
  %0 = "onnx.If"(%c) ({
    onnx.yield %x : tensor<2xf32>
  }, {
    onnx.yield %y : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @scan(%s: tensor<2xf32>, %x: tensor<?x2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{Scan: the extent of scan input 0 along its axis is known only at run time}}
  %0 = "onnx.Scan"(%s, %x) ({
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
    onnx.yield %a : tensor<2xf32>
  }) {num_scan_inputs = 1 : i64} : (tensor<2xf32>, tensor<?x2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
