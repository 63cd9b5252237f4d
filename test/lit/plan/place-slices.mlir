// RUN: ogc-opt %s -ogc-place-slices | FileCheck %s

// A dense part is read where it lies, the copy and its kernel go. Slices of slices too.

// CHECK-NOT: kern.kernel @rows
// CHECK-NOT: kern.kernel @first
kern.kernel @rows attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<4x4xf32>):
  %0 = tensor.extract_slice %a[2, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  kern.yield %0 : tensor<2x4xf32>
}
kern.kernel @first attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<2x4xf32>):
  %0 = tensor.extract_slice %a[1, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
  kern.yield %0 : tensor<4xf32>
}
kern.kernel @make attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
  kern.yield %a : tensor<4x4xf32>
}
kern.kernel @take attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<2x4xf32>, %b: tensor<4xf32>):
  kern.yield %a : tensor<2x4xf32>
}

// CHECK-LABEL: cg.graph @dense
// CHECK: %[[MAKE:.*]] = cg.kernel @make [#cg.slice<inputs, 0, 64, read>, #cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
// CHECK-NEXT: cg.kernel @take [#cg.slice<scratch, 32, 32, read>, #cg.slice<scratch, 48, 16, read>, #cg.slice<outputs, 0, 32, write>]
cg.graph @dense inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @make [#cg.slice<inputs, 0, 64, read>, #cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @rows [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 32, write>]
  %2 = cg.kernel @first [#cg.slice<scratch, 256, 32, read>, #cg.slice<scratch, 512, 16, write>]
  %3 = cg.kernel @take [#cg.slice<scratch, 256, 32, read>, #cg.slice<scratch, 512, 16, read>, #cg.slice<outputs, 0, 32, write>]
}

// A part of an input is read there by kernels. A library would keep the caller from binding a buffer of their own.

// CHECK-LABEL: cg.graph @input
// CHECK-NEXT: cg.kernel @after_input [#cg.slice<inputs, 288, 32, read>, #cg.slice<outputs, 0, 32, write>]
// CHECK-LABEL: cg.graph @library
// CHECK-NEXT: cg.kernel @copy_input
// CHECK-NEXT: cg.gemm @after_input [#cg.slice<scratch, 0, 32, read>
kern.kernel @after_input attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<2x4xf32>):
  kern.yield %a : tensor<2x4xf32>
}
kern.kernel @copy_input attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<4x4xf32>):
  %0 = tensor.extract_slice %a[2, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  kern.yield %0 : tensor<2x4xf32>
}
cg.graph @input inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @copy_input [#cg.slice<inputs, 256, 64, read>, #cg.slice<scratch, 0, 32, write>]
  %1 = cg.kernel @after_input [#cg.slice<scratch, 0, 32, read>, #cg.slice<outputs, 0, 32, write>]
}
cg.graph @library inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @copy_input [#cg.slice<inputs, 256, 64, read>, #cg.slice<scratch, 0, 32, write>]
  %1 = cg.gemm @after_input [#cg.slice<scratch, 0, 32, read>, #cg.slice<weights, 0, 64, read>, #cg.slice<outputs, 0, 32, write>]
    {element_type = f32, result_type = f32, batch = 1 : i64, m = 2 : i64, n = 4 : i64, k = 4 : i64, activation = ""}
}

// What is not dense, begins between multiples of 16 bytes, is of a state, an output, or written again, is copied.

// CHECK-LABEL: cg.graph @copied
// CHECK-COUNT-5: cg.kernel @{{columns|odd|copy_state}}
kern.kernel @columns attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<4x4xf32>):
  %0 = tensor.extract_slice %a[0, 0] [4, 2] [1, 1] : tensor<4x4xf32> to tensor<4x2xf32>
  kern.yield %0 : tensor<4x2xf32>
}
kern.kernel @odd attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>):
  %0 = tensor.extract_slice %a[1] [8] [1] : tensor<16xf32> to tensor<8xf32>
  kern.yield %0 : tensor<8xf32>
}
kern.kernel @copy_state attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<16xf32>):
  %0 = tensor.extract_slice %a[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
  kern.yield %0 : tensor<8xf32>
}
kern.kernel @all attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>):
  kern.yield %a : tensor<8xf32>
}
cg.graph @copied inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @columns [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 32, write>]
  %1 = cg.kernel @odd [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 256, 32, write>]
  %2 = cg.kernel @copy_state [#cg.slice<state, 0, 64, read>, #cg.slice<scratch, 512, 32, write>]
  %3 = cg.kernel @copy_state [#cg.slice<inputs, 0, 64, read>, #cg.slice<outputs, 256, 32, write>]
  %4 = cg.kernel @copy_state [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 768, 32, write>]
  %5 = cg.kernel @all [#cg.slice<scratch, 0, 32, read>, #cg.slice<scratch, 256, 32, read>, #cg.slice<scratch, 512, 32, read>, #cg.slice<scratch, 768, 32, readwrite>,
                       #cg.slice<outputs, 0, 32, write>]
}
