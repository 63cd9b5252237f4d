// What may not exist after a phase is reported, all of it, with the node it comes from.
// RUN: split-file %s %t
// RUN: not ogc-opt %t/lower.mlir -ogc-verify-phase=phase=lower 2>&1 | FileCheck %s --check-prefix=LOWER --implicit-check-not=error:
// RUN: not ogc-opt %t/fuse.mlir -ogc-verify-phase=phase=fuse 2>&1 | FileCheck %s --check-prefix=FUSE --implicit-check-not=error:
// RUN: ogc-opt %t/good.mlir -ogc-verify-phase=phase=fuse
// RUN: not ogc-opt %t/good.mlir -ogc-verify-phase=phase=never 2>&1 | FileCheck %s
// CHECK: phase is "never", expected import, normalize, specialize, lower, fuse or plan

//--- lower.mlir
func.func @f(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // LOWER: error: {{.*}}'scf.for' op may not exist after phase lower [node "block 1 (Relu)"]
  %0 = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (tensor<4xf32>) {
    // LOWER: error: {{.*}}may not exist after phase lower
    scf.yield %a : tensor<4xf32>
  } loc("block 1 (Relu)")
  // LOWER: error: {{.*}}has type 'tensor<?xf32>', expected a static shape after phase lower
  %1 = tensor.empty(%n) : tensor<?xf32>
  // LOWER: error: {{.*}}may not exist after phase lower
  %2 = kern.region(%0) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // LOWER: error: {{.*}}may not exist after phase lower
    kern.yield %a : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

//--- fuse.mlir
// FUSE: error: {{.*}}has type 'tensor<4xui8>', expected signless integers after phase fuse
func.func @f(%x: tensor<4xf32>, %u: tensor<4xui8>) -> tensor<4xf32> {
  // FUSE: error: {{.*}}is a scalar outside of a region, which may not exist after phase fuse
  %c = arith.constant 1.0 : f32
  // FUSE: error: {{.*}}'linalg.generic' op may not exist after phase fuse [node "late (Neg)"]
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%x : tensor<4xf32>) {
  ^bb0(%o: f32):
    %t = arith.negf %o : f32
    linalg.yield %t : f32
  } -> tensor<4xf32> loc("late (Neg)")
  // FUSE: error: {{.*}}has no schedule after phase fuse
  %1 = kern.region(%0) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    kern.yield %a : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

//--- good.mlir
func.func @f(%x: tensor<2x2xf32>) -> tensor<4xf32> {
  %r = tensor.collapse_shape %x [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %1 = kern.region(%r) attributes {schedule = #kern.schedule<pointwise>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%i: f32, %o: f32):
      %t = arith.negf %i : f32
      linalg.yield %t : f32
    } -> tensor<4xf32>
    kern.yield %s : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}
