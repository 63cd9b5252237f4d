// RUN: ogc-opt %s -split-input-file -ogc-place-concats | FileCheck %s

// Both parts are written where the whole lies, the second 16 bytes behind the first; the reader of the first part reads it there. The
// concatenation and its kernel are gone.

// CHECK: kern.kernel @a_in0x8_out8 attributes {ogc.result_extent = array<i64: 1, 8>
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4x8xf32>):
// CHECK-NEXT: tensor.extract_slice %[[X]][0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
// CHECK: kern.kernel @a_out8 attributes {ogc.result_extent = array<i64: 1, 8>
// CHECK-NOT: kern.kernel @concat
// CHECK-LABEL: cg.graph @two
// CHECK-NEXT: cg.kernel @a_out8 [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 512, 112, write>]
// CHECK-NEXT: cg.kernel @a_in0x8_out8 [#cg.slice<scratch, 512, 112, read>, #cg.slice<scratch, 528, 112, write>]
// CHECK-NEXT: cg.kernel @whole [#cg.slice<scratch, 512, 128, read>, #cg.slice<outputs, 0, 128, write>]
#id = affine_map<(d0, d1) -> (d0, d1)>
kern.kernel @a attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4x4xf32>):
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  kern.yield %0 : tensor<4x4xf32>
}
kern.kernel @concat attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>):
  %0 = tensor.concat dim(1) %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  kern.yield %0 : tensor<4x8xf32>
}
kern.kernel @whole attributes {schedule = #kern.schedule<row>} {
^bb0(%x: tensor<4x8xf32>):
  kern.yield %x : tensor<4x8xf32>
}
cg.graph @two inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @a [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @a [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, write>]
  %2 = cg.kernel @concat [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, read>, #cg.slice<scratch, 512, 128, write>]
  %3 = cg.kernel @whole [#cg.slice<scratch, 512, 128, read>, #cg.slice<outputs, 0, 128, write>]
}

// -----

// An input cannot be a part, nor can one value be two parts; writers that nothing orders keep their own buffers.

// CHECK-LABEL: cg.graph @kept
// CHECK-COUNT-3: cg.kernel @concat
#id = affine_map<(d0, d1) -> (d0, d1)>
kern.kernel @a attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4x4xf32>):
  kern.yield %x : tensor<4x4xf32>
}
kern.kernel @concat attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>):
  %0 = tensor.concat dim(1) %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  kern.yield %0 : tensor<4x8xf32>
}
cg.graph @kept inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @a [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @concat [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 1024, 128, write>]
  %2 = cg.kernel @concat [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 2048, 128, write>]
  %3 = cg.kernel @a [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 256, 64, write>]
  %4 = cg.kernel @a [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 512, 64, write>]
  %5 = cg.kernel @concat [#cg.slice<scratch, 256, 64, read>, #cg.slice<scratch, 512, 64, read>, #cg.slice<scratch, 3072, 128, write>]
}
