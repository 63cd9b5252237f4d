// Control flow becomes straight-line code: the branch taken, a selection of both, a copy of the body an iteration.
// RUN: ogc-opt %s -ogc-fold-shapes | FileCheck %s

// CHECK-LABEL: func @known_branch
// CHECK-SAME:  -> tensor<4x1xf32>
// CHECK-NOT:   onnx.If
// CHECK:       "onnx.Unsqueeze"
func.func @known_branch(%x: tensor<4xf32>) -> tensor<*xf32> {
  %one = onnx.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %axis = onnx.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %size = "onnx.Size"(%x) : (tensor<4xf32>) -> tensor<i64>
  %c = "onnx.Equal"(%size, %one) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %0 = "onnx.If"(%c) ({
    onnx.yield %x : tensor<4xf32>
  }, {
    %1 = "onnx.Unsqueeze"(%x, %axis) : (tensor<4xf32>, tensor<1xi64>) -> tensor<*xf32>
    onnx.yield %1 : tensor<*xf32>
  }) : (tensor<i1>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func @both_branches
// CHECK-SAME:    -> tensor<4xf32>
// CHECK:       %[[A:.*]] = "onnx.Relu"(%arg0)
// CHECK:       %[[B:.*]] = "onnx.Neg"(%arg0)
// CHECK:       "onnx.Where"(%arg1, %[[A]], %[[B]])
func.func @both_branches(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<*xf32> {
  %0 = "onnx.If"(%c) ({
    %1 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    onnx.yield %1 : tensor<4xf32>
  }, {
    %1 = "onnx.Neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    onnx.yield %1 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: func @growing_loop
// CHECK-SAME:    -> (tensor<6xf32>, tensor<2x2xf32>)
// CHECK:       %[[ONE:.*]] = "onnx.Concat"(%arg0, %arg0) {{.*}} -> tensor<4xf32>
// CHECK:       "onnx.Concat"(%[[ONE]], %arg0) {{.*}} -> tensor<6xf32>
// CHECK-NOT:   onnx.Loop
func.func @growing_loop(%x: tensor<2xf32>) -> (tensor<?xf32>, tensor<?x2xf32>) {
  %n = onnx.constant {value = dense<2> : tensor<i64>} : tensor<i64>
  %c = onnx.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %0:2 = "onnx.Loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
    %1 = "onnx.Concat"(%carried, %x) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    %2 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    onnx.yield %go, %1, %2 : tensor<i1>, tensor<*xf32>, tensor<2xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<?xf32>, tensor<?x2xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?x2xf32>
}

// CHECK-LABEL: func @scan
// CHECK-SAME:    -> (tensor<2xf32>, tensor<3x2xf32>)
// CHECK-COUNT-3: "onnx.Add"
// CHECK:       "onnx.Concat"
// CHECK-NOT:   onnx.Scan
func.func @scan(%s: tensor<2xf32>, %x: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  %0:2 = "onnx.Scan"(%s, %x) ({
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
    %1 = "onnx.Add"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    onnx.yield %1, %1 : tensor<2xf32>, tensor<2xf32>
  }) {num_scan_inputs = 1 : i64} : (tensor<2xf32>, tensor<3x2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<?x2xf32>
}
