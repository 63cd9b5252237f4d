// Softmax by rows: a block a row, values in registers from the maximum to the quotient, partial results combined in a fixed order.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#outer = affine_map<(d0, d1) -> (d0)>

// CHECK: // kernel softmax: grid 12, block 256, cluster 1, shared 0
// CHECK: // kernel mean: grid 132, block 128, cluster 1, shared 0
// CHECK: // kernel embed: grid 128, block 32, cluster 1, shared 0
// CHECK-LABEL: softmax(const float
// Four columns a thread by one access; those of the last threads lie past the end, they repeat the last ones and drop the result.
// CHECK: [[IN:v[0-9]+]] = (unsigned int)[[C:v[0-9]+]] < (unsigned int)1000;
// CHECK: [[AT:v[0-9]+]] = (unsigned int)[[C]] < (unsigned int)996 ? [[C]] : 996;
// CHECK: [[X:v[0-9]+]] = ogc::loadVec<float, 4>(a0 + {{v[0-9]+}} * 1000 + [[AT]]);
// CHECK: [[IN]] ?
// CHECK: __shfl_xor_sync(0xffffffffu, {{v[0-9]+}}, 16, 32);
// CHECK: __shared__ float [[PARTS:v[0-9]+]][8];
// CHECK: __syncthreads();
// CHECK-NOT: ogc::load
// CHECK: [[D:v[0-9]+]] = [[X]].v[0] - [[MAX:v[0-9]+]];
// CHECK: [[E:v[0-9]+]] = expf([[D]]);
// CHECK-COUNT-3: expf(
// CHECK: __syncthreads();
// CHECK-NOT: expf
// CHECK: [[E]] / {{v[0-9]+}};
// CHECK: if ([[IN]]) {
// CHECK: ogc::storeVec(p1 + {{v[0-9]+}} * 1000 + [[AT]], {{v[0-9]+}});
kern.kernel @softmax attributes {schedule = #kern.schedule<row>} {
^bb0(%x: tensor<12x1000xf32>):
  %reduced = tensor.empty() : tensor<12xf32>
  %full = tensor.empty() : tensor<12x1000xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%lowest : f32) outs(%reduced : tensor<12xf32>) -> tensor<12xf32>
  %max = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<12x1000xf32>) outs(%init : tensor<12xf32>) {
  ^bb1(%a: f32, %o: f32):
    %m = arith.maximumf %a, %o : f32
    linalg.yield %m : f32
  } -> tensor<12xf32>
  %exp = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<12x1000xf32>, tensor<12xf32>) outs(%full : tensor<12x1000xf32>) {
  ^bb1(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    %e = math.exp %s : f32
    linalg.yield %e : f32
  } -> tensor<12x1000xf32>
  %start = linalg.fill ins(%zero : f32) outs(%reduced : tensor<12xf32>) -> tensor<12xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<12x1000xf32>) outs(%start : tensor<12xf32>) {
  ^bb1(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<12xf32>
  %result = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<12x1000xf32>, tensor<12xf32>) outs(%full : tensor<12x1000xf32>) {
  ^bb1(%a: f32, %s: f32, %o: f32):
    %q = arith.divf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<12x1000xf32>
  kern.yield %result : tensor<12x1000xf32>
} loc("softmax (Softmax)")

// Short rows: a warp each, four rows a block, no shared memory; the first lane writes.
// CHECK-LABEL: mean(const ogc::f16
// CHECK: (unsigned int){{v[0-9]+}} / (unsigned int)32
// CHECK-NOT: __shared__
// CHECK: if ({{v[0-9]+}}) {
// CHECK-NEXT: *(p1 + {{v[0-9]+}}) =
kern.kernel @mean attributes {schedule = #kern.schedule<row>} {
^bb0(%x: tensor<528x64xf16>):
  %reduced = tensor.empty() : tensor<528xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%reduced : tensor<528xf32>) -> tensor<528xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<528x64xf16>) outs(%start : tensor<528xf32>) {
  ^bb1(%a: f16, %o: f32):
    %f = arith.extf %a : f16 to f32
    %s = arith.addf %f, %o : f32
    linalg.yield %s : f32
  } -> tensor<528xf32>
  kern.yield %sum : tensor<528xf32>
} loc("mean (ReduceMean)")

// Rows of a table: 24 elements a lane of one warp, by three accesses that the second stage does not repeat.
// CHECK-LABEL: embed(const ogc::f16
// CHECK: [[ROW:v[0-9]+]] = ogc::loadElement(a1 +
// CHECK-COUNT-3: ogc::loadVec<ogc::f16, 8>(p0 + {{v[0-9]+}} * 768 +
// CHECK-NOT: ogc::load
// CHECK-COUNT-3: ogc::storeVec(p2 +
kern.kernel @embed attributes {schedule = #kern.schedule<row>, ogc.constant_args = array<i64: 0>} {
^bb0(%t: tensor<1000x768xf16>, %i: tensor<128xi64>):
  %e = tensor.empty() : tensor<128x768xf16>
  %g = linalg.generic {indexing_maps = [#outer, #id], iterator_types = ["parallel","parallel"]} ins(%i : tensor<128xi64>) outs(%e : tensor<128x768xf16>) {
  ^bb1(%a: i64, %o: f16):
    %r = arith.index_cast %a : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : tensor<1000x768xf16>
    linalg.yield %v : f16
  } -> tensor<128x768xf16>
  %e1 = tensor.empty() : tensor<128xf32>
  %z = arith.constant 0.0 : f32
  %i0 = linalg.fill ins(%z : f32) outs(%e1 : tensor<128xf32>) -> tensor<128xf32>
  %s = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","reduction"]} ins(%g : tensor<128x768xf16>) outs(%i0 : tensor<128xf32>) {
  ^bb1(%a: f16, %o: f32):
    %f = arith.extf %a : f16 to f32
    %m = arith.addf %o, %f : f32
    linalg.yield %m : f32
  } -> tensor<128xf32>
  %r = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel","parallel"]} ins(%g, %s : tensor<128x768xf16>, tensor<128xf32>) outs(%e : tensor<128x768xf16>) {
  ^bb1(%a: f16, %t2: f32, %o: f16):
    %f = arith.extf %a : f16 to f32
    %d = arith.subf %f, %t2 : f32
    %h = arith.truncf %d : f32 to f16
    linalg.yield %h : f16
  } -> tensor<128x768xf16>
  kern.yield %r : tensor<128x768xf16>
} loc("embed (Gather)")
