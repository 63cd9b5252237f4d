//===- EmitCuda.cpp - print the CUDA C++ text of all kernels --------------===//
#include "compiler/codegen/cuda/CompileKernels.h"
#include "compiler/codegen/cuda/Passes.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ogc::codegen {

#define GEN_PASS_DEF_EMITCUDA
#include "compiler/codegen/cuda/Passes.h.inc"

namespace {

struct EmitCuda : impl::EmitCudaBase<EmitCuda> {
  using EmitCudaBase::EmitCudaBase;

  void runOnOperation() override {
    SmallVector<kern::KernelOp> kernels(getOperation().getOps<kern::KernelOp>());
    if (failed(print(kernels)) || (compile && failed(compileAll(kernels))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult print(ArrayRef<kern::KernelOp> kernels) {
    FailureOr<CudaArch> parsed = CudaArch::parse(arch);
    if (failed(parsed))
      return getOperation().emitError() << "CUDA architecture '" << arch << "' is not of the form sm_90";
    std::vector<KernelText> texts;
    bool ok = true;
    for (kern::KernelOp kernel : kernels) {
      Tuning tuning; // rules alone, so that tests of the text do not change with the tables
      FailureOr<KernelText> text = printKernel(kernel, *parsed, tuning);
      ok &= succeeded(text);
      if (!ok)
        continue;
      llvm::outs() << "// kernel " << text->name << ": grid " << text->launch.grid << ", block " << text->launch.block
                   << ", cluster " << text->launch.cluster << ", shared " << text->launch.dynamicSharedBytes << "\n";
      for (const TensorMap &map : text->tensorMaps)
        llvm::outs() << "//   tensor map of argument " << map.argument << ": offset " << map.offset << ", extents "
                     << llvm::interleaved_array(map.extents) << ", strides " << llvm::interleaved_array(map.strides) << ", box "
                     << llvm::interleaved_array(map.box) << "\n";
      texts.push_back(std::move(*text));
    }
    if (ok)
      llvm::outs() << programText(texts);
    return success(ok);
  }

  LogicalResult compileAll(ArrayRef<kern::KernelOp> kernels) {
    CudaOptions options;
    options.archs = {arch};
    options.cacheDir = cacheDir;
    options.dumpDir = dumpDir;
    options.useShippedTuning = false;
    FailureOr<CudaModule> module = compileKernels(kernels, options);
    if (failed(module))
      return failure();
    size_t bytes = 0;
    for (const std::vector<char> &cubin : module->archs.front().cubins)
      bytes += cubin.size();
    llvm::outs() << "// compiled: " << module->programs << " programs, " << bytes << " bytes\n";
    return success();
  }
};

} // namespace

} // namespace ogc::codegen
