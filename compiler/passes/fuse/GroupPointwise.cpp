//===- GroupPointwise.cpp - everything that one thread an element does ----===//
//
// Works from the results back to the inputs, so that all users of an operation have been placed before it. A region computes each
// element of its result by pulling on its body; an operation may join the region of its users when that does not repeat much
// work:
//
//   - it is read at most once for each of its elements, or several times for the same element of the result: always;
//   - it is read more often (broadcast, overlapping windows, readers at different positions): when what is repeated stays within
//   `repeatBudget` scalar operations and two loads
//     for each reading element, and contains no reduction;
//   - it is read at computed positions, or by several operations of a row: likewise;
//   - its users lie in several regions: likewise, it is then computed in each of them.
//
// Anything else is the result of a region of its own.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fuse/Grouping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::fuse {

namespace {

/// Values that may be loaded again for each element of a reader instead of their result.
constexpr int64_t repeatLoads = 2;

/// How the users of an operation want it.
struct Demand {
  SmallVector<int> homes;        ///< the groups that contain the users, in order of first use
  const char *refusal = nullptr; ///< why it must be stored, if it must
  bool isRepeated = false;       ///< its elements are read more than once
  bool isInPlace = true;         ///< all users want element i for element i of the result
  int64_t budget = repeatBudget; ///< the least that the users leave
};

class PointwiseGrouper {
public:
  explicit PointwiseGrouper(Grouping &grouping) : grouping(grouping) {}

  void run() {
    for (Operation *op : llvm::reverse(grouping.getOps()))
      if (grouping.isFree(op))
        place(op);
  }

private:
  /// The groups whose regions compute `op`.
  SmallVector<int> homesOf(Operation *op) {
    const OpInfo &info = grouping.info(op);
    if (info.isInlined)
      return info.homes;
    return info.group >= 0 ? SmallVector<int>{info.group} : SmallVector<int>{};
  }

  /// Null when `use` can compute the element that it wants from inside its region; else the reason.
  const char *whyNotPulled(Operation *op, const Use &use) {
    Operation *user = use.user;
    if (user->hasTrait<OpTrait::IsTerminator>())
      return "returned";
    const OpInfo &userInfo = grouping.info(user);
    if (userInfo.isConstant != grouping.info(op).isConstant)
      return "constant, evaluated at compile time";
    if (isa<tensor::ScatterOp>(user) && use.operand == &cast<tensor::ScatterOp>(user).getDestMutable())
      return "updated in place";
    if (kern::isAnchor(user))
      return "read by an anchor, not as a strided view";
    if (llvm::any_of(homesOf(user), [&](int home) { return grouping.group(home).kind == GroupKind::Anchor; }))
      return "read by the region of an anchor";
    if (isReduction(user) && !use.isCaptured && cast<linalg::LinalgOp>(user).isDpsInit(use.operand))
      return "the initial value of a reduction";
    return nullptr;
  }

  /// How often `use` reads each element, rounded up; anything may happen at computed positions.
  int64_t readsPerElement(const Use &use) {
    if (use.isCaptured && isa<RankedTensorType>(use.operand->get().getType()))
      return 2;
    if (auto scatter = dyn_cast<tensor::ScatterOp>(use.user); scatter && use.operand == &scatter.getIndicesMutable())
      return 2; // once for each element of a slice
    auto structured = dyn_cast<linalg::LinalgOp>(use.user);
    if (!structured || use.isCaptured)
      return 1;
    int64_t iterations = 1;
    for (int64_t range : structured.getStaticLoopRanges())
      iterations *= range;
    int64_t elements = std::max<int64_t>(1, elementsOf(use.operand->get()));
    return (iterations + elements - 1) / elements;
  }

  /// True when `use` wants an element for the same element of the result of its region.
  bool isInPlace(const Use &use) {
    auto generic = dyn_cast<linalg::GenericOp>(use.user);
    return generic && grouping.info(use.user).isInPlace && !use.isCaptured && !use.isReshaped && isElementwise(generic) &&
           mapOf(*use.operand).isIdentity();
  }

