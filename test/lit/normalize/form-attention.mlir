// Decomposed attention becomes one operator with q, k, v of [batch, heads, sequence, size].
// RUN: ogc-opt %s -ogc-form-attention | FileCheck %s

// Scaled scores, an additive mask; the transpose that made kT is undone.
// CHECK-LABEL: func @masked
// CHECK:       %[[K:.*]] = "onnx.Transpose"(%arg1) {perm = array<i64: 0, 2, 1, 3>}
// CHECK:       "onnx.Attention"(%arg0, %[[K]], %arg2, %arg3)
// CHECK-SAME:  scale = 2.500000e-01 : f32
// CHECK-NOT:   Softmax
func.func @masked(%q: tensor<2x4x6x16xf32>, %k: tensor<2x5x4x16xf32>, %v: tensor<2x4x5x16xf32>, %mask: tensor<2x1x6x5xf32>) -> tensor<2x4x6x16xf32> {
  %four = onnx.constant {value = dense<4.0> : tensor<f32>} : tensor<f32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x5x4x16xf32>) -> tensor<2x4x16x5xf32>
  %0 = "onnx.MatMul"(%q, %kt) : (tensor<2x4x6x16xf32>, tensor<2x4x16x5xf32>) -> tensor<2x4x6x5xf32>
  %1 = "onnx.Div"(%0, %four) : (tensor<2x4x6x5xf32>, tensor<f32>) -> tensor<2x4x6x5xf32>
  %2 = "onnx.Add"(%1, %mask) : (tensor<2x4x6x5xf32>, tensor<2x1x6x5xf32>) -> tensor<2x4x6x5xf32>
  %3 = "onnx.Softmax"(%2) {axis = -1 : i64} : (tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  %4 = "onnx.MatMul"(%3, %v) : (tensor<2x4x6x5xf32>, tensor<2x4x5x16xf32>) -> tensor<2x4x6x16xf32>
  return %4 : tensor<2x4x6x16xf32>
}

