//===- KernDialect.td - kernel regions and whole tensor operators ---------===//
#ifndef OGC_DIALECT_KERN_DIALECT_TD
#define OGC_DIALECT_KERN_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Kern_Dialect : Dialect {
  let name = "kern";
  let cppNamespace = "::ogc::kern";
  let summary = "kernel regions and the tensor operators that stay whole until code generation";
  let description = [{
    The level between structured tensor code (`linalg`, `tensor`, `arith`, `math`) and a graph of launches (`cg`).

    Two things live here:
    - *anchors* (`kern.matmul`, `kern.conv`, `kern.depthwise_conv`, `kern.attention`): operators with hand-written schedules. They take
      activations in one canonical layout, accumulate in f32 and return the f32 accumulator, so whatever follows (bias, activation,
      residual, cast) is an ordinary `linalg.generic` that the fuse phase puts into the same region as an epilogue.
    - `kern.region`: an isolated group of tensor operations that becomes one kernel; `kern.kernel` is the same body outlined under a symbol.
  }];
  let useDefaultAttributePrinterParser = 1;
}

def Kern_Schedule : I32EnumAttr<"Schedule", "how a kernel region is turned into code", [
    I32EnumAttrCase<"Pointwise", 0, "pointwise">,
    I32EnumAttrCase<"Row", 1, "row">,
    I32EnumAttrCase<"Matmul", 2, "matmul">,
    I32EnumAttrCase<"Conv", 3, "conv">,
    I32EnumAttrCase<"DepthwiseConv", 4, "depthwise_conv">,
    I32EnumAttrCase<"Attention", 5, "attention">,
    I32EnumAttrCase<"Program", 6, "program">,
    I32EnumAttrCase<"VectorChain", 7, "vector_chain">]> {
  let cppNamespace = "::ogc::kern";
  let genSpecializedAttr = 0;
}
def Kern_ScheduleAttr : EnumAttr<Kern_Dialect, Kern_Schedule, "schedule"> { let assemblyFormat = "`<` $value `>`"; }

def Kern_MathMode : I32EnumAttr<"MathMode", "precision of the products of an f32 contraction", [
    I32EnumAttrCase<"IEEE", 0, "ieee">,
    I32EnumAttrCase<"TF32", 1, "tf32">]> {
  let cppNamespace = "::ogc::kern";
  let genSpecializedAttr = 0;
}
def Kern_MathModeAttr : EnumAttr<Kern_Dialect, Kern_MathMode, "math"> { let assemblyFormat = "`<` $value `>`"; }

#endif
