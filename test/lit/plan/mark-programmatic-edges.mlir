// RUN: ogc-opt %s -ogc-mark-programmatic-edges | FileCheck %s

// Kernel to kernel is programmatic; an edge from or to a copy stays full.

// CHECK: %[[A:.*]] = cg.kernel @k {{.*}}]{{$}}
// CHECK: %[[M:.*]] = cg.memcpy {{.*}} after %[[A]]{{$}}
// CHECK: cg.kernel @k {{.*}} after %[[A]], %[[M]] {edge_kinds = array<i32: 1, 0>}
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 256 : i64, scratch_bound_bytes = 256 : i64} {
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.memcpy <scratch, 0, 64, read> to <outputs, 0, 64, write> after %0
  %2 = cg.kernel @k [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>] after %0, %1
}
