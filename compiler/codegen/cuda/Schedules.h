//===- Schedules.h - the ways a kernel body becomes CUDA C++ --------------===//
//
// Each schedule prints one kern.kernel. The numbers that decide its speed are chosen in one function `chooseX`, from shapes and
// the architecture alone, and a tuning table may replace them (Tuning.h).
//
#ifndef OGC_CODEGEN_CUDA_SCHEDULES_H
#define OGC_CODEGEN_CUDA_SCHEDULES_H

#include "compiler/codegen/cuda/CudaPrinter.h"
#include "compiler/codegen/cuda/KernelText.h"
#include "compiler/codegen/cuda/Tuning.h"
#include "compiler/codegen/scalar/ElementEmitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ogc::codegen {

/// A function over the buffers of a kernel, in a module of its own: schedules build its body, then print it.
class KernelBody {
public:
  /// Arguments: the buffers of the kernel's inputs, of its results, then values of the types `extra`.
  KernelBody(kern::KernelOp kernel, mlir::TypeRange extra = {});

  mlir::OpBuilder &getBuilder() { return builder; }
  ElementEmitter &getEmitter() { return emitter; }
  mlir::func::FuncOp getFunction() { return function; }
  mlir::Block &getBlock() { return function.getBody().front(); }
  mlir::Value output(unsigned number) { return getBlock().getArgument(inputs + number); }
  mlir::Value extra(unsigned number) { return getBlock().getArgument(inputs + outputs + number); }
  mlir::ValueRange extras(unsigned first, unsigned count) {
    return getBlock().getArguments().slice(inputs + outputs + first, count);
  }
  mlir::ValueRange buffers() { return getBlock().getArguments().take_front(inputs + outputs); }
  unsigned numInputs() const { return inputs; }

  /// Merges equal operations, the first one stays. Nothing may be emitted afterwards.
  void removeCommonCode();

  /// Adds the terminator, removes common and dead code; call once, when the body is complete.
  void finish();

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  ElementEmitter emitter;
  unsigned inputs, outputs;
};

/// The buffer of a tensor value: a row-major memref of the same shape.
mlir::MemRefType bufferType(mlir::Value tensor);

/// True if an offset of the kernel may pass 31 bits, so that `index` is printed as `long long`.
bool needsWideIndex(kern::KernelOp kernel);

/// Positions of the arguments whose contents do not change while the graph runs, from the attribute `ogc.constant_args`.
llvm::SmallVector<bool> constantArguments(kern::KernelOp kernel);

/// The parameter list of the entry point: `const T *__restrict__ p0, …, T *__restrict__ pN`. Empty, with an error, for a type
/// without CUDA form.
mlir::FailureOr<std::string> parameterList(kern::KernelOp kernel, const CudaTypes &types);

/// Prints the entry point of a kernel without a template: signature, wait and trigger, then the body.
mlir::FailureOr<KernelText> printEntry(kern::KernelOp kernel, KernelBody &body, LaunchShape launch, Trigger trigger);

/// The fields of a text that do not depend on the schedule.
KernelText startText(kern::KernelOp kernel);

mlir::FailureOr<KernelText> printPointwise(kern::KernelOp kernel, CudaArch arch, Tuning &tuning);
/// Failure without a message (`fits` is false) when the body has no rows.
mlir::FailureOr<KernelText> printRow(kern::KernelOp kernel, CudaArch arch, Tuning &tuning, bool &fits);
/// A product with packed weights of few bits; failure without a message (`fits` is false) when the body is none.
mlir::FailureOr<KernelText> printBlockProduct(kern::KernelOp kernel, CudaArch arch, bool &fits);
/// matmul, conv, depthwise_conv, attention. Failure without a message (`fits` is false) when the template does not take the
/// operands.
mlir::FailureOr<KernelText> printAnchor(kern::KernelOp kernel, CudaArch arch, Tuning &tuning, bool &fits);

/// vector_chain: one cluster (below sm_90 one block) an image.
mlir::FailureOr<KernelText> printVectorChain(kern::KernelOp kernel, CudaArch arch, Tuning &tuning);

/// program: a thread a group, or a block (a cluster for wide ones) where the group has parallel loops.
mlir::FailureOr<KernelText> printProgram(kern::KernelOp kernel, CudaArch arch);

} // namespace ogc::codegen

#endif
