// RUN: ogc-opt %s -ogc-fuse-regions -ogc-select-schedule | FileCheck %s
// RUN: ogc-opt %s -ogc-fuse-regions=vector-chains=0 -ogc-select-schedule | FileCheck %s --check-prefix=OFF

#image = affine_map<(d0,d1,d2,d3)->(d0,d2,d3,d1)>
#reduced = affine_map<(d0,d1,d2,d3)->(d0,d1)>
#id2 = affine_map<(d0,d1)->(d0,d1)>
#id4 = affine_map<(d0,d1,d2,d3)->(d0,d1,d2,d3)>
#last4 = affine_map<(d0,d1,d2,d3)->(d3)>

// Mean, product, bias and activation, product and gate are one region; weights and bias are its inputs.
// CHECK-LABEL: func.func @squeeze_excite
// CHECK-COUNT-1: kern.region(%arg0, %arg1, %arg2, %arg3) attributes {schedule = #kern.schedule<vector_chain>}
// CHECK-NOT: kern.region
// OFF-LABEL: func.func @squeeze_excite
// OFF: schedule = #kern.schedule<vector_chain>
// OFF: schedule = #kern.schedule<conv>
// OFF: schedule = #kern.schedule<conv>
func.func @squeeze_excite(%x: tensor<1x28x28x72xf16>, %w1: tensor<1x72x32xf16>, %bias: tensor<24xf16>, %w2: tensor<3x24x32xf16>) -> tensor<1x1x1x72xf16> {
  %cst = arith.constant 0.0 : f32
  %mean = arith.constant 1.275510204e-03 : f32
  %e0 = tensor.empty() : tensor<1x72xf32>
  %f0 = linalg.fill ins(%cst : f32) outs(%e0 : tensor<1x72xf32>) -> tensor<1x72xf32>
  %sum = linalg.generic {indexing_maps = [#image, #reduced], iterator_types = ["parallel","parallel","reduction","reduction"]} ins(%x : tensor<1x28x28x72xf16>) outs(%f0 : tensor<1x72xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %out, %a : f32
    linalg.yield %b : f32
  } -> tensor<1x72xf32>
  %e1 = tensor.empty() : tensor<1x72xf16>
  %pooled = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel","parallel"]} ins(%sum : tensor<1x72xf32>) outs(%e1 : tensor<1x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = arith.mulf %in, %mean : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<1x72xf16>
  %p4 = tensor.expand_shape %pooled [[0], [1, 2, 3]] output_shape [1, 1, 1, 72] : tensor<1x72xf16> into tensor<1x1x1x72xf16>
  %acc1 = kern.conv %p4, %w1 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x1x72xf16>, tensor<1x72x32xf16>) -> tensor<1x1x1x24xf32>
  %e2 = tensor.empty() : tensor<1x1x1x24xf16>
  %hidden = linalg.generic {indexing_maps = [#id4, #last4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc1, %bias : tensor<1x1x1x24xf32>, tensor<24xf16>) outs(%e2 : tensor<1x1x1x24xf16>) {
  ^bb0(%in: f32, %bi: f16, %out: f16):
    %a = arith.extf %bi : f16 to f32
    %b = arith.addf %in, %a : f32
    %c = arith.maximumf %b, %cst : f32
    %d = arith.truncf %c : f32 to f16
    linalg.yield %d : f16
  } -> tensor<1x1x1x24xf16>
  %acc2 = kern.conv %hidden, %w2 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x1x24xf16>, tensor<3x24x32xf16>) -> tensor<1x1x1x72xf32>
  %e3 = tensor.empty() : tensor<1x1x1x72xf16>
  %gate = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc2 : tensor<1x1x1x72xf32>) outs(%e3 : tensor<1x1x1x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = math.tanh %in : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<1x1x1x72xf16>
  return %gate : tensor<1x1x1x72xf16>
}

