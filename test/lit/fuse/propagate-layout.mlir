// Transposes around convolutions cancel through what lies between them.
// RUN: ogc-opt %s -split-input-file -ogc-propagate-layout | FileCheck %s

#nchw = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>

// CHECK: #[[$ID:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: #[[$LAST:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-LABEL: func @bias_relu
// CHECK: %[[A:.*]] = kern.conv
// CHECK-NOT: linalg.transpose
// CHECK: %[[B:.*]] = linalg.generic {indexing_maps = [#[[$ID]], #[[$LAST]], #[[$ID]]]
// CHECK-SAME: ins(%[[A]], %{{.*}} : tensor<1x6x6x16xf32>, tensor<16xf32>) outs(%{{.*}} : tensor<1x6x6x16xf32>)
// CHECK: kern.conv %[[B]]
func.func @bias_relu(%x: tensor<1x8x8x3xf32>, %w: tensor<1x27x16xf32>, %v: tensor<1x144x16xf32>, %b: tensor<16xf32>) -> tensor<1x4x4x16xf32> {
  %0 = kern.conv %x, %w {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x3xf32>, tensor<1x27x16xf32>) -> tensor<1x6x6x16xf32>
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  %1 = linalg.transpose ins(%0 : tensor<1x6x6x16xf32>) outs(%e : tensor<1x16x6x6xf32>) permutation = [0, 3, 1, 2]
  %2 = linalg.generic {indexing_maps = [#nchw, #channel, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %b : tensor<1x16x6x6xf32>, tensor<16xf32>) outs(%e : tensor<1x16x6x6xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x16x6x6xf32>
  %f = tensor.empty() : tensor<1x6x6x16xf32>
  %3 = linalg.transpose ins(%2 : tensor<1x16x6x6xf32>) outs(%f : tensor<1x6x6x16xf32>) permutation = [0, 2, 3, 1]
  %4 = kern.conv %3, %v {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x6x6x16xf32>, tensor<1x144x16xf32>) -> tensor<1x4x4x16xf32>
  return %4 : tensor<1x4x4x16xf32>
}

// -----

#in = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 2 + d5)>
#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
#out = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// A padded pooling works channels last; its loops follow its result.
// CHECK: #[[$IN:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d3)>
// CHECK-LABEL: func @pool
// CHECK-NOT: linalg.transpose
// CHECK: tensor.pad %{{.*}} low[0, 0, 0, 0] high[0, 1, 1, 0]
// CHECK: linalg.fill {{.*}} -> tensor<1x3x3x8xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$IN]]
// CHECK-SAME: outs({{.*}} : tensor<1x3x3x8xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @pool(%x: tensor<1x6x6x8xf32>) -> tensor<1x3x3x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x8x6x6xf32>
  %0 = linalg.transpose ins(%x : tensor<1x6x6x8xf32>) outs(%e : tensor<1x8x6x6xf32>) permutation = [0, 3, 1, 2]
  %1 = tensor.pad %0 low[0, 0, 0, 0] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %low : f32
  } : tensor<1x8x6x6xf32> to tensor<1x8x7x7xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %f = tensor.empty() : tensor<1x8x3x3xf32>
  %init = linalg.fill ins(%low : f32) outs(%f : tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32>
  %2 = linalg.generic {indexing_maps = [#in, #window, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%1, %w : tensor<1x8x7x7xf32>, tensor<3x3xf32>) outs(%init : tensor<1x8x3x3xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.maximumf %i, %o : f32
    linalg.yield %m : f32
  } -> tensor<1x8x3x3xf32>
  %g = tensor.empty() : tensor<1x3x3x8xf32>
  %3 = linalg.transpose ins(%2 : tensor<1x8x3x3xf32>) outs(%g : tensor<1x3x3x8xf32>) permutation = [0, 2, 3, 1]
  return %3 : tensor<1x3x3x8xf32>
}

// -----

// Splitting and joining heads around attention leaves reshapes only.
// CHECK-LABEL: func @heads
// CHECK-NOT: linalg.transpose
// CHECK: %[[Q:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<1x4x2x8xf32>
// CHECK: %[[A:.*]] = kern.attention %[[Q]], %[[Q]], %[[Q]]
// CHECK-NOT: linalg.transpose
// CHECK: tensor.collapse_shape %[[A]]
func.func @heads(%x: tensor<1x4x16xf32>) -> tensor<1x4x16xf32> {
  %0 = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [1, 4, 2, 8] : tensor<1x4x16xf32> into tensor<1x4x2x8xf32>
  %e = tensor.empty() : tensor<1x2x4x8xf32>
  %1 = linalg.transpose ins(%0 : tensor<1x4x2x8xf32>) outs(%e : tensor<1x2x4x8xf32>) permutation = [0, 2, 1, 3]
  %f = tensor.empty() : tensor<1x4x2x8xf32>
  %2 = linalg.transpose ins(%1 : tensor<1x2x4x8xf32>) outs(%f : tensor<1x4x2x8xf32>) permutation = [0, 2, 1, 3]
  %3 = kern.attention %2, %2, %2 {scale = 1.0 : f32} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  %4 = linalg.transpose ins(%3 : tensor<1x4x2x8xf32>) outs(%e : tensor<1x2x4x8xf32>) permutation = [0, 2, 1, 3]
  %5 = linalg.transpose ins(%4 : tensor<1x2x4x8xf32>) outs(%f : tensor<1x4x2x8xf32>) permutation = [0, 2, 1, 3]
  %6 = tensor.collapse_shape %5 [[0], [1], [2, 3]] : tensor<1x4x2x8xf32> into tensor<1x4x16xf32>
  return %6 : tensor<1x4x16xf32>
}

// -----

// CHECK-LABEL: func @transposed_rhs
// CHECK-NOT: linalg.transpose
// CHECK: kern.matmul %arg0, %arg1 {transpose_rhs}
func.func @transposed_rhs(%x: tensor<2x4x8xf32>, %y: tensor<2x6x8xf32>) -> tensor<2x4x6xf32> {
  %e = tensor.empty() : tensor<2x8x6xf32>
  %0 = linalg.transpose ins(%y : tensor<2x6x8xf32>) outs(%e : tensor<2x8x6xf32>) permutation = [0, 2, 1]
  %1 = kern.matmul %x, %0 : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  return %1 : tensor<2x4x6xf32>
}

// A matrix times its own transposed one: the two operands are one value, of which only the right one is read as it lies.
// CHECK-LABEL: @square
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0
// CHECK: kern.matmul %[[T]], %arg0 {{.*}}: (tensor<2x8x8xf32>
func.func @square(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %e = tensor.empty() : tensor<2x8x8xf32>
  %0 = linalg.transpose ins(%x : tensor<2x8x8xf32>) outs(%e : tensor<2x8x8xf32>) permutation = [0, 2, 1]
  %1 = kern.matmul %0, %0 {transpose_rhs} : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %1 : tensor<2x8x8xf32>
}

// -----

// What a body reads from outside comes in its own layout, from before the operation.
// CHECK-LABEL: func @captured
// CHECK: %[[X:.*]] = linalg.transpose ins(%arg0
// CHECK: linalg.generic
// CHECK: tensor.extract %[[X]]
func.func @captured(%x: tensor<2x8x3xf32>, %i: tensor<3xi64>) -> tensor<2x3x8xf32> {
  %e = tensor.empty() : tensor<2x3x8xf32>
  %0 = linalg.transpose ins(%x : tensor<2x8x3xf32>) outs(%e : tensor<2x3x8xf32>) permutation = [0, 2, 1]
  %1 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (b)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]} ins(%i : tensor<3xi64>) outs(%e : tensor<2x3x8xf32>) {
  ^bb0(%in: i64, %out: f32):
    %a = linalg.index 0 : index
    %c = linalg.index 2 : index
    %b = arith.index_cast %in : i64 to index
    %v = tensor.extract %0[%a, %b, %c] : tensor<2x3x8xf32>
    linalg.yield %v : f32
  } -> tensor<2x3x8xf32>
  return %1 : tensor<2x3x8xf32>
}

