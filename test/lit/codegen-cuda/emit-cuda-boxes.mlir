// Convolutions of many pixels in 16 bits or by tf32: blocks that stay, which copy boxes of pixels through tensor maps.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_80 -o /dev/null | FileCheck %s --check-prefix=AMPERE

// AMPERE-NOT: tensor map
// AMPERE-NOT: convBoxes

// CHECK: // kernel window: grid {{[0-9]+}}, block {{[0-9]+}}, cluster 1, shared {{[0-9]+}}
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 56, 56, 64], strides [64, 3584, 200704], box [64, [[X:[0-9]+]], [[Y:[0-9]+]], 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 64, 1, 9, 1], strides [64, 64, 4096, 36864], box [64, 64, 1, 1, {{[1-4]}}]
// CHECK-NEXT: // kernel strided:
// Four phases of the strides, each an image with its own rows and pixels: taps -1 and 1 meet the odd ones.
// CHECK-NEXT: //   tensor map of argument 0: offset 7296, extents [128, 28, 28, 64], strides [256, 14336, 401408], box
// CHECK-NEXT: //   tensor map of argument 0: offset 7168, extents [128, 28, 28, 64], strides [256, 14336, 401408], box
// CHECK-NEXT: //   tensor map of argument 0: offset 128, extents [128, 28, 28, 64], strides [256, 14336, 401408], box
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [128, 28, 28, 64], strides [256, 14336, 401408], box
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 128, 1, 9, 2], strides [64, 64, 8192, 73728], box [64, 64, 1, 1, {{[1-4]}}]
// CHECK-NEXT: // kernel flat:
// The pixels of all images in a row.
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 200704, 1, 1], strides [64, 12845056, 12845056], box [64, {{[0-9]+}}, 1, 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 64, 1, 1, 4], strides [64, 64, 4096, 4096], box [64, 64, 1, 1, {{[1-4]}}]
// CHECK-NEXT: // kernel first:
// Four taps side by side are one of 64 channels.
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 112, 115, 64], strides [16, 1840, 211600], box
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 64, 1, 4, 1], strides [64, 64, 4096, 16384], box [64, 64, 1, 1, {{[1-4]}}]
// CHECK-NEXT: // kernel first_tf32:
// A line is 32 channels of f32; four taps of 12 are one and a half.
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [48, 112, 115, 64], strides [12, 1380, 158700], box [32,
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [32, 48, 2, 4, 1], strides [64, 32, 3072, 12288], box [32, 32, 2, 1, {{[1-4]}}]
// CHECK-NEXT: // kernel exact:
// CHECK-NOT: tensor map

#id4 = affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>

// CHECK: struct window_Config : ogc::BoxConvDefaults {
// CHECK: Batch = 64, H = 56, W = 56, C = 64, OH = 56, OW = 56, KH = 3, KW = 3, {{.*}}PadTop = 1, PadLeft = 1, F = 64, P = 64, Flat = 0, WeightsConstant = 1, Engine = 3,
// CHECK: ogc::convBoxes<window_Config>(ogc::PhaseMaps{&m0, &m0, &m0, &m0}, m1, window_Epilogue{p2});
kern.kernel @window attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<64x56x56x64xf16>, %w: tensor<1x576x64xf16>):
  %acc = kern.conv %x, %w {kernel = array<i64: 3,3>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 1,1,1,1>} : (tensor<64x56x56x64xf16>, tensor<1x576x64xf16>) -> tensor<64x56x56x64xf32>
  kern.yield %acc : tensor<64x56x56x64xf32>
} loc("window (Conv)")

// CHECK: ogc::convBoxes<strided_Config>(ogc::PhaseMaps{&m0, &m1, &m2, &m3}, m4, strided_Epilogue{p2});
kern.kernel @strided attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<64x56x56x128xf16>, %w: tensor<2x1152x64xf16>):
  %acc = kern.conv %x, %w {kernel = array<i64: 3,3>, strides = array<i64: 2,2>, dilations = array<i64: 1,1>, pads = array<i64: 1,1,1,1>} : (tensor<64x56x56x128xf16>, tensor<2x1152x64xf16>) -> tensor<64x28x28x128xf32>
  kern.yield %acc : tensor<64x28x28x128xf32>
} loc("strided (Conv)")

// A residual is read ahead.
// CHECK: Flat = 1, {{.*}}Engine = 3, Halo = 0,
// CHECK: Inputs inputs(int i0, int i1, int i2) const {
// CHECK: ogc::convBoxes<flat_Config>(ogc::PhaseMaps{&m0, &m0, &m0, &m0}, m1, flat_Epilogue{p2, p3});
kern.kernel @flat attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<64x56x56x64xf16>, %w: tensor<4x64x64xf16>, %r: tensor<64x56x56x256xf16>):
  %acc = kern.conv %x, %w {kernel = array<i64: 1,1>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 0,0,0,0>} : (tensor<64x56x56x64xf16>, tensor<4x64x64xf16>) -> tensor<64x56x56x256xf32>
  %e = tensor.empty() : tensor<64x56x56x256xf16>
  %0 = linalg.generic {indexing_maps = [#id4, #id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc, %r : tensor<64x56x56x256xf32>, tensor<64x56x56x256xf16>) outs(%e : tensor<64x56x56x256xf16>) {
  ^bb1(%a: f32, %b: f16, %o: f16):
    %f = arith.extf %b : f16 to f32
    %s = arith.addf %a, %f : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x56x56x256xf16>
  kern.yield %0 : tensor<64x56x56x256xf16>
} loc("flat (Conv)")

// CHECK: H = 115, W = 112, C = 64, OH = 112, OW = 112, KH = 4, KW = 1,
kern.kernel @first attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<64x115x115x16xf16>, %w: tensor<1x256x64xf16>):
  %acc = kern.conv %x, %w {kernel = array<i64: 4,4>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 0,0,0,0>} : (tensor<64x115x115x16xf16>, tensor<1x256x64xf16>) -> tensor<64x112x112x64xf32>
  kern.yield %acc : tensor<64x112x112x64xf32>
} loc("first (Conv)")

// CHECK: H = 115, W = 112, C = 48, OH = 112, OW = 112, KH = 4, KW = 1,
// CHECK: ogc::convBoxes<first_tf32_Config>
kern.kernel @first_tf32 attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<64x115x115x12xf32>, %w: tensor<1x192x64xf32>):
  %acc = kern.conv %x, %w {kernel = array<i64: 4,4>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 0,0,0,0>, math = #kern.math<tf32>} : (tensor<64x115x115x12xf32>, tensor<1x192x64xf32>) -> tensor<64x112x112x64xf32>
  kern.yield %acc : tensor<64x112x112x64xf32>
} loc("first (Conv)")

// Products that must be exact are not rounded by a copy.
// CHECK: ogc::conv<exact_Config>
kern.kernel @exact attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<64x56x56x64xf32>, %w: tensor<1x576x64xf32>):
  %acc = kern.conv %x, %w {kernel = array<i64: 3,3>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 1,1,1,1>} : (tensor<64x56x56x64xf32>, tensor<1x576x64xf32>) -> tensor<64x56x56x64xf32>
  kern.yield %acc : tensor<64x56x56x64xf32>
} loc("exact (Conv)")
