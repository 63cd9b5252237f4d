// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// All generics of a normalization live on one domain [outer, inner]; inside everything is f32.
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[$OUTER:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[$INNER:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-DAG: #[[$MIDDLE:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

// CHECK-LABEL: func @layer_norm
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[$ROW]], #[[$OUTER]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<2x5x8xf16>)
// CHECK: %[[SQ:.*]] = linalg.generic {indexing_maps = [#[[$ROW]], #[[$OUTER]], #[[$OUTER]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %[[SUM]]
// CHECK: linalg.generic {indexing_maps = [#[[$ROW]], #[[$OUTER]], #[[$OUTER]], #[[$INNER]], #[[$INNER]], #[[$ROW]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %[[SUM]], %[[SQ]], %arg1, %arg2
// CHECK: arith.truncf
func.func @layer_norm(%x: tensor<2x5x8xf16>, %w: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<2x5x8xf16> {
  %0 = "onnx.LayerNormalization"(%x, %w, %b) {axis = -1 : i64, epsilon = 1.0e-5 : f32, stash_type = 1 : i64}
      : (tensor<2x5x8xf16>, tensor<8xf16>, tensor<8xf16>) -> tensor<2x5x8xf16>
  return %0 : tensor<2x5x8xf16>
}

// A reduced dimension in the middle is the innermost of the domain.
// CHECK-LABEL: func @softmax
// CHECK: %[[MAX:.*]] = linalg.generic {indexing_maps = [#[[$MIDDLE]], #[[$OUTER]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: arith.maximumf
// CHECK: %[[EXP:.*]] = linalg.generic {indexing_maps = [#[[$MIDDLE]], #[[$OUTER]], #[[$MIDDLE]]]
// CHECK: math.exp
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[EXP]] : tensor<2x5x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[EXP]], %[[SUM]] :
// CHECK: arith.divf
func.func @softmax(%x: tensor<2x5x8xf16>) -> tensor<2x5x8xf16> {
  %0 = "onnx.Softmax"(%x) {axis = 1 : i64} : (tensor<2x5x8xf16>) -> tensor<2x5x8xf16>
  return %0 : tensor<2x5x8xf16>
}

// Batch normalization is a factor and an offset for each channel.
// CHECK-LABEL: func @batch_norm
// CHECK: %[[F:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8xf32>)
// CHECK: %[[O:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[F]], %[[O]] :
func.func @batch_norm(%x: tensor<2x8x4xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) -> tensor<2x8x4xf32> {
  %0 = "onnx.BatchNormalization"(%x, %s, %b, %m, %v) {epsilon = 1.0e-5 : f32, momentum = 0.9 : f32, training_mode = 0 : i64}
      : (tensor<2x8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}
