// RUN: ogc-opt %s -split-input-file -ogc-plan-arena | FileCheck %s
// RUN: ogc-opt %s -split-input-file -ogc-plan-arena=serial=true | FileCheck %s --check-prefix=SERIAL
// RUN: ogc-opt %s -split-input-file -ogc-plan-arena=memory=1400 | FileCheck %s --check-prefix=TIGHT

// Two branches of small nodes run side by side: the second may not take the bytes of the first although that has ended in schedule
// order. With one chain, or little memory, it does.

// CHECK-LABEL: cg.graph @narrow
// CHECK-SAME: peak_node = 3
// CHECK-SAME: scratch_bound_bytes = 1536
// CHECK-SAME: scratch_bytes = 1536
// CHECK: %[[IN:.*]] = cg.kernel @k
// CHECK: %[[A:.*]] = cg.kernel @k {{.*}} after %[[IN]]
// CHECK: %[[A2:.*]] = cg.kernel @k {{.*}} after %[[A]]
// CHECK: %[[B:.*]] = cg.kernel @k {{.*}} after %[[IN]]
// CHECK: cg.kernel @k {{.*}} after %[[A2]], %[[B]]
// SERIAL-LABEL: cg.graph @narrow
// SERIAL-SAME: scratch_bytes = 1024
// SERIAL: %[[IN:.*]] = cg.kernel @k
// SERIAL: %[[A:.*]] = cg.kernel @k {{.*}} after %[[IN]]
// SERIAL: %[[A2:.*]] = cg.kernel @k {{.*}} after %[[A]]
// SERIAL: %[[B:.*]] = cg.kernel @k {{.*}} after %[[A2]]
// SERIAL: cg.kernel @k {{.*}} after %[[B]]
// TIGHT-LABEL: cg.graph @narrow
// TIGHT-SAME: scratch_bytes = 1024
cg.graph @narrow inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k [#cg.slice<scratch, 0, 256, write>]
  %1 = cg.kernel @k [#cg.slice<scratch, 0, 256, read>, #cg.slice<scratch, 1024, 512, write>]
  %2 = cg.kernel @k [#cg.slice<scratch, 1024, 512, read>, #cg.slice<scratch, 2048, 256, write>]
  %3 = cg.kernel @k [#cg.slice<scratch, 0, 256, read>, #cg.slice<scratch, 3072, 512, write>]
  %4 = cg.kernel @k [#cg.slice<scratch, 2048, 256, read>, #cg.slice<scratch, 3072, 512, read>, #cg.slice<outputs, 0, 64, write>]
}

// -----

// Nodes that fill the machine follow each other: side by side they would only take it from each other.

// CHECK-LABEL: cg.graph @wide
// CHECK: %[[A:.*]] = cg.kernel @k
// CHECK: %[[B:.*]] = cg.kernel @k {{.*}} after %[[A]]
cg.graph @wide inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 100000000, read>, #cg.slice<outputs, 0, 100000000, write>]
  %1 = cg.kernel @k [#cg.slice<inputs, 0, 100000000, read>, #cg.slice<outputs, 100000000, 100000000, write>]
}
