//===- EmitCpuKernels.cpp - show the functions of kernels -----------------===//
#include "compiler/codegen/cpu/KernelFunction.h"
#include "compiler/codegen/cpu/Passes.h"

using namespace mlir;

namespace ogc {

#define GEN_PASS_DEF_EMITCPUKERNELSPASS
#include "compiler/codegen/cpu/Passes.h.inc"

namespace {

struct EmitCpuKernels : impl::EmitCpuKernelsPassBase<EmitCpuKernels> {
  using EmitCpuKernelsPassBase::EmitCpuKernelsPassBase;

  void runOnOperation() override {
    FailureOr<codegen::CpuTarget> target = codegen::CpuTarget::named(cpu);
    if (failed(target)) {
      getOperation().emitError() << "unknown processor '" << cpu.getValue() << "' for the cpu target";
      return signalPassFailure();
    }
    OpBuilder builder(&getContext());
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<kern::KernelOp>())) {
      OwningOpRef<ModuleOp> staging(ModuleOp::create(kernel.getLoc()));
      FailureOr<codegen::EmittedKernel> emitted = codegen::emitCpuKernel(kernel, *target, *staging);
      if (failed(emitted)) {
        signalPassFailure();
        continue;
      }
      emitted->function->setAttr("ogc.units", builder.getI64IntegerAttr(emitted->units));
      emitted->function->moveBefore(kernel);
      kernel.erase();
    }
  }
};

} // namespace
} // namespace ogc
