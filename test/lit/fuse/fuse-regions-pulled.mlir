// What computes the query and the new rows of an attention joins its region, and a cache is converted where it is read.
// RUN: ogc-opt %s -split-input-file -ogc-fuse-regions -ogc-select-schedule | FileCheck %s

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#last = affine_map<(d0, d1, d2, d3) -> (d3)>

// The new key is a result, since it is returned; what others read, and what follows a product, stays outside.
// CHECK-LABEL: func @step
// CHECK: %[[ANGLES:.*]] = kern.region(%arg6) {{.*}}schedule<pointwise>
// CHECK: %[[Q:.*]] = kern.region(%arg0, %arg1) {{.*}}schedule<matmul>{{.*}} -> tensor<1x1x16xf16>
// CHECK: %[[R:.*]]:2 = kern.region({{.*}}) attributes {schedule = #kern.schedule<attention>} : ({{.*}}tensor<2x8x2x8xf32>{{.*}}) -> (tensor<1x1x2x8xf16>, tensor<1x1x2x8xf32>)
// CHECK:   tensor.concat
// CHECK:   arith.mulf
// CHECK:   arith.truncf {{.*}} : f32 to f16
// CHECK:   kern.attention {{.*}} rows {{.*}} at
// CHECK: return %[[R]]#1, %[[R]]#0, %[[ANGLES]]
func.func @step(%x: tensor<1x1x16xf16>, %w: tensor<1x16x16xf16>, %k: tensor<1x1x2x8xf16>, %v: tensor<1x1x2x8xf16>, %kc: tensor<2x8x2x8xf32>, %vc: tensor<1x8x2x8xf16>, %a: tensor<8xf16>, %pos: tensor<1xi64>) -> (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf16>, tensor<8xf16>) {
  %e8 = tensor.empty() : tensor<8xf16>
  %angles = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf16>) outs(%e8 : tensor<8xf16>) {
  ^bb0(%i: f16, %o: f16):
    %s = arith.negf %i : f16
    linalg.yield %s : f16
  } -> tensor<8xf16>
  %acc = kern.matmul %x, %w {packed} : (tensor<1x1x16xf16>, tensor<1x16x16xf16>) -> tensor<1x1x16xf32>
  %e16 = tensor.empty() : tensor<1x1x16xf16>
  %q0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%acc : tensor<1x1x16xf32>) outs(%e16 : tensor<1x1x16xf16>) {
  ^bb0(%i: f32, %o: f16):
    %s = arith.truncf %i : f32 to f16
    linalg.yield %s : f16
  } -> tensor<1x1x16xf16>
  %q1 = tensor.expand_shape %q0 [[0], [1], [2, 3]] output_shape [1, 1, 2, 8] : tensor<1x1x16xf16> into tensor<1x1x2x8xf16>
  %lo = tensor.extract_slice %q1[0, 0, 0, 0] [1, 1, 2, 4] [1, 1, 1, 1] : tensor<1x1x2x8xf16> to tensor<1x1x2x4xf16>
  %hi = tensor.extract_slice %q1[0, 0, 0, 4] [1, 1, 2, 4] [1, 1, 1, 1] : tensor<1x1x2x8xf16> to tensor<1x1x2x4xf16>
  %swapped = tensor.concat dim(3) %hi, %lo : (tensor<1x1x2x4xf16>, tensor<1x1x2x4xf16>) -> tensor<1x1x2x8xf16>
  %e = tensor.empty() : tensor<1x1x2x8xf16>
  %q = linalg.generic {indexing_maps = [#id, #id, #last, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%swapped, %q1, %angles : tensor<1x1x2x8xf16>, tensor<1x1x2x8xf16>, tensor<8xf16>) outs(%e : tensor<1x1x2x8xf16>) {
  ^bb0(%i: f16, %j: f16, %c: f16, %o: f16):
    %s = arith.mulf %i, %c : f16
    %t = arith.addf %s, %j : f16
    linalg.yield %t : f16
  } -> tensor<1x1x2x8xf16>
  %nk = linalg.generic {indexing_maps = [#id, #last, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k, %angles : tensor<1x1x2x8xf16>, tensor<8xf16>) outs(%e : tensor<1x1x2x8xf16>) {
  ^bb0(%i: f16, %c: f16, %o: f16):
    %s = arith.mulf %i, %c : f16
    linalg.yield %s : f16
  } -> tensor<1x1x2x8xf16>
  %ec = tensor.empty() : tensor<2x8x2x8xf16>
  %narrow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kc : tensor<2x8x2x8xf32>) outs(%ec : tensor<2x8x2x8xf16>) {
  ^bb0(%i: f32, %o: f16):
    %s = arith.truncf %i : f32 to f16
    linalg.yield %s : f16
  } -> tensor<2x8x2x8xf16>
  %keys = tensor.extract_slice %narrow[1, 0, 0, 0] [1, 8, 2, 8] [1, 1, 1, 1] : tensor<2x8x2x8xf16> to tensor<1x8x2x8xf16>
  %y = kern.attention %q, %keys, %vc rows %nk, %v at %pos {scale = 1.0 : f32} : (tensor<1x1x2x8xf16>, tensor<1x8x2x8xf16>, tensor<1x8x2x8xf16>, tensor<1x1x2x8xf16>, tensor<1x1x2x8xf16>, tensor<1xi64>) -> tensor<1x1x2x8xf32>
  return %y, %nk, %angles : tensor<1x1x2x8xf32>, tensor<1x1x2x8xf16>, tensor<8xf16>
}

