//===- OnnxDialect.h - the onnx dialect -----------------------------------===//
#ifndef OGC_DIALECT_ONNX_ONNXDIALECT_H
#define OGC_DIALECT_ONNX_ONNXDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ExtensibleDialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/dialect/onnx/OnnxDialect.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/onnx/OnnxOps.h.inc"

#endif
