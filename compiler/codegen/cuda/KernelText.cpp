//===- KernelText.cpp - what all schedules share --------------------------===//
#include "compiler/codegen/cuda/KernelText.h"

#include "compiler/codegen/cuda/Schedules.h"
#include "compiler/codegen/scalar/ResultBuffer.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ogc::codegen {

FailureOr<CudaArch> CudaArch::parse(StringRef name) {
  unsigned number = 0;
  if (!name.consume_front("sm_") || name.getAsInteger(10, number) || number < 50 || number > 999)
    return failure();
  return CudaArch{number / 10, number % 10};
}

MemRefType bufferType(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return MemRefType::get(type.getShape(), type.getElementType());
}

static Operation *yieldOf(kern::KernelOp kernel) { return kernel.getBody().front().getTerminator(); }

static OwningOpRef<ModuleOp> makeModule(kern::KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  context->loadDialect<arith::ArithDialect, func::FuncDialect, gpu::GPUDialect, math::MathDialect, memref::MemRefDialect,
                       scf::SCFDialect, vector::VectorDialect>();
  return ModuleOp::create(kernel.getLoc());
}

KernelBody::KernelBody(kern::KernelOp kernel, TypeRange extra)
    : module(makeModule(kernel)), builder(kernel.getContext()), emitter(builder), inputs(kernel.getBody().getNumArguments()),
      outputs(yieldOf(kernel)->getNumOperands()) {
  SmallVector<Type> types;
  for (Value input : kernel.getBody().getArguments())
    types.push_back(bufferType(input));
  for (unsigned number = 0; number < outputs; ++number) {
    RankedTensorType type = resultBuffer(kernel, number);
    types.push_back(MemRefType::get(type.getShape(), type.getElementType()));
  }
  llvm::append_range(types, extra);
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, kernel.getLoc(), kernel.getSymName(), builder.getFunctionType(types, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  // What is overwritten is read through the result's pointer, not through one that promises that nothing changes.
  std::optional<unsigned> overwritten = inPlaceArgument(kernel);
  for (auto [number, tensor] : llvm::enumerate(kernel.getBody().getArguments()))
    emitter.bindBuffer(tensor, number == overwritten ? output(0) : getBlock().getArgument(number));
}

void KernelBody::removeCommonCode() {
  IRRewriter rewriter(builder);
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}

void KernelBody::finish() {
  builder.setInsertionPointToEnd(&getBlock());
  func::ReturnOp::create(builder, function.getLoc());
  removeCommonCode();
  // Emission leaves index arithmetic behind that no access needs.
  function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}

bool needsWideIndex(kern::KernelOp kernel) {
  bool wide = false;
  auto check = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    // Half of the range is left for positions that run past an end, e.g. threads of the last block.
    wide |= tensor && tensor.hasStaticShape() && tensor.getNumElements() > (int64_t(1) << 30);
  };
  for (Value argument : kernel.getBody().getArguments())
    check(argument.getType());
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      check(type);
  });
  return wide;
}

SmallVector<bool> constantArguments(kern::KernelOp kernel) {
  SmallVector<bool> constant(kernel.getBody().getNumArguments(), false);
  if (auto positions = kernel->getAttrOfType<DenseI64ArrayAttr>("ogc.constant_args"))
    for (int64_t position : positions.asArrayRef())
      if (position >= 0 && position < int64_t(constant.size()))
        constant[position] = true;
  return constant;
}

