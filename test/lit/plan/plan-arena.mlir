// RUN: ogc-opt %s -split-input-file -ogc-plan-arena | FileCheck %s

// The third buffer takes the bytes of the first, which has no reader left. The bound is two buffers at once.

// CHECK: cg.graph @g
// CHECK-SAME: scratch_bound_bytes = 512
// CHECK-SAME: scratch_bytes = 512
// CHECK: cg.kernel @k [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, 256, 64, read>, #cg.slice<scratch, 0, 64, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, 0, 64, read>, #cg.slice<outputs, 0, 64, write>]
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @k [#cg.slice<inputs, 0, 64, read>, #cg.slice<scratch, 0, 64, write>]
  %1 = cg.kernel @k [#cg.slice<scratch, 0, 64, read>, #cg.slice<scratch, 256, 64, write>]
  %2 = cg.kernel @k [#cg.slice<scratch, 256, 64, read>, #cg.slice<scratch, 512, 64, write>]
  %3 = cg.kernel @k [#cg.slice<scratch, 512, 64, read>, #cg.slice<outputs, 0, 64, write>]
}

// -----

// A value read late keeps its bytes; a slice inside a buffer moves with it.

// CHECK: cg.kernel @k [#cg.slice<scratch, [[A:[0-9]+]], 512, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, [[B:[0-9]+]], 512, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, [[B]], 512, read>, #cg.slice<scratch, {{[0-9]+}}, 128, read>, #cg.slice<outputs, 0, 64, write>]
cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 1024 : i64, scratch_bound_bytes = 1024 : i64} {
  %0 = cg.kernel @k [#cg.slice<scratch, 0, 512, write>]
  %1 = cg.kernel @k [#cg.slice<scratch, 512, 512, write>]
  %2 = cg.kernel @k [#cg.slice<scratch, 512, 512, read>, #cg.slice<scratch, 256, 128, read>, #cg.slice<outputs, 0, 64, write>]
}

// -----

// Parts of one buffer that different nodes write move together: the reader of the whole makes them one.

// CHECK-LABEL: cg.graph @parts
// CHECK: cg.kernel @k [#cg.slice<scratch, [[A:[0-9]+]], 512, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, {{[0-9]+}}, 512, write>]
// CHECK: cg.kernel @k [#cg.slice<scratch, [[A]], 1024, read>, #cg.slice<outputs, 0, 64, write>]
cg.graph @parts inputs [] outputs [] attributes {scratch_bytes = 2048 : i64, scratch_bound_bytes = 2048 : i64} {
  %0 = cg.kernel @k [#cg.slice<scratch, 1024, 512, write>]
  %1 = cg.kernel @k [#cg.slice<scratch, 1536, 512, write>]
  %2 = cg.kernel @k [#cg.slice<scratch, 1024, 1024, read>, #cg.slice<outputs, 0, 64, write>]
}
