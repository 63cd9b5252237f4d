// Attention of 16 bits over more keys than the form that holds them all takes: tiles of keys come through tensor maps into a ring,
// groups of four warps multiply them.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_86 -o /dev/null | FileCheck %s --check-prefix=OTHER
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_100 -o /dev/null | FileCheck %s --check-prefix=OTHER

// OTHER-NOT: wideAttention

// A box has the query rows of a block and the keys of a tile. Blocks of one cluster share the keys where there are few.
// CHECK: // kernel encoder: grid [[#%u,GRID:]], block {{128|256|384|512}}, cluster [[#%u,SPLIT:]], shared {{[0-9]+}}
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [64, 6, 1500, 1], strides [64, 384, 576000], box [64, 1, [[#%u,BQ:]], 1]
// CHECK-NEXT: //   tensor map of argument 1: offset 0, extents [64, 6, 1500, 1], strides [64, 384, 576000], box [64, 1, [[#%u,BT:]], 1]
// CHECK-NEXT: //   tensor map of argument 2: offset 0, extents [64, 6, 1500, 1], strides [64, 384, 576000], box [64, 1, [[#BT]], 1]
// Four heads share keys: a box has all of them.
// CHECK: // kernel shared:
// CHECK-NEXT: //   tensor map of argument 0: offset 0, extents [128, 8, 300, 2], strides [128, 1024, 307200], box [64, 4, {{16|32|48|64}}, 1]
// Heads of more than 128, five heads that share keys, a scale that is not positive: the template for all machines.
// CHECK: // kernel large:
// CHECK-NEXT: // kernel five:
// CHECK-NEXT: // kernel negative:

// CHECK: struct encoder_Config : ogc::AttentionDefaults {
// CHECK: WQ = {{[1-4]}}, WT = {{[1-4]}}, BT = [[#BT]], Stages = {{[2-9]}}, Split = [[#SPLIT]], SharedBytes = {{[0-9]+}}, Trigger = {{[0-2]}}, B = 1, S = 1500, T = 1500, H = 6, HK = 6, D = 64, DV = 64, Causal = 0,
// CHECK: ogc::wideAttention<encoder_Config>(m0, m1, m2, (const ogc::f16 *)nullptr, 0x1p-3f, encoder_Epilogue{p3});
kern.kernel @encoder attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x1500x6x64xf16>, %k: tensor<1x1500x6x64xf16>, %v: tensor<1x1500x6x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x1500x6x64xf16>, tensor<1x1500x6x64xf16>, tensor<1x1500x6x64xf16>) -> tensor<1x1500x6x64xf32>
  kern.yield %acc : tensor<1x1500x6x64xf32>
}

// Two biases at a time, where they lie at an even place.
// CHECK: HasBias = 1, BiasSb = 0, BiasSh = 0, BiasSs = 400, BiasSt = 1, VecBias = 2
// CHECK: ogc::wideAttention<shared_Config>(m0, m1, m2, p3, 0x1p-3f, shared_Epilogue{p4});
kern.kernel @shared attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<2x300x8x128xbf16>, %k: tensor<2x400x2x128xbf16>, %v: tensor<2x400x2x128xbf16>, %bias: tensor<1x1x300x400xf32>):
  %acc = kern.attention %q, %k, %v, bias %bias {causal, scale = 0.125 : f32} : (tensor<2x300x8x128xbf16>, tensor<2x400x2x128xbf16>, tensor<2x400x2x128xbf16>, tensor<1x1x300x400xf32>) -> tensor<2x300x8x128xf32>
  kern.yield %acc : tensor<2x300x8x128xf32>
}

// CHECK-NOT: wideAttention
kern.kernel @large attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x300x2x160xf16>, %k: tensor<1x300x2x160xf16>, %v: tensor<1x300x2x160xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x300x2x160xf16>, tensor<1x300x2x160xf16>, tensor<1x300x2x160xf16>) -> tensor<1x300x2x160xf32>
  kern.yield %acc : tensor<1x300x2x160xf32>
}
kern.kernel @five attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x300x5x64xf16>, %k: tensor<1x300x1x64xf16>, %v: tensor<1x300x1x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x300x5x64xf16>, tensor<1x300x1x64xf16>, tensor<1x300x1x64xf16>) -> tensor<1x300x5x64xf32>
  kern.yield %acc : tensor<1x300x5x64xf32>
}
kern.kernel @negative attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<1x300x2x64xf16>, %k: tensor<1x300x2x64xf16>, %v: tensor<1x300x2x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = -0.125 : f32} : (tensor<1x300x2x64xf16>, tensor<1x300x2x64xf16>, tensor<1x300x2x64xf16>) -> tensor<1x300x2x64xf32>
  kern.yield %acc : tensor<1x300x2x64xf32>
}

// Keys that both forms take, of so many rows that groups of four warps are faster; with fewer rows they are not.
// CHECK: ogc::wideAttention<many_Config>
// CHECK: ogc::mappedAttention<fewer_Config>
kern.kernel @many attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<8x128x12x64xf16>, %k: tensor<8x128x12x64xf16>, %v: tensor<8x128x12x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<8x128x12x64xf16>, tensor<8x128x12x64xf16>, tensor<8x128x12x64xf16>) -> tensor<8x128x12x64xf32>
  kern.yield %acc : tensor<8x128x12x64xf32>
}
kern.kernel @fewer attributes {schedule = #kern.schedule<attention>} {
^bb0(%q: tensor<4x128x12x64xf16>, %k: tensor<4x128x12x64xf16>, %v: tensor<4x128x12x64xf16>):
  %acc = kern.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<4x128x12x64xf16>, tensor<4x128x12x64xf16>, tensor<4x128x12x64xf16>) -> tensor<4x128x12x64xf32>
  kern.yield %acc : tensor<4x128x12x64xf32>
}
