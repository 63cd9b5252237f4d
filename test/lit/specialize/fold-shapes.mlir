// Shape arithmetic becomes constants in one walk, and all types become exact.
// RUN: ogc-opt %s -ogc-fold-shapes | FileCheck %s

// The usual way of exporters to flatten all but the first dimension.
// CHECK-LABEL: func @flatten
// CHECK-SAME:  -> tensor<2x12xf32>
// CHECK:       %[[SHAPE:.*]] = onnx.constant {value = dense<[2, -1]> : tensor<2xi64>}
// CHECK-NEXT:  "onnx.Reshape"(%arg0, %[[SHAPE]]) {{.*}} -> tensor<2x12xf32>
func.func @flatten(%x: tensor<2x3x4xf32>) -> tensor<*xf32> {
  %0 = "onnx.Shape"(%x) {start = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<3xi64>
  %zero = onnx.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %axes = onnx.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %rest = onnx.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %1 = "onnx.Gather"(%0, %zero) {axis = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %2 = "onnx.Unsqueeze"(%1, %axes) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %3 = "onnx.Concat"(%2, %rest) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %4 = "onnx.Reshape"(%x, %3) {allowzero = 0 : i64} : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %4 : tensor<*xf32>
}

// CHECK-LABEL: func @arithmetic
// CHECK-DAG:   %[[DIV:.*]] = onnx.constant {value = dense<[-2, 3]> : tensor<2xi64>}
// CHECK-DAG:   %[[MOD:.*]] = onnx.constant {value = dense<1> : tensor<2xi64>}
// CHECK-DAG:   %[[CMOD:.*]] = onnx.constant {value = dense<[-1, 1]> : tensor<2xi64>}
// CHECK-DAG:   %[[WHERE:.*]] = onnx.constant {value = dense<[-5, 2]> : tensor<2xi64>}
// CHECK-DAG:   %[[ROOT:.*]] = onnx.constant {value = dense<5.65685415> : tensor<f32>}
// CHECK:       return %[[DIV]], %[[MOD]], %[[CMOD]], %[[WHERE]], %[[ROOT]]
func.func @arithmetic() -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<f32>) {
  %a = onnx.constant {value = dense<[-5, 7]> : tensor<2xi64>} : tensor<2xi64>
  %two = onnx.constant {value = dense<2> : tensor<i64>} : tensor<i64>
  %width = onnx.constant {value = dense<32> : tensor<i64>} : tensor<i64>
  %0 = "onnx.Div"(%a, %two) : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %1 = "onnx.Mod"(%a, %two) {fmod = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %2 = "onnx.Mod"(%a, %two) {fmod = 1 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %3 = "onnx.Less"(%a, %two) : (tensor<2xi64>, tensor<i64>) -> tensor<2xi1>
  %4 = "onnx.Where"(%3, %a, %two) : (tensor<2xi1>, tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %5 = "onnx.Cast"(%width) {to = 1 : i64, saturate = 1 : i64} : (tensor<i64>) -> tensor<f32>
  %6 = "onnx.Sqrt"(%5) : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2, %4, %6 : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<f32>
}

// CHECK-LABEL: func @movement
// CHECK-DAG:   %[[SLICE:.*]] = onnx.constant {value = dense<[3, 1]> : tensor<2xi64>}
// CHECK-DAG:   %[[TILE:.*]] = onnx.constant {value = dense<[0, 1, 2, 3, 0, 1, 2, 3]> : tensor<8xi64>}
// CHECK-DAG:   %[[PROD:.*]] = onnx.constant {value = dense<24> : tensor<i64>}
// CHECK-DAG:   %[[SPLIT:.*]] = onnx.constant {value = dense<[2, 3]> : tensor<2xi64>}
// CHECK:       return %[[SLICE]], %[[TILE]], %[[PROD]], %[[SPLIT]]
func.func @movement(%x: tensor<2x3x4xf32>) -> (tensor<*xi64>, tensor<*xi64>, tensor<i64>, tensor<*xi64>) {
  %zero = onnx.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %one = onnx.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %four = onnx.constant {value = dense<4> : tensor<i64>} : tensor<i64>
  %range = "onnx.Range"(%zero, %four, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %from = onnx.constant {value = dense<3> : tensor<1xi64>} : tensor<1xi64>
  %to = onnx.constant {value = dense<-9223372036854775807> : tensor<1xi64>} : tensor<1xi64>
  %axis = onnx.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %back = onnx.constant {value = dense<-2> : tensor<1xi64>} : tensor<1xi64>
  %0 = "onnx.Slice"(%range, %from, %to, %axis, %back) : (tensor<?xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
  %twice = onnx.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %1 = "onnx.Tile"(%range, %twice) : (tensor<?xi64>, tensor<1xi64>) -> tensor<*xi64>
  %shape = "onnx.Shape"(%x) {start = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<3xi64>
  %2 = "onnx.ReduceProd"(%shape) {keepdims = 0 : i64, noop_with_empty_axes = 0 : i64} : (tensor<3xi64>) -> tensor<i64>
  %3:2 = "onnx.Split"(%range) {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<?xi64>) -> (tensor<*xi64>, tensor<*xi64>)
  return %0, %1, %2, %3#1 : tensor<*xi64>, tensor<*xi64>, tensor<i64>, tensor<*xi64>
}

// A division by zero has no value to fold to; large tensors are left alone.
// CHECK-LABEL: func @kept
// CHECK:       "onnx.Div"
// CHECK:       "onnx.Neg"
func.func @kept() -> (tensor<i64>, tensor<8192xi64>) {
  %zero = onnx.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %big = onnx.constant {value = dense<7> : tensor<8192xi64>} : tensor<8192xi64>
  %0 = "onnx.Div"(%zero, %zero) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %1 = "onnx.Neg"(%big) : (tensor<8192xi64>) -> tensor<8192xi64>
  return %0, %1 : tensor<i64>, tensor<8192xi64>
}
