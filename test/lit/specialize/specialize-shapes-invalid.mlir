// Every wrong shape is reported, with the inputs the model has.
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="foo=1,ids=1x2x3"' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not ogc-opt %s -ogc-specialize-shapes 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="batch=1"' 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="ids=1x8,bias=4,mask=2x8"' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="ids=1x-8"' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="ids"' 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not ogc-opt %s -ogc-specialize-shapes='shapes="a: ids=1x8; a: ids=2x8"' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: ogc-opt %s -ogc-specialize-shapes='shapes="ids=0x8,mask=0x8"' | FileCheck %s --check-prefix=ZERO

// NAME: error: the model has no input and no symbol 'foo'; its inputs are 'ids' [batch, seq], 'mask' [batch, seq], 'bias' [3], its symbols 'batch', 'seq'
// NAME: error: input 'ids' has rank 2, got a shape of rank 3; its shape is [batch, seq]

// NONE: error: input 'ids' has shape [batch, seq]: give the sizes with --shapes 'ids=…' or 'batch=… seq=…'
// NONE: error: input 'mask' has shape [batch, seq]: give the sizes with --shapes 'mask=…' or 'batch=… seq=…'

// Sizes that are known already are not asked for.
// PART: error: input 'ids' has shape [batch, seq]: give the sizes with --shapes 'ids=…' or 'seq=…'

// VALUE: error: input 'bias' has size 3 in dimension 0, got 4; its shape is [3]
// VALUE: error: dimension 'batch' is 1 in input 'ids', but 2 in input 'mask'

// A dimension may be empty (a cache before the first step).
// ZERO: func.func @main(%arg0: tensor<0x8xi64>

// SIZE: error: shapes: '-8' in shape '1x-8' is not a size
// FORM: error: shapes: 'ids' is not of the form name=AxBxC or symbol=A,B,C
// TWICE: error: shapes: graph ID 'a' is given twice: for 'ids=1x8' and 'ids=2x8'
func.func @main(%ids: tensor<?x?xi64> {onnx.name = "ids", onnx.symbols = ["batch", "seq"]},
                %mask: tensor<?x?xf32> {onnx.name = "mask", onnx.symbols = ["batch", "seq"]},
                %bias: tensor<3xf32> {onnx.name = "bias"}) -> tensor<?x?xf32> {
  return %mask : tensor<?x?xf32>
}
