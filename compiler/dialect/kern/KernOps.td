//===- KernOps.td - operations of the kern dialect ------------------------===//
#ifndef OGC_DIALECT_KERN_OPS_TD
#define OGC_DIALECT_KERN_OPS_TD

include "compiler/dialect/kern/KernDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Kern_Op<string mnemonic, list<Trait> traits = []> : Op<Kern_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Anchors: whole operators with hand-written schedules
//===----------------------------------------------------------------------===//

def Kern_MatmulOp : Kern_Op<"matmul", [Pure]> {
  let summary = "batched matrix product with an f32 accumulator as result";
  let description = [{
    `result[b, m, n] = sum over k of lhs[b, m, k] * rhs(b, k, n)`, accumulated in f32.

    - `lhs` is `[B, M, K]`.
    - `rhs` is `[B or 1, K, N]`; with `transpose_rhs` it is `[B or 1, N, K]`; with `packed` it is a constant weight in panels
      `[ceil(N/P), K, P]` (P = panel width 16, 32 or 64, columns past N are zero, B is 1), the one layout both targets read.
    - element types of `lhs` and `rhs` are equal: f32, f16 or bf16. `math` says whether f32 products may be rounded to tf32.

    ```mlir
    %acc = kern.matmul %x, %w {packed} : (tensor<1x128x768xf16>, tensor<12x768x64xf16>) -> tensor<1x128x768xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs, UnitAttr:$transpose_rhs, UnitAttr:$packed,
                       DefaultValuedAttr<Kern_MathModeAttr, "::ogc::kern::MathMode::IEEE">:$math);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Kern_ConvOp : Kern_Op<"conv", [Pure]> {
  let summary = "2-D convolution, channels last, packed constant weights, f32 accumulator as result";
  let description = [{
    `input` is `[N, H, W, C]`, `filter` is packed as in `kern.matmul` with K = KH*KW*C in the order (kh, kw, c): `[ceil(F/P), KH*KW*C, P]`.
    The result is `[N, OH, OW, F]` in f32. `pads` is (top, left, bottom, right); padding reads as zero. Groups other than one and
    depthwise do not reach this operation.

    With `scale`, `[N, 1, 1, C]` of the input's type, each element of the input is first multiplied by its channel's factor and rounded to that type;
    kernel 1x1 and no padding only.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$filter, Optional<AnyRankedTensor>:$scale,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                       DefaultValuedAttr<Kern_MathModeAttr, "::ogc::kern::MathMode::IEEE">:$math);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $filter (`,` `scale` $scale^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Kern_DepthwiseConvOp : Kern_Op<"depthwise_conv", [Pure]> {
  let summary = "2-D depthwise convolution (one filter a channel), channels last, f32 accumulator as result";
  let description = [{
    `input` is `[N, H, W, C]`, `filter` is `[KH, KW, C]`, the result is `[N, OH, OW, C]` in f32. `pads` is (top, left, bottom, right).
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$filter,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $filter attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Kern_AttentionOp : Kern_Op<"attention", [Pure, AttrSizedOperandSegments]> {
  let summary = "scaled dot product attention, softmax in f32; a row whose keys are all masked out gives zero";
  let description = [{
    `query` is `[B, S, H, D]`, `key` is `[B, T, HK, D]`, `value` is `[B, T, HK, DV]`, H a multiple of HK (head h reads key head h / (H / HK)).
    Scores are `scale * dot(q, k) + bias`, softmax over T in f32; the result is `[B, S, H, DV]` in f32. `bias` is an additive mask
    `[B or 1, H or 1, S or 1, T]`. With `causal`, query s sees keys t <= s + T - S.

    With `rows`, key and value are caches whose rows `position[b] + r` are those of `new_key` `[B, R, HK, D]` and `new_value`
    `[B, R, HK, DV]` instead. A negative position counts from the end; rows before the first or past the last one are left out. The caches stay as they
    are.

    ```mlir
    %y = kern.attention %q, %kc, %vc rows %k, %v at %pos {scale = 0.125 : f32}
        : (tensor<1x1x8x64xf16>, tensor<1x512x2x64xf16>, tensor<1x512x2x64xf16>, tensor<1x1x2x64xf16>, tensor<1x1x2x64xf16>, tensor<1xi64>) -> tensor<1x1x8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, Optional<AnyRankedTensor>:$bias,
                       Optional<AnyRankedTensor>:$new_key, Optional<AnyRankedTensor>:$new_value, Optional<AnyRankedTensor>:$position,
                       F32Attr:$scale, UnitAttr:$causal,
                       DefaultValuedAttr<Kern_MathModeAttr, "::ogc::kern::MathMode::IEEE">:$math);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$query `,` $key `,` $value (`,` `bias` $bias^)? (`rows` $new_key^ `,` $new_value `at` $position)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    llvm::LogicalResult verifyRows();
  }];
}

//===----------------------------------------------------------------------===//
// Statistics of rows, from the product that computes the rows to those that normalize them
//===----------------------------------------------------------------------===//