// -----

// More than eight rows in 16 bits come as boxes: query and keys are computed and converted by kernels of their own. Rows of a key
// head count: four queries of three heads are twelve.
// CHECK-LABEL: func @rows
// CHECK: %[[Q:.*]] = kern.region(%arg0) {{.*}}schedule<pointwise>
// CHECK: %[[K:.*]] = kern.region(%arg1) {{.*}}schedule<pointwise>
// CHECK: kern.region({{.*}}%[[Q]]{{.*}}%[[K]]{{.*}}) attributes {schedule = #kern.schedule<attention>}
// In f32 there are no boxes, and for eight rows it does not pay.
// CHECK-LABEL: func @wide
// CHECK-NOT: schedule<pointwise>
// CHECK-LABEL: func @few
// CHECK-NOT: schedule<pointwise>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @rows(%x: tensor<1x4x3x8xf16>, %c: tensor<1x20x1x8xf32>) -> tensor<1x4x3x8xf32> {
  %eq = tensor.empty() : tensor<1x4x3x8xf16>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x3x8xf16>) outs(%eq : tensor<1x4x3x8xf16>) {
  ^bb0(%i: f16, %o: f16):
    %s = arith.negf %i : f16
    linalg.yield %s : f16
  } -> tensor<1x4x3x8xf16>
  %ek = tensor.empty() : tensor<1x20x1x8xf16>
  %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<1x20x1x8xf32>) outs(%ek : tensor<1x20x1x8xf16>) {
  ^bb0(%i: f32, %o: f16):
    %s = arith.truncf %i : f32 to f16
    linalg.yield %s : f16
  } -> tensor<1x20x1x8xf16>
  %y = kern.attention %q, %k, %k {scale = 1.0 : f32} : (tensor<1x4x3x8xf16>, tensor<1x20x1x8xf16>, tensor<1x20x1x8xf16>) -> tensor<1x4x3x8xf32>
  return %y : tensor<1x4x3x8xf32>
}
func.func @wide(%x: tensor<1x4x3x8xf32>, %c: tensor<1x20x1x8xf32>) -> tensor<1x4x3x8xf32> {
  %eq = tensor.empty() : tensor<1x4x3x8xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x3x8xf32>) outs(%eq : tensor<1x4x3x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.negf %i : f32
    linalg.yield %s : f32
  } -> tensor<1x4x3x8xf32>
  %y = kern.attention %q, %c, %c {scale = 1.0 : f32} : (tensor<1x4x3x8xf32>, tensor<1x20x1x8xf32>, tensor<1x20x1x8xf32>) -> tensor<1x4x3x8xf32>
  return %y : tensor<1x4x3x8xf32>
}
func.func @few(%x: tensor<1x4x2x8xf16>, %c: tensor<1x20x1x8xf16>) -> tensor<1x4x2x8xf32> {
  %eq = tensor.empty() : tensor<1x4x2x8xf16>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x2x8xf16>) outs(%eq : tensor<1x4x2x8xf16>) {
  ^bb0(%i: f16, %o: f16):
    %s = arith.negf %i : f16
    linalg.yield %s : f16
  } -> tensor<1x4x2x8xf16>
  %y = kern.attention %q, %c, %c {scale = 1.0 : f32} : (tensor<1x4x2x8xf16>, tensor<1x20x1x8xf16>, tensor<1x20x1x8xf16>) -> tensor<1x4x2x8xf32>
  return %y : tensor<1x4x2x8xf32>
}
