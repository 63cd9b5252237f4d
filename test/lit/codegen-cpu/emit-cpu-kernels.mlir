// RUN: ogc-opt %s -ogc-emit-cpu-kernels=cpu=haswell | FileCheck %s

#line = affine_map<(d0) -> (d0)>

// One flat loop; the reshape costs nothing.
// CHECK-LABEL: func.func @relu
// CHECK-SAME: (%[[X:.*]]: memref<12xf32>, %[[Y:.*]]: memref<12xf32>, %{{.*}}: index, %{{.*}}: index) attributes {ogc.units = 1 : i64}
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.load %[[X]][%[[I]]]
// CHECK: arith.maximumf
// CHECK: memref.store %{{.*}}, %[[Y]][%[[I]]]
kern.kernel @relu attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<3x4xf32>):
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  %init = tensor.empty() : tensor<12xf32>
  %r = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%flat : tensor<12xf32>) outs(%init : tensor<12xf32>) {
  ^bb0(%e: f32, %o: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %e, %zero : f32
    linalg.yield %m : f32
  } -> tensor<12xf32>
  kern.yield %r : tensor<12xf32>
}

// Six rows of two vectors in registers, and no tail: the last tile of rows overlaps the one before.
// CHECK-LABEL: func.func @product
// CHECK: memref.alloca() {{.*}} : memref<96xf32>
// CHECK: vector.load %{{.*}} : memref<{{.*}}xf32>, vector<8xf32>
// CHECK-COUNT-12: vector.fma
// CHECK-NOT: vector.fma
kern.kernel @product attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x12x5xf32>, %b: tensor<2x5x16xf32>):
  %r = kern.matmul %a, %b {packed} : (tensor<1x12x5xf32>, tensor<2x5x16xf32>) -> tensor<1x12x32xf32>
  kern.yield %r : tensor<1x12x32xf32>
}

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Two products of one row: one unit an image, all of a stage before the next one begins.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: attributes {ogc.units = 2 : i64}
// CHECK-DAG: %[[FIRST:.*]] = memref.alloca() {{.*}} : memref<16xf32>
// CHECK-DAG: %[[SECOND:.*]] = memref.alloca() {{.*}} : memref<32xf32>
// CHECK: vector.store %{{.*}}, %[[FIRST]]
// CHECK: math.tanh
// CHECK: vector.store %{{.*}}, %[[SECOND]]
// CHECK-NOT: math.tanh
kern.kernel @chain attributes {schedule = #kern.schedule<vector_chain>} {
^bb0(%x: tensor<1x2x5xf32>, %v: tensor<1x5x16xf32>, %w: tensor<2x16x16xf32>):
  %a = kern.matmul %x, %v {packed} : (tensor<1x2x5xf32>, tensor<1x5x16xf32>) -> tensor<1x2x16xf32>
  %e = tensor.empty() : tensor<1x2x16xf32>
  %h = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<1x2x16xf32>) outs(%e : tensor<1x2x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %t = math.tanh %i : f32
    linalg.yield %t : f32
  } -> tensor<1x2x16xf32>
  %r = kern.matmul %h, %w {packed} : (tensor<1x2x16xf32>, tensor<2x16x16xf32>) -> tensor<1x2x32xf32>
  kern.yield %r : tensor<1x2x32xf32>
}

// Rows that are divided by their spread: sums of four vectors side by side, then one by one, then the rows once more.
// CHECK-LABEL: func.func @normalized
// CHECK: memref.store
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: vector.reduction <add>
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: math.sqrt
// CHECK: arith.divf
// CHECK: scf.for
// CHECK-COUNT-4: vector.store
// CHECK: scf.for
// CHECK: memref.store
// CHECK: vector.fma
kern.kernel @normalized attributes {schedule = #kern.schedule<matmul>} {
^bb0(%x: tensor<1x1x70xf32>, %w: tensor<1x70x16xf32>):
  %acc = kern.matmul %x, %w {packed, ogc.row_norm = "root_mean_square", ogc.epsilon = 9.99999974E-6 : f32} : (tensor<1x1x70xf32>, tensor<1x70x16xf32>) -> tensor<1x1x16xf32>
  kern.yield %acc : tensor<1x1x16xf32>
}

#outer3 = affine_map<(d0, d1, d2) -> (d0, d1)>

// Statistics of the rows of a panel, once they are stored: their mean, then the squares of the distances from it.
// CHECK-LABEL: func.func @stores_statistics
// CHECK: vector.fma
// CHECK: memref.store
// CHECK-COUNT-8: vector.load {{.*}} vector<8xf16>
// CHECK: vector.reduction <add>
// CHECK: arith.subf
// CHECK: vector.reduction <add>
// CHECK: memref.store {{.*}} memref<80xf32>
// CHECK: memref.store {{.*}} memref<80xf32>
kern.kernel @stores_statistics attributes {schedule = #kern.schedule<matmul>} {
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

// They are merged once for each row of a tile, not for each of its elements.
// CHECK-LABEL: func.func @scales_rows
// CHECK: vector.fma
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (f32, f32, f32)
// CHECK: arith.divf
// CHECK-NEXT: scf.for
// CHECK: arith.mulf
// CHECK: memref.store
kern.kernel @scales_rows attributes {schedule = #kern.schedule<matmul>} {
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

// By itself, element by element.
// CHECK-LABEL: func.func @statistics_alone
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: scf.for {{.*}} -> (f32)
kern.kernel @statistics_alone attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<1x40x128xf16>):
  %m, %q = kern.row_statistics %x : tensor<1x40x128xf16> -> tensor<1x40x2xf32>
  kern.yield %q : tensor<1x40x2xf32>
}
