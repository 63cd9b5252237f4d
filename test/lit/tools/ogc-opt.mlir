// ogc-opt knows our dialects and passes beside upstream's.
// RUN: ogc-opt %s --canonicalize | FileCheck %s
// RUN: ogc-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS

// CHECK-LABEL: func.func @identity
// CHECK-NEXT: return %arg0
func.func @identity(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.cast %arg0 : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// DIALECTS: Available Dialects:
// DIALECTS-SAME: cg,
// DIALECTS-SAME: kern,