def Kern_RowStatisticsOp : Kern_Op<"row_statistics", [Pure, AllTypesMatch<["means", "squares"]>]> {
  let summary = "mean and sum of squared distances of parts of rows";
  let description = [{
    `input` is `[..., K]` of a float type, K a multiple of 64. `means[..., c]` is the mean of the 64 elements of a row from 64 c on, `squares[..., c]` the sum of
    the squares of their distances from that mean; both `[..., K / 64]`, in f32. An anchor computes them with the rows that it stores.

    ```mlir
    %means, %squares = kern.row_statistics %x : tensor<1x128x768xf16> -> tensor<1x128x12xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$means, AnyRankedTensor:$squares);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($means)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements of a row that one pair of statistics is taken of.
    static constexpr int64_t width = 64;
  }];
}

def Kern_MergeStatisticsOp : Kern_Op<"merge_statistics", [Pure, AllTypesMatch<["means", "squares"]>]> {
  let summary = "one over the spread of rows";
  let description = [{
    From the two results `[..., C]` of `kern.row_statistics`, for each row: one over the root of the row's variance plus `epsilon`; with `around_zero`, of its mean square. `[...]`, in f32.

    ```mlir
    %factor = kern.merge_statistics %means, %squares {epsilon = 1.0e-5 : f32} : tensor<1x128x12xf32> -> tensor<1x128xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$means, AnyRankedTensor:$squares, F32Attr:$epsilon, UnitAttr:$around_zero);
  let results = (outs AnyRankedTensor:$factor);
  let assemblyFormat = "$means `,` $squares attr-dict `:` type($means) `->` type($factor)";
  let hasVerifier = 1;
}

def Kern_MergeMeansOp : Kern_Op<"merge_means", [Pure]> {
  let summary = "mean of rows";
  let description = [{
    From the first result `[..., C]` of `kern.row_statistics` the mean of each row. `[...]`, in f32.

    ```mlir
    %mean = kern.merge_means %means : tensor<1x128x12xf32> -> tensor<1x128xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$means);
  let results = (outs AnyRankedTensor:$mean);
  let assemblyFormat = "$means attr-dict `:` type($means) `->` type($mean)";
  let hasVerifier = 1;
}

def Kern_StoreStatisticsOp : Kern_Op<"store_statistics", [AttrSizedOperandSegments, AllTypesMatch<["means", "squares"]>]> {
  let summary = "neighbouring elements of a row on their way into its statistics";
  let description = [{
    Exists in generated code alone: the threads that hold the 64 elements of a part of a row, `elements` each, store its mean and sum of squared distances at `position`.
  }];
  let arguments = (ins Variadic<F32>:$elements, AnyMemRef:$means, AnyMemRef:$squares, Variadic<Index>:$position);
  let assemblyFormat = "$elements `,` $means `,` $squares `[` $position `]` attr-dict `:` type($means)";
}

//===----------------------------------------------------------------------===//
// Regions and kernels
//===----------------------------------------------------------------------===//

def Kern_ProgramOp : Kern_Op<"program", [Pure, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "loops over buffers, for operators whose elements do not follow from the inputs one by one";
  let description = [{
    Scans, sorts, scatters, recurrences, selections. `groups` copies of the body run independently of each other, in any order. Block arguments: the
    number of the group (`index`), then a flat row-major memref for each input, then for each result. The body consists of `arith`, `math`, `scf`,
    `memref.load`, `memref.store` and `kern.parallel`; all groups together write every element of every result. Results that nothing reads are
    scratch memory of the program.

    Code outside of `kern.parallel` runs in step in all threads of a group and stores nothing, unless the program has no `kern.parallel` at all: then one
    thread runs a whole group.

    ```mlir
    %sums = kern.program(%x) groups = 4 : (tensor<4x100xf32>) -> tensor<4x100xf32> {
    ^bb0(%group: index, %in: memref<400xf32>, %out: memref<400xf32>):
      ...
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$groups);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` `groups` `=` $groups attr-dict-with-keyword `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
}

def Kern_ParallelOp : Kern_Op<"parallel", [RecursiveMemoryEffects, SingleBlock, NoTerminator]> {
  let summary = "independent iterations, split among the threads of a group of a program";
  let description = [{
    The block argument counts from 0 to `extent`. All iterations are done, and what they stored can be read by the whole group, when the operation ends. It
    does not stand inside another one, nor under a condition that differs between threads. `width` is the largest extent that is to be expected: what
    the number of threads is chosen by.
  }];
  let arguments = (ins Index:$extent, I64Attr:$width);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$extent `width` `=` $width attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Kern_YieldOp : Kern_Op<"yield", [Pure, Terminator, ParentOneOf<["RegionOp", "KernelOp"]>]> {
  let summary = "results of a kernel region";
  let arguments = (ins Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$results attr-dict `:` type($results)";
}

def Kern_RegionOp : Kern_Op<"region", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "a group of tensor operations that becomes one kernel";
  let description = [{
    The block arguments are the inputs, the yielded tensors the results; every result is one destination buffer, which the kernel
    writes fully. The body holds at most one anchor (several with schedule `vector_chain`), `linalg.generic`, `linalg.fill`, statistics of rows, view-like `tensor` operations and scalar
    constants.
    Its location carries the names of all ONNX nodes it computes (a fused location).
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, OptionalAttr<Kern_ScheduleAttr>:$schedule);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict-with-keyword `:` functional-type($inputs, $outputs) $body";
  let hasVerifier = 1;
}

def Kern_KernelOp : Kern_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "the body of equal kernel regions, outlined under a symbol";
  let description = [{
    Arguments of the compiled kernel are the buffers of the block arguments, then those of the yielded results, in order. With
    `ogc.in_place = N` the only result lies where argument N does; schedules that compute an element more than once cannot have it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Kern_ScheduleAttr:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Kern_LaunchOp : Kern_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one run of an outlined kernel";
  let description = [{
    Operands are the kernel's inputs, results the tensors that it yields; their types are those of the kernel's block arguments and
    yielded values. Its location carries the names of all ONNX nodes it computes, as that of the region it comes from.

    ```mlir
    %y = kern.launch @k0_matmul(%x, %w) : (tensor<1x8x16xf32>, tensor<1x16x16xf32>) -> tensor<1x8x16xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

#endif
