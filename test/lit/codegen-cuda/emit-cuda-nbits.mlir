// A product with packed weights is a call of the template that reads them packed; the epilogue is called with row and column.
// RUN: ogc-opt %s -ogc-lower-onnx -ogc-fuse-regions -ogc-select-schedule -ogc-outline-kernels -ogc-emit-cuda=arch=sm_90 | FileCheck %s

// CHECK: struct [[NAME:.*]]_Config : ogc::NBitsDefaults
// CHECK: M = 1, N = 64, K = 256, Bits = 4, Block = 32, HasZeros = 0, DefaultZero = 8, Rows = 1
// CHECK: struct [[NAME]]_Epilogue
// CHECK: operator()(int i0, int i1, const float (&acc)[1])
// CHECK: ogc::nbits<[[NAME]]_Config>(
func.func @main(%x: tensor<1x256xf32>, %w: tensor<64x8x16xui8>, %s: tensor<64x8xf32>, %b: tensor<64xf32>) -> tensor<1x64xf32> {
  %no = onnx.absent
  %0 = "onnx.com.microsoft.MatMulNBits"(%x, %w, %s, %no, %no, %b) {K = 256 : i64, N = 64 : i64, bits = 4 : i64, block_size = 32 : i64}
      : (tensor<1x256xf32>, tensor<64x8x16xui8>, tensor<64x8xf32>, none, none, tensor<64xf32>) -> tensor<1x64xf32>
  %1 = "onnx.Relu"(%0) : (tensor<1x64xf32>) -> tensor<1x64xf32>
  return %1 : tensor<1x64xf32>
}