// -----

// Attention converts a cache as it reads it, through strides: the transpose is left to it. What is computed is computed in its layout.
// CHECK-LABEL: func @caches
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<1x8x32x64xf32>, %[[V:[a-z0-9]+]]: tensor<1x8x32x64xf32>
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<1x8x32x64xf32>) outs(%{{.*}} : tensor<1x8x32x64xf16>)
// CHECK: arith.truncf
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<1x8x32x64xf32>) outs(%{{.*}} : tensor<1x32x8x64xf16>)
// CHECK: arith.mulf
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[C]]
// CHECK-NOT: linalg.transpose
// CHECK: kern.attention %{{.*}}, %[[T]], %[[S]]
#same = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @caches(%q: tensor<1x1x8x64xf16>, %k: tensor<1x8x32x64xf32>, %v: tensor<1x8x32x64xf32>) -> tensor<1x1x8x64xf32> {
  %e = tensor.empty() : tensor<1x8x32x64xf16>
  %0 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<1x8x32x64xf32>) outs(%e : tensor<1x8x32x64xf16>) {
  ^bb0(%i: f32, %o: f16):
    %c = arith.truncf %i : f32 to f16
    linalg.yield %c : f16
  } -> tensor<1x8x32x64xf16>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<1x8x32x64xf32>) outs(%e : tensor<1x8x32x64xf16>) {
  ^bb0(%i: f32, %o: f16):
    %m = arith.mulf %i, %i : f32
    %c = arith.truncf %m : f32 to f16
    linalg.yield %c : f16
  } -> tensor<1x8x32x64xf16>
  %f = tensor.empty() : tensor<1x32x8x64xf16>
  %2 = linalg.transpose ins(%0 : tensor<1x8x32x64xf16>) outs(%f : tensor<1x32x8x64xf16>) permutation = [0, 2, 1, 3]
  %3 = linalg.transpose ins(%1 : tensor<1x8x32x64xf16>) outs(%f : tensor<1x32x8x64xf16>) permutation = [0, 2, 1, 3]
  %4 = kern.attention %q, %2, %3 {scale = 1.0 : f32} : (tensor<1x1x8x64xf16>, tensor<1x32x8x64xf16>, tensor<1x32x8x64xf16>) -> tensor<1x1x8x64xf32>
  return %4 : tensor<1x1x8x64xf32>
}
