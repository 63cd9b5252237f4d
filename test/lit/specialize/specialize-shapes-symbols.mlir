// Sizes of named dimensions stand for their product, one function each, named after the sizes.
// RUN: ogc-opt %s -ogc-specialize-shapes='shapes="batch=1,4 seq=8..16:x2"' | FileCheck %s --check-prefix=PRODUCT
// RUN: ogc-opt %s -ogc-specialize-shapes='shapes="big: batch=2 ids=2x8"' | FileCheck %s --check-prefix=MIXED
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="batch=2 ids=3x8"' 2>&1 | FileCheck %s --check-prefix=CONTRADICTION
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="rows=2"' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="batch=1,2 seq=8; ids=2x8"' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="batch=1,2,1 seq=8"' 2>&1 | FileCheck %s --check-prefix=LISTED
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="batch=4294967296 seq=4294967296"' 2>&1 | FileCheck %s --check-prefix=HUGE

// PRODUCT:      func.func @main_batch1_seq8(%arg0: tensor<1x8xi64>
// PRODUCT-SAME: %arg1: tensor<1x8xf32>
// PRODUCT-SAME: attributes {ogc.graph_id = "batch1_seq8", ogc.symbols = {batch = 1 : i64, seq = 8 : i64}}
// PRODUCT:      func.func @main_batch1_seq16(%arg0: tensor<1x16xi64>
// PRODUCT:      func.func @main_batch4_seq8(%arg0: tensor<4x8xi64>
// PRODUCT:      func.func @main_batch4_seq16(%arg0: tensor<4x16xi64>

// MIXED: func.func @main(%arg0: tensor<2x8xi64>
// MIXED-SAME: attributes {ogc.graph_id = "big", ogc.symbols = {batch = 2 : i64, seq = 8 : i64}}

// CONTRADICTION: error: dimension 'batch' is 2 in --shapes, but 3 in input 'ids'
// UNKNOWN: error: the model has no input and no symbol 'rows'; its inputs are 'ids' [batch, seq], 'mask' [batch, seq], its symbols 'batch', 'seq'
// TWICE: error: shapes: graph ID 'batch2_seq8' is given twice: for 'batch=2 seq=8' and 'ids=2x8'
// LISTED: error: shapes: 'batch' lists 1 twice
// HUGE: error: input 'ids' of shape 4294967296x4294967296 is too large: it has more than 2^40 elements
// HUGE: error: input 'mask' of shape 4294967296x4294967296 is too large
func.func @main(%ids: tensor<?x?xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]},
                %mask: tensor<?x?xf32> {onnx.name = "mask", onnx.symbols = ["batch", "seq"]}) -> tensor<?x?xf32> {
  return %mask : tensor<?x?xf32>
}