// q and k scaled before, NaN → 0 after the softmax, batch and heads merged around the transpose of k, a mask of rank 2 with one column.
// CHECK-LABEL: func @prescaled
// CHECK:       %[[SHAPED:.*]] = "onnx.Reshape"(%arg3, %{{.*}}) {{.*}} -> tensor<1x1x6x1xf32>
// CHECK:       %[[MASK:.*]] = "onnx.Expand"(%[[SHAPED]], %{{.*}}) : {{.*}} -> tensor<1x1x6x5xf32>
// CHECK:       "onnx.Attention"(%arg0, %arg1, %arg2, %[[MASK]])
// CHECK-SAME:  scale = 2.500000e-01 : f32
func.func @prescaled(%q: tensor<2x4x6x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x5x16xf32>, %mask: tensor<6x1xf32>) -> tensor<2x4x6x16xf32> {
  %half = onnx.constant {value = dense<0.5> : tensor<1xf32>} : tensor<1xf32>
  %zero = onnx.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %flat = onnx.constant {value = dense<[8, 5, 16]> : tensor<3xi64>} : tensor<3xi64>
  %full = onnx.constant {value = dense<[2, 4, 16, 5]> : tensor<4xi64>} : tensor<4xi64>
  %k0 = "onnx.Reshape"(%k, %flat) {allowzero = 0 : i64} : (tensor<2x4x5x16xf32>, tensor<3xi64>) -> tensor<8x5x16xf32>
  %k1 = "onnx.Transpose"(%k0) {perm = array<i64: 0, 2, 1>} : (tensor<8x5x16xf32>) -> tensor<8x16x5xf32>
  %k2 = "onnx.Reshape"(%k1, %full) {allowzero = 0 : i64} : (tensor<8x16x5xf32>, tensor<4xi64>) -> tensor<2x4x16x5xf32>
  %k3 = "onnx.Mul"(%k2, %half) : (tensor<2x4x16x5xf32>, tensor<1xf32>) -> tensor<2x4x16x5xf32>
  %q1 = "onnx.Mul"(%q, %half) : (tensor<2x4x6x16xf32>, tensor<1xf32>) -> tensor<2x4x6x16xf32>
  %0 = "onnx.MatMul"(%q1, %k3) : (tensor<2x4x6x16xf32>, tensor<2x4x16x5xf32>) -> tensor<2x4x6x5xf32>
  %2 = "onnx.Add"(%0, %mask) : (tensor<2x4x6x5xf32>, tensor<6x1xf32>) -> tensor<2x4x6x5xf32>
  %3 = "onnx.Softmax"(%2) {axis = 3 : i64} : (tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  %4 = "onnx.IsNaN"(%3) : (tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xi1>
  %5 = "onnx.Where"(%4, %zero, %3) : (tensor<2x4x6x5xi1>, tensor<f32>, tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32>
  %6 = "onnx.MatMul"(%5, %v) : (tensor<2x4x6x5xf32>, tensor<2x4x5x16xf32>) -> tensor<2x4x6x16xf32>
  return %6 : tensor<2x4x6x16xf32>
}

// Grouped queries: the heads of keys and values are taken before they are repeated.
// CHECK-LABEL: func @grouped
// CHECK:       "onnx.Attention"(%arg0, %arg1, %arg2)
// CHECK-SAME:  (tensor<1x4x6x16xf32>, tensor<1x2x5x16xf32>, tensor<1x2x5x16xf32>) -> tensor<1x4x6x16xf32>
func.func @grouped(%q: tensor<1x4x6x16xf32>, %k: tensor<1x2x5x16xf32>, %v: tensor<1x2x5x16xf32>) -> tensor<1x4x6x16xf32> {
  %axis = onnx.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %wide = onnx.constant {value = dense<[1, 2, 2, 5, 16]> : tensor<5xi64>} : tensor<5xi64>
  %full = onnx.constant {value = dense<[1, 4, 5, 16]> : tensor<4xi64>} : tensor<4xi64>
  %k0 = "onnx.Unsqueeze"(%k, %axis) : (tensor<1x2x5x16xf32>, tensor<1xi64>) -> tensor<1x2x1x5x16xf32>
  %k1 = "onnx.Expand"(%k0, %wide) : (tensor<1x2x1x5x16xf32>, tensor<5xi64>) -> tensor<1x2x2x5x16xf32>
  %k2 = "onnx.Reshape"(%k1, %full) {allowzero = 0 : i64} : (tensor<1x2x2x5x16xf32>, tensor<4xi64>) -> tensor<1x4x5x16xf32>
  %v0 = "onnx.Unsqueeze"(%v, %axis) : (tensor<1x2x5x16xf32>, tensor<1xi64>) -> tensor<1x2x1x5x16xf32>
  %v1 = "onnx.Expand"(%v0, %wide) : (tensor<1x2x1x5x16xf32>, tensor<5xi64>) -> tensor<1x2x2x5x16xf32>
  %v2 = "onnx.Reshape"(%v1, %full) {allowzero = 0 : i64} : (tensor<1x2x2x5x16xf32>, tensor<4xi64>) -> tensor<1x4x5x16xf32>
  %kt = "onnx.Transpose"(%k2) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x4x5x16xf32>) -> tensor<1x4x16x5xf32>
  %0 = "onnx.MatMul"(%q, %kt) : (tensor<1x4x6x16xf32>, tensor<1x4x16x5xf32>) -> tensor<1x4x6x5xf32>
  %3 = "onnx.Softmax"(%0) {axis = -1 : i64} : (tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  %4 = "onnx.MatMul"(%3, %v2) : (tensor<1x4x6x5xf32>, tensor<1x4x5x16xf32>) -> tensor<1x4x6x16xf32>
  return %4 : tensor<1x4x6x16xf32>
}

// The body of Attention gives rows whose keys are all masked out zero; so does the operator. The mask that is looked at must be the one that is added.
// CHECK-LABEL: func @masked_rows
// CHECK:       "onnx.Attention"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK:       onnx.Softmax
// CHECK-NOT:   onnx.Attention
// CHECK:       return
func.func @masked_rows(%q: tensor<1x2x4x8xf32>, %kt: tensor<1x2x8x6xf32>, %v: tensor<1x2x6x8xf32>, %mask: tensor<4x6xf32>, %other: tensor<4x6xf32>)
    -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %axis = onnx.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %inf = onnx.constant {value = dense<0xFF800000> : tensor<1xf32>} : tensor<1xf32>
  %zero = onnx.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
  %0 = "onnx.MatMul"(%q, %kt) : (tensor<1x2x4x8xf32>, tensor<1x2x8x6xf32>) -> tensor<1x2x4x6xf32>
  %1 = "onnx.Add"(%0, %mask) : (tensor<1x2x4x6xf32>, tensor<4x6xf32>) -> tensor<1x2x4x6xf32>
  %2 = "onnx.Softmax"(%1) {axis = -1 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %3 = "onnx.ReduceMax"(%mask, %axis) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<4x6xf32>, tensor<1xi64>) -> tensor<4x1xf32>
  %4 = "onnx.Equal"(%3, %inf) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xi1>
  %5 = "onnx.Where"(%4, %zero, %2) : (tensor<4x1xi1>, tensor<1xf32>, tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %6 = "onnx.MatMul"(%5, %v) : (tensor<1x2x4x6xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x4x8xf32>
  %7 = "onnx.MatMul"(%q, %kt) : (tensor<1x2x4x8xf32>, tensor<1x2x8x6xf32>) -> tensor<1x2x4x6xf32>
  %8 = "onnx.Add"(%7, %mask) : (tensor<1x2x4x6xf32>, tensor<4x6xf32>) -> tensor<1x2x4x6xf32>
  %9 = "onnx.Softmax"(%8) {axis = -1 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %10 = "onnx.ReduceMax"(%other, %axis) {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<4x6xf32>, tensor<1xi64>) -> tensor<4x1xf32>
  %11 = "onnx.Equal"(%10, %inf) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xi1>
  %12 = "onnx.Where"(%11, %zero, %9) : (tensor<4x1xi1>, tensor<1xf32>, tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  %13 = "onnx.MatMul"(%12, %v) : (tensor<1x2x4x6xf32>, tensor<1x2x6x8xf32>) -> tensor<1x2x4x8xf32>
  return %6, %13 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// The probabilities are an output of their own, the softmax is over another axis, the scale is negative, a batch is broadcast: not attention.
// CHECK-LABEL: func @kept
// CHECK-NOT:   onnx.Attention
// CHECK:       return
func.func @kept(%q: tensor<2x4x5x16xf32>, %kt: tensor<2x4x16x5xf32>, %v: tensor<2x4x5x16xf32>, %shared: tensor<1x4x5x16xf32>)
    -> (tensor<2x4x5x5xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>) {
  %minus = onnx.constant {value = dense<-0.5> : tensor<f32>} : tensor<f32>
  %0 = "onnx.MatMul"(%q, %kt) : (tensor<2x4x5x16xf32>, tensor<2x4x16x5xf32>) -> tensor<2x4x5x5xf32>
  %1 = "onnx.Softmax"(%0) {axis = -1 : i64} : (tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>
  %2 = "onnx.MatMul"(%1, %v) : (tensor<2x4x5x5xf32>, tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  %3 = "onnx.MatMul"(%v, %kt) : (tensor<2x4x5x16xf32>, tensor<2x4x16x5xf32>) -> tensor<2x4x5x5xf32>
  %4 = "onnx.Softmax"(%3) {axis = 2 : i64} : (tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>
  %5 = "onnx.MatMul"(%4, %v) : (tensor<2x4x5x5xf32>, tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  %qn = "onnx.Mul"(%q, %minus) : (tensor<2x4x5x16xf32>, tensor<f32>) -> tensor<2x4x5x16xf32>
  %6 = "onnx.MatMul"(%qn, %kt) : (tensor<2x4x5x16xf32>, tensor<2x4x16x5xf32>) -> tensor<2x4x5x5xf32>
  %7 = "onnx.Softmax"(%6) {axis = -1 : i64} : (tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>
  %8 = "onnx.MatMul"(%7, %v) : (tensor<2x4x5x5xf32>, tensor<2x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  %9 = "onnx.MatMul"(%q, %kt) : (tensor<2x4x5x16xf32>, tensor<2x4x16x5xf32>) -> tensor<2x4x5x5xf32>
  %10 = "onnx.Softmax"(%9) {axis = -1 : i64} : (tensor<2x4x5x5xf32>) -> tensor<2x4x5x5xf32>
  %11 = "onnx.MatMul"(%10, %shared) : (tensor<2x4x5x5xf32>, tensor<1x4x5x16xf32>) -> tensor<2x4x5x16xf32>
  return %1, %2, %5, %8, %11 : tensor<2x4x5x5xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>
}

// The heads of one query in groups that share a key head: the heads are taken as they were, unless the mask tells them apart.
// CHECK-LABEL: func @one_query
// CHECK:       %[[O:.*]] = "onnx.Attention"(%arg0, %arg1, %arg2, %arg3) {{.*}} -> tensor<1x8x1x16xf32>
// CHECK:       "onnx.Reshape"(%[[O]], %{{.*}}) {{.*}} -> tensor<1x2x4x16xf32>
// CHECK:       "onnx.Attention"(%{{.*}}, %arg1, %arg2, %arg4) {{.*}} -> tensor<1x2x4x16xf32>
func.func @one_query(%q: tensor<1x8x1x16xf32>, %k: tensor<1x2x5x16xf32>, %v: tensor<1x2x5x16xf32>, %mask: tensor<1x1x1x5xf32>, %other: tensor<1x1x4x5xf32>) -> (tensor<1x2x4x16xf32>, tensor<1x2x4x16xf32>) {
  %shape = onnx.constant {value = dense<[1, 2, 4, 16]> : tensor<4xi64>} : tensor<4xi64>
  %g = "onnx.Reshape"(%q, %shape) {allowzero = 0 : i64} : (tensor<1x8x1x16xf32>, tensor<4xi64>) -> tensor<1x2x4x16xf32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x5x16xf32>) -> tensor<1x2x16x5xf32>
  %0 = "onnx.MatMul"(%g, %kt) : (tensor<1x2x4x16xf32>, tensor<1x2x16x5xf32>) -> tensor<1x2x4x5xf32>
  %1 = "onnx.Add"(%0, %mask) : (tensor<1x2x4x5xf32>, tensor<1x1x1x5xf32>) -> tensor<1x2x4x5xf32>
  %2 = "onnx.Softmax"(%1) {axis = -1 : i64} : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %3 = "onnx.MatMul"(%2, %v) : (tensor<1x2x4x5xf32>, tensor<1x2x5x16xf32>) -> tensor<1x2x4x16xf32>
  %4 = "onnx.MatMul"(%g, %kt) : (tensor<1x2x4x16xf32>, tensor<1x2x16x5xf32>) -> tensor<1x2x4x5xf32>
  %5 = "onnx.Add"(%4, %other) : (tensor<1x2x4x5xf32>, tensor<1x1x4x5xf32>) -> tensor<1x2x4x5xf32>
  %6 = "onnx.Softmax"(%5) {axis = -1 : i64} : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %7 = "onnx.MatMul"(%6, %v) : (tensor<1x2x4x5xf32>, tensor<1x2x5x16xf32>) -> tensor<1x2x4x16xf32>
  return %3, %7 : tensor<1x2x4x16xf32>, tensor<1x2x4x16xf32>
}

// A factor of the queries below reshape and transpose; two masks, one of them added to scores whose windows are split off.
// CHECK-LABEL: func @windows
// CHECK:       %[[Q:.*]] = "onnx.Transpose"(%arg0)
// CHECK:       %[[M:.*]] = "onnx.Reshape"(%arg4, %{{.*}}) {{.*}} -> tensor<6x1x5x5xf32>
// CHECK:       %[[S:.*]] = "onnx.Add"(%arg3, %[[M]]) : (tensor<1x2x5x5xf32>, tensor<6x1x5x5xf32>) -> tensor<6x2x5x5xf32>
// CHECK:       "onnx.Attention"(%[[Q]], %arg1, %arg2, %[[S]]) {{.*}}scale = 2.500000e-01 : f32
// CHECK-NOT:   "onnx.Softmax"
func.func @windows(%x: tensor<6x5x2x16xf32>, %k: tensor<6x2x5x16xf32>, %v: tensor<6x2x5x16xf32>, %bias: tensor<1x2x5x5xf32>, %mask: tensor<1x6x1x5x5xf32>) -> tensor<6x2x5x16xf32> {
  %quarter = onnx.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %split = onnx.constant {value = dense<[1, 6, 2, 5, 5]> : tensor<5xi64>} : tensor<5xi64>
  %joined = onnx.constant {value = dense<[6, 2, 5, 5]> : tensor<4xi64>} : tensor<4xi64>
  %s = "onnx.Mul"(%x, %quarter) : (tensor<6x5x2x16xf32>, tensor<f32>) -> tensor<6x5x2x16xf32>
  %q = "onnx.Transpose"(%s) {perm = array<i64: 0, 2, 1, 3>} : (tensor<6x5x2x16xf32>) -> tensor<6x2x5x16xf32>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<6x2x5x16xf32>) -> tensor<6x2x16x5xf32>
  %0 = "onnx.MatMul"(%q, %kt) : (tensor<6x2x5x16xf32>, tensor<6x2x16x5xf32>) -> tensor<6x2x5x5xf32>
  %1 = "onnx.Add"(%0, %bias) : (tensor<6x2x5x5xf32>, tensor<1x2x5x5xf32>) -> tensor<6x2x5x5xf32>
  %2 = "onnx.Reshape"(%1, %split) {allowzero = 0 : i64} : (tensor<6x2x5x5xf32>, tensor<5xi64>) -> tensor<1x6x2x5x5xf32>
  %3 = "onnx.Add"(%2, %mask) : (tensor<1x6x2x5x5xf32>, tensor<1x6x1x5x5xf32>) -> tensor<1x6x2x5x5xf32>
  %4 = "onnx.Reshape"(%3, %joined) {allowzero = 0 : i64} : (tensor<1x6x2x5x5xf32>, tensor<4xi64>) -> tensor<6x2x5x5xf32>
  %5 = "onnx.Softmax"(%4) {axis = -1 : i64} : (tensor<6x2x5x5xf32>) -> tensor<6x2x5x5xf32>
  %6 = "onnx.MatMul"(%5, %v) : (tensor<6x2x5x5xf32>, tensor<6x2x5x16xf32>) -> tensor<6x2x5x16xf32>
  return %6 : tensor<6x2x5x16xf32>
}

// A mask that has some of the joined dimensions is expanded to all of them.
// CHECK-LABEL: func @some_windows
// CHECK:       %[[E:.*]] = "onnx.Expand"(%arg3, %{{.*}}) {{.*}} -> tensor<2x3x1x5x5xf32>
// CHECK:       %[[M:.*]] = "onnx.Reshape"(%[[E]], %{{.*}}) {{.*}} -> tensor<6x1x5x5xf32>
// CHECK:       "onnx.Attention"(%arg0, %arg1, %arg2, %[[M]])
func.func @some_windows(%q: tensor<6x2x5x16xf32>, %k: tensor<6x2x5x16xf32>, %v: tensor<6x2x5x16xf32>, %mask: tensor<1x3x1x5x5xf32>) -> tensor<6x2x5x16xf32> {
  %split = onnx.constant {value = dense<[2, 3, 2, 5, 5]> : tensor<5xi64>} : tensor<5xi64>
  %joined = onnx.constant {value = dense<[6, 2, 5, 5]> : tensor<4xi64>} : tensor<4xi64>
  %kt = "onnx.Transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<6x2x5x16xf32>) -> tensor<6x2x16x5xf32>
  %0 = "onnx.MatMul"(%q, %kt) : (tensor<6x2x5x16xf32>, tensor<6x2x16x5xf32>) -> tensor<6x2x5x5xf32>
  %2 = "onnx.Reshape"(%0, %split) {allowzero = 0 : i64} : (tensor<6x2x5x5xf32>, tensor<5xi64>) -> tensor<2x3x2x5x5xf32>
  %3 = "onnx.Add"(%2, %mask) : (tensor<2x3x2x5x5xf32>, tensor<1x3x1x5x5xf32>) -> tensor<2x3x2x5x5xf32>
  %4 = "onnx.Reshape"(%3, %joined) {allowzero = 0 : i64} : (tensor<2x3x2x5x5xf32>, tensor<4xi64>) -> tensor<6x2x5x5xf32>
  %5 = "onnx.Softmax"(%4) {axis = -1 : i64} : (tensor<6x2x5x5xf32>) -> tensor<6x2x5x5xf32>
  %6 = "onnx.MatMul"(%5, %v) : (tensor<6x2x5x5xf32>, tensor<6x2x5x16xf32>) -> tensor<6x2x5x16xf32>
  return %6 : tensor<6x2x5x16xf32>
}
