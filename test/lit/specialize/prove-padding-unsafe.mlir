// The operator that mixes positions along a named dimension is named, with its node and what it does.
// RUN: ogc-opt %s -split-input-file -ogc-prove-padding=symbol=n | FileCheck %s

// A reduction over the dimension mixes its positions.
// CHECK: module attributes {ogc.padding = {{.*}}cuts = [], node = "sum", operator = "ReduceSum", reason = "reduces over it", safe = false
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<2x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32> loc("sum (ReduceSum)")
  return %0 : tensor<8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #col], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32> loc("sum (ReduceSum)")
  return %0 : tensor<8xf32>
}

// -----

// A scale computed from the size is another constant for another size.
// CHECK: module attributes {ogc.padding = {{.*}}node = "mean", operator = "Div", reason = "computes with its size"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<2x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %e = tensor.empty() : tensor<2x8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %1 = arith.divf %a, %c : f32
    linalg.yield %1 : f32
  } -> tensor<2x8xf32> loc("mean (Div)")
  return %0 : tensor<2x8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<3x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %e = tensor.empty() : tensor<3x8xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 3.0 : f32
    %1 = arith.divf %a, %c : f32
    linalg.yield %1 : f32
  } -> tensor<3x8xf32> loc("mean (Div)")
  return %0 : tensor<3x8xf32>
}

// -----

// Attention mixes the positions of keys.
// CHECK: module attributes {ogc.padding = {{.*}}node = "att", operator = "Softmax", reason = "attends from each position to all others"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<1x2x2x8xf32> {onnx.name = "x", onnx.symbols = ["", "n", "", ""]}) -> tensor<1x2x2x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %0 = kern.attention %x, %x, %x {scale = 1.0 : f32} : (tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x2x8xf32> loc("att (Softmax)")
  return %0 : tensor<1x2x2x8xf32>
}
func.func @size3(%x: tensor<1x3x2x8xf32> {onnx.name = "x", onnx.symbols = ["", "n", "", ""]}) -> tensor<1x3x2x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %0 = kern.attention %x, %x, %x {scale = 1.0 : f32} : (tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>) -> tensor<1x3x2x8xf32> loc("att (Softmax)")
  return %0 : tensor<1x3x2x8xf32>
}

// -----

// The same with the rows reversed.
// CHECK: module attributes {ogc.padding = {{.*}}node = "flip", operator = "Gather", reason = "reads positions by index"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}, %x0: tensor<2xi64> {onnx.name = "i", onnx.symbols = ["n"]}) -> tensor<2x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %e = tensor.empty() : tensor<2x8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x0 : tensor<2xi64>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%p, %j] : tensor<2x8xf32>
    linalg.yield %v : f32
  } -> tensor<2x8xf32> loc("flip (Gather)")
  return %0 : tensor<2x8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}, %x0: tensor<3xi64> {onnx.name = "i", onnx.symbols = ["n"]}) -> tensor<3x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %e = tensor.empty() : tensor<3x8xf32>
  %0 = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x0 : tensor<3xi64>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%p, %j] : tensor<3x8xf32>
    linalg.yield %v : f32
  } -> tensor<3x8xf32> loc("flip (Gather)")
  return %0 : tensor<3x8xf32>
}

// -----

// The first row of a slice, and a join with other rows.
// CHECK: module attributes {ogc.padding = {{.*}}node = "first", operator = "Slice", reason = "takes some positions out"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<1x8xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %0 = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<1x8xf32> loc("first (Slice)")
  return %0 : tensor<1x8xf32>
}
func.func @size3(%x: tensor<3x8xf32> {onnx.name = "x", onnx.symbols = ["n", ""]}) -> tensor<1x8xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %0 = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<1x8xf32> loc("first (Slice)")
  return %0 : tensor<1x8xf32>
}

// -----

// An input that has it twice.
// CHECK: module attributes {ogc.padding = {{.*}}reason = "input 'x' has it in two dimensions"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2x2xf32> {onnx.name = "x", onnx.symbols = ["n", "n"]}) -> tensor<2x2xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  return %x : tensor<2x2xf32>
}
func.func @size3(%x: tensor<3x3xf32> {onnx.name = "x", onnx.symbols = ["n", "n"]}) -> tensor<3x3xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  return %x : tensor<3x3xf32>
}

// -----

// Against the transposed rows.
// CHECK: module attributes {ogc.padding = {{.*}}node = "outer", operator = "Sub", reason = "combines different positions"
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
func.func @size2(%x: tensor<2xf32> {onnx.name = "x", onnx.symbols = ["n"]}) -> tensor<2x2xf32> attributes {ogc.symbols = {n = 2 : i64}} {
  %e = tensor.empty() : tensor<2x2xf32>
  %0 = linalg.generic {indexing_maps = [#row, #col, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<2x2xf32> loc("outer (Sub)")
  return %0 : tensor<2x2xf32>
}
func.func @size3(%x: tensor<3xf32> {onnx.name = "x", onnx.symbols = ["n"]}) -> tensor<3x3xf32> attributes {ogc.symbols = {n = 3 : i64}} {
  %e = tensor.empty() : tensor<3x3xf32>
  %0 = linalg.generic {indexing_maps = [#row, #col, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.subf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<3x3xf32> loc("outer (Sub)")
  return %0 : tensor<3x3xf32>
}
