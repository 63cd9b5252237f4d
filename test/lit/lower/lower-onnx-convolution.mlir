// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s
// RUN: ogc-opt %s -ogc-convert-precision=precision=tf32 -ogc-lower-onnx | FileCheck %s --check-prefix=TF32

// Channels last inside transposes, the filter [F, C, KH, KW] packed as [KH * KW * C, F], the bias an epilogue on the anchor.
// CHECK-LABEL: func @conv2d
// CHECK: %[[X:.*]] = linalg.transpose ins(%arg0 : tensor<1x6x10x10xf32>) {{.*}} permutation = [0, 2, 3, 1]
// CHECK: linalg.transpose ins(%arg1 : tensor<8x6x3x3xf32>) {{.*}} permutation = [2, 3, 1, 0]
// CHECK: %[[ACC:.*]] = kern.conv %[[X]], %{{.*}} {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x10x10x6xf32>, tensor<1x54x16xf32>) -> tensor<1x5x5x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[ACC]], %arg2 : tensor<1x5x5x8xf32>, tensor<8xf32>)
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
func.func @conv2d(%x: tensor<1x6x10x10xf32>, %w: tensor<8x6x3x3xf32>, %b: tensor<8xf32>) -> tensor<1x8x5x5xf32> {
  %0 = "onnx.Conv"(%x, %w, %b) {auto_pad = "SAME_LOWER", group = 1 : i64, kernel_shape = array<i64: 3, 3>, pads = array<i64: 0, 0, 0, 0>,
      strides = array<i64: 2, 2>} : (tensor<1x6x10x10xf32>, tensor<8x6x3x3xf32>, tensor<8xf32>) -> tensor<1x8x5x5xf32>
  return %0 : tensor<1x8x5x5xf32>
}

// Strided windows over an image of few channels: rows and pixels of each phase of the strides are channels, filled up to whole loads; the filter
// grows to a multiple of the strides. What no window meets is cut off.
// CHECK-LABEL: func @phases
// CHECK: %[[CUT:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [2, 3, 23, 24] [1, 1, 1, 1] : tensor<2x3x24x24xf16> to tensor<2x3x23x24xf16>
// CHECK: tensor.pad %[[CUT]] low[0, 0, 3, 0] high[0, 0, 0, 0]
// CHECK: tensor.pad {{.*}} low[0, 0, 0, 3] high[0, 0, 0, 3]
// CHECK: tensor.pad %arg1 low[0, 0, 0, 0] high[0, 0, 0, 1]
// CHECK: linalg.transpose ins(%{{.*}} : tensor<2x3x13x2x15x2xf16>) {{.*}} permutation = [0, 2, 4, 3, 5, 1]
// CHECK: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 0, 4]
// CHECK: linalg.transpose ins(%{{.*}} : tensor<8x3x3x2x4x2xf16>) {{.*}} permutation = [2, 4, 3, 5, 1, 0]
// CHECK: tensor.pad {{.*}} low[0, 0, 0, 0] high[0, 0, 4, 0]
// CHECK: kern.conv {{.*}} {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 4>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x13x15x16xf16>, tensor<1x192x16xf16>) -> tensor<2x11x12x8xf32>
func.func @phases(%x: tensor<2x3x24x24xf16>, %w: tensor<8x3x6x7xf16>, %b: tensor<8xf16>) -> tensor<2x8x11x12xf16> {
  %0 = "onnx.Conv"(%x, %w, %b) {pads = array<i64: 3, 3, 0, 3>, strides = array<i64: 2, 2>} : (tensor<2x3x24x24xf16>, tensor<8x3x6x7xf16>, tensor<8xf16>) -> tensor<2x8x11x12xf16>
  return %0 : tensor<2x8x11x12xf16>
}

// f32 has whole loads of four, and stays as it is where products are exact.
// CHECK-LABEL: func @phases_f32
// CHECK: kern.conv {{.*}}kernel = array<i64: 7, 7>,
// TF32-LABEL: func @phases_f32
// TF32: kern.conv {{.*}} {dilations = array<i64: 1, 1>, kernel = array<i64: 4, 4>, math = #kern.math<tf32>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x15x15x12xf32>, tensor<1x192x16xf32>) -> tensor<2x12x12x8xf32>
func.func @phases_f32(%x: tensor<2x3x24x24xf32>, %w: tensor<8x3x7x7xf32>, %b: tensor<8xf32>) -> tensor<2x8x12x12xf32> {
  %0 = "onnx.Conv"(%x, %w, %b) {pads = array<i64: 3, 3, 3, 3>, strides = array<i64: 2, 2>} : (tensor<2x3x24x24xf32>, tensor<8x3x7x7xf32>, tensor<8xf32>) -> tensor<2x8x12x12xf32>
  return %0 : tensor<2x8x12x12xf32>
}

