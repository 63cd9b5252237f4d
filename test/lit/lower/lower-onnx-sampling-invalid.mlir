// RUN: ogc-opt %s -ogc-lower-onnx -verify-diagnostics

// Every refusal of the sampling operators, transforms and random numbers names the operator and the reason.
func.func @modes(%x: tensor<1x3x4x4xf32>, %i: tensor<1x3x4x4xi32>, %g: tensor<1x2x2x2xf32>, %g3: tensor<1x2x2x3xf32>, %r: tensor<5x4xf32>, %b: tensor<5xi64>,
                 %s: tensor<1xi64>, %f: tensor<4xf32>,
                 %q: tensor<1x2x4xf32>) {
  %no = onnx.absent
  %size = onnx.constant {value = dense<[1, 3, 2, 2]> : tensor<4xi64>} : tensor<4xi64>
  // expected-error@+1 {{GridSample: mode is 'sharp', expected nearest, linear or cubic}}
  %0 = "onnx.GridSample"(%x, %g) {mode = "sharp"} : (tensor<1x3x4x4xf32>, tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xf32>
  // expected-error@+1 {{GridSample: padding_mode is 'wrap', expected zeros, border or reflection}}
  %1 = "onnx.GridSample"(%x, %g) {padding_mode = "wrap"} : (tensor<1x3x4x4xf32>, tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xf32>
  // expected-error@+1 {{GridSample: data and grid do not fit: expected [N, C, D1, ...] and [N, out1, ..., 2]}}
  %2 = "onnx.GridSample"(%x, %g3) : (tensor<1x3x4x4xf32>, tensor<1x2x2x3xf32>) -> tensor<1x3x2x2xf32>
  // expected-error@+1 {{GridSample: mode linear needs a float type}}
  %3 = "onnx.GridSample"(%i, %g) {mode = "linear"} : (tensor<1x3x4x4xi32>, tensor<1x2x2x2xf32>) -> tensor<1x3x2x2xi32>
  // expected-error@+1 {{RoiAlign: mode is 'min', expected avg or max}}
  %4 = "onnx.RoiAlign"(%x, %r, %b) {mode = "min", sampling_ratio = 2 : i64} : (tensor<1x3x4x4xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x3x1x1xf32>
  // expected-error@+1 {{RoiAlign: coordinate_transformation_mode is 'other', expected half_pixel or output_half_pixel}}
  %5 = "onnx.RoiAlign"(%x, %r, %b) {coordinate_transformation_mode = "other", sampling_ratio = 2 : i64}
      : (tensor<1x3x4x4xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x3x1x1xf32>
  // expected-error@+1 {{LinearAttention: update_rule is 'other', expected linear, gated, delta or gated_delta}}
  %6:2 = "onnx.LinearAttention"(%q, %q, %q) {update_rule = "other", q_num_heads = 1 : i64, kv_num_heads = 1 : i64}
      : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4x4xf32>)
  // expected-error@+1 {{MaxRoiPool: expected data [N, C, H, W] of a float type and regions [count, 5]}}
  %20 = "onnx.MaxRoiPool"(%x, %r) {pooled_shape = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<5x4xf32>) -> tensor<5x3x1x1xf32>
  // expected-error@+1 {{Col2Im: image_shape and block_shape are not constants of one length}}
  %7 = "onnx.Col2Im"(%x, %s, %s) : (tensor<1x3x4x4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x1x3xf32>
  // expected-error@+1 {{DFT: dft_length is not a constant with one element}}
  %8 = "onnx.DFT"(%g, %s, %no) : (tensor<1x2x2x2xf32>, tensor<1xi64>, none) -> tensor<1x2x2x2xf32>
  // expected-error@+1 {{DFT: the last dimension has extent 4, expected 1 (real) or 2 (complex)}}
  %9 = "onnx.DFT"(%x, %no, %no) : (tensor<1x3x4x4xf32>, none, none) -> tensor<1x3x4x2xf32>
  // expected-error@+1 {{STFT: frame_step is not a constant with one element}}
  %10 = "onnx.STFT"(%r, %s) : (tensor<5x4xf32>, tensor<1xi64>) -> tensor<5x1x3x2xf32>
  // expected-error@+1 {{MelWeightMatrix: operand 0 is not a constant with one element}}
  %11 = "onnx.MelWeightMatrix"(%s, %s, %s, %f, %f) : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  // expected-error@+1 {{RandomUniform: result 0 is not of a float type}}
  %12 = "onnx.RandomUniform"() {shape = array<i64: 4>} : () -> tensor<4xi32>
  // expected-error@+1 {{Multinomial: operand 0 has rank 1, expected logits [batch, classes] of a float type}}
  %13 = "onnx.Multinomial"(%f) {sample_size = 2 : i64} : (tensor<4xf32>) -> tensor<4x2xi32>
  // expected-error@+1 {{Resize: roi is not constant or does not have two values for each axis}}
  %14 = "onnx.Resize"(%x, %f, %no, %size) {mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"}
      : (tensor<1x3x4x4xf32>, tensor<4xf32>, none, tensor<4xi64>) -> tensor<1x3x2x2xf32>
  return
}
