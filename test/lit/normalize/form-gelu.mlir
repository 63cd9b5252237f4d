// Decomposed GELU becomes one operator, in whatever order the factors are multiplied.
// RUN: ogc-opt %s -ogc-form-gelu | FileCheck %s

// CHECK-LABEL: func @erf
// CHECK-NEXT:  "onnx.Gelu"(%arg0) {approximate = "none"}
// CHECK-NEXT:  return
func.func @erf(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %root = onnx.constant {value = dense<1.41421354> : tensor<f32>} : tensor<f32>
  %one = onnx.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = onnx.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %0 = "onnx.Div"(%x, %root) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %1 = "onnx.Erf"(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = "onnx.Add"(%1, %one) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %3 = "onnx.Mul"(%x, %2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = "onnx.Mul"(%3, %half) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}

// CHECK-LABEL: func @tanh
// CHECK-NEXT:  "onnx.Gelu"(%arg0) {approximate = "tanh"}
// CHECK-NEXT:  return
func.func @tanh(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %three = onnx.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %cubic = onnx.constant {value = dense<0.044715> : tensor<f32>} : tensor<f32>
  %slope = onnx.constant {value = dense<0.797884583> : tensor<f32>} : tensor<f32>
  %one = onnx.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = onnx.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %0 = "onnx.Mul"(%x, %half) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %1 = "onnx.Pow"(%x, %three) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %2 = "onnx.Mul"(%1, %cubic) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %3 = "onnx.Add"(%x, %2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = "onnx.Mul"(%3, %slope) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %5 = "onnx.Tanh"(%4) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %6 = "onnx.Add"(%5, %one) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %7 = "onnx.Mul"(%0, %6) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %7 : tensor<2x8xf32>
}

// A gate with another factor around it: only the GELU is formed.
// CHECK-LABEL: func @gated
// CHECK-NEXT:  %[[G:.*]] = "onnx.Gelu"(%arg0)
// CHECK-NEXT:  "onnx.Mul"(%[[G]], %arg1)
func.func @gated(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %root = onnx.constant {value = dense<0.707106769> : tensor<f32>} : tensor<f32>
  %one = onnx.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = onnx.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %0 = "onnx.Mul"(%x, %root) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %1 = "onnx.Erf"(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = "onnx.Add"(%1, %one) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %3 = "onnx.Mul"(%x, %half) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %4 = "onnx.Mul"(%3, %2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %5 = "onnx.Mul"(%4, %y) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %5 : tensor<2x8xf32>
}

// Another constant is another function.
// CHECK-LABEL: func @other_constant
// CHECK-NOT:   Gelu
func.func @other_constant(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %root = onnx.constant {value = dense<1.41> : tensor<f32>} : tensor<f32>
  %one = onnx.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = onnx.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %0 = "onnx.Div"(%x, %root) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %1 = "onnx.Erf"(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = "onnx.Add"(%1, %one) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %3 = "onnx.Mul"(%x, %2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = "onnx.Mul"(%3, %half) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}
