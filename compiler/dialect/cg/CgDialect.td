//===- CgDialect.td - the CUDA graph dialect: types and attributes --------===//
#ifndef OGC_DIALECT_CG_DIALECT_TD
#define OGC_DIALECT_CG_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Cg_Dialect : Dialect {
  let name = "cg";
  let cppNamespace = "::ogc::cg";
  let summary = "an explicit CUDA graph: nodes, edges, addresses";
  let description = [{
    One to one with the bundle (`runtime_lib/format/bundle.fbs`). Every node yields a `!cg.node`; its operands of that type are its
    incoming edges, so the graph is acyclic by construction and an edge to a missing node cannot be written.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Cg_Section : I32EnumAttr<"Section", "region of memory a slice lies in", [
    I32EnumAttrCase<"Weights", 0, "weights">,
    I32EnumAttrCase<"State", 1, "state">,
    I32EnumAttrCase<"Inputs", 2, "inputs">,
    I32EnumAttrCase<"Outputs", 3, "outputs">,
    I32EnumAttrCase<"Scratch", 4, "scratch">]> {
  let cppNamespace = "::ogc::cg";
}

def Cg_Access : I32EnumAttr<"Access", "what a node does with a slice", [
    I32EnumAttrCase<"Read", 1, "read">,
    I32EnumAttrCase<"Write", 2, "write">,
    I32EnumAttrCase<"ReadWrite", 3, "readwrite">]> {
  let cppNamespace = "::ogc::cg";
}

def Cg_EdgeKind : I32EnumAttr<"EdgeKind", "when the consumer may start", [
    I32EnumAttrCase<"Full", 0, "full">,
    I32EnumAttrCase<"Programmatic", 1, "programmatic">]> {
  let cppNamespace = "::ogc::cg";
}

def Cg_SliceAttr : AttrDef<Cg_Dialect, "Slice"> {
  let mnemonic = "slice";
  let summary = "a byte range of a section and how a node uses it";
  let parameters = (ins EnumParameter<Cg_Section>:$section, "int64_t":$offsetBytes, "int64_t":$sizeBytes,
                        EnumParameter<Cg_Access>:$access);
  let assemblyFormat = "`<` $section `,` $offsetBytes `,` $sizeBytes `,` $access `>`";
  let extraClassDeclaration = [{
    /// The same slice elsewhere in its section.
    SliceAttr withOffset(int64_t offsetBytes) const;
  }];
}

def Cg_BindingAttr : AttrDef<Cg_Dialect, "Binding"> {
  let mnemonic = "binding";
  let summary = "an input or output of the model: name, type (signedness as in ONNX), dimension names, place";
  let description = [{
    `symbols` has one name a dimension, empty where the model gives none. `extent` is [dimension, offset]: the extent of that dimension is known
    after a run only and stands as an i64 at that offset of the same section; the type has the bound.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::RankedTensorType":$type, "::mlir::ArrayAttr":$symbols,
                        EnumParameter<Cg_Section>:$section, "int64_t":$offsetBytes, "int64_t":$sizeBytes,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$extent);
  let assemblyFormat = "`<` $name `,` $type `,` $symbols `,` $section `,` $offsetBytes `,` $sizeBytes (`,` `extent` `=` $extent^)? `>`";
}

def Cg_LaunchAttr : AttrDef<Cg_Dialect, "Launch"> {
  let mnemonic = "launch";
  let summary = "launch shape of a CUDA kernel on one architecture";
  let parameters = (ins ArrayRefParameter<"int64_t">:$grid, ArrayRefParameter<"int64_t">:$block,
                        ArrayRefParameter<"int64_t">:$cluster, "int64_t":$sharedBytes);
  let assemblyFormat = "`<` `grid` `=` `[` $grid `]` `,` `block` `=` `[` $block `]` `,` `cluster` `=` `[` $cluster `]` `,` `shared` `=` $sharedBytes `>`";
}

def Cg_NodeType : TypeDef<Cg_Dialect, "Node"> {
  let mnemonic = "node";
  let summary = "a node of the graph, used as the source of an edge";
}

#endif
