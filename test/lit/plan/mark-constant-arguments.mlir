// RUN: ogc-opt %s -ogc-mark-constant-arguments | FileCheck %s

// Argument 1 is a weight in both launches, argument 0 scratch in one of them.

// CHECK: kern.kernel @k0 attributes {ogc.constant_args = array<i64: 1>,
kern.kernel @k0 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
  kern.yield %a : tensor<16xf32>
}
// A state that is overwritten, also in part.
// CHECK: kern.kernel @k1
// CHECK-NOT: ogc.constant_args
kern.kernel @k1 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>):
  kern.yield %a : tensor<16xf32>
}
// An input, a weight and a state that is only read.
// CHECK: kern.kernel @k2 attributes {ogc.constant_args = array<i64: 0>,
kern.kernel @k2 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>):
  kern.yield %a : tensor<16xf32>
}
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 64 : i64, scratch_bound_bytes = 64 : i64} {
  %0 = cg.kernel @k0 [#cg.slice<inputs, 0, 64, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @k0 [#cg.slice<scratch, 0, 64, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
  %2 = cg.kernel @k1 [#cg.slice<state, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
  %3 = cg.kernel @k2 [#cg.slice<inputs, 0, 64, read>, #cg.slice<outputs, 64, 64, write>]
  %4 = cg.kernel @k2 [#cg.slice<weights, 0, 64, read>, #cg.slice<outputs, 128, 64, write>]
  %5 = cg.kernel @k2 [#cg.slice<state, 256, 64, read>, #cg.slice<state, 32, 64, write>]
}
