// Products that store statistics of the rows they compute, and products that scale rows by them.
// RUN: ogc-opt %s -ogc-emit-cuda -o /dev/null | FileCheck %s
// RUN: ogc-opt %s -ogc-emit-cuda=arch=sm_86 -o /dev/null | FileCheck %s --check-prefix=AMPERE

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#outer3 = affine_map<(d0, d1, d2) -> (d0, d1)>

// Statistics of rows: the threads that have 64 elements of a row store them behind the elements. A tile has all 64 columns, on every architecture.
// CHECK: struct stores_statistics_Config : ogc::GemmDefaults {
// CHECK: BN = 64
// CHECK: Engine = 2
// CHECK: struct stores_statistics_Epilogue {
// CHECK: ogc::storeVec(p2 + i0 * 5120 + i1 * 128 + i2
// CHECK: const int [[PART:v[0-9]+]] = (int)((unsigned int)i2 / (unsigned int)64);
// CHECK: ogc::storeStatistics<64, 8>(p3 + i0 * 80 + i1 * 2 + [[PART]], p4 + i0 * 80 + i1 * 2 + [[PART]], {
// AMPERE: struct stores_statistics_Config : ogc::GemmDefaults {
// AMPERE: BN = 64
// AMPERE: ogc::storeStatistics<64, 8>(
kern.kernel @stores_statistics attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 1>} {
^bb0(%a: tensor<1x40x64xf16>, %v: tensor<2x64x64xf16>):
  %acc = kern.matmul %a, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %e = tensor.empty() : tensor<1x40x128xf16>
  %x = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc : tensor<1x40x128xf32>) outs(%e : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %o: f16):
    %0 = arith.truncf %b : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<1x40x128xf16>
  %m, %q = kern.row_statistics %x : tensor<1x40x128xf16> -> tensor<1x40x2xf32>
  kern.yield %x, %m, %q : tensor<1x40x128xf16>, tensor<1x40x2xf32>, tensor<1x40x2xf32>
}

// What is merged of a row is computed once a row of the tile where the template keeps it; its memory is part of the tile's.
// CHECK: struct scales_rows_Config : ogc::GemmDefaults {
// CHECK: struct Row {
// CHECK-NEXT: float v0;
// CHECK: Row row(int i0, int i1) const {
// CHECK-NEXT: const float *const a0 = ogc::afterWait(p0);
// CHECK: for (int {{.*}} = 0; {{.*}} < 3;
// CHECK: ogc::loadVec<float, 4>(a0
// CHECK: ogc::loadVec<float, 4>(a1
// CHECK: 0x1p0f /
// CHECK: struct Constants {
// CHECK-NEXT: };
// CHECK: operator()(int i0, int i1, int i2, const float (&acc)[8], const Constants &constants, const Inputs &inputs, const Row &row) const {
// CHECK-NEXT: {{.*}}__fmul_rn(acc[0], row.v0);
// AMPERE: struct scales_rows_Epilogue {
// AMPERE-NOT: struct Row
// AMPERE: for (int
// AMPERE: __fmul_rn(acc[0],
kern.kernel @scales_rows attributes {schedule = #kern.schedule<matmul>, ogc.constant_args = array<i64: 3>} {
^bb0(%m: tensor<1x40x12xf32>, %q: tensor<1x40x12xf32>, %x: tensor<1x40x768xf16>, %w: tensor<1x768x64xf16>):
  %f = kern.merge_statistics %m, %q {epsilon = 9.99999974E-6 : f32} : tensor<1x40x12xf32> -> tensor<1x40xf32>
  %acc = kern.matmul %x, %w {packed} : (tensor<1x40x768xf16>, tensor<1x768x64xf16>) -> tensor<1x40x64xf32>
  %e = tensor.empty() : tensor<1x40x64xf32>
  %y = linalg.generic {indexing_maps = [#id3, #outer3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc, %f : tensor<1x40x64xf32>, tensor<1x40xf32>) outs(%e : tensor<1x40x64xf32>) {
  ^bb0(%b: f32, %c: f32, %o: f32):
    %0 = arith.mulf %b, %c : f32
    linalg.yield %0 : f32
  } -> tensor<1x40x64xf32>
  kern.yield %y : tensor<1x40x64xf32>
}
