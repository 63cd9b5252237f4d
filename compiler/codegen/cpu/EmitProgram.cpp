//===- EmitProgram.cpp - one group after the other ------------------------===//
#include "compiler/codegen/cpu/KernelFunction.h"
#include "compiler/codegen/cpu/ProgramLanes.h"
#include "compiler/codegen/scalar/ProgramBody.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ogc::codegen {

Emitted emitProgram(KernelFunction &kernel) {
  auto program = dyn_cast_or_null<kern::ProgramOp>(kern::findAnchor(kernel.body()));
  if (!program)
    return Emitted::NotApplicable;
  kernel.units = program.getGroups();
  Block &body = program.getBody().front();
  IRMapping mapping;
  unsigned next = 1;
  for (Value input : program.getInputs()) {
    if (!isa<BlockArgument>(input)) {
      program.emitOpError("reads a value that is no input of its kernel");
      return Emitted::Failed;
    }
    mapping.map(body.getArgument(next++), kernel.input(input));
  }
  for (Value output : program.getOutputs()) {
    auto place = llvm::find(kernel.results(), output);
    if (place == kernel.results().end()) {
      program.emitOpError("has a result that its kernel does not yield");
      return Emitted::Failed;
    }
    mapping.map(body.getArgument(next++), kernel.output(static_cast<unsigned>(place - kernel.results().begin())));
  }
  LogicalResult result = kernel.loop(kernel.begin, kernel.end, 1, [&](Value group) {
    mapping.map(body.getArgument(0), group);
    emitProgramBody(kernel.builder, body, mapping, [&](kern::ParallelOp op, function_ref<void(Value)> iteration) {
      Value begin = kernel.constant(0), end = mapping.lookupOrDefault(op.getExtent());
      ProgramLanes lanes(op, kernel.target.lanes);
      if (int64_t width = lanes.lanes()) {
        Value whole = kernel.math().mul(kernel.loc, kernel.math().div(kernel.loc, end, width), width);
        (void)kernel.loop(begin, whole, width, [&](Value first) {
          lanes.emit(kernel.builder, first, mapping);
          return success();
        });
        begin = whole;
      }
      (void)kernel.loop(begin, end, 1, [&](Value i) {
        iteration(i);
        return success();
      });
    });
    return success();
  });
  return succeeded(result) ? Emitted::Yes : Emitted::Failed;
}

} // namespace ogc::codegen
