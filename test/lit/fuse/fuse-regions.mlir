// What follows an anchor, and the views that it reads, join its region.
// RUN: ogc-opt %s -split-input-file -ogc-fuse-regions | FileCheck %s
// RUN: ogc-opt %s -split-input-file -ogc-fuse-regions=epilogues=false | FileCheck %s --check-prefix=ALONE

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// Bias and residual join; the sum that is read again is yielded too; the location names all nodes once.
// CHECK-LABEL: func @epilogue
// CHECK: %[[R:.*]]:2 = kern.region(%arg0, %arg1, %arg2, %arg3) : (tensor<1x4x8xf32>, tensor<1x8x16xf32>, tensor<16xf32>, tensor<1x4x16xf32>)
// CHECK:   %[[M:.*]] = kern.matmul
// CHECK:   %[[S:.*]] = linalg.generic {{.*}} ins(%[[M]], %{{.*}}, %{{.*}} :
// CHECK:   %[[T:.*]] = linalg.generic {{.*}} ins(%[[S]] :
// CHECK:   kern.yield %[[S]], %[[T]]
// CHECK: return %[[R]]#0, %[[R]]#1
// ALONE-LABEL: func @epilogue
// ALONE: kern.region(%arg0, %arg1)
// ALONE:   kern.matmul
// ALONE-NEXT: kern.yield
// ALONE: kern.region
// ALONE-NOT: kern.matmul
// ALONE: return
func.func @epilogue(%x: tensor<1x4x8xf32>, %w: tensor<1x8x16xf32>, %b: tensor<16xf32>, %r: tensor<1x4x16xf32>) -> (tensor<1x4x16xf32>, tensor<1x4x16xf32>) {
  %0 = kern.matmul %x, %w {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #last, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %b, %r : tensor<1x4x16xf32>, tensor<16xf32>, tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    %t = arith.addf %s, %k : f32
    linalg.yield %t : f32
  } -> tensor<1x4x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.tanh %i : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  return %1, %2 : tensor<1x4x16xf32>, tensor<1x4x16xf32>
}

// -----

