//===- Passes.td - passes of the fuse phase ---------------------------------===//
//
// In the order of the pipeline: layouts, regions, schedules, kernels.
//
#ifndef OGC_PASSES_FUSE_PASSES_TD
#define OGC_PASSES_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PropagateLayout : Pass<"ogc-propagate-layout", "::mlir::func::FuncOp"> {
  let summary = "remove transposes: let each operation work in the layout of what it reads";
  let description = [{
    One walk over the function. A transpose is not computed but remembered: its result is its source plus a permutation. What reads it follows:
    a generic reads the source through permuted maps and, where an operand runs along with the result, writes its result in the same layout;
    reshapes, slices, pads and concats are done on the source; the transposed right operand of `kern.matmul` becomes `transpose_rhs`. A
    transpose that only moves dimensions of extent one becomes a reshape. What cannot follow (an anchor, a return) gets one transpose, and one
    behind a generic that nothing else reads is folded into that generic's maps. Transposes of constants stay on the constant.

    Loops of generics are put in the order of their result's dimensions, so that element-wise results are written through identity maps.

    There is one visit an operation, so the pass ends; if the result had more transposes than before, the function would stay as it was.

    ```mlir
    %0 = kern.conv %x, %w {…} : (…) -> tensor<1x8x8x16xf32>
    %1 = linalg.transpose ins(%0) outs(%e) permutation = [0, 3, 1, 2]
    %2 = linalg.generic {relu, identity maps} ins(%1 : tensor<1x16x8x8xf32>) …
    %3 = linalg.transpose ins(%2) outs(%f) permutation = [0, 2, 3, 1]
    %4 = kern.conv %3, %v {…}
    // becomes
    %0 = kern.conv %x, %w {…} : (…) -> tensor<1x8x8x16xf32>
    %2 = linalg.generic {relu, identity maps} ins(%0 : tensor<1x8x8x16xf32>) …
    %4 = kern.conv %2, %v {…}
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

def NarrowPanels : Pass<"ogc-narrow-panels", "::mlir::ModuleOp"> {
  let summary = "panels of 16 columns for weights that only few rows meet";
  let description = [{
    A product of one or two rows streams its weight: each block reads all rows of its columns, and memory is fastest when these lie in one piece.
    Weights in panels of 32 or 64 columns are cut to panels of 16, so that such blocks are small and many. A weight that any product of the module (any
    graph ID) meets with more rows keeps its width, because it is stored once.

    ```mlir
    %y = kern.matmul %x, %w {packed} : (tensor<1x1x32xf32>, tensor<2x32x64xf32>) -> tensor<1x1x128xf32>
    // becomes, with a constant %v of the same columns
    %y = kern.matmul %x, %v {packed} : (tensor<1x1x32xf32>, tensor<8x32x16xf32>) -> tensor<1x1x128xf32>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PairMatmuls : Pass<"ogc-pair-matmuls", "::mlir::func::FuncOp"> {
  let summary = "make one product of two that meet in an element-wise operation";
  let description = [{
    Two packed products of one value, of equal shape and with constant weights, that meet in an element-wise operation (silu(x A) * (x B) and
    the other gated units) become one with interleaved columns: 2 i is column i of the first, 2 i + 1 that of the second. The weights are
    constants, mixed at compile time. What follows sees both parts as slices of stride two; `ogc-fuse-regions` takes these into the region of
    the product, so that one kernel has both accumulators of an element at hand.

    ```mlir
    %a = kern.matmul %x, %wa {packed} : (tensor<1x8x32xf32>, tensor<2x32x16xf32>) -> tensor<1x8x32xf32>
    %b = kern.matmul %x, %wb {packed} : (tensor<1x8x32xf32>, tensor<2x32x16xf32>) -> tensor<1x8x32xf32>
    %c = linalg.generic {mul, identity maps} ins(%a, %b : …) …
    // becomes
    %0 = kern.matmul %x, %w {packed} : (tensor<1x8x32xf32>, tensor<4x32x16xf32>) -> tensor<1x8x64xf32>
    %a = tensor.extract_slice %0[0, 0, 0] [1, 8, 32] [1, 1, 2] : tensor<1x8x64xf32> to tensor<1x8x32xf32>
    %b = tensor.extract_slice %0[0, 0, 1] [1, 8, 32] [1, 1, 2] : tensor<1x8x64xf32> to tensor<1x8x32xf32>
    %c = linalg.generic {mul, identity maps} ins(%a, %b : …) …
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def MergeMatmuls : Pass<"ogc-merge-matmuls", "::mlir::func::FuncOp"> {
  let summary = "make one product of those of one value with several constant weights";
  let description = [{
    Packed products with the same left operand become one with the panels behind each other (constants, joined at compile time), its result
    sliced. Element-wise operations that all of them have in common, up to constants along the columns (bias, cast), are done on the
    joined result. It is not done where a branch goes on element-wise by itself or is returned: that work would leave the product's region.

    Attention reads the slices in place, so that query, key and value of a layer are one kernel.

    ```mlir
    %q = kern.matmul %x, %wq {packed} : (tensor<1x8x32xf32>, tensor<2x32x16xf32>) -> tensor<1x8x32xf32>
    %k = kern.matmul %x, %wk {packed} : (tensor<1x8x32xf32>, tensor<2x32x16xf32>) -> tensor<1x8x32xf32>
    // becomes
    %w = tensor.concat dim(0) %wq, %wk : (tensor<2x32x16xf32>, tensor<2x32x16xf32>) -> tensor<4x32x16xf32>
    %0 = kern.matmul %x, %w {packed} : (tensor<1x8x32xf32>, tensor<4x32x16xf32>) -> tensor<1x8x64xf32>
    %q = tensor.extract_slice %0[0, 0, 0] [1, 8, 32] [1, 1, 1] : tensor<1x8x64xf32> to tensor<1x8x32xf32>
    %k = tensor.extract_slice %0[0, 0, 32] [1, 8, 32] [1, 1, 1] : tensor<1x8x64xf32> to tensor<1x8x32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AbsorbScales : Pass<"ogc-absorb-scales", "::mlir::func::FuncOp"> {
  let summary = "let convolutions multiply their input by a factor a channel";
  let description = [{
    Where the input of a 1x1 convolution is an image times one value for each image and channel (squeeze and excitation), and nothing else reads
    the product, the convolution takes the factors as `scale` and multiplies what it loads: the scaled image is never stored.

    ```mlir
    %0 = linalg.generic {mulf; maps (d0, d3, 0, 0) and identity} ins(%s, %x : tensor<1x72x1x1xf16>, tensor<1x28x28x72xf16>) …
    %1 = kern.conv %0, %w {…}
    // becomes
    %s4 = tensor reshape of %s to tensor<1x1x1x72xf16>
    %1 = kern.conv %x, %w, scale %s4 {…}
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def AbsorbNorms : Pass<"ogc-absorb-norms", "::mlir::ModuleOp"> {
  let summary = "let products normalize the rows that they read";
  let description = [{
    Where all rows of a packed product with a constant weight are normalized (RMS or layer normalization over k) and nothing else reads the normalized rows, the
    product reads the rows themselves and divides its result, row by row, by their spread. What is constant goes into the weight and a row of sums:
    `norm(x) W = (x W') / spread(x) + beta W`, where W' is the weight times gamma, less the mean of each column for a layer normalization: the
    columns of W' sum to zero, so that the mean of a row adds nothing.

    `kern::canNormalizeRows` says which products of one or two rows can, and sum the rows as they read them. `kern::canScaleRows`: of more than 16 rows, in 16 bits, where the product that computes the
    rows takes statistics of them (`kern.row_statistics`), from which the factor of a row is merged (`kern.merge_statistics`); residuals of other products may read the normalized rows, too, and
    normalize them by themselves (`kern.merge_means`). A layer normalization must be of a 16-bit type, whose elements are known no better than the variance is
    when it is computed as E[x^2] - E[x]^2 in f32. A weight that another product (of any graph ID) reads without the same norm stays as it is, since it is stored once.

    ```mlir
    %squares = linalg.generic {sum of squares over d2} ins(%x : tensor<1x1x64xf16>) …
    %n = linalg.generic {x * (1 / sqrt(squares / 64 + 1e-5)) * gamma} ins(%x, %squares, %gamma : …) …
    %y = kern.matmul %n, %w {packed} : (tensor<1x1x64xf16>, tensor<2x64x16xf16>) -> tensor<1x1x32xf32>
    // becomes
    %v = linalg.generic {w * gamma} ins(%w, %gamma : …) …
    %y = kern.matmul %x, %v {packed, ogc.row_norm = "root_mean_square", ogc.epsilon = 1.0e-5 : f32} : …
    // or, of many rows,
    %means, %sums = kern.row_statistics %x : tensor<1x128x768xf16> -> tensor<1x128x12xf32>
    %factor = kern.merge_statistics %means, %sums {epsilon = 1.0e-5 : f32, around_zero} : tensor<1x128x12xf32> -> tensor<1x128xf32>
    %acc = kern.matmul %x, %v {packed} : …
    %y = linalg.generic {acc * factor} ins(%acc, %factor : …) …
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def FuseRegions : Pass<"ogc-fuse-regions", "::mlir::func::FuncOp"> {
  let summary = "group tensor operations into kernel regions";
  let description = [{
    Groups by iteration space, in four steps; `docs/fusion.md` states the rules:

    0. products of one row an image, and sums over its pixels, become one group where one needs all of what the other computes;
    1. anchors take in strided views that they read and the element-wise operations that follow them;
    2. reductions of inner dimensions take in the element-wise operations and reductions over the same rows, before and behind;
    3. what is left is pulled into its readers where that repeats little work.

    Afterwards the function holds constants, regions, reshapes and the return. Operations on constants form regions of their own, which
    constant evaluation replaces; splat constants are cloned into the regions. A region's location is the fused location of its operations.

    ```mlir
    %0 = kern.matmul %x, %w {packed} : (…) -> tensor<1x8x32xf32>
    %1 = linalg.generic {add} ins(%0, %bias : …) …
    // becomes
    %1 = kern.region(%x, %w, %bias) : (…) -> tensor<1x8x32xf32> {
    ^bb0(%arg0: …, %arg1: …, %arg2: …):
      %2 = kern.matmul %arg0, %arg1 {packed} : (…) -> tensor<1x8x32xf32>
      %3 = linalg.generic {add} ins(%2, %arg2 : …) …
      kern.yield %3 : tensor<1x8x32xf32>
    }
    ```
  }];
  let options = [Option<"remarks", "remarks", "bool", "false", "emit a remark for each operation that was not fused, with the reason">,
                 Option<"epilogues", "epilogues", "bool", "true", "let anchors take the operations that follow them">,
                 Option<"vectorChains", "vector-chains", "bool", "true", "form vector chains">];
  let dependentDialects = ["::ogc::kern::KernDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def SelectSchedule : Pass<"ogc-select-schedule", "::mlir::func::FuncOp"> {
  let summary = "choose how each region becomes code";
  let description = [{
    A region of several stages of vectors is a `vector_chain`. A region with an anchor gets the anchor's schedule, and is checked: the anchor reads arguments or strided views of them, and what follows
    is element-wise over its result. A region whose reductions, with all that is computed from them, lie on one row domain of long rows is
    `row`; any other `pointwise`.

    ```mlir
    kern.region(%x) : (tensor<8x64xf32>) -> tensor<8xf32> { … linalg.generic {iterator_types = ["parallel", "reduction"]} … }
    // becomes
    kern.region(%x) {schedule = #kern.schedule<row>} : …
    ```
  }];
  let dependentDialects = ["::ogc::kern::KernDialect"];
}

def OutlineKernels : Pass<"ogc-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "make one kernel of equal regions and launch it";
  let description = [{
    Regions of the same operations, types and attributes (locations do not count) share one `kern.kernel @k<number>_<schedule>`, numbered in
    the order of first use. Every region becomes a `kern.launch` with the region's location.

    ```mlir
    %1 = kern.region(%x) {schedule = #kern.schedule<row>} : (tensor<8x64xf32>) -> tensor<8xf32> {…}
    // becomes
    %1 = kern.launch @k0_row(%x) : (tensor<8x64xf32>) -> tensor<8xf32>
    kern.kernel @k0_row {schedule = #kern.schedule<row>} {…}
    ```
  }];
  let dependentDialects = ["::ogc::kern::KernDialect"];
}

#endif