// What else is read of the chain leaves it as another result.
// CHECK-LABEL: func.func @read_outside
// CHECK: %[[R:.*]]:2 = kern.region({{.*}}) attributes {schedule = #kern.schedule<vector_chain>}
// CHECK: kern.yield %{{.*}}, %{{.*}} : tensor<2x1x1x24xf16>, tensor<2x1x1x72xf16>
// CHECK: return %[[R]]#1, %[[R]]#0
func.func @read_outside(%x: tensor<2x28x28x72xf16>, %w1: tensor<1x72x32xf16>, %bias: tensor<24xf16>, %w2: tensor<3x24x32xf16>) -> (tensor<2x1x1x72xf16>, tensor<2x1x1x24xf16>) {
  %cst = arith.constant 0.0 : f32
  %mean = arith.constant 1.275510204e-03 : f32
  %e0 = tensor.empty() : tensor<2x72xf32>
  %f0 = linalg.fill ins(%cst : f32) outs(%e0 : tensor<2x72xf32>) -> tensor<2x72xf32>
  %sum = linalg.generic {indexing_maps = [#image, #reduced], iterator_types = ["parallel","parallel","reduction","reduction"]} ins(%x : tensor<2x28x28x72xf16>) outs(%f0 : tensor<2x72xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %out, %a : f32
    linalg.yield %b : f32
  } -> tensor<2x72xf32>
  %e1 = tensor.empty() : tensor<2x72xf16>
  %pooled = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel","parallel"]} ins(%sum : tensor<2x72xf32>) outs(%e1 : tensor<2x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = arith.mulf %in, %mean : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<2x72xf16>
  %p4 = tensor.expand_shape %pooled [[0], [1, 2, 3]] output_shape [2, 1, 1, 72] : tensor<2x72xf16> into tensor<2x1x1x72xf16>
  %acc1 = kern.conv %p4, %w1 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x1x1x72xf16>, tensor<1x72x32xf16>) -> tensor<2x1x1x24xf32>
  %e2 = tensor.empty() : tensor<2x1x1x24xf16>
  %hidden = linalg.generic {indexing_maps = [#id4, #last4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc1, %bias : tensor<2x1x1x24xf32>, tensor<24xf16>) outs(%e2 : tensor<2x1x1x24xf16>) {
  ^bb0(%in: f32, %bi: f16, %out: f16):
    %a = arith.extf %bi : f16 to f32
    %b = arith.addf %in, %a : f32
    %c = arith.maximumf %b, %cst : f32
    %d = arith.truncf %c : f32 to f16
    linalg.yield %d : f16
  } -> tensor<2x1x1x24xf16>
  %acc2 = kern.conv %hidden, %w2 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x1x1x24xf16>, tensor<3x24x32xf16>) -> tensor<2x1x1x72xf32>
  %e3 = tensor.empty() : tensor<2x1x1x72xf16>
  %gate = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc2 : tensor<2x1x1x72xf32>) outs(%e3 : tensor<2x1x1x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = math.tanh %in : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<2x1x1x72xf16>
  return %gate, %hidden : tensor<2x1x1x72xf16>, tensor<2x1x1x24xf16>
}

// More images than clusters run side by side: a matrix product of many rows.
// CHECK-LABEL: func.func @many_images
// CHECK: schedule = #kern.schedule<vector_chain>} : (tensor<17x28x28x72xf16>) -> tensor<17x72xf16>
// CHECK: schedule = #kern.schedule<conv>
// CHECK: schedule = #kern.schedule<conv>
// CHECK: return
func.func @many_images(%x: tensor<17x28x28x72xf16>, %w1: tensor<1x72x32xf16>, %bias: tensor<24xf16>, %w2: tensor<3x24x32xf16>) -> tensor<17x1x1x72xf16> {
  %cst = arith.constant 0.0 : f32
  %mean = arith.constant 1.275510204e-03 : f32
  %e0 = tensor.empty() : tensor<17x72xf32>
  %f0 = linalg.fill ins(%cst : f32) outs(%e0 : tensor<17x72xf32>) -> tensor<17x72xf32>
  %sum = linalg.generic {indexing_maps = [#image, #reduced], iterator_types = ["parallel","parallel","reduction","reduction"]} ins(%x : tensor<17x28x28x72xf16>) outs(%f0 : tensor<17x72xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %out, %a : f32
    linalg.yield %b : f32
  } -> tensor<17x72xf32>
  %e1 = tensor.empty() : tensor<17x72xf16>
  %pooled = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel","parallel"]} ins(%sum : tensor<17x72xf32>) outs(%e1 : tensor<17x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = arith.mulf %in, %mean : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<17x72xf16>
  %p4 = tensor.expand_shape %pooled [[0], [1, 2, 3]] output_shape [17, 1, 1, 72] : tensor<17x72xf16> into tensor<17x1x1x72xf16>
  %acc1 = kern.conv %p4, %w1 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<17x1x1x72xf16>, tensor<1x72x32xf16>) -> tensor<17x1x1x24xf32>
  %e2 = tensor.empty() : tensor<17x1x1x24xf16>
  %hidden = linalg.generic {indexing_maps = [#id4, #last4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc1, %bias : tensor<17x1x1x24xf32>, tensor<24xf16>) outs(%e2 : tensor<17x1x1x24xf16>) {
  ^bb0(%in: f32, %bi: f16, %out: f16):
    %a = arith.extf %bi : f16 to f32
    %b = arith.addf %in, %a : f32
    %c = arith.maximumf %b, %cst : f32
    %d = arith.truncf %c : f32 to f16
    linalg.yield %d : f16
  } -> tensor<17x1x1x24xf16>
  %acc2 = kern.conv %hidden, %w2 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<17x1x1x24xf16>, tensor<3x24x32xf16>) -> tensor<17x1x1x72xf32>
  %e3 = tensor.empty() : tensor<17x1x1x72xf16>
  %gate = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc2 : tensor<17x1x1x72xf32>) outs(%e3 : tensor<17x1x1x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = math.tanh %in : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<17x1x1x72xf16>
  return %gate : tensor<17x1x1x72xf16>
}

