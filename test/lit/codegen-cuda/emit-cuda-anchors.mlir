// Kernels with an anchor call the device templates: a configuration, an epilogue functor, the operands' pointers.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_86 -o /dev/null | FileCheck %s --check-prefix=AMPERE

// CHECK: // kernel gemm: grid {{[0-9]+}}, block {{[0-9]+}}, cluster 1, shared {{[0-9]+}}
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 128, 12, 1], strides [768, 64, 98304], box [64, {{[0-9]+}}, {{[1-4]}}, 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 768, 48], strides [64, 49152], box [64, {{[0-9]+}}, 1]
// CHECK: // kernel gemv: grid 32, block 1024, cluster 1, shared 4608
// CHECK: // kernel long: grid 128, block 512, cluster 8, shared 7176
// CHECK: // kernel gated: grid {{[0-9]+}}, block {{[0-9]+}}, cluster {{[0-9]+}}, shared {{[0-9]+}}
// CHECK: // kernel conv: grid {{[0-9]+}}, block {{[0-9]+}}, cluster 1, shared {{[0-9]+}}
// CHECK: // kernel dw: grid 56, block 128, cluster 1, shared 0
// CHECK: // kernel attn: grid 120, block 256, cluster 1, shared 78336
// CHECK: // kernel scaled: grid 8, block 256, cluster 1, shared 14976
// CHECK-NEXT: // kernel normalized: grid 2, block {{[0-9]+}}, cluster 1, shared {{[0-9]+}}
// CHECK-NEXT: // kernel rows:
// CHECK-NEXT: //   tensor map of argument 0: offset 768, extents [72, 197, 1, 1], strides [2304, 64, 453888], box [64, {{[0-9]+}}, 1, 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 72, 12], strides [64, 4608], box [64, {{[0-9]+}}, 1]
// CHECK: // kernel odd:
// CHECK-NEXT: // kernel pixels:
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 784, 2, 2], strides [128, 64, 100352], box [64, {{[0-9]+}}, {{[12]}}, 1]
// CHECK: // kernel rounded:
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [32, 197, 24, 1], strides [768, 32, 151296], box [32, {{[0-9]+}}, {{[1-4]}}, 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [32, 768, 3], strides [32, 24576], box [32, {{[0-9]+}}, 1]
// CHECK-NEXT: // kernel exact:
// CHECK-NOT: tensor map
// CHECK: #include "ogc/attention.cuh"
// CHECK: #include "ogc/gemm.cuh"

// Without clusters, no split of K over blocks, and less shared memory.
// AMPERE: // kernel gemm: grid {{[0-9]+}}, block {{[0-9]+}}, cluster 1, shared {{[0-9]+}}
// AMPERE: // kernel gemv: grid 32, block 1024, cluster 1
// AMPERE: // kernel long: grid 16, block 1024, cluster 1
// AMPERE: // kernel gated: grid {{[0-9]+}}, block {{[0-9]+}}, cluster 1
// AMPERE-NOT: Engine = {{[12]}}
// AMPERE-NOT: __cluster_dims__

#id3 = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#n3 = affine_map<(d0,d1,d2)->(d2)>
#id5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#id4 = affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>
#n4 = affine_map<(d0,d1,d2,d3)->(d3)>

// Warpgroup products of operands that tensor maps describe. Bias and residual are vector loads, the bias is read before the wait, the residual right
// after it; the reshape of the result costs nothing.
// CHECK: struct gemm_Config : ogc::GemmDefaults {
// CHECK-NEXT: using Element = ogc::f16;
// CHECK-NEXT: enum { Batch = 1, M = 128, N = 3072, K = 768, P = 64, WeightsConstant = 1, {{.*}}Engine = 2,
// CHECK: struct gemm_Epilogue {
// CHECK: Constants constants(int i0, int i1, int i2) const {
// CHECK-NEXT: ogc::loadVec<ogc::f16, 8>(p2 + i2);
// CHECK: Inputs inputs(int i0, int i1, int i2) const {
// CHECK-NEXT: const ogc::f16 *const a3 = ogc::afterWait(p3);
// CHECK-NEXT: ogc::loadVec<ogc::f16, 8>(a3 + i1 * 3072 + i2);
// CHECK: void operator()(int i0, int i1, int i2, const float (&acc)[8], const Constants &constants, const Inputs &inputs) const {
// CHECK-NOT: ogc::load
// CHECK: ogc::storeVec(p4 +
// CHECK: __launch_bounds__({{[0-9]+}}) gemm({{.*}}, const __grid_constant__ ogc::TensorMap m0, const __grid_constant__ ogc::TensorMap m1) {
// CHECK-NEXT: ogc::gemm<gemm_Config>(m0, m1, gemm_Epilogue{p2, p3, p4});
kern.kernel @gemm attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1, 2>} {
^bb0(%x: tensor<128x768xf16>, %w: tensor<48x768x64xf16>, %bias: tensor<3072xf16>, %res: tensor<1x128x3072xf16>):
  %x3 = tensor.expand_shape %x [[0,1],[2]] output_shape [1,128,768] : tensor<128x768xf16> into tensor<1x128x768xf16>
  %acc = kern.matmul %x3, %w {packed} : (tensor<1x128x768xf16>, tensor<48x768x64xf16>) -> tensor<1x128x3072xf32>
  %e = tensor.empty() : tensor<1x128x3072xf16>
  %0 = linalg.generic {indexing_maps = [#id3, #n3, #id3, #id3], iterator_types = ["parallel","parallel","parallel"]} ins(%acc, %bias, %res : tensor<1x128x3072xf32>, tensor<3072xf16>, tensor<1x128x3072xf16>) outs(%e : tensor<1x128x3072xf16>) {
  ^bb1(%a: f32, %c: f16, %r: f16, %o: f16):
    %f = arith.extf %c : f16 to f32
    %s = arith.addf %a, %f : f32
    %rf = arith.extf %r : f16 to f32
    %s2 = arith.addf %s, %rf : f32
    %t = arith.truncf %s2 : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x128x3072xf16>
  %1 = tensor.collapse_shape %0 [[0,1],[2]] : tensor<1x128x3072xf16> into tensor<128x3072xf16>
  %2 = tensor.expand_shape %1 [[0],[1,2]] output_shape [128,48,64] : tensor<128x3072xf16> into tensor<128x48x64xf16>
  kern.yield %2 : tensor<128x48x64xf16>
} loc("node gemm1 (Gemm)")

// One row: the matrix is streamed, and a thread sums one column. A block has whole rows of panels, or fewer columns where the blocks would be too few.
// CHECK: struct gemv_Config : ogc::GemvDefaults {
// CHECK: BN = 32, Warps = 32, Depth = 8, Split = 1, V = 1, {{.*}}WeightsConstant = 0, BLayout = 1, BSb = 0, BSk = 1000, BSn = 1, VecB = 4 };
// CHECK: void operator()(int i0, int i1, int i2, const float (&acc)[1]) const {
// CHECK: __launch_bounds__(1024) gemv(
// CHECK-NEXT: ogc::gemv<gemv_Config>(p0, p1, gemv_Epilogue{p2});
kern.kernel @gemv attributes {schedule = #kern.schedule<matmul>} {
^bb0(%x: tensor<1x1x768xf32>, %w: tensor<1x768x1000xf32>):
  %acc = kern.matmul %x, %w : (tensor<1x1x768xf32>, tensor<1x768x1000xf32>) -> tensor<1x1x1000xf32>
  kern.yield %acc : tensor<1x1x1000xf32>
} loc("node gemv (Gemm)")

// More than a multiprocessor can stream while the others do as much: K is split over a cluster, and registers leave room for other blocks.
// CHECK: struct long_Config : ogc::GemvDefaults {
// CHECK: BN = 64, Warps = 16, Depth = 4, Split = 8, V = 2, {{.*}}Trigger = 0, WeightsConstant = 1, BLayout = 0, P = 64, VecB = 8 };
// CHECK: void operator()(int i0, int i1, int i2, const float (&acc)[2]) const {
// CHECK: __cluster_dims__(8, 1, 1) __launch_bounds__(512, 3) long(
kern.kernel @long attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<1x1x8192xf16>, %w: tensor<16x8192x64xf16>):
  %acc = kern.matmul %x, %w {packed} : (tensor<1x1x8192xf16>, tensor<16x8192x64xf16>) -> tensor<1x1x1024xf32>
  %a = tensor.extract_slice %acc[0, 0, 0] [1, 1, 512] [1, 1, 2] : tensor<1x1x1024xf32> to tensor<1x1x512xf32>
  %b = tensor.extract_slice %acc[0, 0, 1] [1, 1, 512] [1, 1, 2] : tensor<1x1x1024xf32> to tensor<1x1x512xf32>
  %e = tensor.empty() : tensor<1x1x512xf16>
  %0 = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel","parallel","parallel"]} ins(%a, %b : tensor<1x1x512xf32>, tensor<1x1x512xf32>) outs(%e : tensor<1x1x512xf16>) {
  ^bb1(%f: f32, %g: f32, %o: f16):
    %s = arith.mulf %f, %g : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x1x512xf16>
  kern.yield %0 : tensor<1x1x512xf16>
} loc("node long (Mul)")

// Two products with alternating columns: four elements of both in eight accumulators, stored where their part has them.
// CHECK: struct gated_Config : ogc::GemmDefaults {
// CHECK: M = 64, N = 256, {{.*}}V = 8
// CHECK: struct gated_Epilogue {
// CHECK: ogc::Vec<ogc::f16, 4>{
// CHECK-NEXT: ogc::storeVec(p2 + i0 * 8192 + i1 * 128 + (i2 / 2),
kern.kernel @gated attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<1x64x768xf16>, %w: tensor<4x768x64xf16>):
  %acc = kern.matmul %x, %w {packed} : (tensor<1x64x768xf16>, tensor<4x768x64xf16>) -> tensor<1x64x256xf32>
  %a = tensor.extract_slice %acc[0, 0, 0] [1, 64, 128] [1, 1, 2] : tensor<1x64x256xf32> to tensor<1x64x128xf32>
  %b = tensor.extract_slice %acc[0, 0, 1] [1, 64, 128] [1, 1, 2] : tensor<1x64x256xf32> to tensor<1x64x128xf32>
  %e = tensor.empty() : tensor<1x64x128xf16>
  %0 = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel","parallel","parallel"]} ins(%a, %b : tensor<1x64x128xf32>, tensor<1x64x128xf32>) outs(%e : tensor<1x64x128xf16>) {
  ^bb1(%f: f32, %g: f32, %o: f16):
    %s = arith.mulf %f, %g : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x64x128xf16>
  kern.yield %0 : tensor<1x64x128xf16>
} loc("node gated (Mul)")

