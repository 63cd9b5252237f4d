//===- SelectSchedule.cpp - choose how each region becomes code -----------===//
#include "compiler/analysis/InterleavedParts.h"
#include "compiler/analysis/VectorChain.h"
#include "compiler/dialect/kern/RowNorm.h"
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/fuse/RowDomain.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ogc {

#define GEN_PASS_DEF_SELECTSCHEDULE
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using kern::Schedule;

/// Checks that the operands of `anchor` are block arguments or strided views of them, but for those that may be computed.
LogicalResult checkAnchorOperands(Operation *anchor) {
  bool ok = true;
  for (OpOperand &operand : anchor->getOpOperands()) {
    StridedView view = kern::isStoredOperand(operand) ? resolveStoredView(operand.get()) : resolveStridedView(operand.get());
    if (isa<BlockArgument>(view.root) || kern::isPulledOperand(operand))
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
  SmallVector<InterleavedParts::Part> parts = interleavedParts(anchor->getResult(0)).parts;
  for (Operation &op : llvm::make_range(std::next(anchor->getIterator()), anchor->getBlock()->getTerminator()->getIterator())) {
    bool isDerived = llvm::any_of(op.getOperands(), [&](Value operand) { return derived.contains(operand); });
    if (!isDerived)
      continue;
    derived.insert(op.result_begin(), op.result_end());
    bool isPart = llvm::any_of(parts, [&](const InterleavedParts::Part &part) { return part.value.getDefiningOp() == &op; });
    if (fuse::isReshapeOp(&op) || isPart)
      continue;
    if (auto matmul = dyn_cast<kern::MatmulOp>(anchor);
        isa<kern::RowStatisticsOp>(op) && matmul && kern::canStoreStatistics(matmul))
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

/// True when something over the whole domain reads what `reduction` gives, directly or not.
bool feedsItsRow(const fuse::RowDomain &domain, Operation *reduction) {
  llvm::DenseSet<Value> derived(reduction->result_begin(), reduction->result_end());
  Operation *end = reduction->getBlock()->getTerminator();
  for (Operation &op : llvm::make_range(std::next(reduction->getIterator()), end->getIterator())) {
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return derived.contains(operand); }))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    fuse::RowRole role = generic ? domain.roleOf(generic) : fuse::RowRole::None;
    if (role == fuse::RowRole::Full || role == fuse::RowRole::Reduction)
      return true;
    derived.insert(op.result_begin(), op.result_end());
  }
  return false;
}

/// True when all that is computed from reductions in the body lies on one row domain and stays in its row. What is computed
/// without reductions may have any form: rows pull on it.
bool isRow(Block &body) {
  FailureOr<fuse::RowDomain> domain = failure();
  for (auto generic : body.getOps<linalg::GenericOp>())
    if (failed(domain))
      domain = fuse::RowDomain::ofReduction(generic, [&](const fuse::RowDomain &shape) { return feedsItsRow(shape, generic); });
  if (failed(domain))
    return false;
  llvm::DenseMap<Value, fuse::RowRole> reduced; // reductions and what is computed from them
  for (Operation &op : body.without_terminator()) {
    SmallVector<Value> inputs(op.getOperands());
    op.walk([&](tensor::ExtractOp extract) { inputs.push_back(extract.getTensor()); });
    auto generic = dyn_cast<linalg::GenericOp>(op);
    bool isReduction = generic && generic.getNumReductionLoops() > 0;
    if (!isReduction && llvm::none_of(inputs, [&](Value input) { return reduced.contains(input); }))
      continue;
    if (fuse::isReshapeOp(&op)) {
      reduced[op.getResult(0)] = reduced[op.getOperand(0)];
      continue;
    }
    fuse::RowRole role = generic ? domain->roleOf(generic) : fuse::RowRole::None;
    if (role == fuse::RowRole::None || inputs.size() != op.getNumOperands())
      return false;
    for (OpOperand *input : generic.getDpsInputOperands()) {
      auto it = reduced.find(input->get());
      bool isReshaped = fuse::isReshapeOp(input->get().getDefiningOp());
      if (it != reduced.end() && !domain->readsOwnRow(*input, role, it->second, isReshaped))
        return false;
    }
    for (Value result : op.getResults())
      reduced[result] = role;
  }
  return llvm::all_of(body.getTerminator()->getOperands(), [&](Value value) {
    auto it = reduced.find(value);
    int64_t elements = fuse::elementsOf(value);
    return it != reduced.end() || elements == domain->rows() || elements == domain->rows() * domain->inner();
  });
}

/// True for sums over so many pixels, and so few vectors, that a thread an element would wait for its loads one after the other.
bool isLongSum(const VectorChain &chain) {
  constexpr int64_t leastPixels = 32, mostElements = 16384;
  const VectorStage &first = chain.stages.front();
  return first.depth >= leastPixels && first.images * first.length <= mostElements;
}

FailureOr<Schedule> scheduleOf(Block &body) {
  FailureOr<VectorChain> chain = VectorChain::analyze(body);
  if (succeeded(chain) && (chain->hasProduct() || isLongSum(*chain)))
    return Schedule::VectorChain;
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
      .Case([](kern::ProgramOp) { return Schedule::Program; })
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
