//===- Program.cpp - a thread, a block or a cluster for each group --------===//
#include "compiler/codegen/cuda/Schedules.h"
#include "compiler/codegen/scalar/ProgramBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

struct ProgramChoice {
  bool isCooperative = false;      ///< the group has parallel loops
  bool synchronizesBefore = false; ///< code between the loops reads what they write
  LaunchShape launch;
};

/// Binds the buffers of `program` to those of the kernel; false (after an error) when they do not fit.
bool bindBuffers(kern::KernelOp kernel, kern::ProgramOp program, KernelBody &body, IRMapping &mapping) {
  Block &block = program.getBody().front();
  ValueRange yielded = kernel.getBody().front().getTerminator()->getOperands();
  unsigned next = 1;
  auto bind = [&](BlockArgument buffer) {
    buffer.setType(block.getArgument(next).getType()); // flat
    mapping.map(block.getArgument(next++), buffer);
  };
  for (Value input : program.getInputs()) {
    auto argument = dyn_cast<BlockArgument>(input);
    if (!argument)
      return program.emitOpError("reads a value that is no input of its kernel"), false;
    bind(body.getBlock().getArgument(argument.getArgNumber()));
  }
  for (Value output : program.getOutputs()) {
    auto place = llvm::find(yielded, output);
    if (place == yielded.end())
      return program.emitOpError("has a result that its kernel does not yield"), false;
    bind(body.getBlock().getArgument(body.numInputs() + static_cast<unsigned>(place - yielded.begin())));
  }
  return true;
}

} // namespace

/// Wide groups get a cluster, as long as there are not many of them.
static ProgramChoice chooseProgram(kern::ProgramOp program, CudaArch arch) {
  ProgramChoice choice;
  int64_t width = 0, groups = static_cast<int64_t>(program.getGroups());
  Block &body = program.getBody().front();
  program.walk([&](Operation *op) {
    if (auto parallel = dyn_cast<kern::ParallelOp>(op))
      width = std::max(width, static_cast<int64_t>(parallel.getWidth()));
    auto load = dyn_cast<memref::LoadOp>(op);
    auto buffer = load ? dyn_cast<BlockArgument>(load.getMemRef()) : BlockArgument();
    choice.synchronizesBefore |= buffer && buffer.getOwner() == &body && buffer.getArgNumber() > program.getInputs().size() &&
                                 !op->getParentOfType<kern::ParallelOp>();
  });
  choice.isCooperative = width > 0;
  if (!choice.isCooperative) {
    choice.launch.block = groups < 132 * 128 ? 32 : 128;
    choice.launch.grid = static_cast<uint32_t>(llvm::divideCeil(groups, choice.launch.block));
    return choice;
  }
  constexpr int64_t mostThreads = 512, mostBlocks = 8; // a portable cluster
  while (arch.hasClusters() && choice.launch.cluster < mostBlocks && width > choice.launch.cluster * 256 &&
         groups * choice.launch.cluster * 2 <= 264)
    choice.launch.cluster *= 2;
  int64_t wanted = llvm::divideCeil(width, choice.launch.cluster);
  choice.launch.block = static_cast<uint32_t>(std::min<int64_t>(mostThreads, llvm::alignTo(wanted, 32)));
  choice.launch.grid = static_cast<uint32_t>(groups * choice.launch.cluster);
  return choice;
}

FailureOr<KernelText> printProgram(kern::KernelOp kernel, CudaArch arch) {
  auto program = dyn_cast_or_null<kern::ProgramOp>(kern::findAnchor(kernel.getBody().front()));
  if (!program)
    return kernel.emitOpError("has schedule program, but no program");
  ProgramChoice choice = chooseProgram(program, arch);
  KernelBody body(kernel);
  OpBuilder &b = body.getBuilder();
  Location loc = kernel.getLoc();
  IRMapping mapping;
  if (!bindBuffers(kernel, program, body, mapping))
    return failure();
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x), lane = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  int64_t cluster = choice.launch.cluster, threads = cluster * choice.launch.block;
  Value group = block, first = lane;
  if (!choice.isCooperative) {
    group = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, block, constant(threads)), lane);
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, group, constant(static_cast<int64_t>(program.getGroups())));
    b.setInsertionPointToStart(scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).thenBlock());
  } else if (cluster > 1) {
    group = arith::DivUIOp::create(b, loc, block, constant(cluster));
    Value rank = arith::RemUIOp::create(b, loc, block, constant(cluster));
    first = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, rank, constant(choice.launch.block)), lane);
  }
  auto synchronize = [&] {
    auto barrier = gpu::BarrierOp::create(b, loc);
    if (cluster > 1)
      barrier->setAttr("ogc.cluster", b.getUnitAttr());
  };
  mapping.map(program.getBody().front().getArgument(0), group);
  emitProgramBody(b, program.getBody().front(), mapping, [&](kern::ParallelOp op, function_ref<void(Value)> iteration) {
    if (choice.synchronizesBefore)
      synchronize();
    auto loop = scf::ForOp::create(b, loc, first, mapping.lookup(op.getExtent()), constant(threads));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      iteration(loop.getInductionVar());
    }
    synchronize();
  });
  body.finish();
  return printEntry(kernel, body, choice.launch, Trigger::AfterMainLoop);
}

} // namespace ogc::codegen
