//===- Cg.h - the CUDA graph dialect --------------------------------------===//
#ifndef OGC_DIALECT_CG_CG_H
#define OGC_DIALECT_CG_CG_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/MathExtras.h"

#include "compiler/dialect/cg/CgEnums.h.inc"

#include "compiler/dialect/cg/CgDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/cg/CgAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/cg/CgTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/cg/CgOps.h.inc"

namespace ogc::cg {

/// Every value in memory starts at a multiple of this many bytes of its section: vector loads and bulk copies need 16, sectors of
/// the L2 cache and cuBLASLt prefer more.
constexpr int64_t bufferAlignmentBytes = 256;

/// The first place at or behind `offsetBytes` where a value may start.
inline int64_t alignBuffer(int64_t offsetBytes) {
  return static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(offsetBytes), bufferAlignmentBytes));
}

/// True for the operations that are nodes of a graph.
bool isNode(mlir::Operation *op);

/// All byte ranges a node touches, in the order of its arguments.
llvm::SmallVector<SliceAttr> nodeSlices(mlir::Operation *node);

/// True when two slices have a byte in common.
bool overlap(SliceAttr a, SliceAttr b);

/// The incoming edges of a node.
mlir::OperandRange nodeDependencies(mlir::Operation *node);

} // namespace ogc::cg

#endif
