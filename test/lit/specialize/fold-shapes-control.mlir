// Control flow: a known condition selects its branch; dimensions that a loop changes become unknown.
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

// CHECK-LABEL: func @growing_loop
// CHECK:       ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<i1>, %[[CARRIED:.*]]: tensor<?xf32>):
// CHECK:         "onnx.Concat"(%[[CARRIED]], %arg0)
// CHECK:       -> (tensor<?xf32>, tensor<?x2xf32>)
func.func @growing_loop(%x: tensor<2xf32>, %n: tensor<i64>, %c: tensor<i1>) -> (tensor<?xf32>, tensor<?x2xf32>) {
  %0:2 = "onnx.Loop"(%n, %c, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
    %1 = "onnx.Concat"(%carried, %x) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    %2 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    onnx.yield %go, %1, %2 : tensor<i1>, tensor<*xf32>, tensor<2xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<?xf32>, tensor<?x2xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?x2xf32>
}
