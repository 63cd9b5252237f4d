// Everything else is pulled into its readers where that repeats little work.
// RUN: ogc-opt %s -split-input-file -ogc-fuse-regions -ogc-select-schedule | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// A cheap operation is computed in both regions that read it, one that is dear only once.
// CHECK-LABEL: func @cheap_twice
// CHECK: %[[D:.*]] = kern.region(%arg0)
// CHECK:   math.erf
// CHECK-COUNT-2: arith.negf
// CHECK-NOT: kern.region
// CHECK: return
func.func @cheap_twice(%x: tensor<4x6xf32>) -> (tensor<6x4xf32>, tensor<8x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.erf %i : f32
    %t = math.tanh %s : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.negf %i : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %f = tensor.empty() : tensor<6x4xf32>
  %2 = linalg.transpose ins(%1 : tensor<4x6xf32>) outs(%f : tensor<6x4xf32>) permutation = [1, 0]
  %3 = tensor.concat dim(0) %1, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %2, %3 : tensor<6x4xf32>, tensor<8x6xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Data movement is folded into one writer; a value read outside as well is a second result of the region that has its shape.
// CHECK-LABEL: func @movement
// CHECK: %[[R:.*]]:2 = kern.region(%arg0, %arg1) attributes {schedule = #kern.schedule<pointwise>}
// CHECK:   tensor.extract_slice
// CHECK:   tensor.pad
// CHECK:   math.exp
// CHECK:   kern.yield
// CHECK-NOT: kern.region
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @movement(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.extract_slice %x[0, 2] [4, 6] [1, 1] : tensor<4x8xf32> to tensor<4x6xf32>
  %1 = tensor.pad %0 low[0, 1] high[0, 1] {
  ^bb0(%a: index, %b: index):
    tensor.yield %zero : f32
  } : tensor<4x6xf32> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%1, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = math.exp %i : f32
    %t = arith.addf %s, %j : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.tanh %i : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#ids = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// A dear table is computed once, before the gather that reads it at computed positions; what reads the rows joins.
// CHECK-LABEL: func @gather
// CHECK: %[[T:.*]] = kern.region(%arg0)
// CHECK: kern.region(%arg1, %[[T]]) attributes {schedule = #kern.schedule<pointwise>} : (tensor<4xi64>, tensor<9x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: kern.region
// CHECK: return
func.func @gather(%t: tensor<9x8xf32>, %ids: tensor<4xi64>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<9x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<9x8xf32>) outs(%e : tensor<9x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = math.exp %i : f32
    %u = math.tanh %s : f32
    linalg.yield %u : f32
  } -> tensor<9x8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#ids, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<4xi64>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %s = tensor.extract %0[%r, %c] : tensor<9x8xf32>
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.negf %i : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// Read at two positions, an operation would be computed twice for each result: a dear one is stored. (Otherwise a chain of such steps
// would double the work with each.)
// CHECK-LABEL: func @symmetric
// CHECK: %[[R:.*]] = kern.region(%arg0)
// CHECK: %[[S:.*]] = kern.region(%[[R]])
// CHECK: return %[[S]]
func.func @symmetric(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #t, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = math.tanh %i : f32
    %u = arith.addf %s, %j : f32
    linalg.yield %u : f32
  } -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #t, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %0 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = math.tanh %i : f32
    %u = arith.addf %s, %j : f32
    linalg.yield %u : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
