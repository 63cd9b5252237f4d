// RUN: ogc-opt %s -split-input-file -ogc-absorb-norms | FileCheck %s

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// Many rows: their statistics are taken where a product computes them, and the product that reads them multiplies its result by what they are merged to.
// CHECK-LABEL: func.func @many
// CHECK: %[[ACC:.*]] = kern.matmul %arg0
// CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%[[ACC]], %arg1
// CHECK: %[[M:.*]], %[[Q:.*]] = kern.row_statistics %[[X]] : tensor<1x40x128xf16> -> tensor<1x40x2xf32>
// CHECK: %[[F:.*]] = kern.merge_statistics %[[M]], %[[Q]] {epsilon = 9.99999974E-6 : f32} : tensor<1x40x2xf32> -> tensor<1x40xf32>
// CHECK: %[[P:.*]] = kern.matmul %[[X]], %{{.*}} {packed}
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[F]] : tensor<1x40x72xf32>, tensor<1x40xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK: return %[[Y]]
func.func @many(%lhs: tensor<1x40x64xf16>, %r: tensor<1x40x128xf16>) -> tensor<1x40x72xf32> {
  %v = arith.constant dense<0.25> : tensor<2x64x64xf16>
  %w = arith.constant dense<0.5> : tensor<2x128x64xf16>
  %g = arith.constant dense<2.0> : tensor<128xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 7.812500000e-03 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %acc = kern.matmul %lhs, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %e0 = tensor.empty() : tensor<1x40x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%acc, %r : tensor<1x40x128xf32>, tensor<1x40x128xf16>) outs(%e0 : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %b, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x40x128xf16>
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x40x128xf16>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x40xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<1x40x128xf16>, tensor<1x40xf32>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f16, %s: f32, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x40xf32>
  %e2 = tensor.empty() : tensor<1x40x128xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum, %g : tensor<1x40x128xf16>, tensor<1x40xf32>, tensor<1x40xf32>, tensor<128xf16>) outs(%e2 : tensor<1x40x128xf16>) {
  ^bb0(%a: f16, %q: f32, %s: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %s, %scale : f32
    %3 = arith.subf %0, %2 : f32
    %4 = arith.mulf %q, %scale : f32
    %5 = arith.addf %4, %epsilon : f32
    %6 = math.sqrt %5 : f32
    %7 = arith.divf %one, %6 : f32
    %8 = arith.mulf %3, %7 : f32
    %9 = arith.mulf %8, %1 : f32
    %10 = arith.truncf %9 : f32 to f16
    linalg.yield %10 : f16
  } -> tensor<1x40x128xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x40x128xf16>, tensor<2x128x64xf16>) -> tensor<1x40x72xf32>
  return %p : tensor<1x40x72xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// So few rows may become one chain with what follows.
// CHECK-LABEL: func.func @few
// CHECK-NOT: statistics
// CHECK: return
func.func @few(%lhs: tensor<1x16x64xf16>, %r: tensor<1x16x128xf16>) -> tensor<1x16x72xf32> {
  %v = arith.constant dense<0.25> : tensor<2x64x64xf16>
  %w = arith.constant dense<0.5> : tensor<2x128x64xf16>
  %g = arith.constant dense<2.0> : tensor<128xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 7.812500000e-03 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %acc = kern.matmul %lhs, %v {packed} : (tensor<1x16x64xf16>, tensor<2x64x64xf16>) -> tensor<1x16x128xf32>
  %e0 = tensor.empty() : tensor<1x16x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%acc, %r : tensor<1x16x128xf32>, tensor<1x16x128xf16>) outs(%e0 : tensor<1x16x128xf16>) {
  ^bb0(%b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %b, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x16x128xf16>
  %e = tensor.empty() : tensor<1x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16xf32>) -> tensor<1x16xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x16x128xf16>) outs(%f : tensor<1x16xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x16xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<1x16x128xf16>, tensor<1x16xf32>) outs(%f : tensor<1x16xf32>) {
  ^bb0(%a: f16, %s: f32, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x16xf32>
  %e2 = tensor.empty() : tensor<1x16x128xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum, %g : tensor<1x16x128xf16>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<128xf16>) outs(%e2 : tensor<1x16x128xf16>) {
  ^bb0(%a: f16, %q: f32, %s: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %s, %scale : f32
    %3 = arith.subf %0, %2 : f32
    %4 = arith.mulf %q, %scale : f32
    %5 = arith.addf %4, %epsilon : f32
    %6 = math.sqrt %5 : f32
    %7 = arith.divf %one, %6 : f32
    %8 = arith.mulf %3, %7 : f32
    %9 = arith.mulf %8, %1 : f32
    %10 = arith.truncf %9 : f32 to f16
    linalg.yield %10 : f16
  } -> tensor<1x16x128xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x16x128xf16>, tensor<2x128x64xf16>) -> tensor<1x16x72xf32>
  return %p : tensor<1x16x72xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// Columns that epilogues take one by one.
// CHECK-LABEL: func.func @odd_columns
// CHECK-NOT: statistics
// CHECK: return
func.func @odd_columns(%lhs: tensor<1x40x64xf16>, %r: tensor<1x40x128xf16>) -> tensor<1x40x71xf32> {
  %v = arith.constant dense<0.25> : tensor<2x64x64xf16>
  %w = arith.constant dense<0.5> : tensor<2x128x64xf16>
  %g = arith.constant dense<2.0> : tensor<128xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 7.812500000e-03 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %acc = kern.matmul %lhs, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %e0 = tensor.empty() : tensor<1x40x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%acc, %r : tensor<1x40x128xf32>, tensor<1x40x128xf16>) outs(%e0 : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %b, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x40x128xf16>
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x40x128xf16>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x40xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<1x40x128xf16>, tensor<1x40xf32>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f16, %s: f32, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x40xf32>
  %e2 = tensor.empty() : tensor<1x40x128xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum, %g : tensor<1x40x128xf16>, tensor<1x40xf32>, tensor<1x40xf32>, tensor<128xf16>) outs(%e2 : tensor<1x40x128xf16>) {
  ^bb0(%a: f16, %q: f32, %s: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %s, %scale : f32
    %3 = arith.subf %0, %2 : f32
    %4 = arith.mulf %q, %scale : f32
    %5 = arith.addf %4, %epsilon : f32
    %6 = math.sqrt %5 : f32
    %7 = arith.divf %one, %6 : f32
    %8 = arith.mulf %3, %7 : f32
    %9 = arith.mulf %8, %1 : f32
    %10 = arith.truncf %9 : f32 to f16
    linalg.yield %10 : f16
  } -> tensor<1x40x128xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x40x128xf16>, tensor<2x128x64xf16>) -> tensor<1x40x71xf32>
  return %p : tensor<1x40x71xf32>
}

