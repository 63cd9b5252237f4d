//===- KernelFunction.cpp - a CPU kernel under construction ---------------===//
#include "compiler/codegen/cpu/KernelFunction.h"

#include "compiler/codegen/scalar/ResultBuffer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::codegen {

MemRefType flatBufferType(RankedTensorType type) {
  Type element = type.getElementType();
  if (element.isInteger(1))
    element = IntegerType::get(type.getContext(), 8);
  return MemRefType::get({std::max<int64_t>(type.getNumElements(), 1)}, element);
}

KernelFunction::KernelFunction(kern::KernelOp kernel, const CpuTarget &target, func::FuncOp function)
    : kernel(kernel), target(target), function(function), builder(function.getContext()), emitter(builder), loc(kernel.getLoc()) {
  Block *entry = &function.getBody().front();
  builder.setInsertionPointToStart(entry);
  // What is overwritten is read through the result's pointer, so that no two pointers know one byte.
  std::optional<unsigned> overwritten = inPlaceArgument(kernel);
  for (BlockArgument argument : body().getArguments())
    emitter.bindBuffer(argument,
                       argument.getArgNumber() == overwritten ? output(0) : entry->getArgument(argument.getArgNumber()));
  begin = entry->getArguments().take_back(2)[0];
  end = entry->getArguments().back();
}

Value KernelFunction::input(Value argument) { return function.getArgument(cast<BlockArgument>(argument).getArgNumber()); }

Value KernelFunction::output(unsigned number) { return function.getArgument(body().getNumArguments() + number); }

void KernelFunction::store(unsigned number, Value element, ArrayRef<Value> indices) {
  if (element.getType().isInteger(1))
    element = arith::ExtUIOp::create(builder, loc, builder.getI8Type(), element);
  Value position = math().linearize(loc, indices, resultBuffer(kernel, number).getShape());
  memref::StoreOp::create(builder, loc, element, output(number), position);
}

LogicalResult KernelFunction::loop(Value lower, Value upper, int64_t step, function_ref<LogicalResult(Value)> body) {
  auto loop = scf::ForOp::create(builder, loc, lower, upper, constant(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  return body(loop.getInductionVar());
}

Value KernelFunction::scratch(Type element, int64_t size) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  return memref::AllocaOp::create(builder, loc, MemRefType::get({size}, element), builder.getI64IntegerAttr(64));
}

static Emitted emitScheduled(KernelFunction &kernel) {
  switch (kernel.kernel.getSchedule()) {
  case kern::Schedule::Pointwise:
    return Emitted::NotApplicable;
  case kern::Schedule::Row:
    return emitRow(kernel);
  case kern::Schedule::Matmul:
    return emitMatmul(kernel);
  case kern::Schedule::Conv:
    return emitConv(kernel);
  case kern::Schedule::DepthwiseConv:
    return emitDepthwiseConv(kernel);
  case kern::Schedule::Attention:
    return emitAttention(kernel);
  case kern::Schedule::Program:
    return emitProgram(kernel);
  case kern::Schedule::VectorChain:
    return emitVectorChain(kernel);
  }
  return Emitted::NotApplicable;
}

/// Scalar operations up to which a kernel is small.
static constexpr uint64_t smallKernel = 4096;

/// Scalar operations of the structured operations of a kernel, about: the sizes of their loop nests times those of their bodies.
static uint64_t operationCount(Block &body) {
  uint64_t count = 0;
  for (auto op : body.getOps<linalg::LinalgOp>()) {
    uint64_t product = std::max<uint64_t>(1, llvm::range_size(op.getBlock()->without_terminator()));
    for (int64_t range : op.getStaticLoopRanges())
      product = llvm::SaturatingMultiply(product, static_cast<uint64_t>(std::max<int64_t>(range, 0)));
    count = llvm::SaturatingAdd(count, product);
  }
  return count;
}

FailureOr<EmittedKernel> emitCpuKernel(kern::KernelOp kernelOp, const CpuTarget &target, ModuleOp module) {
  MLIRContext *context = kernelOp.getContext();
  Block &body = kernelOp.getBody().front();
  SmallVector<Type> types;
  for (Type type :
       llvm::concat<const Type>(TypeRange(body.getArgumentTypes()), TypeRange(body.getTerminator()->getOperandTypes()))) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      kernelOp.emitError() << "kernel " << kernelOp.getSymName() << " has a buffer of type " << type
                           << ", expected a static tensor";
      return failure();
    }
    types.push_back(flatBufferType(tensor));
  }
  for (unsigned number = 0; number < body.getTerminator()->getNumOperands(); ++number)
    types[body.getNumArguments() + number] = flatBufferType(resultBuffer(kernelOp, number));
  types.append(2, IndexType::get(context));
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(builder, kernelOp.getLoc(), kernelOp.getSymName(), FunctionType::get(context, types, {}));
  function.addEntryBlock();
  KernelFunction kernel(kernelOp, target, function);
  Emitted emitted = emitScheduled(kernel);
  if (emitted == Emitted::NotApplicable)
    emitted = emitPointwise(kernel);
  if (emitted != Emitted::Yes)
    return failure();
  kernel.builder.setInsertionPointToEnd(&function.getBody().front());
  func::ReturnOp::create(kernel.builder, kernel.loc);
  // Vectorizing and unrolling pays where loops are long: most of the time of compiling a small kernel would go there.
  if (kernel.effort == Effort::Thorough && operationCount(body) <= smallKernel)
    kernel.effort = Effort::Small;
  return EmittedKernel{function, kernel.units, kernel.effort};
}

} // namespace ogc::codegen
