// RUN: ogc-opt %s -split-input-file -verify-diagnostics -ogc-build-graph

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{is no kernel launch: every computation must be in a kernel before a graph is built}}
  %0 = math.exp %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
