// Reductions over rows join with what feeds and follows them.
// RUN: ogc-opt %s -split-input-file -ogc-fuse-regions -ogc-select-schedule | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#outer = affine_map<(d0, d1) -> (d0)>
#keep = affine_map<(d0, d1) -> (d0, 0)>

// A residual sum, softmax over it (with a statistic kept as a column), the sum returned as well: one region.
// CHECK-LABEL: func @softmax_of_sum
// CHECK: %[[R:.*]]:2 = kern.region(%arg0, %arg1) attributes {schedule = #kern.schedule<row>}
// CHECK-NOT: kern.region
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @softmax_of_sum(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  %e = tensor.empty() : tensor<4x64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x64xf32>, tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  %low = arith.constant 0xFF800000 : f32
  %g = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%low : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]} ins(%sum : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.maximumf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %column = tensor.expand_shape %max [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %exp = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel"]} ins(%sum, %column : tensor<4x64xf32>, tensor<4x1xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.subf %i, %j : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<4x64xf32>
  %zero = arith.constant 0.0 : f32
  %init2 = linalg.fill ins(%zero : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>
  %total = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<4x64xf32>) outs(%init2 : tensor<4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %prob = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %total : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.divf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  return %sum, %prob : tensor<4x64xf32>, tensor<4x64xf32>
}

// -----

#nhwc = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
#nc = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>

// A mean over rows and columns of a channels-last tensor is no row; its scale is computed with it, what it reads as well.
// CHECK-LABEL: func @mean
// CHECK: kern.region(%arg0) attributes {schedule = #kern.schedule<vector_chain>} : (tensor<1x8x8x16xf32>) -> tensor<1x16xf32>
// CHECK-NOT: kern.region
// CHECK: return
func.func @mean(%x: tensor<1x8x8x16xf32>) -> tensor<1x16xf32> {
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<1x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%g : tensor<1x16xf32>) -> tensor<1x16xf32>
  %sum = linalg.generic {indexing_maps = [#nhwc, #nc], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<1x8x8x16xf32>) outs(%init : tensor<1x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x16xf32>
  %scale = arith.constant dense<0.015625> : tensor<1x16xf32>
  %mean = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%sum, %scale : tensor<1x16xf32>, tensor<1x16xf32>) outs(%g : tensor<1x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.mulf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x16xf32>
  return %mean : tensor<1x16xf32>
}

// -----

#nhwc = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
#nc = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// Many pixels and few channels: a row each, though the pixels of a channel do not follow each other. What the sum reads once is pulled in.
// CHECK-LABEL: func @long_mean
// CHECK: kern.region(%arg0) attributes {schedule = #kern.schedule<row>} : (tensor<1x16x16x8xf32>) -> tensor<1x8xf32>
// CHECK: math.tanh
// CHECK-NOT: kern.region
// CHECK: return
func.func @long_mean(%x: tensor<1x16x16x8xf32>) -> tensor<1x8xf32> {
  %e = tensor.empty() : tensor<1x16x16x8xf32>
  %0 = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x16x16x8xf32>) outs(%e : tensor<1x16x16x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.tanh %i : f32
    linalg.yield %s : f32
  } -> tensor<1x16x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<1x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%g : tensor<1x8xf32>) -> tensor<1x8xf32>
  %sum = linalg.generic {indexing_maps = [#nhwc, #nc], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%0 : tensor<1x16x16x8xf32>) outs(%init : tensor<1x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  return %sum : tensor<1x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#outer = affine_map<(d0, d1) -> (d0)>

// A reduction that no operation joins is no row, and what reads it does not reduce again for each of its elements.
// CHECK-LABEL: func @without_combiner
// CHECK: kern.region(%arg0) attributes {schedule = #kern.schedule<pointwise>} : (tensor<4x64xf32>) -> tensor<4xf32>
// CHECK: kern.region({{.*}}) attributes {schedule = #kern.schedule<pointwise>} : ({{.*}}) -> tensor<4x64xf32>
func.func @without_combiner(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%g : tensor<4xf32>) -> tensor<4xf32>
  %last = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %isPositive = arith.cmpf ogt, %i, %zero : f32
    %s = arith.select %isPositive, %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %e = tensor.empty() : tensor<4x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %last : tensor<4x64xf32>, tensor<4xf32>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.subf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}
