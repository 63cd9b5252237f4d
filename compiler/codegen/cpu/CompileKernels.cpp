//===- CompileKernels.cpp - kernels to one shared object ------------------===//
#include "compiler/codegen/cpu/CompileKernels.h"

#include "compiler/codegen/cpu/KernelFunction.h"
#include "compiler/codegen/cpu/LowerToLlvm.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include <atomic>
#include <thread>

using namespace mlir;

namespace ogc::codegen {

/// Kernels of one LLVM module: enough to share its fixed cost, few enough to spread over the threads.
static constexpr size_t kernelsPerModule = 8;

void registerCpuCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, kern::KernDialect, linalg::LinalgDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

namespace {

/// One LLVM module under way.
struct Job {
  OwningOpRef<ModuleOp> module;
  size_t kernels = 0;
  Effort effort = Effort::Thorough;
  LlvmModule llvm;
  llvm::SmallVector<char, 0> object;
  std::string error;
};

} // namespace

static void runJobs(std::vector<Job> &jobs, const CpuOptions &options) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++)
      if (auto object = compileObject(jobs[i].llvm, options.target, jobs[i].effort, jobs[i].error); succeeded(object))
        jobs[i].object = std::move(*object);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min<size_t>(options.threads, jobs.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
}

FailureOr<CpuObject> compileKernels(ArrayRef<kern::KernelOp> kernels, const CpuOptions &options) {
  CpuObject result;
  result.cpu = options.target.cpu;
  result.features = options.target.features;
  if (kernels.empty())
    return result;
  MLIRContext *context = kern::KernelOp(kernels.front()).getContext();
  DialectRegistry registry;
  registerCpuCodegenDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                       memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();

  // Kernels that want different efforts go into different modules.
  std::vector<Job> jobs;
  int open[] = {-1, -1, -1};
  bool allEmitted = true;
  kern::KernelOp firstKernel = kernels.front();
  Location loc = firstKernel.getLoc();
  for (kern::KernelOp kernel : kernels) {
    OwningOpRef<ModuleOp> staging(ModuleOp::create(loc));
    FailureOr<EmittedKernel> emitted = emitCpuKernel(kernel, options.target, *staging);
    if (failed(emitted)) {
      allEmitted = false;
      continue;
    }
    int &current = open[static_cast<int>(emitted->effort)];
    if (current < 0 || jobs[current].kernels >= kernelsPerModule) {
      current = jobs.size();
      jobs.push_back({});
      jobs.back().module = ModuleOp::create(loc);
      jobs.back().effort = emitted->effort;
    }
    ++jobs[current].kernels;
    emitted->function->moveBefore(jobs[current].module->getBody(), jobs[current].module->getBody()->end());
    result.kernels.push_back({kernel.getSymName().str(), emitted->units});
  }
  if (!allEmitted)
    return failure();

  for (Job &job : jobs) {
    FailureOr<LlvmModule> lowered = lowerToLlvm(*job.module, options.target);
    if (failed(lowered))
      return failure();
    job.llvm = std::move(*lowered);
    job.module = {};
  }
  runJobs(jobs, options);
  std::string error;
  std::vector<llvm::SmallVector<char, 0>> objects;
  for (Job &job : jobs) {
    if (error.empty())
      error = job.error;
    objects.push_back(std::move(job.object));
  }
  if (error.empty())
    if (FailureOr<std::vector<char>> image = linkShared(objects, error); succeeded(image)) {
      result.image = std::move(*image);
      return result;
    }
  return emitError(loc) << error;
}

FailureOr<CpuObject> compileKernels(ModuleOp module, const CpuOptions &options) {
  SmallVector<kern::KernelOp> kernels(module.getOps<kern::KernelOp>());
  return compileKernels(kernels, options);
}

} // namespace ogc::codegen
