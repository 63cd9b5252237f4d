// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// Broadcasting is an index map; 16-bit floats compute in f32; the node's name stays the location.
// CHECK-LABEL: func @broadcast
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x8xf16>, tensor<1x8xf16>)
// CHECK: arith.extf
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
func.func @broadcast(%x: tensor<4x8xf16>, %b: tensor<1x8xf16>) -> tensor<4x8xf16> {
  %0 = "onnx.Add"(%x, %b) : (tensor<4x8xf16>, tensor<1x8xf16>) -> tensor<4x8xf16>
  return %0 : tensor<4x8xf16>
}

// A splat constant is a scalar of the body, and a square is a product.
// CHECK-LABEL: func @square
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<4xf32>)
// CHECK-NOT: math.powf
// CHECK: arith.mulf %[[X:.*]], %[[X]] : f32
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = onnx.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %0 = "onnx.Pow"(%x, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Unsigned tensors become signless and keep their operators; the function remembers its ONNX types.
// CHECK-LABEL: func @unsigned
// CHECK-SAME: %arg0: tensor<4xi8> {onnx.type = tensor<4xui8>}
// CHECK-SAME: -> (tensor<4xi1> {onnx.type = tensor<4xi1>}, tensor<4xi8> {onnx.type = tensor<4xui8>})
// CHECK: arith.cmpi ult
// CHECK: arith.divui
func.func @unsigned(%x: tensor<4xui8>) -> (tensor<4xi1>, tensor<4xui8>) {
  %k = onnx.constant {value = dense<200> : tensor<ui8>} : tensor<ui8>
  %0 = "onnx.Less"(%x, %k) : (tensor<4xui8>, tensor<ui8>) -> tensor<4xi1>
  %1 = "onnx.Div"(%x, %k) : (tensor<4xui8>, tensor<ui8>) -> tensor<4xui8>
  return %0, %1 : tensor<4xi1>, tensor<4xui8>
}

// A float becomes an integer by truncation with saturation; NaN becomes zero.
// CHECK-LABEL: func @cast
// CHECK-DAG: arith.cmpf oge
// CHECK-DAG: arith.cmpf ole
// CHECK-DAG: arith.cmpf uno
// CHECK: arith.fptosi
func.func @cast(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = "onnx.Cast"(%x) {to = 3 : i64} : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// Nothing is widened where nothing is computed; the absent minimum is left out.
// CHECK-LABEL: func @choose
// CHECK: arith.select {{.*}} : f16
// CHECK-NOT: maximumf
// CHECK: arith.minimumf
func.func @choose(%c: tensor<4xi1>, %x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
  %0 = "onnx.Where"(%c, %x, %y) : (tensor<4xi1>, tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %no = onnx.absent
  %six = onnx.constant {value = dense<6.0> : tensor<f16>} : tensor<f16>
  %1 = "onnx.Clip"(%0, %no, %six) : (tensor<4xf16>, none, tensor<f16>) -> tensor<4xf16>
  return %1 : tensor<4xf16>
}