FailureOr<std::string> parameterList(kern::KernelOp kernel, const CudaTypes &types) {
  std::string text;
  SmallVector<Value> tensors(kernel.getBody().getArguments());
  llvm::append_range(tensors, yieldOf(kernel)->getOperands());
  bool ok = true;
  // What one thread of a program stores another one loads: the compiler may not assume that it knows all accesses.
  bool isShared = kernel.getSchedule() == kern::Schedule::Program;
  // Loads through a const __restrict__ parameter take the read-only path, and ptxas moves those across griddepcontrol.wait: only
  // what no kernel writes may have it.
  SmallVector<bool> constant = constantArguments(kernel);
  for (auto [number, tensor] : llvm::enumerate(tensors)) {
    Type type = bufferType(tensor).getElementType();
    if (types.name(type).empty()) {
      emitError(kernel.getLoc()) << "buffer " << number << " of kernel '" << kernel.getSymName() << "' has element type " << type
                                 << ", which has no CUDA form (ONNX node " << nodeNames(kernel.getLoc()) << ")";
      ok = false;
    }
    bool isInput = number < kernel.getBody().getNumArguments();
    text += (number ? ", " : "") + std::string(isInput ? "const " : "") + types.name(type) +
            ((isInput ? constant[number] : !isShared) ? " *__restrict__ p" : " *p") + std::to_string(number);
  }
  if (!ok)
    return failure();
  return text;
}

KernelText startText(kern::KernelOp kernel) {
  KernelText text;
  text.name = kernel.getSymName().str();
  text.nodes = nodeNames(kernel.getLoc());
  return text;
}

FailureOr<KernelText> printEntry(kern::KernelOp kernel, KernelBody &body, LaunchShape launch, Trigger trigger) {
  CudaTypes types(needsWideIndex(kernel));
  FailureOr<std::string> parameters = parameterList(kernel, types);
  if (failed(parameters))
    return failure();
  KernelText text = startText(kernel);
  text.headers = {"ogc/memory.cuh", "ogc/scalar.cuh"};
  text.launch = launch;
  llvm::raw_string_ostream os(text.source);
  os << "extern \"C\" __global__ void __launch_bounds__(" << launch.block << ") " << text.name << "(" << *parameters << ") {\n";
  if (trigger == Trigger::Start)
    os << "  ogc::launchDependents();\n";
  os << "  ogc::wait();\n";
  if (trigger == Trigger::AfterWait)
    os << "  ogc::launchDependents();\n";
  CudaPrinter printer(os, types);
  SmallVector<bool> constant = constantArguments(kernel);
  for (auto [i, buffer] : llvm::enumerate(body.buffers())) {
    std::string number = std::to_string(i);
    bool isInput = i < body.numInputs();
    if (isInput)
      printer.markReadOnly(buffer);
    if (buffer.use_empty())
      continue;
    if (isInput && !constant[i]) {
      std::string element = types.name(cast<MemRefType>(buffer.getType()).getElementType());
      os << "  const " << element << " *const a" << number << " = ogc::afterWait(p" << number << ");\n";
      printer.bind(buffer, "a" + number);
    } else {
      printer.bind(buffer, "p" + number);
    }
  }
  if (failed(printer.printBlock(body.getBlock())))
    return failure();
  if (trigger == Trigger::AfterMainLoop)
    os << "  ogc::launchDependents();\n";
  os << "}\n";
  return text;
}

/// The symbol becomes the name of a C++ function.
static LogicalResult checkName(kern::KernelOp kernel) {
  StringRef name = kernel.getSymName();
  if (!name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    return success();
  return emitError(kernel.getLoc()) << "kernel name '" << name << "' is no C++ identifier";
}

FailureOr<KernelText> printKernel(kern::KernelOp kernel, CudaArch arch, Tuning &tuning) {
  if (failed(checkName(kernel)))
    return failure();
  bool fits = false;
  if (kernel.getSchedule() == kern::Schedule::Program)
    return printProgram(kernel, arch);
  if (kernel.getSchedule() == kern::Schedule::VectorChain)
    return printVectorChain(kernel, arch, tuning);
  if (kernel.getSchedule() == kern::Schedule::Row) {
    FailureOr<KernelText> product = printBlockProduct(kernel, arch, fits);
    if (fits)
      return product;
    FailureOr<KernelText> text = printRow(kernel, arch, tuning, fits);
    if (fits)
      return text;
  } else if (kernel.getSchedule() != kern::Schedule::Pointwise) {
    FailureOr<KernelText> text = printAnchor(kernel, arch, tuning, fits);
    if (fits)
      return text;
  }
  return printPointwise(kernel, arch, tuning);
}

} // namespace ogc::codegen
