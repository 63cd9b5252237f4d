// RUN: ogc-opt %s -ogc-absorb-scales | FileCheck %s

#id = affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>
#channel = affine_map<(d0,d1,d2,d3)->(d0,d3,0,0)>
#channelOnly = affine_map<(d0,d1,d2,d3)->(d3)>
#row = affine_map<(d0,d1,d2,d3)->(d0,d2,0,0)>

// The factors become an operand of the convolution; the scaled image is gone.
// CHECK-LABEL: func.func @squeeze
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8x16xf16>, %[[S:.*]]: tensor<2x16x1x1xf16>, %[[W:.*]]: tensor
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[S]]
// CHECK: %[[E:.*]] = tensor.expand_shape %[[C]] {{.*}} into tensor<2x1x1x16xf16>
// CHECK: kern.conv %[[X]], %[[W]], scale %[[E]] {
// CHECK-NOT: linalg.generic
func.func @squeeze(%x: tensor<2x8x8x16xf16>, %s: tensor<2x16x1x1xf16>, %w: tensor<1x16x16xf16>) -> tensor<2x8x8x16xf32> {
  %e = tensor.empty() : tensor<2x8x8x16xf16>
  %0 = linalg.generic {indexing_maps = [#channel, #id, #id], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%s, %x : tensor<2x16x1x1xf16>, tensor<2x8x8x16xf16>) outs(%e : tensor<2x8x8x16xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %1 = arith.extf %a : f16 to f32
    %2 = arith.extf %b : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.truncf %3 : f32 to f16
    linalg.yield %4 : f16
  } -> tensor<2x8x8x16xf16>
  %acc = kern.conv %0, %w {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x8x8x16xf16>, tensor<1x16x16xf16>) -> tensor<2x8x8x16xf32>
  return %acc : tensor<2x8x8x16xf32>
}

// f32: no rounding; the operands may come in any order.
// CHECK-LABEL: func.func @order
// CHECK: kern.conv %arg0, %arg2, scale %{{.*}} {
func.func @order(%x: tensor<1x8x8x16xf32>, %s: tensor<16xf32>, %w: tensor<1x16x16xf32>) -> tensor<1x8x8x16xf32> {
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #channelOnly, #id], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%x, %s : tensor<1x8x8x16xf32>, tensor<16xf32>) outs(%e : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<1x8x8x16xf32>
  %acc = kern.conv %0, %w {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x16xf32>, tensor<1x16x16xf32>) -> tensor<1x8x8x16xf32>
  return %acc : tensor<1x8x8x16xf32>
}

// Another reader of the product, a larger kernel, a factor for each row of the image: the product stays.
// CHECK-LABEL: func.func @other_reader
// CHECK: kern.conv %{{.*}}, %{{.*}} {
func.func @other_reader(%x: tensor<1x8x8x16xf32>, %s: tensor<16xf32>, %w: tensor<1x16x16xf32>) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>) {
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #channelOnly, #id], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%x, %s : tensor<1x8x8x16xf32>, tensor<16xf32>) outs(%e : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<1x8x8x16xf32>
  %acc = kern.conv %0, %w {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x16xf32>, tensor<1x16x16xf32>) -> tensor<1x8x8x16xf32>
  return %acc, %0 : tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>
}

// CHECK-LABEL: func.func @larger_kernel
// CHECK: kern.conv %{{.*}}, %{{.*}} {
func.func @larger_kernel(%x: tensor<1x8x8x16xf32>, %s: tensor<16xf32>, %w: tensor<1x144x16xf32>) -> tensor<1x6x6x16xf32> {
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #channelOnly, #id], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%x, %s : tensor<1x8x8x16xf32>, tensor<16xf32>) outs(%e : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<1x8x8x16xf32>
  %acc = kern.conv %0, %w {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x8x8x16xf32>, tensor<1x144x16xf32>) -> tensor<1x6x6x16xf32>
  return %acc : tensor<1x6x6x16xf32>
}

// CHECK-LABEL: func.func @other_factors
// CHECK: kern.conv %{{.*}}, %{{.*}} {
func.func @other_factors(%x: tensor<1x8x16x16xf32>, %s: tensor<1x16x1x1xf32>, %w: tensor<1x16x16xf32>) -> tensor<1x8x16x16xf32> {
  %e = tensor.empty() : tensor<1x8x16x16xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%x, %s : tensor<1x8x16x16xf32>, tensor<1x16x1x1xf32>) outs(%e : tensor<1x8x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<1x8x16x16xf32>
  %acc = kern.conv %0, %w {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x8x16x16xf32>, tensor<1x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %acc : tensor<1x8x16x16xf32>
}
