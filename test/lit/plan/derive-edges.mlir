// RUN: ogc-opt %s -split-input-file -ogc-derive-edges | FileCheck %s
// RUN: ogc-opt %s -split-input-file -ogc-derive-edges=serial=true | FileCheck %s --check-prefix=SERIAL

// Read after write; two readers stay parallel; their join waits for both, not again for the writer.

// CHECK-LABEL: cg.graph @diamond
// CHECK: %[[A:.*]] = cg.kernel @a
// CHECK: %[[B:.*]] = cg.kernel @b {{.*}} after %[[A]]{{$}}
// CHECK: %[[C:.*]] = cg.kernel @c {{.*}} after %[[A]]{{$}}
// CHECK: cg.kernel @d {{.*}} after %[[B]], %[[C]]{{$}}
// SERIAL-LABEL: cg.graph @diamond
// SERIAL: %[[A:.*]] = cg.kernel @a
// SERIAL: %[[B:.*]] = cg.kernel @b {{.*}} after %[[A]]{{$}}
// SERIAL: %[[C:.*]] = cg.kernel @c {{.*}} after %[[B]]{{$}}
// SERIAL: cg.kernel @d {{.*}} after %[[C]]{{$}}
cg.graph @diamond inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @a [#cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 64, 64, write>]
  %2 = cg.kernel @c [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 128, 64, write>]
  %3 = cg.kernel @d [#cg.slice<scratch, 0, 192, read>, #cg.slice<outputs, 0, 64, write>]
}

// -----

// Reuse of bytes orders a writer after the earlier readers (write after read) and writer (write after write).

// CHECK-LABEL: cg.graph @reuse
// CHECK: %[[A:.*]] = cg.kernel @a
// CHECK: %[[B:.*]] = cg.kernel @b {{.*}} after %[[A]]{{$}}
// CHECK: %[[C:.*]] = cg.kernel @c {{.*}} after %[[B]]{{$}}
// CHECK: cg.kernel @d {{.*}} after %[[C]]{{$}}
cg.graph @reuse inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @a [#cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
  %2 = cg.kernel @c [#cg.slice<scratch, 32, 64, write>]
  %3 = cg.kernel @d [#cg.slice<scratch, 0, 128, write>]
}

// -----

// Weights are never written: reading them orders nothing. Ranges that only touch do not overlap.

// CHECK-LABEL: cg.graph @independent
// CHECK-NOT: after
cg.graph @independent inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @a [#cg.slice<weights, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @b [#cg.slice<weights, 0, 64, read>, #cg.slice<scratch, 64, 64, write>]
}