// CHECK-LABEL: func @conv1d
// CHECK: kern.conv {{.*}}kernel = array<i64: 1, 3>, pads = array<i64: 0, 2, 0, 0>
func.func @conv1d(%x: tensor<1x4x10xf32>, %w: tensor<8x4x3xf32>) -> tensor<1x8x10xf32> {
  %0 = "onnx.Conv"(%x, %w) {pads = array<i64: 2, 0>} : (tensor<1x4x10xf32>, tensor<8x4x3xf32>) -> tensor<1x8x10xf32>
  return %0 : tensor<1x8x10xf32>
}

// CHECK-LABEL: func @depthwise
// CHECK: linalg.transpose {{.*}} permutation = [1, 2, 0]
// CHECK: kern.depthwise_conv {{.*}} : (tensor<1x5x5x8xf16>, tensor<3x3x8xf16>) -> tensor<1x5x5x8xf32>
func.func @depthwise(%x: tensor<1x8x5x5xf16>, %w: tensor<8x1x3x3xf16>) -> tensor<1x8x5x5xf16> {
  %0 = "onnx.Conv"(%x, %w) {pads = array<i64: 1, 1, 1, 1>, group = 8 : i64} : (tensor<1x8x5x5xf16>, tensor<8x1x3x3xf16>) -> tensor<1x8x5x5xf16>
  return %0 : tensor<1x8x5x5xf16>
}

// Types that the anchors do not take: a reduction over the padded input.
// CHECK-LABEL: func @grouped
// CHECK: tensor.pad
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
func.func @grouped(%x: tensor<1x8x5x5xf64>, %w: tensor<4x4x3x3xf64>) -> tensor<1x4x5x5xf64> {
  %0 = "onnx.Conv"(%x, %w) {pads = array<i64: 1, 1, 1, 1>, group = 2 : i64} : (tensor<1x8x5x5xf64>, tensor<4x4x3x3xf64>) -> tensor<1x4x5x5xf64>
  return %0 : tensor<1x4x5x5xf64>
}

// A transposed convolution is one of the spread input with the mirrored filter.
// CHECK-LABEL: func @transposed
// CHECK: kern.conv {{.*}}kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 2, 2>, strides = array<i64: 1, 1>{{.*}} : (tensor<1x9x9x4xf32>
func.func @transposed(%x: tensor<1x4x5x5xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x2x10x10xf32> {
  %0 = "onnx.ConvTranspose"(%x, %w) {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>, output_padding = array<i64: 1, 1>}
      : (tensor<1x4x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x2x10x10xf32>
  return %0 : tensor<1x2x10x10xf32>
}

// A filter of equal values still gives the loops their extents.
// CHECK-LABEL: func @grouped_splat
// CHECK: linalg.generic
// CHECK-SAME: tensor<2x2x2x3x3xf64>
func.func @grouped_splat(%x: tensor<1x4x5x5xf64>) -> tensor<1x4x5x5xf64> {
  %w = onnx.constant {value = dense<5.0e-01> : tensor<4x2x3x3xf64>} : tensor<4x2x3x3xf64>
  %0 = "onnx.Conv"(%x, %w) {pads = array<i64: 1, 1, 1, 1>, group = 2 : i64} : (tensor<1x4x5x5xf64>, tensor<4x2x3x3xf64>) -> tensor<1x4x5x5xf64>
  return %0 : tensor<1x4x5x5xf64>
}

// Windows that tile an image of few channels: a product of the patches, in the order of the filter. What no window reads is cut off.
// CHECK-LABEL: func @patches
// CHECK: tensor.extract_slice %arg0[0, 0, 0, 0] [2, 3, 16, 20] [1, 1, 1, 1]
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 4, 1, 3, 5]
// CHECK: kern.matmul {{.*}} {packed} : (tensor<1x40x48xf32>, tensor<1x48x16xf32>) -> tensor<1x40x8xf32>
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
func.func @patches(%x: tensor<2x3x18x21xf32>, %w: tensor<8x3x4x4xf32>, %b: tensor<8xf32>) -> tensor<2x8x4x5xf32> {
  %0 = "onnx.Conv"(%x, %w, %b) {kernel_shape = array<i64: 4, 4>, strides = array<i64: 4, 4>}
      : (tensor<2x3x18x21xf32>, tensor<8x3x4x4xf32>, tensor<8xf32>) -> tensor<2x8x4x5xf32>
  return %0 : tensor<2x8x4x5xf32>
}

// With channels to load at once, or windows that overlap, it stays a convolution.
// CHECK-LABEL: func @no_patches
// CHECK-COUNT-2: kern.conv
func.func @no_patches(%x: tensor<1x8x16x16xf32>, %w: tensor<3x8x4x4xf32>, %v: tensor<8x3x3x3xf32>) -> tensor<1x8x1x1xf32> {
  %0 = "onnx.Conv"(%x, %w) {strides = array<i64: 4, 4>} : (tensor<1x8x16x16xf32>, tensor<3x8x4x4xf32>) -> tensor<1x3x4x4xf32>
  %1 = "onnx.Conv"(%0, %v) {strides = array<i64: 2, 2>} : (tensor<1x3x4x4xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x1x1xf32>
  return %1 : tensor<1x8x1x1xf32>
}
