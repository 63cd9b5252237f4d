// Products of one value with several constant weights become one; what they have in common follows it.
// RUN: ogc-opt %s -split-input-file -ogc-merge-matmuls | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// CHECK-LABEL: func @query_key
// CHECK-DAG: %[[W:.*]] = tensor.concat dim(0) {{.*}} : (tensor<1x8x16xf32>, tensor<2x8x16xf32>) -> tensor<3x8x16xf32>
// CHECK-DAG: %[[M:.*]] = kern.matmul %arg0, %[[W]] {packed} : (tensor<1x4x8xf32>, tensor<3x8x16xf32>) -> tensor<1x4x48xf32>
// CHECK-DAG: %[[B:.*]] = tensor.concat dim(0) {{.*}} : (tensor<16xf32>, tensor<32xf32>) -> tensor<48xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[B]] : tensor<1x4x48xf32>, tensor<48xf32>)
// CHECK-NOT: kern.matmul
// CHECK: %[[Q:.*]] = tensor.extract_slice %[[S]][0, 0, 0] [1, 4, 16] [1, 1, 1]
// CHECK: %[[K:.*]] = tensor.extract_slice %[[S]][0, 0, 16] [1, 4, 32] [1, 1, 1]
// CHECK: tensor.expand_shape %[[Q]]
// CHECK: tensor.expand_shape %[[K]]
func.func @query_key(%x: tensor<1x4x8xf32>) -> tensor<1x4x2x16xf32> {
  %w = arith.constant dense<1.0> : tensor<1x8x16xf32>
  %b = arith.constant dense<2.0> : tensor<16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %b : tensor<1x4x16xf32>, tensor<16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  %v = arith.constant dense<3.0> : tensor<2x8x16xf32>
  %c = arith.constant dense<4.0> : tensor<32xf32>
  %f = tensor.empty() : tensor<1x4x32xf32>
  %2 = kern.matmul %x, %v {packed} : (tensor<1x4x8xf32>, tensor<2x8x16xf32>) -> tensor<1x4x32xf32>
  %3 = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %c : tensor<1x4x32xf32>, tensor<32xf32>) outs(%f : tensor<1x4x32xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x4x32xf32>
  %q = tensor.expand_shape %1 [[0], [1], [2, 3]] output_shape [1, 4, 1, 16] : tensor<1x4x16xf32> into tensor<1x4x1x16xf32>
  %k = tensor.expand_shape %3 [[0], [1], [2, 3]] output_shape [1, 4, 2, 16] : tensor<1x4x32xf32> into tensor<1x4x2x16xf32>
  %a = kern.attention %k, %q, %q {scale = 1.0 : f32} : (tensor<1x4x2x16xf32>, tensor<1x4x1x16xf32>, tensor<1x4x1x16xf32>) -> tensor<1x4x2x16xf32>
  return %a : tensor<1x4x2x16xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// One branch goes on by itself: it would leave the region of its product. A returned slice would be a copy.
// CHECK-LABEL: func @apart
// CHECK-COUNT-2: kern.matmul %arg0, {{.*}} -> tensor<1x4x16xf32>
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @apart(%x: tensor<1x4x8xf32>) -> (tensor<1x4x16xf32>, tensor<1x4x16xf32>) {
  %w = arith.constant dense<1.0> : tensor<1x8x16xf32>
  %v = arith.constant dense<3.0> : tensor<1x8x16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %1 = kern.matmul %x, %v {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  return %0, %2 : tensor<1x4x16xf32>, tensor<1x4x16xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// Rows are split into batches before the bias is added: the reshape is done once too.
// CHECK-LABEL: func @batches
// CHECK: %[[M:.*]] = kern.matmul {{.*}} -> tensor<1x4x32xf32>
// CHECK: %[[E:.*]] = tensor.expand_shape %[[M]] {{\[\[}}0, 1], [2], [3]] output_shape [1, 1, 4, 32]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[E]] {{\[\[}}0], [1, 2], [3]]
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[R]], %{{.*}} : tensor<1x4x32xf32>, tensor<32xf32>)
// CHECK: %[[Q:.*]] = tensor.extract_slice %[[S]][0, 0, 0] [1, 4, 16] [1, 1, 1]
// CHECK: %[[K:.*]] = tensor.extract_slice %[[S]][0, 0, 16] [1, 4, 16] [1, 1, 1]
// CHECK: kern.matmul %[[Q]], %[[K]] {transpose_rhs}
func.func @batches(%x: tensor<1x4x8xf32>) -> tensor<1x4x4xf32> {
  %w = arith.constant dense<1.0> : tensor<1x8x16xf32>
  %v = arith.constant dense<3.0> : tensor<1x8x16xf32>
  %b = arith.constant dense<2.0> : tensor<16xf32>
  %e = tensor.empty() : tensor<1x4x16xf32>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2], [3]] output_shape [1, 1, 4, 16] : tensor<1x4x16xf32> into tensor<1x1x4x16xf32>
  %2 = tensor.collapse_shape %1 [[0], [1, 2], [3]] : tensor<1x1x4x16xf32> into tensor<1x4x16xf32>
  %3 = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %b : tensor<1x4x16xf32>, tensor<16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  %4 = kern.matmul %x, %v {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
  %5 = tensor.expand_shape %4 [[0, 1], [2], [3]] output_shape [1, 1, 4, 16] : tensor<1x4x16xf32> into tensor<1x1x4x16xf32>
  %6 = tensor.collapse_shape %5 [[0], [1, 2], [3]] : tensor<1x1x4x16xf32> into tensor<1x4x16xf32>
  %7 = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %b : tensor<1x4x16xf32>, tensor<16xf32>) outs(%e : tensor<1x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x4x16xf32>
  %8 = kern.matmul %3, %7 {transpose_rhs} : (tensor<1x4x16xf32>, tensor<1x4x16xf32>) -> tensor<1x4x4xf32>
  return %8 : tensor<1x4x4xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// The second of three has no bias: the other two become one, although the bias of the first alone could be left to the attention.
// CHECK-LABEL: func @one_without_bias
// CHECK: kern.matmul %arg0, {{.*}} -> tensor<1x4x32xf32>
// CHECK: %[[B:.*]] = linalg.generic {{.*}} : tensor<1x4x32xf16>, tensor<32xf16>)
// CHECK-DAG: tensor.extract_slice %[[B]][0, 0, 0] [1, 4, 16]
// CHECK-DAG: tensor.extract_slice %[[B]][0, 0, 16] [1, 4, 16]
// CHECK-DAG: kern.matmul %arg0, {{.*}} -> tensor<1x4x16xf32>
// CHECK: kern.attention
func.func @one_without_bias(%x: tensor<1x4x8xf16>) -> tensor<1x4x1x16xf32> {
  %w = arith.constant dense<1.0> : tensor<1x8x16xf16>
  %v = arith.constant dense<2.0> : tensor<1x8x16xf16>
  %u = arith.constant dense<3.0> : tensor<1x8x16xf16>
  %b = arith.constant dense<4.0> : tensor<16xf16>
  %c = arith.constant dense<5.0> : tensor<16xf16>
  %e = tensor.empty() : tensor<1x4x16xf16>
  %0 = kern.matmul %x, %w {packed} : (tensor<1x4x8xf16>, tensor<1x8x16xf16>) -> tensor<1x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf16>) {
  ^bb0(%i: f32, %o: f16):
    %s = arith.truncf %i : f32 to f16
    linalg.yield %s : f16
  } -> tensor<1x4x16xf16>
  %2 = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %b : tensor<1x4x16xf16>, tensor<16xf16>) outs(%e : tensor<1x4x16xf16>) {
  ^bb0(%i: f16, %j: f16, %o: f16):
    %s = arith.addf %i, %j : f16
    linalg.yield %s : f16
  } -> tensor<1x4x16xf16>
  %3 = kern.matmul %x, %v {packed} : (tensor<1x4x8xf16>, tensor<1x8x16xf16>) -> tensor<1x4x16xf32>
  %4 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf16>) {
  ^bb0(%i: f32, %o: f16):
    %s = arith.truncf %i : f32 to f16
    linalg.yield %s : f16
  } -> tensor<1x4x16xf16>
  %5 = kern.matmul %x, %u {packed} : (tensor<1x4x8xf16>, tensor<1x8x16xf16>) -> tensor<1x4x16xf32>
  %6 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<1x4x16xf32>) outs(%e : tensor<1x4x16xf16>) {
  ^bb0(%i: f32, %o: f16):
    %s = arith.truncf %i : f32 to f16
    linalg.yield %s : f16
  } -> tensor<1x4x16xf16>
  %7 = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %c : tensor<1x4x16xf16>, tensor<16xf16>) outs(%e : tensor<1x4x16xf16>) {
  ^bb0(%i: f16, %j: f16, %o: f16):
    %s = arith.addf %i, %j : f16
    linalg.yield %s : f16
  } -> tensor<1x4x16xf16>
  %q = tensor.expand_shape %2 [[0], [1], [2, 3]] output_shape [1, 4, 1, 16] : tensor<1x4x16xf16> into tensor<1x4x1x16xf16>
  %k = tensor.expand_shape %4 [[0], [1], [2, 3]] output_shape [1, 4, 1, 16] : tensor<1x4x16xf16> into tensor<1x4x1x16xf16>
  %y = tensor.expand_shape %7 [[0], [1], [2, 3]] output_shape [1, 4, 1, 16] : tensor<1x4x16xf16> into tensor<1x4x1x16xf16>
  %a = kern.attention %q, %k, %y {scale = 1.0 : f32} : (tensor<1x4x1x16xf16>, tensor<1x4x1x16xf16>, tensor<1x4x1x16xf16>) -> tensor<1x4x1x16xf32>
  return %a : tensor<1x4x1x16xf32>
}
