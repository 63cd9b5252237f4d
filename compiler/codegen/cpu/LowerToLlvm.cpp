//===- LowerToLlvm.cpp - kernel functions to LLVM IR ----------------------===//
#include "compiler/codegen/cpu/LowerToLlvm.h"

#include "compiler/codegen/cpu/MathLowering.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"

using namespace mlir;

namespace ogc::codegen {

static LogicalResult runConversions(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass(functions));
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

/// Names the operations that no conversion knew, instead of leaving it to the translation.
static LogicalResult checkConverted(ModuleOp module) {
  bool allConverted = true;
  module.walk([&](Operation *op) {
    if (isa<LLVM::LLVMDialect>(op->getDialect()) || isa<ModuleOp>(op))
      return;
    allConverted = false;
    InFlightDiagnostic diag = op->emitError() << "has no code on the cpu target";
    if (op->getNumResults() != 0)
      diag << " for type " << op->getResult(0).getType();
  });
  return success(allConverted);
}

/// Renames the function with its bare pointers to `NAME.body` and calls it from an entry `NAME(void *const *buffers, i64 begin,
/// i64 end)`. The body stays a function of its own because `noalias` on its arguments is what lets the vectorizer work.
static void addEntry(llvm::Function &body) {
  llvm::LLVMContext &context = body.getContext();
  std::string name = body.getName().str();
  body.setName(name + ".body");
  body.setLinkage(llvm::GlobalValue::InternalLinkage);
  body.addFnAttr(llvm::Attribute::NoInline);
  for (llvm::Argument &argument : body.args())
    if (argument.getType()->isPointerTy())
      argument.addAttr(llvm::Attribute::NoAlias);

  llvm::Type *pointer = llvm::PointerType::getUnqual(context), *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, i64, i64}, false);
  auto *entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, body.getParent());
  entry->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", entry));
  llvm::SmallVector<llvm::Value *> arguments;
  for (unsigned i = 0; i + 2 < body.arg_size(); ++i)
    arguments.push_back(builder.CreateLoad(pointer, builder.CreateConstInBoundsGEP1_64(pointer, entry->getArg(0), i)));
  arguments.push_back(entry->getArg(1));
  arguments.push_back(entry->getArg(2));
  builder.CreateCall(&body, arguments);
  builder.CreateRetVoid();
}

FailureOr<LlvmModule> lowerToLlvm(ModuleOp module, const CpuTarget &target) {
  if (failed(lowerMath(module, target)) || failed(runConversions(module)) || failed(checkConverted(module)))
    return failure();
  LlvmModule result;
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = translateModuleToLLVMIR(module, *result.context, "kernels");
  if (!result.module)
    return failure();
  llvm::SmallVector<llvm::Function *> bodies;
  for (llvm::Function &function : *result.module)
    if (!function.isDeclaration())
      bodies.push_back(&function);
  for (llvm::Function *body : bodies)
    addEntry(*body);
  for (llvm::Function &function : *result.module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("no-builtins"); // no loop becomes a call of memcpy or memset: the object links nothing
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    if (target.lanes == 16)
      function.addFnAttr("prefer-vector-width", "512");
  }
  return result;
}

} // namespace ogc::codegen
