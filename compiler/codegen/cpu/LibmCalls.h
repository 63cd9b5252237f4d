//===- LibmCalls.h - f64 functions from the C library ---------------------===//
#ifndef OGC_CODEGEN_CPU_LIBMCALLS_H
#define OGC_CODEGEN_CPU_LIBMCALLS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ogc::codegen {

/// Replaces the f64 operations of `math` that have no instruction, and arith.remf, by calls of the C library's functions, one
/// for each lane of a vector. f32 never gets here: it has expansions of its own, which vectorize.
void callLibmForDoubles(mlir::ModuleOp module);

/// The functions that callLibmForDoubles may call, sorted.
llvm::ArrayRef<llvm::StringRef> libmFunctions();

} // namespace ogc::codegen

#endif
