// Operands that do not fit an operator are errors that name it; all are reported.
// RUN: not ogc-opt %s -ogc-fold-shapes 2>&1 | FileCheck %s

// CHECK: error: {{.*}}MatMul node 'product': Incompatible dimensions{{.*}}; its inputs have shapes [2, 3], [4, 5]
// CHECK: error: {{.*}}Add: Incompatible dimensions{{.*}}; its inputs have shapes [2, 3], [4, 5]
func.func @main(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0 = "onnx.MatMul"(%a, %b) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<*xf32> loc("product (MatMul)")
  %1 = "onnx.Add"(%a, %b) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<*xf32>
  return %0, %1 : tensor<*xf32>, tensor<*xf32>
}
