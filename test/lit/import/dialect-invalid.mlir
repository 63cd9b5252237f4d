// The verifier checks operators against their schemas.
// RUN: ogc-opt %s -split-input-file -verify-diagnostics

func.func @operands(%a: tensor<4xf32>) {
  // expected-error @+1 {{has 1 operands, expected 2}}
  %0 = "onnx.Add"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @attribute(%a: tensor<4xf32>) {
  // expected-error @+1 {{lacks attribute 'axis'}}
  %0 = "onnx.Concat"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @region(%c: tensor<i1>) {
  // expected-error @+1 {{has 0 regions, expected 2}}
  %0 = "onnx.If"(%c) : (tensor<i1>) -> tensor<8xf32>
  return
}

// -----

func.func @type(%a: i32) {
  // expected-error @+1 {{has an operand of type 'i32', expected a tensor or none}}
  %0 = "onnx.Relu"(%a) : (i32) -> tensor<8xf32>
  return
}

// -----

func.func @constant() {
  // expected-error @+1 {{has type 'tensor<2xi64>', but its value has type 'tensor<1xi64>'}}
  %0 = onnx.constant {value = dense<1> : tensor<1xi64>} : tensor<2xi64>
  return
}

// -----

func.func @unknown(%a: tensor<4xf32>) {
  // expected-error @+1 {{unregistered operation 'onnx.Nope'}}
  %0 = "onnx.Nope"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
