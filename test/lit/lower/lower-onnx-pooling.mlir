// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// A window reduction over the padded input; an operand that nothing reads gives the window its extents.
// CHECK-DAG: #[[$IN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 2 + d5)>
// CHECK-DAG: #[[$KERNEL:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
// CHECK-LABEL: func @max_pool
// CHECK: tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[$IN]], #[[$KERNEL]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
// CHECK: arith.maximumf
func.func @max_pool(%x: tensor<1x8x5x5xf32>) -> tensor<1x8x3x3xf32> {
  %0 = "onnx.MaxPool"(%x) {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, auto_pad = "NOTSET",
      ceil_mode = 0 : i64, storage_order = 0 : i64} : (tensor<1x8x5x5xf32>) -> tensor<1x8x3x3xf32>
  return %0 : tensor<1x8x3x3xf32>
}

// Without the padding each window divides by its own count, that of the positions from its first to its last inside of the image.
// CHECK-LABEL: func @average_pool
// CHECK: linalg.generic {{.*}}"reduction"]
// CHECK: linalg.generic
// CHECK: linalg.index 2
// CHECK: %[[LAST:.*]] = arith.minsi
// CHECK: %[[FIRST:.*]] = arith.minsi
// CHECK: arith.subi %[[LAST]], %[[FIRST]]
// CHECK: arith.sitofp
// CHECK: arith.divf
func.func @average_pool(%x: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %0 = "onnx.AveragePool"(%x) {kernel_shape = array<i64: 3>, pads = array<i64: 1, 1>, count_include_pad = 0 : i64} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}

// CHECK-LABEL: func @global_average_pool
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK: tensor.expand_shape {{.*}} into tensor<1x8x1x1xf32>
func.func @global_average_pool(%x: tensor<1x8x5x5xf32>) -> tensor<1x8x1x1xf32> {
  %0 = "onnx.GlobalAveragePool"(%x) : (tensor<1x8x5x5xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}
