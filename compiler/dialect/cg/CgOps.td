//===- CgOps.td - operations of the cg dialect ----------------------------===//
#ifndef OGC_DIALECT_CG_OPS_TD
#define OGC_DIALECT_CG_OPS_TD

include "compiler/dialect/cg/CgDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"

class Cg_Op<string mnemonic, list<Trait> traits = []> : Op<Cg_Dialect, mnemonic, traits>;

def Cg_GraphOp : Cg_Op<"graph", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one executable graph, of one graph ID";
  let description = [{
    `scratch_bytes` is what this graph needs of the scratch section, `scratch_bound_bytes` the largest sum of bytes that must lie apart:
    no plan of the same edges can need less. `peak_buffers` are the buffers that make the bound, places of which each must lie apart from
    each; from node `peak_node` on all of them exist. Nodes stand in schedule order. Graphs of equal `topology` have nodes of the same kinds and the
    same edges: one executable graph can be updated from one to the other.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$inputs, ArrayAttr:$outputs,
                       I64Attr:$scratch_bytes, I64Attr:$scratch_bound_bytes, OptionalAttr<I64Attr>:$topology,
                       OptionalAttr<I64Attr>:$peak_node, OptionalAttr<ArrayAttr>:$peak_buffers);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::ArrayAttr":$inputs, "::mlir::ArrayAttr":$outputs, "int64_t":$scratchBytes,
                                 "int64_t":$scratchBoundBytes, "::mlir::IntegerAttr":$topology), [{
    build($_builder, $_state, name, inputs, outputs, scratchBytes, scratchBoundBytes, topology, ::mlir::IntegerAttr(), ::mlir::ArrayAttr());
  }]>];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `inputs` $inputs `outputs` $outputs attr-dict-with-keyword $body";
}

def Cg_WeightOp : Cg_Op<"weight", []> {
  let summary = "a constant placed in the weights section, shared by all graphs";
  let description = [{ Stands at the top of the module. `name` is the ONNX initializer or node it comes from, for people to read. }];
  let arguments = (ins StrAttr:$name, ElementsAttr:$value, I64Attr:$offset_bytes);
  let assemblyFormat = "$name `at` $offset_bytes `=` $value attr-dict";
}

class Cg_NodeOp<string mnemonic> : Cg_Op<mnemonic, [ParentOneOf<["GraphOp"]>]> {
  dag common = (ins Variadic<Cg_NodeType>:$dependencies, OptionalAttr<DenseI32ArrayAttr>:$edge_kinds);
  let results = (outs Cg_NodeType:$node);
}

def Cg_KernelOp : Cg_NodeOp<"kernel"> {
  let summary = "a kernel launch";
  let description = [{
    `args` are the slices of the kernel's buffers in the order of its parameters. `edge_kinds` has one `EdgeKind` a dependency; absent
    means all full. The location carries the ONNX node names.
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$kernel, ArrayAttr:$args), common);
  let assemblyFormat = "$kernel $args (`after` $dependencies^)? attr-dict";
  let hasVerifier = 1;
}

def Cg_GemmOp : Cg_NodeOp<"gemm"> {
  let summary = "a matrix product done by a library, recorded into the graph when it is loaded";
  let description = [{
    Row-major `D[b] = activation(A[b] B[b] + bias)`, or `D[b] = A[b] B[b] + bias + residual[b]`: an activation and a residual together have no
    library form, and the fallback runs. Everything is accumulated in f32 and rounded to `result_type` once, also where the fallback
    rounds in between; bias and residual have elements of `result_type`. `args` are A `[batch, m, k]`, B `[batch or 1, k, n]` (with `transpose_b`
    `[.., n, k]`), bias `[n]` when `has_bias`, residual `[batch, m, n]` when `has_residual`, then D `[batch, m, n]`, then with
    `has_workspace` bytes of scratch that the library may use while the node runs. `activation` is "", "relu" or "gelu_tanh".
    `fallback` is the kernel of the same arguments, but for the workspace, that runs where the library is missing (the cpu target).
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$fallback, ArrayAttr:$args, TypeAttr:$element_type, TypeAttr:$result_type, I64Attr:$batch, I64Attr:$m,
                            I64Attr:$n, I64Attr:$k, UnitAttr:$broadcast_b, UnitAttr:$transpose_b, UnitAttr:$has_bias,
                            UnitAttr:$has_residual, StrAttr:$activation, UnitAttr:$tf32, UnitAttr:$has_workspace), common);
  let assemblyFormat = "$fallback $args (`after` $dependencies^)? attr-dict";
  let hasVerifier = 1;
}

def Cg_MemcpyOp : Cg_NodeOp<"memcpy"> {
  let summary = "a copy between two slices of equal size";
  let arguments = !con((ins Cg_SliceAttr:$source, Cg_SliceAttr:$target), common);
  let assemblyFormat = "$source `to` $target (`after` $dependencies^)? attr-dict";
  let hasVerifier = 1;
}

def Cg_MemsetOp : Cg_NodeOp<"memset"> {
  let summary = "fills a slice with one byte value";
  let arguments = !con((ins Cg_SliceAttr:$target, I32Attr:$value), common);
  let assemblyFormat = "$target `=` $value (`after` $dependencies^)? attr-dict";
}

#endif
