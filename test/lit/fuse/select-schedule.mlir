// Schedules follow from the bodies; a body that no schedule can do is refused.
// RUN: ogc-opt %s -split-input-file -ogc-select-schedule -verify-diagnostics | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#outer = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func @rows
func.func @rows(%x: tensor<4x64xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  // CHECK: kern.region(%arg0) attributes {schedule = #kern.schedule<row>}
  %0 = kern.region(%x) : (tensor<4x64xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x64xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<4x64xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%i: f32, %o: f32):
      %t = arith.addf %i, %o : f32
      linalg.yield %t : f32
    } -> tensor<4xf32>
    kern.yield %s : tensor<4xf32>
  }
  // Eight elements are too few for a block of threads.
  // CHECK: kern.region(%arg1) attributes {schedule = #kern.schedule<pointwise>}
  %1 = kern.region(%y) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %c = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %s = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%i: f32, %o: f32):
      %t = arith.addf %i, %o : f32
      linalg.yield %t : f32
    } -> tensor<4xf32>
    kern.yield %s : tensor<4xf32>
  }
  // CHECK: kern.region(%arg1) attributes {schedule = #kern.schedule<pointwise>}
  %2 = kern.region(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %e = tensor.empty() : tensor<4x8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%i: f32, %o: f32):
      %t = arith.negf %i : f32
      linalg.yield %t : f32
    } -> tensor<4x8xf32>
    kern.yield %s : tensor<4x8xf32>
  }
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func @anchors
func.func @anchors(%x: tensor<1x4x8xf32>, %w: tensor<1x8x16xf32>, %y: tensor<1x4x4x8xf32>, %f: tensor<3x3x8xf32>) -> (tensor<1x4x16xf32>, tensor<1x2x2x8xf32>) {
  // CHECK: schedule = #kern.schedule<matmul>
  %0 = kern.region(%x, %w) : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32> {
  ^bb0(%a: tensor<1x4x8xf32>, %b: tensor<1x8x16xf32>):
    %m = kern.matmul %a, %b {packed} : (tensor<1x4x8xf32>, tensor<1x8x16xf32>) -> tensor<1x4x16xf32>
    kern.yield %m : tensor<1x4x16xf32>
  }
  // CHECK: schedule = #kern.schedule<depthwise_conv>
  %1 = kern.region(%y, %f) : (tensor<1x4x4x8xf32>, tensor<3x3x8xf32>) -> tensor<1x2x2x8xf32> {
  ^bb0(%a: tensor<1x4x4x8xf32>, %b: tensor<3x3x8xf32>):
    %m = kern.depthwise_conv %a, %b {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x4x8xf32>, tensor<3x3x8xf32>) -> tensor<1x2x2x8xf32>
    kern.yield %m : tensor<1x2x2x8xf32>
  }
  return %0, %1 : tensor<1x4x16xf32>, tensor<1x2x2x8xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#shifted = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

func.func @misplaced(%x: tensor<1x4x4xf32>, %w: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %0 = kern.region(%x, %w) : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  ^bb0(%a: tensor<1x4x4xf32>, %b: tensor<1x4x4xf32>):
    %e = tensor.empty() : tensor<1x4x4xf32>
    %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<1x4x4xf32>) outs(%e : tensor<1x4x4xf32>) {
    ^bb0(%i: f32, %o: f32):
      %t = arith.negf %i : f32
      linalg.yield %t : f32
    } -> tensor<1x4x4xf32>
    // expected-error @+1 {{operand 0 is no strided view of an input of its region}}
    %m = kern.matmul %n, %b : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    // expected-error @+1 {{follows kern.matmul in its region, expected an element-wise operation over its result}}
    %s = linalg.generic {indexing_maps = [#shifted, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%m : tensor<1x4x4xf32>) outs(%e : tensor<1x4x4xf32>) {
    ^bb0(%i: f32, %o: f32):
      %t = arith.negf %i : f32
      linalg.yield %t : f32
    } -> tensor<1x4x4xf32>
    kern.yield %s : tensor<1x4x4xf32>
  }
  return %0 : tensor<1x4x4xf32>
}