// Three slices of one buffer are read in place; the reshape that splits heads joins because it lies between slice and anchor.
// CHECK-LABEL: func @attention_views
// CHECK: %[[R:.*]] = kern.region(%arg0) : (tensor<1x4x48xf32>) -> tensor<1x4x2x8xf32> {
// CHECK-DAG:   %[[SQ:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [1, 4, 16] [1, 1, 1]
// CHECK-DAG:   %[[Q:.*]] = tensor.expand_shape %[[SQ]]
// CHECK-DAG:   %[[SK:.*]] = tensor.extract_slice %{{.*}}[0, 0, 16] [1, 4, 16] [1, 1, 1]
// CHECK-DAG:   %[[K:.*]] = tensor.expand_shape %[[SK]]
// CHECK-DAG:   %[[SV:.*]] = tensor.extract_slice %{{.*}}[0, 0, 32] [1, 4, 16] [1, 1, 1]
// CHECK-DAG:   %[[V:.*]] = tensor.expand_shape %[[SV]]
// CHECK:   %[[A:.*]] = kern.attention %[[Q]], %[[K]], %[[V]]
// CHECK:   kern.yield %[[A]]
// CHECK: }
// CHECK-NEXT: %[[C:.*]] = tensor.collapse_shape %[[R]]
// CHECK-NEXT: return %[[C]]
func.func @attention_views(%h: tensor<1x4x48xf32>) -> tensor<1x4x16xf32> {
  %0 = tensor.extract_slice %h[0, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<1x4x48xf32> to tensor<1x4x16xf32>
  %1 = tensor.extract_slice %h[0, 0, 16] [1, 4, 16] [1, 1, 1] : tensor<1x4x48xf32> to tensor<1x4x16xf32>
  %2 = tensor.extract_slice %h[0, 0, 32] [1, 4, 16] [1, 1, 1] : tensor<1x4x48xf32> to tensor<1x4x16xf32>
  %q = tensor.expand_shape %0 [[0], [1], [2, 3]] output_shape [1, 4, 2, 8] : tensor<1x4x16xf32> into tensor<1x4x2x8xf32>
  %k = tensor.expand_shape %1 [[0], [1], [2, 3]] output_shape [1, 4, 2, 8] : tensor<1x4x16xf32> into tensor<1x4x2x8xf32>
  %v = tensor.expand_shape %2 [[0], [1], [2, 3]] output_shape [1, 4, 2, 8] : tensor<1x4x16xf32> into tensor<1x4x2x8xf32>
  %3 = kern.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  %4 = tensor.collapse_shape %3 [[0], [1], [2, 3]] : tensor<1x4x2x8xf32> into tensor<1x4x16xf32>
  return %4 : tensor<1x4x16xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// A convolution reads channels with stride one: a transposed view is copied by a region of its own. A filter computed from constants is a
// region of constants. A fill that an anchor reads becomes a constant.
// CHECK-LABEL: func @copies
// CHECK-DAG: %[[C:.*]] = arith.constant dense<[
// CHECK-DAG: %[[T:.*]] = kern.region(%arg0) : (tensor<1x3x4x4xf32>) -> tensor<1x4x4x3xf32>
// CHECK-DAG: %[[W:.*]] = kern.region(%[[C]]) : (tensor<16x3xf32>) -> tensor<1x3x16xf32>
// CHECK: %[[A:.*]] = kern.region(%[[T]], %[[W]])
// CHECK: %[[F:.*]] = tensor.collapse_shape %[[A]]
// CHECK: %[[Z:.*]] = arith.constant dense<2.000000e+00> : tensor<1x16x16xf32>
// CHECK: kern.region(%[[F]], %[[Z]])
func.func @copies(%x: tensor<1x3x4x4xf32>) -> tensor<1x16x16xf32> {
  %e = tensor.empty() : tensor<1x4x4x3xf32>
  %0 = linalg.transpose ins(%x : tensor<1x3x4x4xf32>) outs(%e : tensor<1x4x4x3xf32>) permutation = [0, 2, 3, 1]
  %c = arith.constant dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1.0, 2.0, 5.0], [1.0, 2.0, 6.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1.0, 2.0, 5.0], [1.0, 2.0, 6.0],
    [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1.0, 2.0, 5.0], [1.0, 2.0, 6.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1.0, 2.0, 5.0], [1.0, 2.0, 6.0]]> : tensor<16x3xf32>
  %f = tensor.empty() : tensor<3x16xf32>
  %1 = linalg.transpose ins(%c : tensor<16x3xf32>) outs(%f : tensor<3x16xf32>) permutation = [1, 0]
  %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [1, 3, 16] : tensor<3x16xf32> into tensor<1x3x16xf32>
  %g = tensor.empty() : tensor<1x3x16xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<1x3x16xf32>) outs(%g : tensor<1x3x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = arith.negf %i : f32
    linalg.yield %n : f32
  } -> tensor<1x3x16xf32>
  %4 = kern.conv %0, %3 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x4x3xf32>, tensor<1x3x16xf32>) -> tensor<1x4x4x16xf32>
  %5 = tensor.collapse_shape %4 [[0], [1, 2], [3]] : tensor<1x4x4x16xf32> into tensor<1x16x16xf32>
  %two = arith.constant 2.0 : f32
  %h = tensor.empty() : tensor<1x16x16xf32>
  %6 = linalg.fill ins(%two : f32) outs(%h : tensor<1x16x16xf32>) -> tensor<1x16x16xf32>
  %7 = kern.matmul %5, %6 : (tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<1x16x16xf32>
  return %7 : tensor<1x16x16xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#outer = affine_map<(d0, d1, d2) -> (d0, d1)>

// Statistics are taken in the region that computes their rows, and merged in the one that scales rows by them.
// CHECK-LABEL: func.func @statistics
// CHECK: %[[R:.*]]:3 = kern.region(%arg0, %arg1)
// CHECK:   kern.matmul
// CHECK:   %[[X:.*]] = linalg.generic
// CHECK:   %[[M:.*]], %[[Q:.*]] = kern.row_statistics %[[X]]
// CHECK:   kern.yield %[[X]], %[[M]], %[[Q]]
// CHECK: kern.region
// CHECK:   %[[F:.*]] = kern.merge_statistics
// CHECK:   %[[ACC:.*]] = kern.matmul
// CHECK:   %[[Y:.*]] = linalg.generic {{.*}} ins(%[[ACC]], %[[F]]
// CHECK:   kern.yield %[[Y]]
// CHECK-NOT: kern.region
// ALONE-LABEL: func.func @statistics
// ALONE: kern.row_statistics
// ALONE: kern.yield
func.func @statistics(%a: tensor<1x40x64xf16>, %v: tensor<2x64x64xf16>, %w: tensor<1x128x64xf16>) -> tensor<1x40x64xf32> {
  %acc = kern.matmul %a, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %e = tensor.empty() : tensor<1x40x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc : tensor<1x40x128xf32>) outs(%e : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %o: f16):
    %0 = arith.truncf %b : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<1x40x128xf16>
  %m, %q = kern.row_statistics %x : tensor<1x40x128xf16> -> tensor<1x40x2xf32>
  %f = kern.merge_statistics %m, %q {epsilon = 1.0e-5 : f32} : tensor<1x40x2xf32> -> tensor<1x40xf32>
  %acc2 = kern.matmul %x, %w {packed} : (tensor<1x40x128xf16>, tensor<1x128x64xf16>) -> tensor<1x40x64xf32>
  %e2 = tensor.empty() : tensor<1x40x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc2, %f : tensor<1x40x64xf32>, tensor<1x40xf32>) outs(%e2 : tensor<1x40x64xf32>) {
  ^bb0(%b: f32, %c: f32, %o: f32):
    %0 = arith.mulf %b, %c : f32
    linalg.yield %0 : f32
  } -> tensor<1x40x64xf32>
  return %y : tensor<1x40x64xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Panels of 32 columns: no thread has all of a part of a row.
