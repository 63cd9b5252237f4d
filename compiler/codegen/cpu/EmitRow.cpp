//===- EmitRow.cpp - row reductions with what feeds and follows them ------===//
#include "compiler/codegen/cpu/KernelFunction.h"
#include "compiler/codegen/scalar/RowPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ogc::codegen {

/// Elements that one unit computes, about.
static constexpr int64_t unitElements = 16 * 1024;
/// Limit of the kept rows of a kernel, on the stack of the calling thread.
static constexpr int64_t scratchBytes = 256 * 1024;

namespace {

class RowEmitter {
public:
  RowEmitter(KernelFunction &kernel, const RowPlan &plan) : kernel(kernel), plan(plan), builder(kernel.builder) {}

  void allocateKept() {
    int64_t used = 0;
    for (const RowKept &kept : plan.kept) {
      Type element = cast<RankedTensorType>(kept.value.getType()).getElementType();
      int64_t bytes = plan.width * ((element.getIntOrFloatBitWidth() + 7) / 8);
      if (element.isInteger(1) || used + bytes > scratchBytes)
        continue; // computed again where it is used
      used += bytes;
      scratch.push_back({kept, kernel.scratch(element, plan.width)});
    }
  }

  LogicalResult emit(Value row) {
    for (unsigned stage = 0; stage < plan.stages.size(); ++stage)
      if (failed(emitStage(stage, row)))
        return failure();
    return emitOutputs(row);
  }

private:
  struct Scratch {
    RowKept kept;
    Value buffer;
  };

  /// Binds the kept values of earlier stages at a column, computes and stores those of this one.
  LogicalResult enterColumn(unsigned stage, Value row, Value column) {
    for (const Scratch &entry : scratch) {
      if (entry.kept.stage > stage)
        continue;
      SmallVector<Value> indices = RowPlan::indicesAt(kernel.math(), entry.kept.value, plan.rows, row, column);
      if (entry.kept.stage < stage) {
        kernel.emitter.bindElement(entry.kept.value, indices, memref::LoadOp::create(builder, kernel.loc, entry.buffer, column));
        continue;
      }
      Value element = kernel.emitter.emit(entry.kept.value, indices);
      if (!element)
        return failure();
      memref::StoreOp::create(builder, kernel.loc, element, entry.buffer, column);
    }
    return success();
  }

  LogicalResult emitStage(unsigned stage, Value row) {
    ArrayRef<RowReduction> reductions = plan.stages[stage];
    SmallVector<Value> inits;
    for (const RowReduction &reduction : reductions)
      llvm::append_range(inits, RowPlan::neutral(builder, reduction));
    auto loop =
        scf::ForOp::create(builder, kernel.loc, kernel.constant(0), kernel.constant(plan.width), kernel.constant(1), inits);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value column = loop.getInductionVar();
      if (failed(enterColumn(stage, row, column)))
        return failure();
      SmallVector<Value> next;
      for (const RowReduction &reduction : reductions) {
        SmallVector<Value> current(loop.getRegionIterArgs().slice(next.size(), reduction.combiners.size()));
        SmallVector<Value> values = RowPlan::accumulate(kernel.emitter, reduction, row, column, current);
        if (values.empty())
          return failure();
        for (auto [value, combiner] : llvm::zip_equal(values, reduction.combiners))
          allowReassociation(value.getDefiningOp(), combiner);
        next.append(values);
      }
      scf::YieldOp::create(builder, kernel.loc, next);
    }
    unsigned first = 0;
    for (const RowReduction &reduction : reductions) {
      SmallVector<Value> totals(loop.getResults().slice(first, reduction.combiners.size()));
      if (failed(RowPlan::finish(builder, kernel.emitter, reduction, row, totals)))
        return failure();
      first += reduction.combiners.size();
    }
    return success();
  }

  /// A sum may be split into lanes; its order is fixed by the compiled code, whatever the number of threads.
  static void allowReassociation(Operation *op, Operation *combiner) {
    if (op && op->getName() == combiner->getName() && isa<arith::ArithFastMathInterface>(op))
      op->setAttr("fastmath", arith::FastMathFlagsAttr::get(op->getContext(), arith::FastMathFlags::reassoc));
  }

  LogicalResult emitOutput(const RowOutput &output, Value row, Value column) {
    SmallVector<Value> indices = RowPlan::indicesAt(kernel.math(), output.value, plan.rows, row, column);
    Value element = kernel.emitter.emit(output.value, indices);
    if (!element)
      return failure();
    kernel.store(output.number, element, indices);
    return success();
  }

  LogicalResult emitOutputs(Value row) {
    bool full = false;
    for (const RowOutput &output : plan.outputs) {
      full |= !output.reduced;
      if (output.reduced && failed(emitOutput(output, row, nullptr)))
        return failure();
    }
    if (!full)
      return success();
    return kernel.loop(kernel.constant(0), kernel.constant(plan.width), 1, [&](Value column) -> LogicalResult {
      if (failed(enterColumn(plan.stages.size(), row, column)))
        return failure();
      for (const RowOutput &output : plan.outputs)
        if (!output.reduced && failed(emitOutput(output, row, column)))
          return failure();
      return success();
    });
  }

  KernelFunction &kernel;
  const RowPlan &plan;
  OpBuilder &builder;
  SmallVector<Scratch> scratch;
};

} // namespace

Emitted emitRow(KernelFunction &kernel) {
  FailureOr<RowPlan> plan = RowPlan::analyze(kernel.body());
  if (failed(plan))
    return Emitted::NotApplicable;
  if (plan->rows == 0)
    return Emitted::Yes;
  int64_t rowsPerUnit = std::max<int64_t>(1, unitElements / std::max<int64_t>(1, plan->width));
  kernel.units = (plan->rows + rowsPerUnit - 1) / rowsPerUnit;
  RowEmitter emitter(kernel, *plan);
  emitter.allocateKept();
  Value first = kernel.math().mul(kernel.loc, kernel.begin, rowsPerUnit);
  Value last = arith::MinSIOp::create(kernel.builder, kernel.loc, kernel.math().mul(kernel.loc, kernel.end, rowsPerUnit),
                                      kernel.constant(plan->rows));
  return succeeded(kernel.loop(first, last, 1, [&](Value row) { return emitter.emit(row); })) ? Emitted::Yes : Emitted::Failed;
}

} // namespace ogc::codegen
