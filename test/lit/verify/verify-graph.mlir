// RUN: ogc-opt %s -split-input-file -verify-diagnostics -ogc-verify-graph

// Every hazard is ordered, one of them through a third node.

cg.graph @right inputs [] outputs [] attributes {scratch_bytes = 64 : i64, scratch_bound_bytes = 64 : i64} {
  %0 = cg.kernel @a [#cg.slice<weights, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>] after %0
  %2 = cg.kernel @c [#cg.slice<weights, 0, 64, read>, #cg.slice<scratch, 0, 64, write>] after %1
}

// -----

// Read after write.

cg.graph @raw inputs [] outputs [] attributes {scratch_bytes = 64 : i64, scratch_bound_bytes = 64 : i64} {
  %0 = cg.kernel @a [#cg.slice<scratch, 0, 64, write>]
  // expected-error @+2 {{no edge orders node 1 after node 0, which writes #cg.slice<scratch, 0, 64, write> while it reads #cg.slice<scratch, 32, 32, read>}}
  // expected-error @+1 {{reads #cg.slice<scratch, 32, 32, read>, of which no node before it writes byte 32}}
  %1 = cg.kernel @b [#cg.slice<scratch, 32, 32, read>]
}

// -----

// Write after read, in a section that is not scratch.

cg.graph @war inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
  %0 = cg.kernel @a [#cg.slice<state, 0, 64, read>]
  // expected-error @+1 {{no edge orders node 1 after node 0, which reads #cg.slice<state, 0, 64, read> while it updates #cg.slice<state, 0, 64, readwrite>}}
  %1 = cg.kernel @b [#cg.slice<state, 0, 64, readwrite>]
}

// -----

// Write after write; the branch that is ordered through the middle node is not reported.

cg.graph @waw inputs [] outputs [] attributes {scratch_bytes = 64 : i64, scratch_bound_bytes = 64 : i64} {
  %0 = cg.kernel @a [#cg.slice<scratch, 0, 64, write>]
  %1 = cg.memset <scratch, 0, 32, write> = 0 after %0
  // expected-error @+1 {{no edge orders node 2 after node 1, which writes #cg.slice<scratch, 0, 32, write> while it writes #cg.slice<scratch, 16, 48, write>}}
  %2 = cg.kernel @b [#cg.slice<scratch, 16, 48, write>] after %0
}

// -----

// A byte that nobody writes.

cg.graph @unwritten inputs [] outputs [] attributes {scratch_bytes = 128 : i64, scratch_bound_bytes = 128 : i64} {
  %0 = cg.kernel @a [#cg.slice<scratch, 0, 32, write>]
  %1 = cg.kernel @a [#cg.slice<scratch, 32, 32, write>]
  // expected-error @+1 {{reads #cg.slice<scratch, 0, 128, read>, of which no node before it writes byte 64}}
  %2 = cg.kernel @b [#cg.slice<scratch, 0, 128, read>] after %0, %1
}

// -----

cg.graph @kinds inputs [] outputs [] attributes {scratch_bytes = 64 : i64, scratch_bound_bytes = 64 : i64} {
  %0 = cg.memset <scratch, 0, 64, write> = 0
  // expected-error @+1 {{has a programmatic edge that does not lead from kernel to kernel}}
  %1 = cg.kernel @b [#cg.slice<scratch, 0, 64, read>] after %0 {edge_kinds = array<i32: 1>}
}
