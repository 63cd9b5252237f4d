// A program is one region and one kernel; what nothing reads of it stays as scratch memory.
// RUN: ogc-opt %s | ogc-opt | FileCheck %s
// RUN: ogc-opt %s -ogc-fuse-regions -ogc-select-schedule | FileCheck %s --check-prefix=REGION

// CHECK:  %{{.*}}:2 = kern.program(%arg0) groups = 2 : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
// CHECK:  ^bb0(%[[GROUP:.*]]: index, %{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>, %{{.*}}: memref<2xf32>):
// CHECK:    kern.parallel %{{.*}} width = 4
// REGION:       kern.region(%arg0) attributes {schedule = #kern.schedule<program>}
// REGION-SAME:    : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
// REGION:       kern.yield %{{.*}}#0, %{{.*}}#1
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0:2 = kern.program(%x) groups = 2 : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>) {
  ^bb0(%group: index, %in: memref<8xf32>, %out: memref<8xf32>, %scratch: memref<2xf32>):
    %c4 = arith.constant 4 : index
    %base = arith.muli %group, %c4 : index
    kern.parallel %c4 width = 4 {
    ^bb0(%i: index):
      %at = arith.addi %base, %i : index
      %v = memref.load %in[%at] : memref<8xf32>
      memref.store %v, %out[%at] : memref<8xf32>
      memref.store %v, %scratch[%group] : memref<2xf32>
    }
  }
  return %0#0 : tensor<2x4xf32>
}
