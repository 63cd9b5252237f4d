// RUN: ogc-opt %s -ogc-fold-constants | FileCheck %s

// Padding, splitting and transposing a weight with a cast: a copy of the compiler's own. Arithmetic: executed. Regions over folded results
// fold in turn; a region with an input of the model stays.

#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#line = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK-DAG: arith.constant dense<{{\[\[\[}}1.000000e+00, 2.000000e+00], [4.000000e+00, 5.000000e+00]], {{\[\[}}3.000000e+00, 0.000000e+00], [6.000000e+00, 0.000000e+00]]]> : tensor<2x2x2xf16>
// CHECK-DAG: arith.constant dense<{{\[\[}}1.000000e+00, 4.000000e+00], [2.000000e+00, 5.000000e+00], [3.000000e+00, 6.000000e+00]]> : tensor<3x2xf32>
// CHECK-DAG: arith.constant dense<[false, false, true]> : tensor<3xi1>
// CHECK: kern.region(%{{.*}}, %arg0)
// CHECK-NOT: kern.region
func.func @main(%x: tensor<3x2xf32>) -> (tensor<2x2x2xf16>, tensor<3x2xf32>, tensor<3xi1>, tensor<3x2xf32>) {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %packed = kern.region(%w) attributes {schedule = #kern.schedule<pointwise>} : (tensor<2x3xf32>) -> tensor<2x2x2xf16> {
  ^bb0(%a: tensor<2x3xf32>):
    %zero = arith.constant 0.0 : f32
    %padded = tensor.pad %a low[0, 0] high[0, 1] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
    } : tensor<2x3xf32> to tensor<2x4xf32>
    %split = tensor.expand_shape %padded [[0], [1, 2]] output_shape [2, 2, 2] : tensor<2x4xf32> into tensor<2x2x2xf32>
    %init = tensor.empty() : tensor<2x2x2xf32>
    %panels = linalg.transpose ins(%split : tensor<2x2x2xf32>) outs(%init : tensor<2x2x2xf32>) permutation = [1, 0, 2]
    %half = tensor.empty() : tensor<2x2x2xf16>
    %cast = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%panels : tensor<2x2x2xf32>) outs(%half : tensor<2x2x2xf16>) {
    ^bb0(%e: f32, %o: f16):
      %t = arith.truncf %e : f32 to f16
      linalg.yield %t : f16
    } -> tensor<2x2x2xf16>
    kern.yield %cast : tensor<2x2x2xf16>
  }
  %rounded = kern.region(%w) attributes {schedule = #kern.schedule<pointwise>} : (tensor<2x3xf32>) -> tensor<3x2xf32> {
  ^bb0(%a: tensor<2x3xf32>):
    %init = tensor.empty() : tensor<3x2xf32>
    %r = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<2x3xf32>) outs(%init : tensor<3x2xf32>) {
    ^bb0(%e: f32, %o: f32):
      %quarter = arith.constant 0.25 : f32
      %s = arith.addf %e, %quarter : f32
      %f = math.floor %s : f32
      linalg.yield %f : f32
    } -> tensor<3x2xf32>
    kern.yield %r : tensor<3x2xf32>
  }
  %mask = kern.region(%rounded) attributes {schedule = #kern.schedule<pointwise>} : (tensor<3x2xf32>) -> tensor<3xi1> {
  ^bb0(%a: tensor<3x2xf32>):
    %init = tensor.empty() : tensor<3xi1>
    %column = tensor.extract_slice %a[0, 0] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3xf32>
    %r = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%column : tensor<3xf32>) outs(%init : tensor<3xi1>) {
    ^bb0(%e: f32, %o: i1):
      %two = arith.constant 2.0 : f32
      %c = arith.cmpf ogt, %e, %two : f32
      linalg.yield %c : i1
    } -> tensor<3xi1>
    kern.yield %r : tensor<3xi1>
  }
  %live = kern.region(%rounded, %x) attributes {schedule = #kern.schedule<pointwise>} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32> {
  ^bb0(%a: tensor<3x2xf32>, %b: tensor<3x2xf32>):
    %init = tensor.empty() : tensor<3x2xf32>
    %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<3x2xf32>, tensor<3x2xf32>) outs(%init : tensor<3x2xf32>) {
    ^bb0(%e: f32, %f: f32, %o: f32):
      %s = arith.addf %e, %f : f32
      linalg.yield %s : f32
    } -> tensor<3x2xf32>
    kern.yield %r : tensor<3x2xf32>
  }
  return %packed, %rounded, %mask, %live : tensor<2x2x2xf16>, tensor<3x2xf32>, tensor<3xi1>, tensor<3x2xf32>
}
