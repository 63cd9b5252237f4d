// RUN: ogc-opt %s -split-input-file -ogc-absorb-norms | FileCheck %s

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// RMS: the product reads the rows; its weight is multiplied by gamma.
// CHECK-LABEL: func.func @rms
// CHECK-SAME: (%[[X:.*]]: tensor<1x1x64xf16>)
// CHECK-DAG: %[[W:.*]] = arith.constant dense<5.000000e-01>
// CHECK-DAG: %[[G:.*]] = arith.constant dense<2.000000e+00>
// CHECK: %[[V:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[G]] : tensor<2x64x16xf16>, tensor<64xf16>)
// CHECK: arith.mulf
// CHECK-NEXT: arith.truncf
// CHECK: %[[Y:.*]] = kern.matmul %[[X]], %[[V]] {ogc.epsilon = 9.99999974E-6 : f32, ogc.row_norm = "root_mean_square", packed}
// CHECK-NEXT: return %[[Y]]
func.func @rms(%x: tensor<1x1x64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %g = arith.constant dense<2.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %g : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %1 : f32
    %8 = arith.truncf %7 : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// Layer normalization: the columns of the weight lose their mean, and then what rounding has left of their sums; beta becomes a row that is added; rows through a reshape.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: (%[[X:.*]]: tensor<2x1x64xf16>)
// CHECK-DAG: %[[W:.*]] = arith.constant dense<5.000000e-01>
// CHECK-DAG: %[[G:.*]] = arith.constant dense<2.000000e+00>
// CHECK-DAG: %[[B:.*]] = arith.constant dense<3.000000e+00>
// CHECK: %[[ROW:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[W]], %[[B]] : tensor<2x64x16xf16>, tensor<64xf16>) outs(%{{.*}} : tensor<2x16xf32>)
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[ROW]]
// CHECK: %[[CUT:.*]] = tensor.extract_slice %[[FLAT]][0] [30] [1]
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[W]], %[[G]]
// CHECK: %[[V:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[G]], %[[SUMS]] :
// CHECK: arith.mulf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.subf
// CHECK: %[[REST:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[V]] :
// CHECK: %[[LEAST:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[V]] :
// CHECK: arith.minimumf
// CHECK: %[[COUNT:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[V]], %[[LEAST]] :
// CHECK: %[[U:.*]] = linalg.generic {{.*}} ins(%[[V]], %[[REST]], %[[LEAST]], %[[COUNT]] :
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[X]]
// CHECK: %[[R3:.*]] = tensor.expand_shape %[[R]] {{.*}} into tensor<1x2x64xf16>
// CHECK: %[[Y:.*]] = kern.matmul %[[R3]], %[[U]] {ogc.epsilon = 9.99999974E-6 : f32, ogc.row_norm = "standard_deviation", packed}
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[CUT]] : tensor<1x2x30xf32>, tensor<30xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.addf
func.func @layer(%x: tensor<2x1x64xf16>) -> tensor<1x2x30xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %g = arith.constant dense<2.0> : tensor<64xf16>
  %beta = arith.constant dense<3.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<2x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x1xf32>) -> tensor<2x1xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<2x1x64xf16>) outs(%f : tensor<2x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<2x1x64xf16>, tensor<2x1xf32>) outs(%f : tensor<2x1xf32>) {
  ^bb0(%a: f16, %s: f32, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<2x1xf32>
  %e2 = tensor.empty() : tensor<2x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #last, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum, %g, %beta : tensor<2x1x64xf16>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<64xf16>, tensor<64xf16>) outs(%e2 : tensor<2x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %s: f32, %b: f16, %c: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.extf %c : f16 to f32
    %3 = arith.mulf %s, %scale : f32
    %4 = arith.subf %0, %3 : f32
    %5 = arith.mulf %q, %scale : f32
    %6 = arith.addf %5, %epsilon : f32
    %7 = math.sqrt %6 : f32
    %8 = arith.divf %one, %7 : f32
    %9 = arith.mulf %4, %8 : f32
    %10 = arith.mulf %9, %1 : f32
    %11 = arith.addf %10, %2 : f32
    %12 = arith.truncf %11 : f32 to f16
    linalg.yield %12 : f16
  } -> tensor<2x1x64xf16>
  %z = tensor.collapse_shape %y [[0, 1], [2]] : tensor<2x1x64xf16> into tensor<2x64xf16>
  %r = tensor.expand_shape %z [[0, 1], [2]] output_shape [1, 2, 64] : tensor<2x64xf16> into tensor<1x2x64xf16>
  %p = kern.matmul %r, %w {packed} : (tensor<1x2x64xf16>, tensor<2x64x16xf16>) -> tensor<1x2x30xf32>
  return %p : tensor<1x2x30xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// Parts of the result that alternate each get their part of the row.
// CHECK-LABEL: func.func @parts
// CHECK-DAG: %[[EVEN:.*]] = tensor.extract_slice %{{.*}}[0] [16] [2] : tensor<32xf32> to tensor<16xf32>
// CHECK-DAG: %[[ODD:.*]] = tensor.extract_slice %{{.*}}[1] [16] [2] : tensor<32xf32> to tensor<16xf32>
// CHECK: kern.matmul {{.*}}standard_deviation
// CHECK: %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [1, 1, 16] [1, 1, 2]
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[A]], %[[EVEN]] :
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}}[0, 0, 1] [1, 1, 16] [1, 1, 2]
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[B]], %[[ODD]] :
func.func @parts(%x: tensor<1x1x64xf16>) -> (tensor<1x1x16xf32>, tensor<1x1x16xf32>) {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %beta = arith.constant dense<3.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<1x1x64xf16>, tensor<1x1xf32>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %s: f32, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum, %beta : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %s: f32, %c: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %c : f16 to f32
    %2 = arith.mulf %s, %scale : f32
    %3 = arith.subf %0, %2 : f32
    %4 = arith.mulf %q, %scale : f32
    %5 = arith.addf %4, %epsilon : f32
    %6 = math.sqrt %5 : f32
    %7 = arith.divf %one, %6 : f32
    %8 = arith.mulf %3, %7 : f32
    %9 = arith.addf %8, %1 : f32
    %10 = arith.truncf %9 : f32 to f16
    linalg.yield %10 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  %a = tensor.extract_slice %p[0, 0, 0] [1, 1, 16] [1, 1, 2] : tensor<1x1x32xf32> to tensor<1x1x16xf32>
  %b = tensor.extract_slice %p[0, 0, 1] [1, 1, 16] [1, 1, 2] : tensor<1x1x32xf32> to tensor<1x1x16xf32>
  return %a, %b : tensor<1x1x16xf32>, tensor<1x1x16xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// f32: an RMS norm is absorbed, a layer normalization is not.
// CHECK-LABEL: func.func @rms_f32
// CHECK: kern.matmul {{.*}}root_mean_square
func.func @rms_f32(%x: tensor<1x1x64xf32>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf32>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf32>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.mulf %a, %a : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares : tensor<1x1x64xf32>, tensor<1x1xf32>) outs(%e2 : tensor<1x1x64xf32>) {
  ^bb0(%a: f32, %q: f32, %o: f32):
    %0 = arith.mulf %q, %scale : f32
    %1 = arith.addf %0, %epsilon : f32
    %2 = math.sqrt %1 : f32
    %3 = arith.divf %one, %2 : f32
    %4 = arith.mulf %a, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x1x64xf32>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf32>, tensor<2x64x16xf32>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// CHECK-LABEL: func.func @layer_f32
// CHECK-NOT: norm
// CHECK: return
func.func @layer_f32(%x: tensor<1x1x64xf32>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.25> : tensor<2x64x16xf32>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf32>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %o, %a : f32
    linalg.yield %1 : f32
  } -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<1x1x64xf32>, tensor<1x1xf32>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %a, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum : tensor<1x1x64xf32>, tensor<1x1xf32>, tensor<1x1xf32>) outs(%e2 : tensor<1x1x64xf32>) {
  ^bb0(%a: f32, %q: f32, %s: f32, %o: f32):
    %0 = arith.mulf %s, %scale : f32
    %1 = arith.subf %a, %0 : f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %1, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<1x1x64xf32>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf32>, tensor<2x64x16xf32>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// What computes the rows would be in the norm's kernel.
// CHECK-LABEL: func.func @computed
// CHECK-NOT: row_norm
// CHECK: return
func.func @computed(%input: tensor<1x1x64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %t = tensor.empty() : tensor<1x1x64xf16>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%input : tensor<1x1x64xf16>) outs(%t : tensor<1x1x64xf16>) {
  ^bb0(%i: f16, %o: f16):
    %0 = arith.negf %i : f16
    linalg.yield %0 : f16
  } -> tensor<1x1x64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares : tensor<1x1x64xf16>, tensor<1x1xf32>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %q, %scale : f32
    %2 = arith.addf %1, %epsilon : f32
    %3 = math.sqrt %2 : f32
    %4 = arith.divf %one, %3 : f32
    %5 = arith.mulf %0, %4 : f32
    %6 = arith.truncf %5 : f32 to f16
    linalg.yield %6 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// The normalized rows are read elsewhere.
// CHECK-LABEL: func.func @read_twice
// CHECK-NOT: row_norm
// CHECK: return
func.func @read_twice(%x: tensor<1x1x64xf16>) -> (tensor<1x1x32xf32>, tensor<1x1x64xf16>) {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %g = arith.constant dense<2.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %g : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %1 : f32
    %8 = arith.truncf %7 : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p, %y : tensor<1x1x32xf32>, tensor<1x1x64xf16>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// So are the statistics.
// CHECK-LABEL: func.func @statistics_read
// CHECK-NOT: row_norm
// CHECK: return
func.func @statistics_read(%x: tensor<1x1x64xf16>) -> (tensor<1x1x32xf32>, tensor<1x1xf32>) {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %g = arith.constant dense<2.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %g : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %1 : f32
    %8 = arith.truncf %7 : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p, %squares : tensor<1x1x32xf32>, tensor<1x1xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// Gamma is not constant.
// CHECK-LABEL: func.func @gamma_varies
// CHECK-NOT: row_norm
// CHECK: return
func.func @gamma_varies(%x: tensor<1x1x64xf16>, %g: tensor<64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %g : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %1 : f32
    %8 = arith.truncf %7 : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// The statistics are those of other rows.
// CHECK-LABEL: func.func @other_rows
// CHECK-NOT: row_norm
// CHECK: return
func.func @other_rows(%x: tensor<1x1x64xf16>, %other: tensor<1x1x64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %g = arith.constant dense<2.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%other : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %g : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %1 : f32
    %8 = arith.truncf %7 : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// The sum is divided by something else than the length of a row.
// CHECK-LABEL: func.func @other_length
// CHECK-NOT: row_norm
// CHECK: return
func.func @other_length(%x: tensor<1x1x64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %g = arith.constant dense<2.0> : tensor<64xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 3.125000e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %g : tensor<1x1x64xf16>, tensor<1x1xf32>, tensor<64xf16>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %q, %scale : f32
    %3 = arith.addf %2, %epsilon : f32
    %4 = math.sqrt %3 : f32
    %5 = arith.divf %one, %4 : f32
    %6 = arith.mulf %0, %5 : f32
    %7 = arith.mulf %6, %1 : f32
    %8 = arith.truncf %7 : f32 to f16
    linalg.yield %8 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// A weight that another graph ID reads without a norm stays: it is stored once.
// CHECK-LABEL: func.func @shared
// CHECK-NOT: row_norm
// CHECK: return
func.func @shared(%x: tensor<1x1x64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 1.562500e-02 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x1x64xf16>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x1xf32>
  %e2 = tensor.empty() : tensor<1x1x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares : tensor<1x1x64xf16>, tensor<1x1xf32>) outs(%e2 : tensor<1x1x64xf16>) {
  ^bb0(%a: f16, %q: f32, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %q, %scale : f32
    %2 = arith.addf %1, %epsilon : f32
    %3 = math.sqrt %2 : f32
    %4 = arith.divf %one, %3 : f32
    %5 = arith.mulf %0, %4 : f32
    %6 = arith.truncf %5 : f32 to f16
    linalg.yield %6 : f16
  } -> tensor<1x1x64xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}
func.func @without(%x: tensor<1x1x64xf16>) -> tensor<1x1x32xf32> {
  %w = arith.constant dense<0.5> : tensor<2x64x16xf16>
  %p = kern.matmul %x, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
  return %p : tensor<1x1x32xf32>
}
