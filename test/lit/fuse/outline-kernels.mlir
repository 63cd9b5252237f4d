// Equal regions share a kernel; locations do not count, types do.
// RUN: ogc-opt %s -split-input-file -ogc-outline-kernels -verify-diagnostics | FileCheck %s
// RUN: ogc-opt %s -split-input-file -ogc-outline-kernels -verify-diagnostics -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// CHECK-LABEL: func @equal
// CHECK: %[[A:.*]] = kern.launch @k0_pointwise(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[B:.*]] = kern.launch @k0_pointwise(%[[A]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: kern.launch @k1_pointwise(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: kern.kernel @k0_pointwise attributes {schedule = #kern.schedule<pointwise>} {
// CHECK: kern.kernel @k1_pointwise
// CHECK-NOT: kern.kernel
// LOC: kern.launch @k0_pointwise(%arg0) : {{.*}} loc("first")
// LOC: kern.launch @k0_pointwise({{.*}} loc("second")
module {
  func.func @equal(%x: tensor<4xf32>, %y: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
    %0 = kern.region(%x) attributes {schedule = #kern.schedule<pointwise>} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %e = tensor.empty() : tensor<4xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%i: f32, %o: f32):
        %t = arith.negf %i : f32 loc("inner")
        linalg.yield %t : f32
      } -> tensor<4xf32>
      kern.yield %s : tensor<4xf32>
    } loc("first")
    %1 = kern.region(%0) attributes {schedule = #kern.schedule<pointwise>} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %e = tensor.empty() : tensor<4xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%i: f32, %o: f32):
        %t = arith.negf %i : f32
        linalg.yield %t : f32
      } -> tensor<4xf32>
      kern.yield %s : tensor<4xf32>
    } loc("second")
    %2 = kern.region(%y) attributes {schedule = #kern.schedule<pointwise>} : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>):
      %e = tensor.empty() : tensor<8xf32>
      %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%i: f32, %o: f32):
        %t = arith.negf %i : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      kern.yield %s : tensor<8xf32>
    } loc("third")
    return %1, %2 : tensor<4xf32>, tensor<8xf32>
  }
}

// -----

module {
  func.func @unscheduled(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{has no schedule}}
    %0 = kern.region(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      kern.yield %a : tensor<4xf32>
    }
    return %0 : tensor<4xf32>
  }
}

// -----

module {
  func.func @bad_launch(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{kernel @nowhere does not exist}}
    %0 = kern.launch @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
