// Extents that depend on the data get a bound; what carries them on does, and results name them.
// RUN: ogc-opt %s -ogc-bound-extents | FileCheck %s

// CHECK-LABEL: func @nonzero
// CHECK-SAME:    -> (tensor<2x6xi64> {ogc.extent = array<i64: 1, 1>}, tensor<i64> {ogc.hidden})
// CHECK:         %[[ALL:.*]] = "onnx.NonZero"(%arg0) : (tensor<2x3xf32>) -> tensor<2x6xi64>
// CHECK:         %[[COUNT:.*]] = "onnx.ReduceSum"
// CHECK:         "onnx.Gather"
// CHECK:         %[[PACKED:.*]] = "onnx.Reshape"
// CHECK:         return %[[PACKED]], %[[COUNT]]
func.func @nonzero(%x: tensor<2x3xf32>) -> tensor<2x?xi64> {
  %0 = "onnx.NonZero"(%x) : (tensor<2x3xf32>) -> tensor<2x?xi64>
  return %0 : tensor<2x?xi64>
}

// The extent moves to the front, so that nothing needs to be packed.
// CHECK-LABEL: func @carried
// CHECK-SAME:    -> (tensor<6xf32> {ogc.extent = array<i64: 0, 1>}, tensor<i64> {ogc.hidden})
// CHECK:         "onnx.GatherND"({{.*}}) {batch_dims = 0 : i64} : (tensor<2x3xf32>, tensor<6x2xi64>) -> tensor<6xf32>
func.func @carried(%x: tensor<2x3xf32>) -> tensor<?xf32> {
  %0 = "onnx.NonZero"(%x) : (tensor<2x3xf32>) -> tensor<2x?xi64>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 1, 0>} : (tensor<2x?xi64>) -> tensor<?x2xi64>
  %2 = "onnx.GatherND"(%x, %1) {batch_dims = 0 : i64} : (tensor<2x3xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  %3 = "onnx.Relu"(%2) : (tensor<?xf32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}

// CHECK-LABEL: func @static
// CHECK-SAME:    -> tensor<4xf32> {
func.func @static(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
