// RUN: ogc-opt %s -split-input-file -ogc-update-in-place | FileCheck %s

// The scatter writes into the state itself, and the copy goes. A reader of the old value that does not depend on the new one moves in
// front of it; the reader of the new value reads the state.

// CHECK-LABEL: kern.kernel @update
// CHECK-SAME: ogc.in_place = 0
// CHECK-LABEL: cg.graph @cache
// CHECK-NEXT: cg.kernel @old [#cg.slice<state, 0, 16, read>, #cg.slice<outputs, 256, 16, write>]
// CHECK-NEXT: cg.kernel @update [#cg.slice<state, 0, 16, read>, #cg.slice<inputs, 0, 8, read>, #cg.slice<inputs, 256, 4, read>, #cg.slice<state, 0, 16, readwrite>]
// CHECK-NEXT: cg.kernel @new [#cg.slice<state, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
// CHECK-NEXT: }
kern.kernel @update attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%data: tensor<4xf32>, %at: tensor<1x1xi64>, %value: tensor<1xf32>):
  %0 = tensor.scatter %value into %data[%at] scatter_dims([0]) unique : (tensor<1xf32>, tensor<4xf32>, tensor<1x1xi64>) -> tensor<4xf32>
  kern.yield %0 : tensor<4xf32>
}
cg.graph @cache inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @update [#cg.slice<state, 0, 16, read>, #cg.slice<inputs, 0, 8, read>, #cg.slice<inputs, 256, 4, read>, #cg.slice<scratch, 0, 16, write>]
  %1 = cg.kernel @new [#cg.slice<scratch, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
  %2 = cg.kernel @old [#cg.slice<state, 0, 16, read>, #cg.slice<outputs, 256, 16, write>]
  %3 = cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
}

// -----

// A node that needs the old value and the new one reads a copy of the old one.

// CHECK-LABEL: cg.graph @both
// CHECK-NEXT: cg.memcpy <state, 0, 16, read> to <scratch, 256, 16, write>
// CHECK-NEXT: cg.kernel @update [#cg.slice<state, 0, 16, read>, {{.*}} #cg.slice<state, 0, 16, readwrite>]
// CHECK-NEXT: cg.kernel @both [#cg.slice<state, 0, 16, read>, #cg.slice<scratch, 256, 16, read>, #cg.slice<outputs, 0, 16, write>]
// CHECK-NEXT: }
kern.kernel @update attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%data: tensor<4xf32>, %at: tensor<1x1xi64>, %value: tensor<1xf32>):
  %0 = tensor.scatter %value into %data[%at] scatter_dims([0]) unique : (tensor<1xf32>, tensor<4xf32>, tensor<1x1xi64>) -> tensor<4xf32>
  kern.yield %0 : tensor<4xf32>
}
cg.graph @both inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @update [#cg.slice<state, 0, 16, read>, #cg.slice<inputs, 0, 8, read>, #cg.slice<inputs, 256, 4, read>, #cg.slice<scratch, 0, 16, write>]
  %1 = cg.kernel @both [#cg.slice<scratch, 0, 16, read>, #cg.slice<state, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
  %2 = cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
}

// -----

// A writer that reads the state otherwise than element by element computes aside; the copy at the end stays.

// CHECK-LABEL: cg.graph @shifted
// CHECK-NEXT: cg.kernel @shift [#cg.slice<state, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
// CHECK-NEXT: cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
cg.graph @shifted inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @shift [#cg.slice<state, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
  %1 = cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
}

// -----

// A writer that does not read the state writes there directly, after its readers.

// CHECK-LABEL: cg.graph @replaced
// CHECK-NEXT: cg.kernel @old [#cg.slice<state, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
// CHECK-NEXT: cg.kernel @make [#cg.slice<inputs, 0, 16, read>, #cg.slice<state, 0, 16, write>]
// CHECK-NEXT: }
cg.graph @replaced inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @make [#cg.slice<inputs, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
  %1 = cg.kernel @old [#cg.slice<state, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
  %2 = cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
}
