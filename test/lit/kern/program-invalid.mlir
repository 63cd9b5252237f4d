// What a program must look like.
// RUN: ogc-opt %s -split-input-file -verify-diagnostics

func.func @arguments(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has 2 block arguments, expected 3}}
  %0 = kern.program(%x) groups = 1 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%group: index, %in: memref<4xf32>):
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @flat(%x: tensor<2x2xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{block argument 1 has type 'memref<2x2xf32>', expected the flat buffer of 'tensor<2x2xf32>'}}
  %0 = kern.program(%x) groups = 1 : (tensor<2x2xf32>) -> tensor<4xf32> {
  ^bb0(%group: index, %in: memref<2x2xf32>, %out: memref<4xf32>):
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @groups(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has 0 groups, expected at least 1}}
  %0 = kern.program(%x) groups = 0 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%group: index, %in: memref<4xf32>, %out: memref<4xf32>):
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @group(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the first block argument has type 'i64', expected index}}
  %0 = kern.program(%x) groups = 1 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%group: i64, %in: memref<4xf32>, %out: memref<4xf32>):
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kern.program(%x) groups = 1 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%group: index, %in: memref<4xf32>, %out: memref<4xf32>):
    %c4 = arith.constant 4 : index
    kern.parallel %c4 width = 4 {
    ^bb0(%i: index):
      // expected-error @+1 {{stands inside another parallel loop}}
      kern.parallel %c4 width = 4 {
      ^bb0(%j: index):
      }
    }
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @outside(%n: index) {
  // expected-error @+1 {{stands outside of a program}}
  kern.parallel %n width = 4 {
  ^bb0(%i: index):
  }
  return
}
