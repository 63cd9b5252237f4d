// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// GridSample is one generic that reads the data at computed positions; nearest keeps the element type.
// CHECK-LABEL: func @grid_nearest
// CHECK: linalg.generic {{.*}} ins(%arg1, %arg1 : tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) outs(%{{.*}} : tensor<1x3x2x2xi32>)
// CHECK: tensor.extract %arg0
// CHECK-NOT: tensor.extract
func.func @grid_nearest(%x: tensor<1x3x4x4xi32>, %g: tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xi32> {
  %0 = "onnx.GridSample"(%x, %g) {mode = "nearest"} : (tensor<1x3x4x4xi32>, tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xi32>
  return %0 : tensor<1x3x2x2xi32>
}

// Linear interpolation in two dimensions reads four elements.
// CHECK-LABEL: func @grid_linear
// CHECK-COUNT-4: tensor.extract %arg0
// CHECK-NOT: tensor.extract
func.func @grid_linear(%x: tensor<1x3x4x4xf32>, %g: tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xf32> {
  %0 = "onnx.GridSample"(%x, %g) {mode = "linear", padding_mode = "border"} : (tensor<1x3x4x4xf32>, tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xf32>
  return %0 : tensor<1x3x2x2xf32>
}

// The sampled columns of DeformConv go into a product.
// CHECK-LABEL: func @deform
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x2x2x2x3x3xf32>)
// CHECK: kern.matmul {{.*}} (tensor<1x4x8xf32>, tensor<1x8x9xf32>) -> tensor<1x4x9xf32>
func.func @deform(%x: tensor<1x2x4x4xf32>, %w: tensor<4x2x2x2xf32>, %o: tensor<1x8x3x3xf32>) -> tensor<1x4x3x3xf32> {
  %0 = "onnx.DeformConv"(%x, %w, %o) : (tensor<1x2x4x4xf32>, tensor<4x2x2x2xf32>, tensor<1x8x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %0 : tensor<1x4x3x3xf32>
}

// RoiAlign is a reduction over the samples of a bin.
// CHECK-LABEL: func @roi
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
func.func @roi(%x: tensor<1x2x8x8xf32>, %r: tensor<5x4xf32>, %b: tensor<5xi64>) -> tensor<5x2x3x3xf32> {
  %0 = "onnx.RoiAlign"(%x, %r, %b) {output_height = 3 : i64, output_width = 3 : i64, sampling_ratio = 2 : i64}
      : (tensor<1x2x8x8xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x2x3x3xf32>
  return %0 : tensor<5x2x3x3xf32>
}

// Col2Im: each pixel sums the elements of the blocks that cover it.
// CHECK-LABEL: func @col2im
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
func.func @col2im(%x: tensor<1x4x4xf32>) -> tensor<1x1x3x3xf32> {
  %i = onnx.constant {value = dense<3> : tensor<2xi64>} : tensor<2xi64>
  %k = onnx.constant {value = dense<2> : tensor<2xi64>} : tensor<2xi64>
  %0 = "onnx.Col2Im"(%x, %i, %k) : (tensor<1x4x4xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<1x1x3x3xf32>
  return %0 : tensor<1x1x3x3xf32>
}

// A short transform is one product with a constant; a long one is split into two with twiddle factors in between.
// CHECK-LABEL: func @dft_short
// CHECK-COUNT-1: kern.matmul
// CHECK-NOT: kern.matmul
func.func @dft_short(%x: tensor<2x8x1xf32>) -> tensor<2x5x2xf32> {
  %no = onnx.absent
  %a = onnx.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %0 = "onnx.DFT"(%x, %no, %a) {onesided = 1 : i64} : (tensor<2x8x1xf32>, none, tensor<i64>) -> tensor<2x5x2xf32>
  return %0 : tensor<2x5x2xf32>
}
// CHECK-LABEL: func @dft_split
// CHECK-COUNT-2: kern.matmul
// CHECK-NOT: kern.matmul
func.func @dft_split(%x: tensor<1x1024x2xf32>) -> tensor<1x1024x2xf32> {
  %no = onnx.absent
  %a = onnx.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %0 = "onnx.DFT"(%x, %no, %a) : (tensor<1x1024x2xf32>, none, tensor<i64>) -> tensor<1x1024x2xf32>
  return %0 : tensor<1x1024x2xf32>
}

// STFT reads overlapping frames through an affine map.

// CHECK-LABEL: func @stft
// CHECK: linalg.generic {{{.*}}indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}]{{.*}} ins(%arg0, %arg1 : tensor<1x16x1xf32>, tensor<8xf32>)
func.func @stft(%x: tensor<1x16x1xf32>, %w: tensor<8xf32>) -> tensor<1x3x5x2xf32> {
  %s = onnx.constant {value = dense<4> : tensor<i64>} : tensor<i64>
  %0 = "onnx.STFT"(%x, %s, %w) : (tensor<1x16x1xf32>, tensor<i64>, tensor<8xf32>) -> tensor<1x3x5x2xf32>
  return %0 : tensor<1x3x5x2xf32>
}

// Random numbers are a function of the position; two operators have different keys.
// CHECK-LABEL: func @random
// CHECK-COUNT-20: arith.muli {{.*}} : i64
// CHECK: math.cos
func.func @random() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "onnx.RandomUniform"() {shape = array<i64: 4>} : () -> tensor<4xf32>
  %1 = "onnx.RandomNormal"() {shape = array<i64: 4>} : () -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Grouped convolutions are one batched product; three dimensions are one convolution for each plane of the filter.
// CHECK-LABEL: func @grouped
// CHECK: kern.matmul {{.*}} {transpose_rhs} : (tensor<2x9x8xf32>, tensor<2x3x8xf32>) -> tensor<2x9x3xf32>
func.func @grouped(%x: tensor<1x4x4x4xf32>, %w: tensor<6x2x2x2xf32>) -> tensor<1x6x3x3xf32> {
  %0 = "onnx.Conv"(%x, %w) {group = 2 : i64} : (tensor<1x4x4x4xf32>, tensor<6x2x2x2xf32>) -> tensor<1x6x3x3xf32>
  return %0 : tensor<1x6x3x3xf32>
}
// CHECK-LABEL: func @volume
// CHECK-COUNT-3: kern.conv
// CHECK-NOT: kern.conv
func.func @volume(%x: tensor<1x4x5x6x6xf32>, %w: tensor<8x4x3x3x3xf32>) -> tensor<1x8x3x4x4xf32> {
  %0 = "onnx.Conv"(%x, %w) : (tensor<1x4x5x6x6xf32>, tensor<8x4x3x3x3xf32>) -> tensor<1x8x3x4x4xf32>
  return %0 : tensor<1x8x3x4x4xf32>
}

// As many samples a bin as it has pixels: the loops are data, so each element is a run of a program.
// CHECK-LABEL: func @roi_adaptive
// CHECK: kern.program({{.*}}) groups = 90
func.func @roi_adaptive(%x: tensor<1x2x8x8xf32>, %r: tensor<5x4xf32>, %b: tensor<5xi64>) -> tensor<5x2x3x3xf32> {
  %0 = "onnx.RoiAlign"(%x, %r, %b) {output_height = 3 : i64, output_width = 3 : i64, sampling_ratio = 0 : i64}
      : (tensor<1x2x8x8xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x2x3x3xf32>
  return %0 : tensor<5x2x3x3xf32>
}

// A column of the state of LinearAttention is a run of a program.
// CHECK-LABEL: func @linear_attention
// CHECK: kern.program({{.*}}) groups = 4
func.func @linear_attention(%q: tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4x4xf32>) {
  %0:2 = "onnx.LinearAttention"(%q, %q, %q) {update_rule = "linear", q_num_heads = 1 : i64, kv_num_heads = 1 : i64}
      : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4x4xf32>)
  return %0#0, %0#1 : tensor<1x2x4xf32>, tensor<1x1x4x4xf32>
}
