// What has no CUDA form is named with its ONNX node; all of it, not the first only.
// RUN: not ogc-opt %s -ogc-emit-cuda -o /dev/null 2>&1 | FileCheck %s
// RUN: not ogc-opt %s -ogc-emit-cuda=arch=h200 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ARCH

// ARCH: error: CUDA architecture 'h200' is not of the form sm_90
// CHECK: error: {{.*}}'arith.addui_extended' has no CUDA form for type 'i32' (ONNX node sum (Add))
// CHECK: error: {{.*}}buffer 0 of kernel 'narrow' has element type 'i4', which has no CUDA form (ONNX node quantized (DequantizeLinear))

#id = affine_map<(d0) -> (d0)>

kern.kernel @carry attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<8xi32>):
  %empty = tensor.empty() : tensor<8xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xi32>) outs(%empty : tensor<8xi32>) {
  ^bb1(%a: i32, %o: i32):
    %s, %c = arith.addui_extended %a, %a : i32, i1 loc("sum (Add)")
    %e = arith.extui %c : i1 to i32
    %r = arith.addi %s, %e : i32
    linalg.yield %r : i32
  } -> tensor<8xi32>
  kern.yield %0 : tensor<8xi32>
} loc("sum (Add)")

kern.kernel @narrow attributes {schedule = #kern.schedule<pointwise>} {
^bb0(%x: tensor<8xi4>):
  %empty = tensor.empty() : tensor<8xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xi4>) outs(%empty : tensor<8xi32>) {
  ^bb1(%a: i4, %o: i32):
    %e = arith.extsi %a : i4 to i32
    linalg.yield %e : i32
  } -> tensor<8xi32>
  kern.yield %0 : tensor<8xi32>
} loc("quantized (DequantizeLinear)")
