// RUN: ogc-opt %s -split-input-file -ogc-build-graph | FileCheck %s

// Both bindings of a state have one place, apart from inputs and outputs; the new value is copied there last.

// CHECK: cg.graph @default inputs [#cg.binding<"past", tensor<4xf32>, [""], state, 0, 16>, #cg.binding<"x", tensor<4xf32>, [""], inputs, 0, 16>]
// CHECK-SAME: outputs [#cg.binding<"present", tensor<4xf32>, [""], state, 0, 16>, #cg.binding<"old", tensor<4xf32>, [""], outputs, 0, 16>]
// CHECK-NEXT: cg.kernel @k [#cg.slice<state, 0, 16, read>, #cg.slice<inputs, 0, 16, read>, #cg.slice<scratch, 0, 16, write>]
// CHECK-NEXT: cg.memcpy <state, 0, 16, read> to <outputs, 0, 16, write>
// CHECK-NEXT: cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
func.func @main(%past: tensor<4xf32> {onnx.name = "past", ogc.state = "present"}, %x: tensor<4xf32> {onnx.name = "x"})
    -> (tensor<4xf32> {onnx.name = "present", ogc.state = "past"}, tensor<4xf32> {onnx.name = "old"}) attributes {ogc.graph_id = "default"} {
  %0 = kern.launch @k(%past, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %past : tensor<4xf32>, tensor<4xf32>
}
kern.kernel @k attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
  kern.yield %b : tensor<4xf32>
}

// -----

// States that take each other's old value: neither copy may see a new one. A state that stays as it is needs no copy.

// CHECK-LABEL: cg.graph @swap
// CHECK-NEXT: cg.memcpy <state, 256, 16, read> to <scratch, 0, 16, write>
// CHECK-NEXT: cg.memcpy <state, 0, 16, read> to <scratch, 256, 16, write>
// CHECK-NEXT: cg.memcpy <scratch, 0, 16, read> to <state, 0, 16, write>
// CHECK-NEXT: cg.memcpy <scratch, 256, 16, read> to <state, 256, 16, write>
// CHECK-NEXT: }
func.func @main(%a: tensor<4xf32> {onnx.name = "a", ogc.state = "a2"}, %b: tensor<4xf32> {onnx.name = "b", ogc.state = "b2"},
                %c: tensor<4xf32> {onnx.name = "c", ogc.state = "c2"})
    -> (tensor<4xf32> {onnx.name = "a2", ogc.state = "a"}, tensor<4xf32> {onnx.name = "b2", ogc.state = "b"},
        tensor<4xf32> {onnx.name = "c2", ogc.state = "c"}) attributes {ogc.graph_id = "swap"} {
  return %b, %a, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