// CHECK-LABEL: func.func @narrow
// CHECK: kern.region
// CHECK-NOT: kern.row_statistics
// CHECK: kern.yield
// CHECK: kern.region
// CHECK: kern.row_statistics
func.func @narrow(%a: tensor<1x40x64xf16>, %v: tensor<4x64x32xf16>) -> tensor<1x40x2xf32> {
  %acc = kern.matmul %a, %v {packed} : (tensor<1x40x64xf16>, tensor<4x64x32xf16>) -> tensor<1x40x128xf32>
  %e = tensor.empty() : tensor<1x40x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc : tensor<1x40x128xf32>) outs(%e : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %o: f16):
    %0 = arith.truncf %b : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<1x40x128xf16>
  %m, %q = kern.row_statistics %x : tensor<1x40x128xf16> -> tensor<1x40x2xf32>
  return %q : tensor<1x40x2xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#outer = affine_map<(d0, d1, d2) -> (d0, d1)>

// Rows that are normalized for a residual alone join the region of the product that they are added to.
// CHECK-LABEL: func.func @normalized_residual
// CHECK: kern.region
// CHECK:   kern.merge_means
// CHECK:   kern.matmul
// CHECK:   linalg.generic
// CHECK:   linalg.generic
// CHECK:   kern.yield
// CHECK-NOT: kern.region
func.func @normalized_residual(%a: tensor<1x40x64xf16>, %v: tensor<2x64x64xf16>, %x: tensor<1x40x128xf16>, %m: tensor<1x40x2xf32>) -> tensor<1x40x128xf16> {
  %mean = kern.merge_means %m : tensor<1x40x2xf32> -> tensor<1x40xf32>
  %acc = kern.matmul %a, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %e = tensor.empty() : tensor<1x40x128xf16>
  %n = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean : tensor<1x40x128xf16>, tensor<1x40xf32>) outs(%e : tensor<1x40x128xf16>) {
  ^bb0(%b: f16, %c: f32, %o: f16):
    %0 = arith.extf %b : f16 to f32
    %1 = arith.subf %0, %c : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x40x128xf16>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc, %n : tensor<1x40x128xf32>, tensor<1x40x128xf16>) outs(%e : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %b, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x40x128xf16>
  return %y : tensor<1x40x128xf16>
}
