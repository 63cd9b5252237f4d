//===- SelectSchedule.cpp - choose how each region becomes code -----------===//
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/fuse/RowDomain.h"

#include "llvm/ADT/TypeSwitch.h"

namespace ogc {

#define GEN_PASS_DEF_SELECTSCHEDULE
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using kern::Schedule;

/// Checks that the operands of `anchor` are block arguments or strided views of them.
LogicalResult checkAnchorOperands(Operation *anchor) {
  bool ok = true;
  for (OpOperand &operand : anchor->getOpOperands()) {
    StridedView view = resolveStridedView(operand.get());
    if (isa<BlockArgument>(view.root))
      continue;
    anchor->emitOpError() << "operand " << operand.getOperandNumber() << " is no strided view of an input of its region";
    ok = false;
  }
  return success(ok);
}

/// Checks that all that is computed from `anchor` is element-wise over its result.
LogicalResult checkEpilogue(Operation *anchor) {
  bool ok = true;
  llvm::DenseSet<Value> derived{anchor->getResult(0)};
  for (Operation &op : llvm::make_range(std::next(anchor->getIterator()), anchor->getBlock()->getTerminator()->getIterator())) {
    bool isDerived = llvm::any_of(op.getOperands(), [&](Value operand) { return derived.contains(operand); });
    if (!isDerived)
      continue;
    derived.insert(op.result_begin(), op.result_end());
    if (fuse::isReshapeOp(&op))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool isAlong = generic && fuse::isElementwise(generic) && llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
      return !derived.contains(input->get()) || fuse::mapOf(*input).isIdentity();
    });
    if (isAlong)
      continue;
    op.emitOpError() << "follows " << anchor->getName() << " in its region, expected an element-wise operation over its result";
    ok = false;
  }
  return success(ok);
}

/// True when every generic lies on the row domain of a reduction in the body, and reads of computed values stay in their row.
bool isRow(Block &body) {
  FailureOr<fuse::RowDomain> domain = failure();
  for (auto generic : body.getOps<linalg::GenericOp>())
    if (failed(domain))
      domain = fuse::RowDomain::ofReduction(generic);
  if (failed(domain))
    return false;
  llvm::DenseMap<Operation *, fuse::RowRole> roles;
  for (Operation &op : body.without_terminator()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      bool isHarmless = isa<linalg::FillOp>(op) || fuse::isReshapeOp(&op) || op.getNumOperands() == 0;
      if (!isHarmless)
        return false;
      continue;
    }
    fuse::RowRole role = domain->roleOf(generic);
    if (role == fuse::RowRole::None)
      return false;
    roles[generic] = role;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      Value source = fuse::stripReshapes(input->get());
      Operation *def = source.getDefiningOp();
      if (def && roles.contains(def) && !domain->readsOwnRow(*input, role, roles[def], source != input->get()))
        return false;
    }
  }
  return true;
}

FailureOr<Schedule> scheduleOf(Block &body) {
  Operation *anchor = kern::findAnchor(body);
  if (!anchor)
    return isRow(body) ? Schedule::Row : Schedule::Pointwise;
  LogicalResult operands = checkAnchorOperands(anchor), epilogue = checkEpilogue(anchor);
  if (failed(operands) || failed(epilogue))
    return failure();
  return llvm::TypeSwitch<Operation *, Schedule>(anchor)
      .Case([](kern::MatmulOp) { return Schedule::Matmul; })
      .Case([](kern::ConvOp) { return Schedule::Conv; })
      .Case([](kern::DepthwiseConvOp) { return Schedule::DepthwiseConv; })
      .Default([](Operation *) { return Schedule::Attention; });
}

struct SelectSchedule : impl::SelectScheduleBase<SelectSchedule> {
  void runOnOperation() override {
    bool ok = true;
    getOperation().walk([&](kern::RegionOp region) {
      FailureOr<Schedule> schedule = scheduleOf(region.getBody().front());
      ok &= succeeded(schedule);
      if (succeeded(schedule))
        region.setScheduleAttr(kern::ScheduleAttr::get(&getContext(), *schedule));
    });
    if (!ok)
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc
