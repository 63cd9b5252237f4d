// Attention of 16 bits over keys that fit into shared memory reads its operands through tensor maps, on machines that have them.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_86 -o /dev/null | FileCheck %s --check-prefix=AMPERE

// Slices of one buffer: dimensions are columns, heads, rows, batch. One box has the rows of a block, one all keys, filled up to sixteens.
// CHECK: // kernel slices: grid 26, block 128, cluster 1, shared {{[0-9]+}}
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 2, 197, 1], strides [64, 384, 75648], box [64, 1, 16, 1]
// CHECK-NEXT: //   tensor map of argument 0: offset 128, extents [64, 2, 197, 1], strides [64, 384, 75648], box [64, 1, 208, 1]
// CHECK-NEXT: //   tensor map of argument 0: offset 256, extents [64, 2, 197, 1], strides [64, 384, 75648], box [64, 1, 208, 1]
// Two heads share keys, and a box has both; a head alone has the stride that a dense tensor would have.
// CHECK-NEXT: // kernel shared: grid 4, block 64, cluster 1, shared {{[0-9]+}}
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [40, 2, 9, 2], strides [40, 80, 720], box [64, 2, 8, 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [40, 1, 24, 2], strides [40, 40, 960], box [64, 1, 32, 1]
// CHECK-NEXT: //   tensor map of argument 2: offset 0, extents [24, 1, 24, 2], strides [24, 24, 576], box [64, 1, 32, 1]
// More keys than a box has: another form; rows of no 16-byte units, groups of three heads: the template for all machines.
// CHECK-NEXT: // kernel long:
// CHECK: // kernel odd:
// CHECK-NEXT: // kernel three:

// AMPERE-NOT: tensor map
// AMPERE-NOT: mappedAttention

// CHECK: struct slices_Config : ogc::AttentionDefaults {
// CHECK: WQ = 1, WT = 4, {{.*}}Trigger = {{[0-2]}}, B = 1, S = 197, T = 197, H = 2, HK = 2, D = 64, DV = 64, Causal = 1,
// CHECK: slices({{.*}}, const __grid_constant__ ogc::TensorMap m0, const __grid_constant__ ogc::TensorMap m1, const __grid_constant__ ogc::TensorMap m2) {
// CHECK-NEXT: ogc::mappedAttention<slices_Config>(m0, m1, m2, (const ogc::f16 *)nullptr, 0x1p-3f, slices_Epilogue{p1});
kern.kernel @slices attributes {schedule = #kern.schedule<attention>} {
^bb0(%qkv: tensor<1x197x3x2x64xf16>):
  %q = tensor.extract_slice %qkv[0,0,0,0,0][1,197,1,2,64][1,1,1,1,1] : tensor<1x197x3x2x64xf16> to tensor<1x197x2x64xf16>
  %k = tensor.extract_slice %qkv[0,0,1,0,0][1,197,1,2,64][1,1,1,1,1] : tensor<1x197x3x2x64xf16> to tensor<1x197x2x64xf16>
  %v = tensor.extract_slice %qkv[0,0,2,0,0][1,197,1,2,64][1,1,1,1,1] : tensor<1x197x3x2x64xf16> to tensor<1x197x2x64xf16>
  %acc = kern.attention %q, %k, %v {causal, scale = 0.125 : f32} : (tensor<1x197x2x64xf16>, tensor<1x197x2x64xf16>, tensor<1x197x2x64xf16>) -> tensor<1x197x2x64xf32>
  kern.yield %acc : tensor<1x197x2x64xf32>
}

// CHECK: HasBias = 1, BiasSb = 0, BiasSh = 0, BiasSs = 24, BiasSt = 1, VecBias = 2
// CHECK: ogc::mappedAttention<shared_Config>(m0, m1, m2, p3, 0x1p-3f, shared_Epilogue{p4});
kern.kernel @shared attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<2x9x2x40xf16>, %k: tensor<2x24x1x40xf16>, %v: tensor<2x24x1x24xf16>, %bias: tensor<1x1x9x24xf32>):
  %acc = kern.attention %q, %k, %v, bias %bias {scale = 0.125 : f32} : (tensor<2x9x2x40xf16>, tensor<2x24x1x40xf16>, tensor<2x24x1x24xf16>, tensor<1x1x9x24xf32>) -> tensor<2x9x2x24xf32>
  kern.yield %acc : tensor<2x9x2x24xf32>
}

// CHECK-NOT: mappedAttention
kern.kernel @long attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x64x2x64xf16>, %k: tensor<1x257x2x64xf16>, %v: tensor<1x257x2x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x64x2x64xf16>, tensor<1x257x2x64xf16>, tensor<1x257x2x64xf16>) -> tensor<1x64x2x64xf32>
  kern.yield %acc : tensor<1x64x2x64xf32>
}
kern.kernel @odd attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x64x2x36xf16>, %k: tensor<1x64x2x36xf16>, %v: tensor<1x64x2x36xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x64x2x36xf16>, tensor<1x64x2x36xf16>, tensor<1x64x2x36xf16>) -> tensor<1x64x2x36xf32>
  kern.yield %acc : tensor<1x64x2x36xf32>
}
kern.kernel @three attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x64x3x64xf16>, %k: tensor<1x64x1x64xf16>, %v: tensor<1x64x1x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x64x3x64xf16>, tensor<1x64x1x64xf16>, tensor<1x64x1x64xf16>) -> tensor<1x64x3x64xf32>
  kern.yield %acc : tensor<1x64x3x64xf32>
}