// Products whose weights the whole machine streams faster than one cluster: kernels of their own, behind the sum.
// CHECK-LABEL: func.func @large_weights
// CHECK: schedule = #kern.schedule<pointwise>
// CHECK-COUNT-2: schedule = #kern.schedule<conv>
// CHECK-NOT: kern.region
// CHECK: return
func.func @large_weights(%x: tensor<1x4x4x1024xf16>, %w1: tensor<5x1024x64xf16>, %bias: tensor<320xf16>, %w2: tensor<16x320x64xf16>) -> tensor<1x1x1x1024xf16> {
  %cst = arith.constant 0.0 : f32
  %mean = arith.constant 6.250000000e-02 : f32
  %e0 = tensor.empty() : tensor<1x1024xf32>
  %f0 = linalg.fill ins(%cst : f32) outs(%e0 : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %sum = linalg.generic {indexing_maps = [#image, #reduced], iterator_types = ["parallel","parallel","reduction","reduction"]} ins(%x : tensor<1x4x4x1024xf16>) outs(%f0 : tensor<1x1024xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %out, %a : f32
    linalg.yield %b : f32
  } -> tensor<1x1024xf32>
  %e1 = tensor.empty() : tensor<1x1024xf16>
  %pooled = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel","parallel"]} ins(%sum : tensor<1x1024xf32>) outs(%e1 : tensor<1x1024xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = arith.mulf %in, %mean : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<1x1024xf16>
  %p4 = tensor.expand_shape %pooled [[0], [1, 2, 3]] output_shape [1, 1, 1, 1024] : tensor<1x1024xf16> into tensor<1x1x1x1024xf16>
  %acc1 = kern.conv %p4, %w1 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x1x1024xf16>, tensor<5x1024x64xf16>) -> tensor<1x1x1x320xf32>
  %e2 = tensor.empty() : tensor<1x1x1x320xf16>
  %hidden = linalg.generic {indexing_maps = [#id4, #last4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc1, %bias : tensor<1x1x1x320xf32>, tensor<320xf16>) outs(%e2 : tensor<1x1x1x320xf16>) {
  ^bb0(%in: f32, %bi: f16, %out: f16):
    %a = arith.extf %bi : f16 to f32
    %b = arith.addf %in, %a : f32
    %c = arith.maximumf %b, %cst : f32
    %d = arith.truncf %c : f32 to f16
    linalg.yield %d : f16
  } -> tensor<1x1x1x320xf16>
  %acc2 = kern.conv %hidden, %w2 {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x1x320xf16>, tensor<16x320x64xf16>) -> tensor<1x1x1x1024xf32>
  %e3 = tensor.empty() : tensor<1x1x1x1024xf16>
  %gate = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel","parallel","parallel","parallel"]} ins(%acc2 : tensor<1x1x1x1024xf32>) outs(%e3 : tensor<1x1x1x1024xf16>) {
  ^bb0(%in: f32, %out: f16):
    %a = math.tanh %in : f32
    %b = arith.truncf %a : f32 to f16
    linalg.yield %b : f16
  } -> tensor<1x1x1x1024xf16>
  return %gate : tensor<1x1x1x1024xf16>
}