// The template counts pixels; the address of the result needs no row and column.
// CHECK: struct conv_Config : ogc::ConvDefaults {
// CHECK: KH = 3, KW = 3, {{.*}}PadTop = 1, PadLeft = 1, {{.*}}Products = 3,
// CHECK: ogc::storeVec(p3 + i0 * 200704 + i1 * 64 + i2,
// CHECK: ogc::conv<conv_Config>(p0, p1, conv_Epilogue{p2, p3});
kern.kernel @conv attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1, 2>} {
^bb0(%x: tensor<1x56x56x64xf32>, %w: tensor<1x576x64xf32>, %bias: tensor<64xf32>):
  %acc = kern.conv %x, %w {kernel = array<i64: 3,3>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 1,1,1,1>} : (tensor<1x56x56x64xf32>, tensor<1x576x64xf32>) -> tensor<1x56x56x64xf32>
  %e = tensor.empty() : tensor<1x56x56x64xf32>
  %0 = linalg.generic {indexing_maps = [#id4, #n4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc, %bias : tensor<1x56x56x64xf32>, tensor<64xf32>) outs(%e : tensor<1x56x56x64xf32>) {
  ^bb1(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    %z = arith.constant 0.0 : f32
    %m = arith.maximumf %s, %z : f32
    linalg.yield %m : f32
  } -> tensor<1x56x56x64xf32>
  kern.yield %0 : tensor<1x56x56x64xf32>
} loc("node conv1 (Conv)")

// CHECK: struct dw_Config : ogc::DepthwiseDefaults {
// CHECK: V = 8, Threads = 128
// CHECK: ogc::depthwise<dw_Config>(p0, p1, dw_Epilogue{p2});
kern.kernel @dw attributes {schedule = #kern.schedule<depthwise_conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<1x56x56x72xf16>, %w: tensor<3x3x72xf16>):
  %acc = kern.depthwise_conv %x, %w {strides = array<i64: 2,2>, dilations = array<i64: 1,1>, pads = array<i64: 1,1,1,1>} : (tensor<1x56x56x72xf16>, tensor<3x3x72xf16>) -> tensor<1x28x28x72xf32>
  %e = tensor.empty() : tensor<1x28x28x72xf16>
  %0 = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc : tensor<1x28x28x72xf32>) outs(%e : tensor<1x28x28x72xf16>) {
  ^bb1(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x28x28x72xf16>
  kern.yield %0 : tensor<1x28x28x72xf16>
} loc("node dw (Conv)")

// Query, key and value are slices of one buffer; more keys than a box of a tensor map has.
// CHECK: struct attn_Config : ogc::AttentionDefaults {
// CHECK: HasBias = 1, BiasSb = 0, BiasSh = 0, BiasSs = 0, BiasSt = 1, {{.*}}QSs = 2304, QSh = 64, QSd = 1, VecQ = 8,
// CHECK: ogc::storeVec(p2 + i1 * 768 +
// CHECK: ogc::attention<attn_Config>(p0, p0 + 768, p0 + 1536, p1, (-0x1p-3f), ogc::NoOperands{}, attn_Epilogue{p2});
// A scale that is not positive: no form for many keys that reads through tensor maps.
kern.kernel @attn attributes {schedule = #kern.schedule<attention>} {
^bb0(%qkv: tensor<1x320x2304xf16>, %mask: tensor<1x1x1x320xf16>):
  %5 = tensor.expand_shape %qkv [[0],[1],[2,3,4]] output_shape [1,320,3,12,64] : tensor<1x320x2304xf16> into tensor<1x320x3x12x64xf16>
  %q = tensor.extract_slice %5[0,0,0,0,0][1,320,1,12,64][1,1,1,1,1] : tensor<1x320x3x12x64xf16> to tensor<1x320x12x64xf16>
  %k = tensor.extract_slice %5[0,0,1,0,0][1,320,1,12,64][1,1,1,1,1] : tensor<1x320x3x12x64xf16> to tensor<1x320x12x64xf16>
  %v = tensor.extract_slice %5[0,0,2,0,0][1,320,1,12,64][1,1,1,1,1] : tensor<1x320x3x12x64xf16> to tensor<1x320x12x64xf16>
  %acc = kern.attention %q, %k, %v, bias %mask {scale = -0.125 : f32} : (tensor<1x320x12x64xf16>, tensor<1x320x12x64xf16>, tensor<1x320x12x64xf16>, tensor<1x1x1x320xf16>) -> tensor<1x320x12x64xf32>
  %e = tensor.empty() : tensor<1x320x12x64xf16>
  %0 = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc : tensor<1x320x12x64xf32>) outs(%e : tensor<1x320x12x64xf16>) {
  ^bb1(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x320x12x64xf16>
  %1 = tensor.collapse_shape %0 [[0],[1],[2,3]] : tensor<1x320x12x64xf16> into tensor<1x320x768xf16>
  kern.yield %1 : tensor<1x320x768xf16>
} loc("node attn (Attention)")

// Channel factors: another pointer, and shared memory for those of the block's slice.
// CHECK: struct scaled_Config : ogc::ConvDefaults {
// CHECK: Scaled = 1, SSb = 16
// CHECK: ogc::conv<scaled_Config>(p0, p1, scaled_Epilogue{p3}, p2);
kern.kernel @scaled attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<2x8x8x16xf16>, %w: tensor<1x16x16xf16>, %s: tensor<2x1x1x16xf16>):
  %acc = kern.conv %x, %w, scale %s {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x8x8x16xf16>, tensor<1x16x16xf16>, tensor<2x1x1x16xf16>) -> tensor<2x8x8x16xf32>
  kern.yield %acc : tensor<2x8x8x16xf32>
}

// A streamed product that divides its rows by their spread: two sums more a row.
// CHECK: struct normalized_Config : ogc::GemvDefaults {
// CHECK: Norm = 2, Epsilon = 925353388 };
// CHECK: ogc::gemv<normalized_Config>(p0, p1, normalized_Epilogue{p2});
kern.kernel @normalized attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<1x1x64xf16>, %w: tensor<2x64x16xf16>):
  %acc = kern.matmul %x, %w {packed, ogc.row_norm = "standard_deviation", ogc.epsilon = 9.99999974E-6 : f32} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  kern.yield %acc : tensor<1x1x32xf32>
}

