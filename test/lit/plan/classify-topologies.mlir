// RUN: ogc-opt %s -ogc-classify-topologies | FileCheck %s

// Other kernels, sizes and addresses make no other topology.
// CHECK: cg.graph @b1 {{.*}}topology = 0 : i64
cg.graph @b1 inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k0 [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @k1 [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>] after %0
}
// CHECK: cg.graph @b2 {{.*}}topology = 0 : i64
cg.graph @b2 inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k2 [#cg.slice<inputs, 0, 128, read>, #cg.slice<scratch, 0, 128, write>]
  %1 = cg.kernel @k3 [#cg.slice<scratch, 0, 128, read>, #cg.slice<outputs, 0, 128, write>] after %0
}
// Another kind of edge does, and so do no edge, another kind of node, and a copy of no bytes.
// CHECK: cg.graph @programmatic {{.*}}topology = 1 : i64
cg.graph @programmatic inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k2 [#cg.slice<inputs, 0, 128, read>, #cg.slice<scratch, 0, 128, write>]
  %1 = cg.kernel @k3 [#cg.slice<scratch, 0, 128, read>, #cg.slice<outputs, 0, 128, write>] after %0 {edge_kinds = array<i32: 1>}
}
// CHECK: cg.graph @parallel {{.*}}topology = 2 : i64
cg.graph @parallel inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k2 [#cg.slice<inputs, 0, 128, read>, #cg.slice<scratch, 0, 128, write>]
  %1 = cg.kernel @k3 [#cg.slice<inputs, 0, 128, read>, #cg.slice<outputs, 0, 128, write>]
}
// CHECK: cg.graph @copy {{.*}}topology = 3 : i64
cg.graph @copy inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.memcpy #cg.slice<inputs, 0, 128, read> to #cg.slice<scratch, 0, 128, write>
  %1 = cg.kernel @k3 [#cg.slice<scratch, 0, 128, read>, #cg.slice<outputs, 0, 128, write>] after %0
}
// CHECK: cg.graph @empty {{.*}}topology = 4 : i64
cg.graph @empty inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.memcpy #cg.slice<inputs, 0, 0, read> to #cg.slice<scratch, 0, 0, write>
  %1 = cg.kernel @k3 [#cg.slice<scratch, 0, 128, read>, #cg.slice<outputs, 0, 128, write>] after %0
}
