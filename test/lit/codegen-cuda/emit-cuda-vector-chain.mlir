// Vectors of an image: a cluster an image, the stages of ogc/chain.cuh one after the other.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_80 -o /dev/null | FileCheck %s --check-prefix=AMPERE

// CHECK: // kernel squeeze: grid 16, block 256, cluster 8, shared {{[0-9]+}}
// One block an image where there are no clusters: nothing is exchanged.
// AMPERE: // kernel squeeze: grid 2, block 512, cluster 1, shared {{[0-9]+}}
// AMPERE-NOT: __cluster_dims__
// AMPERE-NOT: ogc::cluster
// AMPERE: Spread = 0

#image = affine_map<(d0,d1,d2,d3)->(d0,d2,d3,d1)>
#reduced = affine_map<(d0,d1,d2,d3)->(d0,d1)>
#id2 = affine_map<(d0,d1)->(d0,d1)>
#id4 = affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>
#last4 = affine_map<(d0,d1,d2,d3)->(d3)>

// The sum is spread over the blocks, so each multiplies its channels and all get the whole: the next product needs no exchange. Weights and bias are requested
// before the wait, the image is read after it.
// CHECK: struct squeeze_Stage0 : ogc::ChainDefaults {
// CHECK-NEXT: using Element = ogc::f16;
// CHECK-NEXT: enum { Ranks = 8, Threads = 256, Pixels = 784, Channels = 72, V = 8 };
// CHECK: struct squeeze_Stage1 : ogc::ChainDefaults {
// CHECK: K = 72, N = 24, P = 32, Spread = 1, Resident = 1 };
// CHECK: struct squeeze_Stage2 : ogc::ChainDefaults {
// CHECK: K = 24, N = 72, P = 32, Spread = 0, Resident = 1 };
// CHECK: extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(256) squeeze(
// CHECK: ogc::clusterArriveRelaxed();
// CHECK-NEXT: ogc::loadProduct<squeeze_Stage1>(shared + {{[0-9]+}}, p1, rank);
// CHECK-NEXT: ogc::loadProduct<squeeze_Stage2>(shared + {{[0-9]+}}, p3, rank);
// CHECK-NEXT: ogc::loadConstants<48, 256>(shared + {{[0-9]+}}, p2);
// CHECK-NEXT: ogc::wait();
// CHECK-NEXT: ogc::launchDependents();
// CHECK-NEXT: const ogc::f16 *const a0 = ogc::afterWait(p0);
// CHECK-NEXT: ogc::clusterWait();
// CHECK-NEXT: ogc::reducePixels<squeeze_Stage0>(a0 + image * 56448ll, partial, rank,
// CHECK: vector0
// CHECK: ogc::multiply<squeeze_Stage1>(vector0, shared + {{[0-9]+}}, p1, partial, rank);
// CHECK: ogc::finishProduct<squeeze_Stage1>(
// CHECK: *(c2 + n)
// CHECK: ogc::multiply<squeeze_Stage2>(vector1,
// CHECK: *(p4 + {{.*}}) =
kern.kernel @squeeze attributes {schedule = #kern.schedule<vector_chain>, ogc.constant_args = array<i64: 1, 2, 3>} {
^bb0(%x: tensor<2x28x28x72xf16>, %w1: tensor<1x72x32xf16>, %bias: tensor<24xf16>, %w2: tensor<3x24x32xf16>):
  %cst = arith.constant 0.0 : f32
  %mean = arith.constant 1.275510204e-03 : f32
  %e0 = tensor.empty() : tensor<2x72xf32>
  %f0 = linalg.fill ins(%cst : f32) outs(%e0 : tensor<2x72xf32>) -> tensor<2x72xf32>
  %sum = linalg.generic {indexing_maps = [#image, #reduced], iterator_types = ["parallel","parallel","reduction","reduction"]} ins(%x : tensor<2x28x28x72xf16>) outs(%f0 : tensor<2x72xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %out, %a : f32
    linalg.yield %b : f32
  } -> tensor<2x72xf32>
  %e1 = tensor.empty() : tensor<2x72xf16>
  %pooled = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel","parallel"]} ins(%sum : tensor<2x72xf32>) outs(%e1 : tensor<2x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = arith.mulf %in, %mean : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<2x72xf16>
  %p4 = tensor.expand_shape %pooled [[0], [1, 2, 3]] output_shape [2, 1, 1, 72] : tensor<2x72xf16> into tensor<2x1x1x72xf16>
  %acc1 = kern.conv %p4, %w1 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x1x1x72xf16>, tensor<1x72x32xf16>) -> tensor<2x1x1x24xf32>
  %e2 = tensor.empty() : tensor<2x1x1x24xf16>
  %hidden = linalg.generic {indexing_maps = [#id4, #last4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc1, %bias : tensor<2x1x1x24xf32>, tensor<24xf16>) outs(%e2 : tensor<2x1x1x24xf16>) {
  ^bb0(%in: f32, %bi: f16, %out: f16):
    %a = arith.extf %bi : f16 to f32
    %b = arith.addf %in, %a : f32
    %c = arith.maximumf %b, %cst : f32
    %d = arith.truncf %c : f32 to f16
    linalg.yield %d : f16
  } -> tensor<2x1x1x24xf16>
  %acc2 = kern.conv %hidden, %w2 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x1x1x24xf16>, tensor<3x24x32xf16>) -> tensor<2x1x1x72xf32>
  %e3 = tensor.empty() : tensor<2x1x1x72xf16>
  %gate = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc2 : tensor<2x1x1x72xf32>) outs(%e3 : tensor<2x1x1x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = math.tanh %in : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<2x1x1x72xf16>
  kern.yield %gate : tensor<2x1x1x72xf16>
}

// Sums alone: blocks of 32 channels that exchange nothing.
// CHECK: struct pool_Stage0 : ogc::ChainDefaults {
// CHECK: Ranks = 4, Threads = 256, Pixels = 784, Channels = 128, V = 8
// CHECK: extern "C" __global__ void __launch_bounds__(256) pool(
// CHECK: ogc::reducePixels<pool_Stage0>(
kern.kernel @pool attributes {schedule = #kern.schedule<vector_chain>} {
^bb0(%x: tensor<1x28x28x128xf16>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %sum = linalg.generic {indexing_maps = [#image, #reduced], iterator_types = ["parallel","parallel","reduction","reduction"]} ins(%x : tensor<1x28x28x128xf16>) outs(%f : tensor<1x128xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %out, %a : f32
    linalg.yield %b : f32
  } -> tensor<1x128xf32>
  kern.yield %sum : tensor<1x128xf32>
}
