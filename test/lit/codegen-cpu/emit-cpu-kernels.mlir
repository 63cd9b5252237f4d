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
