//===- LowerToLlvm.h - kernel functions to object code --------------------===//
#ifndef OGC_CODEGEN_CPU_LOWERTOLLVM_H
#define OGC_CODEGEN_CPU_LOWERTOLLVM_H

#include "compiler/codegen/cpu/CpuTarget.h"
#include "compiler/codegen/cpu/Effort.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <memory>
#include <string>

namespace ogc::codegen {

/// An LLVM module with the context that it lives in.
struct LlvmModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Lowers kernel functions (scf, vector, memref, arith, math) to LLVM IR; each gets an `extern "C"` entry under its own name that
/// unpacks the array of buffers. Consumes `module`.
mlir::FailureOr<LlvmModule> lowerToLlvm(mlir::ModuleOp module, const CpuTarget &target);

/// Optimizes and compiles to a relocatable object; thread safe. On failure `error` holds the reason.
mlir::FailureOr<llvm::SmallVector<char, 0>> compileObject(LlvmModule &module, const CpuTarget &target, Effort effort,
                                                          std::string &error);

/// Links objects to a shared object without dependencies. Undefined symbols are an error.
mlir::FailureOr<std::vector<char>> linkShared(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects, std::string &error);

} // namespace ogc::codegen

#endif
