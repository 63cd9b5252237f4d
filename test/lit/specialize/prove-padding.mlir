// Positions along a named dimension that stay apart from input to output.
// RUN: ogc-opt %s -split-input-file -ogc-prove-padding=symbol=n | FileCheck %s

// Element by element: safe.
// CHECK: module attributes {ogc.padding = {{.*}}cuts = [array<i64: 0, 0, 1>], node = "", operator = "", reason = "", safe = true, symbol = "n"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}, %w: tensor<8xf32>) -> tensor<2x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %e = tensor.empty() : tensor<2x8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #col, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<2x8xf32>, tensor<8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}, %w: tensor<8xf32>) -> tensor<3x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %e = tensor.empty() : tensor<3x8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #col, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<3x8xf32>, tensor<8xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// -----

// Rows merged with an inner dimension, multiplied and split again: safe.
// CHECK: module attributes {ogc.padding = {{.*}}cuts = [array<i64: 0, 0, 4>]
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x4x8xf32> {onnx.name = "x", onnx.symbols = ["n", "", ""]}, %w: tensor<1x8x5xf32>) -> tensor<8x5xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x8xf32> into tensor<8x8xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [1, 8, 8] : tensor<8x8xf32> into tensor<1x8x8xf32>
  %2 = kern.matmul %1, %w : (tensor<1x8x8xf32>, tensor<1x8x5xf32>) -> tensor<1x8x5xf32>
  %3 = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<1x8x5xf32> into tensor<8x5xf32>
  return %3 : tensor<8x5xf32>
}
func.func @size3(%x: tensor<3x4x8xf32> {onnx.name = "x", onnx.symbols = ["n", "", ""]}, %w: tensor<1x8x5xf32>) -> tensor<12x5xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<3x4x8xf32> into tensor<12x8xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [1, 12, 8] : tensor<12x8xf32> into tensor<1x12x8xf32>
  %2 = kern.matmul %1, %w : (tensor<1x12x8xf32>, tensor<1x8x5xf32>) -> tensor<1x12x5xf32>
  %3 = tensor.collapse_shape %2 [[0, 1], [2]] : tensor<1x12x5xf32> into tensor<12x5xf32>
  return %3 : tensor<12x5xf32>
}

// -----

// A gather by constant indices that are the row's own position: safe.
// CHECK: module attributes {ogc.padding = {{.*}}cuts = [array<i64: 0, 0, 1>]
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<2x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %i = arith.constant dense<[0, 1]> : tensor<2xi64>
  %e = tensor.empty() : tensor<2x8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<2xi64>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %last = arith.constant 1 : index
    %q = arith.minsi %p, %last : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%q, %j] : tensor<2x8xf32>
    linalg.yield %v : f32
  } -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<3x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %i = arith.constant dense<[0, 1, 2]> : tensor<3xi64>
  %e = tensor.empty() : tensor<3x8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<3xi64>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %last = arith.constant 2 : index
    %q = arith.minsi %p, %last : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%q, %j] : tensor<3x8xf32>
    linalg.yield %v : f32
  } -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// -----

// A part of a table whose length follows the size: safe.
// CHECK: module attributes {ogc.padding = {{.*}}cuts = [array<i64: 0, 0, 1>]
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}, %w: tensor<16x8xf32>) -> tensor<2x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %0 = tensor.extract_slice %w[0, 0] [2, 8] [1, 1] : tensor<16x8xf32> to tensor<2x8xf32>
  %e = tensor.empty() : tensor<2x8xf32>
  %1 = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %0 : tensor<2x8xf32>, tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %2 = arith.mulf %a, %b : f32
    linalg.yield %2 : f32
  } -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}, %w: tensor<16x8xf32>) -> tensor<3x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %0 = tensor.extract_slice %w[0, 0] [3, 8] [1, 1] : tensor<16x8xf32> to tensor<3x8xf32>
  %e = tensor.empty() : tensor<3x8xf32>
  %1 = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %0 : tensor<3x8xf32>, tensor<3x8xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %2 = arith.mulf %a, %b : f32
    linalg.yield %2 : f32
  } -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}
