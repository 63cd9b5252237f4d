// Operators whose elements do not follow from the inputs one by one are programs over buffers.
// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// A thread a line.
// CHECK-LABEL: func @cum_sum
// CHECK: kern.program(%arg0) groups = 3 : (tensor<3x4xi64>) -> tensor<3x4xi64> {
// CHECK-NOT: kern.parallel
// CHECK: scf.for
func.func @cum_sum(%x: tensor<3x4xi64>) -> tensor<3x4xi64> {
  %axis = onnx.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %0 = "onnx.CumSum"(%x, %axis) {exclusive = 0 : i64, reverse = 0 : i64} : (tensor<3x4xi64>, tensor<i64>) -> tensor<3x4xi64>
  return %0 : tensor<3x4xi64>
}

// Chunks of a long line: their totals are a second result.
// CHECK-LABEL: func @long_cum_sum
// CHECK: kern.program(%arg0) groups = 1 : (tensor<10000xf32>) -> (tensor<10000xf32>, tensor<1x100xf32>) {
// CHECK: kern.parallel %{{.*}} width = 100
func.func @long_cum_sum(%x: tensor<10000xf32>) -> tensor<10000xf32> {
  %axis = onnx.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %0 = "onnx.CumSum"(%x, %axis) {exclusive = 0 : i64, reverse = 0 : i64} : (tensor<10000xf32>, tensor<i64>) -> tensor<10000xf32>
  return %0 : tensor<10000xf32>
}

// The order of each line, then gathers.
// CHECK-LABEL: func @top_k
// CHECK: %[[ORDER:.*]]:2 = kern.program(%arg0) groups = 2 : (tensor<2x100xf32>) -> (tensor<2x100xi32>, tensor<2x100xi32>) {
// CHECK: tensor.extract_slice %[[ORDER]]#0
// CHECK: linalg.generic
func.func @top_k(%x: tensor<2x100xf32>) -> (tensor<2x5xf32>, tensor<2x5xi64>) {
  %k = onnx.constant {value = dense<5> : tensor<1xi64>} : tensor<1xi64>
  %0:2 = "onnx.TopK"(%x, %k) {axis = -1 : i64, largest = 1 : i64, sorted = 1 : i64} : (tensor<2x100xf32>, tensor<1xi64>) -> (tensor<2x5xf32>, tensor<2x5xi64>)
  return %0#0, %0#1 : tensor<2x5xf32>, tensor<2x5xi64>
}

// Many updates: lanes, one for each element of a row.
// CHECK-LABEL: func @scatter
// CHECK: kern.program(%arg0, %arg1, %arg2) groups = 1
// CHECK: kern.parallel %{{.*}} width = 40
// CHECK: kern.parallel %{{.*}} width = 8
func.func @scatter(%x: tensor<5x8xf32>, %i: tensor<30x1xi64>, %u: tensor<30x8xf32>) -> tensor<5x8xf32> {
  %0 = "onnx.ScatterND"(%x, %i, %u) {reduction = "add"} : (tensor<5x8xf32>, tensor<30x1xi64>, tensor<30x8xf32>) -> tensor<5x8xf32>
  return %0 : tensor<5x8xf32>
}

// One product for all steps, then one program.
// CHECK-LABEL: func @rnn
// CHECK: kern.matmul
// CHECK: kern.program(%{{.*}}, %{{.*}}) groups = 2
// CHECK-NOT: kern.program
func.func @rnn(%x: tensor<7x2x3xf32>, %w: tensor<1x4x3xf32>, %r: tensor<1x4x4xf32>) -> tensor<7x1x2x4xf32> {
  %0:2 = "onnx.RNN"(%x, %w, %r) {hidden_size = 4 : i64} : (tensor<7x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> (tensor<7x1x2x4xf32>, tensor<1x2x4xf32>)
  return %0#0 : tensor<7x1x2x4xf32>
}