// -----

#id = affine_map<(d0,d1,d2)->(d0,d1,d2)>
#outer = affine_map<(d0,d1,d2)->(d0,d1)>
#last = affine_map<(d0,d1,d2)->(d2)>

// What is a residual, too, is normalized once more where it is added.
// CHECK-LABEL: func.func @residual
// CHECK: %[[X:.*]] = linalg.generic
// CHECK: %[[M:.*]], %[[Q:.*]] = kern.row_statistics %[[X]]
// CHECK: %[[F:.*]] = kern.merge_statistics %[[M]], %[[Q]]
// CHECK: kern.matmul %[[X]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[F]]
// CHECK: %[[ACC:.*]] = kern.matmul %arg0
// CHECK: %[[F2:.*]] = kern.merge_statistics %[[M]], %[[Q]]
// CHECK: %[[MEAN:.*]] = kern.merge_means %[[M]] : tensor<1x40x2xf32> -> tensor<1x40xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[F2]], %[[MEAN]], %{{.*}} : tensor<1x40x128xf16>, tensor<1x40xf32>, tensor<1x40xf32>, tensor<128xf16>)
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}} ins(%[[ACC]], %[[N]]
func.func @residual(%lhs: tensor<1x40x64xf16>, %r: tensor<1x40x128xf16>) -> (tensor<1x40x72xf32>, tensor<1x40x128xf16>) {
  %v = arith.constant dense<0.25> : tensor<2x64x64xf16>
  %w = arith.constant dense<0.5> : tensor<2x128x64xf16>
  %g = arith.constant dense<2.0> : tensor<128xf16>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 7.812500000e-03 : f32
  %epsilon = arith.constant 9.99999974E-6 : f32
  %acc = kern.matmul %lhs, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %e0 = tensor.empty() : tensor<1x40x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%acc, %r : tensor<1x40x128xf32>, tensor<1x40x128xf16>) outs(%e0 : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %b, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x40x128xf16>
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %sum = linalg.generic {indexing_maps = [#id, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x : tensor<1x40x128xf16>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x40xf32>
  %squares = linalg.generic {indexing_maps = [#id, #outer, #outer], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %sum : tensor<1x40x128xf16>, tensor<1x40xf32>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f16, %s: f32, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.mulf %s, %scale : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<1x40xf32>
  %e2 = tensor.empty() : tensor<1x40x128xf16>
  %y = linalg.generic {indexing_maps = [#id, #outer, #outer, #last, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%x, %squares, %sum, %g : tensor<1x40x128xf16>, tensor<1x40xf32>, tensor<1x40xf32>, tensor<128xf16>) outs(%e2 : tensor<1x40x128xf16>) {
  ^bb0(%a: f16, %q: f32, %s: f32, %b: f16, %o: f16):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %s, %scale : f32
    %3 = arith.subf %0, %2 : f32
    %4 = arith.mulf %q, %scale : f32
    %5 = arith.addf %4, %epsilon : f32
    %6 = math.sqrt %5 : f32
    %7 = arith.divf %one, %6 : f32
    %8 = arith.mulf %3, %7 : f32
    %9 = arith.mulf %8, %1 : f32
    %10 = arith.truncf %9 : f32 to f16
    linalg.yield %10 : f16
  } -> tensor<1x40x128xf16>
  %p = kern.matmul %y, %w {packed} : (tensor<1x40x128xf16>, tensor<2x128x64xf16>) -> tensor<1x40x72xf32>
  %acc2 = kern.matmul %lhs, %v {packed} : (tensor<1x40x64xf16>, tensor<2x64x64xf16>) -> tensor<1x40x128xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel","parallel","parallel"]} ins(%acc2, %y : tensor<1x40x128xf32>, tensor<1x40x128xf16>) outs(%e0 : tensor<1x40x128xf16>) {
  ^bb0(%b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.addf %b, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<1x40x128xf16>
  return %p, %z : tensor<1x40x72xf32>, tensor<1x40x128xf16>
}