// Rows of a strided view, of a K that 64 does not divide: a line is cut short, a box takes 64 of it.
kern.kernel @rows attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%qkv: tensor<1x197x2304xf16>, %w: tensor<12x72x64xf16>):
  %x = tensor.extract_slice %qkv[0, 0, 768] [1, 197, 72] [1, 1, 1] : tensor<1x197x2304xf16> to tensor<1x197x72xf16>
  %acc = kern.matmul %x, %w {packed} : (tensor<1x197x72xf16>, tensor<12x72x64xf16>) -> tensor<1x197x768xf32>
  kern.yield %acc : tensor<1x197x768xf32>
} loc("rows (MatMul)")

// No lines of 16-byte units: no tensor map.
kern.kernel @odd attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%qkv: tensor<1x197x2304xf16>, %w: tensor<12x72x64xf16>):
  %x = tensor.extract_slice %qkv[0, 0, 764] [1, 197, 72] [1, 1, 1] : tensor<1x197x2304xf16> to tensor<1x197x72xf16>
  %acc = kern.matmul %x, %w {packed} : (tensor<1x197x72xf16>, tensor<12x72x64xf16>) -> tensor<1x197x768xf32>
  kern.yield %acc : tensor<1x197x768xf32>
} loc("odd (MatMul)")

