// One function for each graph ID; a named dimension holds for all inputs.
// RUN: ogc-opt %s -ogc-specialize-shapes='shapes="ids=1x128"' | FileCheck %s --check-prefix=ONE
// RUN: ogc-opt %s -ogc-specialize-shapes='shapes="small: ids=1x8; big: ids=4x128,mask=4x128"' | FileCheck %s --check-prefix=TWO

// ONE:      func.func @main(%arg0: tensor<1x128xi64>
// ONE-SAME: %arg1: tensor<1x128xf32>
// ONE-SAME: %arg2: tensor<3xf32>
// ONE-SAME: attributes {ogc.graph_id = "default", ogc.symbols = {batch = 1 : i64, seq = 128 : i64}}
// ONE-NOT:  func.func

// TWO:      func.func @main_small(%arg0: tensor<1x8xi64>
// TWO-SAME: %arg1: tensor<1x8xf32>
// TWO-SAME: attributes {ogc.graph_id = "small", ogc.symbols = {batch = 1 : i64, seq = 8 : i64}}
// TWO:      func.func @main_big(%arg0: tensor<4x128xi64>
// TWO-SAME: attributes {ogc.graph_id = "big", ogc.symbols = {batch = 4 : i64, seq = 128 : i64}}
func.func @main(%ids: tensor<?x?xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]},
                %mask: tensor<?x?xf32> {onnx.name = "mask", onnx.symbols = ["batch", "seq"]},
                %bias: tensor<3xf32> {onnx.name = "bias"}) -> tensor<?x?xf32> {
  return %mask : tensor<?x?xf32>
}
