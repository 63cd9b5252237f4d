// RUN: ogc-opt %s -split-input-file -verify-diagnostics -ogc-plan-arena

cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  // expected-error @+1 {{reads #cg.slice<scratch, 0, 64, read>, which no earlier node writes}}
  %0 = cg.kernel @k [#cg.slice<scratch, 0, 64, read>]
}

// -----

cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @k [#cg.slice<scratch, 0, 64, write>]
  // expected-error @+1 {{writes #cg.slice<scratch, 32, 64, write>, which overlaps a scratch buffer without lying inside it}}
  %1 = cg.kernel @k [#cg.slice<scratch, 32, 64, write>]
}
