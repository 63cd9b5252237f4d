//===- Passes.h - passes of the lower phase -------------------------------===//
#ifndef OGC_PASSES_LOWER_PASSES_H
#define OGC_PASSES_LOWER_PASSES_H

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>

namespace ogc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/lower/Passes.h.inc"
} // namespace ogc

#endif
