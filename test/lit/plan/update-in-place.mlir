// RUN: ogc-opt %s -split-input-file -ogc-update-in-place | FileCheck %s

// An element-wise result takes the bytes of the input that nothing reads later; another launch of the kernel, whose input is still read,
// keeps the kernel as it was.

// CHECK-LABEL: kern.kernel @relu attributes {schedule = #kern.schedule<pointwise>}
// CHECK: kern.kernel @relu_in_place attributes {ogc.in_place = 0 : i64, schedule = #kern.schedule<pointwise>}
// CHECK-LABEL: cg.graph @dying
// CHECK: cg.kernel @relu [#cg.slice<inputs, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
// CHECK: cg.kernel @relu_in_place [#cg.slice<scratch, 0, 16, read>, #cg.slice<scratch, 0, 16, readwrite>]
// CHECK: cg.kernel @relu [#cg.slice<scratch, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
#id = affine_map<(d0) -> (d0)>
kern.kernel @relu attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4xf32>):
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  kern.yield %0 : tensor<4xf32>
}
cg.graph @dying inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @relu [#cg.slice<inputs, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
  %1 = cg.kernel @relu [#cg.slice<scratch, 0, 16, read>, #cg.slice<scratch, 256, 16, write>]
  %2 = cg.kernel @relu [#cg.slice<scratch, 256, 16, read>, #cg.slice<outputs, 0, 16, write>]
}

// -----

// An input that another node reads too, without being ordered, stays: sharing would cost an edge. So does one that is read at other
// positions.

// CHECK-LABEL: kern.kernel @reverse
// CHECK-NOT: ogc.in_place
// CHECK-LABEL: cg.graph @needed
// CHECK: cg.kernel @square [#cg.slice<scratch, 0, 16, read>, #cg.slice<scratch, 256, 16, write>]
// CHECK: cg.kernel @square [#cg.slice<scratch, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
// CHECK: cg.kernel @reverse [#cg.slice<scratch, 256, 16, read>, #cg.slice<scratch, 512, 16, write>]
#id = affine_map<(d0) -> (d0)>
#back = affine_map<(d0) -> (3 - d0)>
kern.kernel @reverse attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4xf32>):
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#back, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  kern.yield %0 : tensor<4xf32>
}
kern.kernel @square attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<4xf32>):
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  kern.yield %0 : tensor<4xf32>
}
cg.graph @needed inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @reverse [#cg.slice<inputs, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
  %1 = cg.kernel @square [#cg.slice<scratch, 0, 16, read>, #cg.slice<scratch, 256, 16, write>]
  %2 = cg.kernel @square [#cg.slice<scratch, 0, 16, read>, #cg.slice<outputs, 0, 16, write>]
  %3 = cg.kernel @reverse [#cg.slice<scratch, 256, 16, read>, #cg.slice<scratch, 512, 16, write>]
  %4 = cg.kernel @reverse [#cg.slice<scratch, 512, 16, read>, #cg.slice<outputs, 256, 16, write>]
}

// -----

// A residual is read at the element that it is added to, but a product computes some elements twice: its result is a buffer of its own.

// CHECK-LABEL: kern.kernel @residual
// CHECK-NOT: ogc.in_place
// CHECK-LABEL: cg.graph @product
// CHECK: cg.kernel @residual [#cg.slice<inputs, 0, 224, read>, #cg.slice<inputs, 256, 160, read>, #cg.slice<scratch, 0, 140, read>, #cg.slice<scratch, 256, 140, write>]
#id = affine_map<(i, j, k) -> (i, j, k)>
kern.kernel @copy attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<1x7x5xf32>):
  kern.yield %x : tensor<1x7x5xf32>
}
kern.kernel @residual attributes {schedule = #kern.schedule<matmul>} {
^bb0(%a: tensor<1x7x8xf32>, %b: tensor<1x8x5xf32>, %r: tensor<1x7x5xf32>):
  %0 = kern.matmul %a, %b : (tensor<1x7x8xf32>, tensor<1x8x5xf32>) -> tensor<1x7x5xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<1x7x5xf32>) outs(%0 : tensor<1x7x5xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %sum = arith.addf %x, %acc : f32
    linalg.yield %sum : f32
  } -> tensor<1x7x5xf32>
  kern.yield %1 : tensor<1x7x5xf32>
}
cg.graph @product inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @copy [#cg.slice<inputs, 1024, 140, read>, #cg.slice<scratch, 0, 140, write>]
  %1 = cg.kernel @residual [#cg.slice<inputs, 0, 224, read>, #cg.slice<inputs, 256, 160, read>, #cg.slice<scratch, 0, 140, read>, #cg.slice<scratch, 256, 140, write>]
  %2 = cg.kernel @copy [#cg.slice<scratch, 256, 140, read>, #cg.slice<outputs, 0, 140, write>]
}
