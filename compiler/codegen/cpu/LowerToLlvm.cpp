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
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

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

/// Functions of f64 would be calls of a library that the object is not linked to.
static LogicalResult checkFunctions(ModuleOp module) {
  bool allKnown = true;
  module.walk([&](Operation *op) {
    bool isSimple = isa<math::SqrtOp, math::FmaOp, math::AbsFOp, math::FloorOp, math::CeilOp, math::RoundEvenOp, math::TruncOp,
                        math::CopySignOp>(op);
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) || isSimple || op->getNumResults() == 0 ||
        !getElementTypeOrSelf(op->getResult(0).getType()).isF64())
      return;
    allKnown = false;
    op->emitError() << "'" << op->getName() << "' of f64 has no code on the cpu target";
  });
  return success(allKnown);
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

/// Makes bf16 in memory 16-bit integers. All arithmetic is on integers already (lowerMath); a bf16 that is left, which the
/// optimizer would move through selects, makes the code generator call a library on processors without instructions for the type.
static void storeBFloatsAsIntegers(llvm::Function &body) {
  llvm::Type *i16 = llvm::Type::getInt16Ty(body.getContext());
  auto integerOf = [&](llvm::Type *type) -> llvm::Type * {
    if (!type->getScalarType()->isBFloatTy())
      return nullptr;
    auto *vector = llvm::dyn_cast<llvm::VectorType>(type);
    return vector ? llvm::VectorType::get(i16, vector->getElementCount()) : i16;
  };
  for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(body))) {
    llvm::IRBuilder<> builder(&instruction);
    if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      if (llvm::Type *type = integerOf(load->getType())) {
        llvm::Value *bits = builder.CreateAlignedLoad(type, load->getPointerOperand(), load->getAlign());
        load->replaceAllUsesWith(builder.CreateBitCast(bits, load->getType()));
        load->eraseFromParent();
      }
    } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      if (llvm::Type *type = integerOf(store->getValueOperand()->getType())) {
        llvm::Value *bits = builder.CreateBitCast(store->getValueOperand(), type);
        builder.CreateAlignedStore(bits, store->getPointerOperand(), store->getAlign());
        store->eraseFromParent();
      }
    }
  }
}

FailureOr<LlvmModule> lowerToLlvm(ModuleOp module, const CpuTarget &target) {
  if (failed(lowerMath(module, target)) || failed(checkFunctions(module)) || failed(runConversions(module)) ||
      failed(checkConverted(module)))
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
  for (llvm::Function *body : bodies) {
    storeBFloatsAsIntegers(*body);
    addEntry(*body);
  }
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
