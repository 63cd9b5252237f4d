//===- Kern.h - the kern dialect ------------------------------------------===//
#ifndef OGC_DIALECT_KERN_KERN_H
#define OGC_DIALECT_KERN_KERN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/dialect/kern/KernEnums.h.inc"

#include "compiler/dialect/kern/KernDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/kern/KernAttrs.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/kern/KernOps.h.inc"

namespace ogc::kern {

/// True for the operations with hand-written schedules (matmul, conv, depthwise_conv, attention), and for programs.
bool isAnchor(mlir::Operation *op);

/// True where generated code computes each element of the results once, on every target: what it then reads at that element alone
/// may lie at the same place. Other schedules compute elements again (the tiles of the cpu target overlap at the end of a
/// dimension that is no multiple of them; rows are read in several passes), so that a result over one of their inputs would be
/// read as that input.
bool computesElementsOnce(Schedule schedule);

/// True for operations that make one number a row of the statistics of its parts.
bool isMergeOfStatistics(mlir::Operation *op);

/// The only anchor of a kernel body, or null when it has none.
mlir::Operation *findAnchor(mlir::Block &body);

/// Rows of attention (queries of a key head) up to which the CUDA target has a form that computes with single elements.
constexpr int64_t fewAttentionRows = 8;

/// True where attention reads query, keys and values by element: for few `rows` (queries of a key head), or an `element` of more
/// than 16 bits. Else it copies boxes of them as they lie in memory, which gains more than a kernel that computes them costs.
bool readsElements(int64_t rows, mlir::Type element);

/// Operands of which an anchor's schedules ask for single elements, a few times each: values computed for it in its region may
/// stand there. The new rows of attention's caches, and its query where it reads elements.
bool isPulledOperand(mlir::OpOperand &operand);

/// Operands that may be converted from the element type that they are stored in while they are read: keys and values of
/// attention that reads elements.
bool isStoredOperand(mlir::OpOperand &operand);

/// True when `value` is computed from a result of `op` in the same block.
bool dependsOn(mlir::Value value, mlir::Operation *op);

} // namespace ogc::kern

#endif
