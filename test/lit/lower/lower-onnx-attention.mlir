// RUN: ogc-opt %s -ogc-lower-onnx | FileCheck %s

// [B, H, S, D] is transposed to heads inside; a boolean mask becomes an additive bias.
// CHECK-LABEL: func @heads_outside
// CHECK-COUNT-3: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
// CHECK: arith.select
// CHECK: kern.attention %{{.*}}, %{{.*}}, %{{.*}}, bias %{{.*}} {scale = 5.000000e-01 : f32} : (tensor<2x5x4x8xf16>, tensor<2x7x2x8xf16>, tensor<2x7x2x6xf16>, tensor<1x1x5x7xf32>) -> tensor<2x5x4x6xf32>
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
func.func @heads_outside(%q: tensor<2x4x5x8xf16>, %k: tensor<2x2x7x8xf16>, %v: tensor<2x2x7x6xf16>, %m: tensor<5x7xi1>) -> tensor<2x4x5x6xf16> {
  %0 = "onnx.Attention"(%q, %k, %v, %m) {is_causal = 0 : i64, scale = 0.5 : f32, qk_matmul_output_mode = 0 : i64, softcap = 0.0 : f32}
      : (tensor<2x4x5x8xf16>, tensor<2x2x7x8xf16>, tensor<2x2x7x6xf16>, tensor<5x7xi1>) -> tensor<2x4x5x6xf16>
  return %0 : tensor<2x4x5x6xf16>
}

// A mask of floats for each key is the bias as it is, in its own type; a shorter one is padded.
// CHECK-LABEL: func @floats
// CHECK-NOT: linalg.generic
// CHECK: kern.attention {{.*}} bias %{{.*}} {{{.*}}} : (tensor<2x5x2x8xf16>, tensor<2x7x2x8xf16>, tensor<2x7x2x8xf16>, tensor<1x2x5x7xf16>)
// CHECK-LABEL: func @fewer_floats
// CHECK: kern.attention {{.*}} bias %{{.*}} {{{.*}}} : ({{.*}}, tensor<1x2x5x7xf32>)
func.func @floats(%q: tensor<2x2x5x8xf16>, %k: tensor<2x2x7x8xf16>, %m: tensor<2x5x7xf16>) -> tensor<2x2x5x8xf16> {
  %0 = "onnx.Attention"(%q, %k, %k, %m) : (tensor<2x2x5x8xf16>, tensor<2x2x7x8xf16>, tensor<2x2x7x8xf16>, tensor<2x5x7xf16>) -> tensor<2x2x5x8xf16>
  return %0 : tensor<2x2x5x8xf16>
}
func.func @fewer_floats(%q: tensor<2x2x5x8xf16>, %k: tensor<2x2x7x8xf16>, %m: tensor<2x5x6xf16>) -> tensor<2x2x5x8xf16> {
  %0 = "onnx.Attention"(%q, %k, %k, %m) : (tensor<2x2x5x8xf16>, tensor<2x2x7x8xf16>, tensor<2x2x7x8xf16>, tensor<2x5x6xf16>) -> tensor<2x2x5x8xf16>
  return %0 : tensor<2x2x5x8xf16>
}

// [B, S, H * D] needs only reshapes, and a causal mask over equal lengths is the anchor's own.
// CHECK-LABEL: func @heads_inside
// CHECK-NOT: linalg.transpose
// CHECK: kern.attention {{.*}} {causal, scale = 0.353553385 : f32}
// CHECK-NOT: linalg.transpose
// CHECK: tensor.collapse_shape {{.*}} into tensor<2x5x32xf32>
func.func @heads_inside(%x: tensor<2x5x32xf32>) -> tensor<2x5x32xf32> {
  %0 = "onnx.Attention"(%x, %x, %x) {is_causal = 1 : i64, q_num_heads = 4 : i64, kv_num_heads = 4 : i64}
      : (tensor<2x5x32xf32>, tensor<2x5x32xf32>, tensor<2x5x32xf32>) -> tensor<2x5x32xf32>
  return %0 : tensor<2x5x32xf32>
}

// Without a past ONNX aligns causality with the first key: here the mask is a bias.
// CHECK-LABEL: func @causal_from_first_key
// CHECK-NOT: causal
// CHECK: kern.attention {{.*}} bias %{{.*}} {scale
func.func @causal_from_first_key(%q: tensor<1x1x2x8xf32>, %k: tensor<1x1x3x8xf32>) -> tensor<1x1x2x8xf32> {
  %0 = "onnx.Attention"(%q, %k, %k) {is_causal = 1 : i64} : (tensor<1x1x2x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>) -> tensor<1x1x2x8xf32>
  return %0 : tensor<1x1x2x8xf32>
}

// A soft cap has no place in the anchor: two products with the softmax between them.
// CHECK-LABEL: func @softcap
// CHECK-NOT: kern.attention
// CHECK: kern.matmul {{.*}} {transpose_rhs} : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
// CHECK: math.tanh
// CHECK: math.exp
// CHECK: kern.matmul {{.*}} : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
func.func @softcap(%q: tensor<1x4x5x8xf32>, %k: tensor<1x4x7x8xf32>) -> tensor<1x4x5x8xf32> {
  %0 = "onnx.Attention"(%q, %k, %k) {softcap = 2.0 : f32} : (tensor<1x4x5x8xf32>, tensor<1x4x7x8xf32>, tensor<1x4x7x8xf32>) -> tensor<1x4x5x8xf32>
  return %0 : tensor<1x4x5x8xf32>
}

// Keys and values with rows just written are read as caches and rows, also where the updated cache is a result.
// CHECK-LABEL: func @cached
// CHECK: kern.attention %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}}, %{{.*}} at %arg5 {scale
// CHECK-SAME: (tensor<1x1x4x8xf32>, tensor<1x6x2x8xf32>, tensor<1x6x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1xi64>)
func.func @cached(%q: tensor<1x4x1x8xf32>, %kc: tensor<1x2x6x8xf32>, %vc: tensor<1x2x6x8xf32>, %k: tensor<1x2x1x8xf32>, %v: tensor<1x2x1x8xf32>, %at: tensor<1xi64>) -> (tensor<1x4x1x8xf32>, tensor<1x2x6x8xf32>) {
  %0 = "onnx.TensorScatter"(%kc, %k, %at) {axis = -2 : i64, mode = "linear"} : (tensor<1x2x6x8xf32>, tensor<1x2x1x8xf32>, tensor<1xi64>) -> tensor<1x2x6x8xf32>
  %1 = "onnx.TensorScatter"(%vc, %v, %at) {axis = -2 : i64, mode = "linear"} : (tensor<1x2x6x8xf32>, tensor<1x2x1x8xf32>, tensor<1xi64>) -> tensor<1x2x6x8xf32>
  %2 = "onnx.Attention"(%q, %0, %1) {is_causal = 0 : i64, scale = 0.5 : f32, qk_matmul_output_mode = 0 : i64, softcap = 0.0 : f32} : (tensor<1x4x1x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x4x1x8xf32>
  return %2, %0 : tensor<1x4x1x8xf32>, tensor<1x2x6x8xf32>
}
