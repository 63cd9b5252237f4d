//===- KernelFunction.h - a CPU kernel under construction -----------------===//
#ifndef OGC_CODEGEN_CPU_KERNELFUNCTION_H
#define OGC_CODEGEN_CPU_KERNELFUNCTION_H

#include "compiler/codegen/cpu/CpuTarget.h"
#include "compiler/codegen/cpu/Effort.h"
#include "compiler/codegen/scalar/ElementEmitter.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ogc::codegen {

/// The function of one kernel: `func @NAME(flat buffers..., begin, end)`. Buffers are flat memrefs in row-major order; `i1` is a
/// byte. A schedule emits the loops over the units and sets `units`.
struct KernelFunction {
  KernelFunction(kern::KernelOp kernel, const CpuTarget &target, mlir::func::FuncOp function);

  kern::KernelOp kernel;
  const CpuTarget &target;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  ElementEmitter emitter;
  mlir::Location loc;
  mlir::Value begin, end;
  int64_t units = 0;
  /// Register tiles set Plain: they gain nothing from loop optimizations.
  Effort effort = Effort::Thorough;

  mlir::Block &body() { return kernel.getBody().front(); }
  /// The flat buffer of a block argument.
  mlir::Value input(mlir::Value argument);
  /// The flat buffer of result `number`.
  mlir::Value output(unsigned number);
  mlir::ValueRange results() { return body().getTerminator()->getOperands(); }

  mlir::Value constant(int64_t value) { return emitter.indices().constant(loc, value); }
  IndexMath &math() { return emitter.indices(); }

  /// Stores an element of result `number`.
  void store(unsigned number, mlir::Value element, llvm::ArrayRef<mlir::Value> indices);

  /// `scf.for` over [lower, upper); the insertion point is inside during `body`. Failure of the body is passed on.
  mlir::LogicalResult loop(mlir::Value lower, mlir::Value upper, int64_t step,
                           llvm::function_ref<mlir::LogicalResult(mlir::Value)> body);

  /// An uninitialised flat buffer on the stack, 64-byte aligned, allocated at the entry.
  mlir::Value scratch(mlir::Type element, int64_t size);
};

/// The buffer type of a tensor: flat, booleans as bytes.
mlir::MemRefType flatBufferType(mlir::RankedTensorType type);

enum class Emitted { Yes, NotApplicable, Failed };

// The schedules. Each decides before it emits anything whether it applies; failures have emitted a diagnostic.
Emitted emitPointwise(KernelFunction &kernel);
Emitted emitRow(KernelFunction &kernel);
Emitted emitMatmul(KernelFunction &kernel);
Emitted emitConv(KernelFunction &kernel);
Emitted emitDepthwiseConv(KernelFunction &kernel);
Emitted emitAttention(KernelFunction &kernel);
Emitted emitProgram(KernelFunction &kernel);
Emitted emitVectorChain(KernelFunction &kernel);

/// Builds the function of `kernel` in `module` by its schedule (or `pointwise` where that does not apply), under the kernel's
/// name. Returns the kernel with `units` and `effort` set.
struct EmittedKernel {
  mlir::func::FuncOp function;
  int64_t units;
  Effort effort;
};
mlir::FailureOr<EmittedKernel> emitCpuKernel(kern::KernelOp kernel, const CpuTarget &target, mlir::ModuleOp module);

} // namespace ogc::codegen

#endif