// The pixels of a convolution of one tap are rows; those of a stride or with padding are gathered.
kern.kernel @pixels attributes {schedule = #kern.schedule<conv>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<2x28x28x128xf16>, %w: tensor<8x128x64xf16>):
  %acc = kern.conv %x, %w {kernel = array<i64: 1,1>, strides = array<i64: 1,1>, dilations = array<i64: 1,1>, pads = array<i64: 0,0,0,0>} : (tensor<2x28x28x128xf16>, tensor<8x128x64xf16>) -> tensor<2x28x28x512xf32>
  kern.yield %acc : tensor<2x28x28x512xf32>
} loc("pixels (Conv)")

// f32 is copied through tensor maps where products may round it to tf32. A line of a box is 32 elements, which panels of 32 columns have.
// CHECK: struct rounded_Config : ogc::GemmDefaults {
// CHECK-NEXT: using Element = float;
// CHECK-NEXT: enum { {{.*}}P = 32, {{.*}}Engine = 2,
kern.kernel @rounded attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<1x197x768xf32>, %w: tensor<3x768x32xf32>):
  %acc = kern.matmul %x, %w {packed, math = #kern.math<tf32>} : (tensor<1x197x768xf32>, tensor<3x768x32xf32>) -> tensor<1x197x96xf32>
  kern.yield %acc : tensor<1x197x96xf32>
} loc("rounded (MatMul)")
kern.kernel @exact attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<1x197x768xf32>, %w: tensor<3x768x32xf32>):
  %acc = kern.matmul %x, %w {packed} : (tensor<1x197x768xf32>, tensor<3x768x32xf32>) -> tensor<1x197x96xf32>
  kern.yield %acc : tensor<1x197x96xf32>
} loc("exact (MatMul)")