  Demand demandOf(Operation *op) {
    Demand demand;
    llvm::SmallDenseSet<int> seen;
    llvm::SmallDenseSet<std::pair<Operation *, AffineMap>> reads; // at possibly different positions
    int numRowReads = 0;
    for (Value result : op->getResults()) {
      for (Use use : grouping.usesOf(result)) {
        const OpInfo &userInfo = grouping.info(use.user);
        if (const char *reason = whyNotPulled(op, use))
          demand.refusal = reason;
        for (int home : homesOf(use.user))
          if (seen.insert(home).second)
            demand.homes.push_back(home);
        if (userInfo.isRepeated || userInfo.isInlined)
          demand.budget = std::min(demand.budget, userInfo.budget);
        demand.isRepeated |= userInfo.isRepeated || userInfo.isInlined || readsPerElement(use) > 1;
        demand.isInPlace &= isInPlace(use);
        bool isMapped = isa<linalg::LinalgOp>(use.user) && !use.isCaptured;
        reads.insert({use.user, isMapped ? mapOf(*use.operand) : AffineMap()});
        numRowReads += llvm::any_of(homesOf(use.user), [&](int home) { return grouping.group(home).kind == GroupKind::Row; });
      }
    }
    // Users at different positions compute it anew, and so do the passes over a row.
    demand.isRepeated |= numRowReads > 1 || (reads.size() > 1 && !demand.isInPlace);
    return demand;
  }

  bool isCheap(Operation *op, const Demand &demand) {
    if (isReduction(op) || isa<tensor::ConcatOp>(op))
      return false;
    int64_t loads = llvm::count_if(grouping.inputsOf(op), [&](Value input) { return !grouping.isCheapConstant(input); });
    return loads <= repeatLoads && scalarCost(op) <= demand.budget;
  }

  void place(Operation *op) {
    OpInfo &info = grouping.info(op);
    bool isScalar = llvm::none_of(op->getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); });
    if (isa<tensor::ScatterOp>(op)) { // alone, so that it can be done in place
      grouping.noteMiss(op, -1, "updates a tensor in place");
      grouping.addGroup(GroupKind::Pointwise, op);
      return;
    }
    Demand demand = demandOf(op);
    if (isScalar) { // a scalar is no buffer: it goes wherever it is used
      info.isInlined = true;
      info.homes = demand.homes;
      info.budget = demand.budget;
      return;
    }
    if (!demand.refusal && demand.homes.size() == 1 && (!demand.isRepeated || isCheap(op, demand))) {
      info.isRepeated = demand.isRepeated;
      info.isInPlace = demand.isInPlace;
      info.budget = demand.budget - scalarCost(op);
      grouping.addToGroup(demand.homes.front(), op);
      return;
    }
    if (!demand.refusal && demand.homes.size() > 1 && isCheap(op, demand)) {
      info.isInlined = true;
      info.homes = demand.homes;
      info.budget = demand.budget - scalarCost(op);
      return;
    }
    if (joinAsSecondResult(op, demand))
      return;
    if (demand.refusal)
      grouping.noteMiss(op, -1, demand.refusal);
    else if (demand.homes.size() == 1)
      grouping.noteMiss(op, -1, "would be computed more than once for each element");
    else
      grouping.noteMiss(op, -1, "read by several regions and too dear to repeat");
    grouping.addGroup(GroupKind::Pointwise, op);
    info.isInPlace = true;
  }

  /// An element-wise operation read by an element-wise one of equal shape is computed there and stored as well.
  bool joinAsSecondResult(Operation *op, const Demand &demand) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !isElementwise(generic) || op->getNumResults() != 1)
      return false;
    for (Use use : grouping.usesOf(op->getResult(0))) {
      auto user = dyn_cast<linalg::GenericOp>(use.user);
      if (!user || whyNotPulled(op, use) || !isInPlace(use))
        continue;
      const OpInfo &userInfo = grouping.info(user);
      if (userInfo.group < 0 || userInfo.isRepeated || !storesShape(userInfo.group, op) || !isWantedInPlace(userInfo.group, op) ||
          grouping.wouldFormCycle(userInfo.group, op))
        continue;
      grouping.addToGroup(userInfo.group, op);
      grouping.info(op).isInPlace = true;
      return true;
    }
    return false;
  }

  /// True when region `id` wants `op` only in place: what it stores it cannot read back.
  bool isWantedInPlace(int id, Operation *op) {
    return llvm::all_of(grouping.usesOf(op->getResult(0)),
                        [&](const Use &use) { return !llvm::is_contained(homesOf(use.user), id) || isInPlace(use); });
  }

  /// True when the region's results have the shape of the result of `op`; its first member is its result.
  bool storesShape(int id, Operation *op) {
    auto stored = cast<RankedTensorType>(grouping.group(id).ops.front()->getResult(0).getType());
    return stored.getShape() == cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  }

  Grouping &grouping;
};

} // namespace

void groupPointwise(Grouping &grouping) { PointwiseGrouper(grouping).run(); }

} // namespace ogc::fuse
