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

/// The only anchor of a kernel body, or null when it has none.
mlir::Operation *findAnchor(mlir::Block &body);

} // namespace ogc::kern

#endif