// One query over a cache that is stored in f32: lanes hold the keys; the rotated query and the new rows come from a functor, which also
// stores the new key.
// CHECK: struct step_Config : ogc::DecodeDefaults {
// CHECK: Split = 4, {{.*}}T = 512, H = 8, HK = 2, D = 64, DV = 64, {{.*}}PulledQuery = 1, NewRows = 1, {{.*}}KSt = 64, KSh = 32768,
// CHECK: struct step_Operands {
// CHECK: void bind() {
// CHECK: ogc::f16 query(int i0, int i1, int i2, int i3) const {
// CHECK: ogc::f16 newKey(int i0, int i1, int i2, int i3) const {
// CHECK: ogc::f16 newValue(int i0, int i1, int i2, int i3) const {
// CHECK: int position(int i0) const {
// CHECK: void store0(int i0) const {
// CHECK: for (int i = first; i < 128; i += step)
// CHECK: __cluster_dims__(4, 1, 1) __launch_bounds__(384) step(
// CHECK-NEXT: ogc::decode<step_Config>((const ogc::f16 *)nullptr, p2 + 65536, p3, (const ogc::f16 *)nullptr, 0x1p-3f, step_Operands{p0, p1, p4, p5, p6}, step_Epilogue{p7});
kern.kernel @step attributes {schedule = #kern.schedule<attention>} {
^bb0(%x: tensor<1x1x8x64xf16>, %n: tensor<1x1x2x64xf16>, %kc: tensor<2x1x2x512x64xf32>, %vc: tensor<1x2x512x64xf32>, %v: tensor<1x1x2x64xf16>, %pos: tensor<1xi64>):
  %e = tensor.empty() : tensor<1x1x8x64xf16>
  %f = tensor.empty() : tensor<1x1x2x64xf16>
  %q = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%x : tensor<1x1x8x64xf16>) outs(%e : tensor<1x1x8x64xf16>) {
  ^bb1(%a: f16, %o: f16):
    %s = arith.negf %a : f16
    linalg.yield %s : f16
  } -> tensor<1x1x8x64xf16>
  %k = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%n : tensor<1x1x2x64xf16>) outs(%f : tensor<1x1x2x64xf16>) {
  ^bb1(%a: f16, %o: f16):
    %s = arith.negf %a : f16
    linalg.yield %s : f16
  } -> tensor<1x1x2x64xf16>
  %g = tensor.empty() : tensor<2x1x2x512x64xf16>
  %h = linalg.generic {indexing_maps = [#id5, #id5], iterator_types = ["parallel","parallel","parallel","parallel","parallel"]} ins(%kc : tensor<2x1x2x512x64xf32>) outs(%g : tensor<2x1x2x512x64xf16>) {
  ^bb1(%a: f32, %o: f16):
    %s = arith.truncf %a : f32 to f16
    linalg.yield %s : f16
  } -> tensor<2x1x2x512x64xf16>
  %l = tensor.extract_slice %h[1, 0, 0, 0, 0] [1, 1, 2, 512, 64] [1, 1, 1, 1, 1] : tensor<2x1x2x512x64xf16> to tensor<1x2x512x64xf16>
  %m = tensor.empty() : tensor<1x512x2x64xf16>
  %keys = linalg.transpose ins(%l : tensor<1x2x512x64xf16>) outs(%m : tensor<1x512x2x64xf16>) permutation = [0, 2, 1, 3]
  %p = tensor.empty() : tensor<1x2x512x64xf16>
  %u = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%vc : tensor<1x2x512x64xf32>) outs(%p : tensor<1x2x512x64xf16>) {
  ^bb1(%a: f32, %o: f16):
    %s = arith.truncf %a : f32 to f16
    linalg.yield %s : f16
  } -> tensor<1x2x512x64xf16>
  %values = linalg.transpose ins(%u : tensor<1x2x512x64xf16>) outs(%m : tensor<1x512x2x64xf16>) permutation = [0, 2, 1, 3]
  %acc = kern.attention %q, %keys, %values rows %k, %v at %pos {scale = 0.125 : f32} : (tensor<1x1x8x64xf16>, tensor<1x512x2x64xf16>, tensor<1x512x2x64xf16>, tensor<1x1x2x64xf16>, tensor<1x1x2x64xf16>, tensor<1xi64>) -> tensor<1x1x8x64xf32>
  %y = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc : tensor<1x1x8x64xf32>) outs(%e : tensor<1x1x8x64xf16>) {
  ^bb1(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x1x8x64xf16>
  kern.yield %k, %y : tensor<1x1x2x64xf16>, tensor<1x1x8x64xf16>
} loc("node step (Attention)")
