// RUN: ogc-opt %s -ogc-mark-constant-arguments | FileCheck %s

// Argument 1 is a weight in both launches, argument 0 in one only.

// CHECK: kern.kernel @k0 attributes {ogc.constant_args = array<i64: 1>,
kern.kernel @k0 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
  kern.yield %a : tensor<16xf32>
}
// CHECK: kern.kernel @k1
// CHECK-NOT: ogc.constant_args
kern.kernel @k1 attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>):
  kern.yield %a : tensor<16xf32>
}
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k0 [#cg.slice<inputs, 0, 64, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
  %1 = cg.kernel @k0 [#cg.slice<weights, 256, 64, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
  %2 = cg.kernel @k1 [#cg.slice<inputs, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
}
