// One thread an output element, or a few neighbours where every access runs along them.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// 16-bit values are extended, the bias is a vector load of its own, and the address needs no division: the element's position is the offset.
// CHECK: // kernel bias_relu: grid 384, block 256, cluster 1, shared 0
// CHECK: // kernel small: grid 1, block 128, cluster 1, shared 0
// CHECK: // kernel transpose: grid 768, block 256, cluster 1, shared 0
// CHECK: // kernel two_shapes: grid 2, block 128, cluster 1, shared 0
// CHECK: // add (Relu)
// CHECK-NEXT: #line 1 "bias_relu"
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(256) bias_relu(const ogc::f16 *p0, const float *__restrict__ p1, ogc::f16 *__restrict__ p2) {
// CHECK-NEXT: ogc::launchDependents();
// CHECK-NEXT: ogc::wait();
// CHECK-NEXT: const ogc::f16 *const a0 = ogc::afterWait(p0);
// CHECK-NOT: a1
// CHECK: const int [[E:v[0-9]+]] = {{v[0-9]+}} * 4;
// CHECK: ogc::loadVec<ogc::f16, 4>(a0 + [[E]]);
// CHECK: ogc::loadVec<float, 4>(p1 + {{v[0-9]+}});
// CHECK: ogc::maximum({{v[0-9]+}}, 0x0p0f);
// CHECK: ogc::toF16(
// CHECK: ogc::storeVec(p2 + [[E]], {{v[0-9]+}});
kern.kernel @bias_relu attributes {schedule = #kern.schedule<pointwise>, ogc.constant_args = array<i64: 1>} {
^bb0(%x: tensor<512x768xf16>, %bias: tensor<768xf32>):
  %empty = tensor.empty() : tensor<512x768xf16>
  %zero = arith.constant 0.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<512x768xf16>, tensor<768xf32>) outs(%empty : tensor<512x768xf16>) {
  ^bb1(%a: f16, %b: f32, %o: f16):
    %f = arith.extf %a : f16 to f32
    %s = arith.addf %f, %b : f32
    %m = arith.maximumf %s, %zero : f32
    %t = arith.truncf %m : f32 to f16
    linalg.yield %t : f16
  } -> tensor<512x768xf16>
  kern.yield %0 : tensor<512x768xf16>
} loc("add (Relu)")

// A tail is guarded.
// CHECK: small(
// CHECK: if ([[IN:v[0-9]+]]) {
// CHECK: *(p1 + {{v[0-9]+}}) = {{v[0-9]+}};
kern.kernel @small attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<5xi64>):
  %empty = tensor.empty() : tensor<5xi64>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xi64>) outs(%empty : tensor<5xi64>) {
  ^bb1(%a: i64, %o: i64):
    %s = arith.muli %a, %a : i64
    linalg.yield %s : i64
  } -> tensor<5xi64>
  kern.yield %0 : tensor<5xi64>
} loc("square (Mul)")

// A transpose of the innermost dimension reads element by element, its writes follow the threads.
// CHECK: transpose(
// CHECK: ogc::loadElement(a0 + {{v[0-9]+}} * 256 + {{v[0-9]+}});
// CHECK: *(p1 + {{v[0-9]+}}) = {{v[0-9]+}};
kern.kernel @transpose attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<768x256xf32>):
  %empty = tensor.empty() : tensor<256x768xf32>
  %0 = linalg.transpose ins(%x : tensor<768x256xf32>) outs(%empty : tensor<256x768xf32>) permutation = [1, 0]
  kern.yield %0 : tensor<256x768xf32>
} loc("t (Transpose)")

// Results of different shapes take different blocks.
// CHECK: two_shapes(
// CHECK: *(p1 +
// CHECK: *(p2 +
kern.kernel @two_shapes attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<8x4xf32>):
  %0 = tensor.extract_slice %x[0, 0] [8, 1] [1, 1] : tensor<8x4xf32> to tensor<8x1xf32>
  kern.yield %x, %0 : tensor<8x4xf32>, tensor<8x1xf32>
} loc("split (Split)")
