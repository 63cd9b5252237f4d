// RUN: ogc-opt %s -split-input-file -verify-diagnostics -ogc-plan-arena
// RUN: not ogc-opt %s -split-input-file -ogc-plan-arena=memory=1000 2>&1 | FileCheck %s

cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  // expected-error @+1 {{reads #cg.slice<scratch, 0, 64, read>, which no earlier node writes}}
  %0 = cg.kernel @k [#cg.slice<scratch, 0, 64, read>]
}

// -----

// A node does not write what it reads itself.

cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  // expected-error @+1 {{reads #cg.slice<scratch, 0, 64, read>, which no earlier node writes}}
  %0 = cg.kernel @k [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
}

// -----

// Two buffers of 512 bytes and an input of 64 do not go into 1000 bytes, in whatever order.

// CHECK: error: graph 'g' needs 1088 bytes for state, inputs, outputs and scratch, --memory allows 1000; 2 buffers of 1024 bytes are alive at node 1 (b)
cg.graph @g inputs [#cg.binding<"x", tensor<16xf32>, [""], inputs, 0, 64>] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 512, write>]
  %1 = cg.kernel @k [#cg.slice<scratch, 0, 512, read>, #cg.slice<scratch, 512, 512, write>] loc("b")
}
