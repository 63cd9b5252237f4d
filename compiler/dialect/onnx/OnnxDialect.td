//===- OnnxDialect.td - the onnx dialect: its written-out operations ------===//
#ifndef OGC_DIALECT_ONNX_DIALECT_TD
#define OGC_DIALECT_ONNX_DIALECT_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::ogc::onnx";
  let summary = "an ONNX model with opset differences removed";
  let description = [{
    Every operator of the ai.onnx domain is an operation `onnx.OpType` in the newest form that the onnx package knows. These are not
    written out here: they are registered from the package's schemas (OnnxDialect.cpp). Only what a schema cannot say is defined here.

    Attributes: INT is `i64`, INTS `array<i64>`, FLOAT `f32`, FLOATS `array<f32>`, STRING a string, STRINGS an array of strings, TENSOR an
    `ElementsAttr`, GRAPH a region that ends in `onnx.yield`. Node names are locations.
  }];
  let isExtensible = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// Registers one operation for each schema.
    void registerSchemas();
  }];
}

class Onnx_Op<string mnemonic, list<Trait> traits = []> : Op<Onnx_Dialect, mnemonic, traits>;

def Onnx_AbsentOp : Onnx_Op<"absent", [Pure]> {
  let summary = "the value of an optional operand that is left out";
  let description = [{
    ```mlir
    %no = onnx.absent
    %0 = "onnx.Conv"(%x, %w, %no) : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, none) -> tensor<1x4x6x6xf32>
    ```
  }];
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
}

def Onnx_ConstantOp : Onnx_Op<"constant", [Pure, ConstantLike]> {
  let summary = "an initializer or a constant node";
  let description = [{
    `name` is the initializer's name. Large tensors are `dense_resource` over the mapped model file.

    ```mlir
    %axes = onnx.constant {value = dense<[0, 1]> : tensor<2xi64>, name = "axes"} : tensor<2xi64>
    ```
  }];
  let arguments = (ins ElementsAttr:$value, OptionalAttr<StrAttr>:$name);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Onnx_YieldOp : Onnx_Op<"yield", [Pure, Terminator]> {
  let summary = "ends the body of an If, a Loop or a Scan";
  let description = [{
    ```mlir
    onnx.yield %0, %1 : tensor<i1>, tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif
