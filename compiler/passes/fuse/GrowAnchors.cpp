//===- GrowAnchors.cpp - element-wise chains behind anchors ---------------===//
#include "compiler/analysis/InterleavedParts.h"
#include "compiler/dialect/kern/RowNorm.h"
#include "compiler/passes/fuse/Grouping.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace mlir;

namespace ogc::fuse {

namespace {

/// Anchors on the longest path from the inputs to each anchor: the deepest one takes an operation that several could take,
/// because the others are computed by then.
SmallVector<Operation *> anchorsDeepestFirst(Grouping &grouping) {
  llvm::DenseMap<Operation *, unsigned> depth;
  SmallVector<Operation *> anchors;
  for (Operation *op : grouping.getOps()) {
    unsigned deepest = 0;
    for (Value input : grouping.inputsOf(op))
      if (Operation *def = input.getDefiningOp())
        deepest = std::max(deepest, depth.lookup(def));
    bool isAnchor = kern::isAnchor(op);
    depth[op] = deepest + isAnchor;
    if (isAnchor && grouping.isFree(op))
      anchors.push_back(op);
  }
  llvm::sort(anchors, [&](Operation *a, Operation *b) {
    unsigned depthA = depth.lookup(a), depthB = depth.lookup(b);
    return depthA != depthB ? depthA > depthB : grouping.info(a).index > grouping.info(b).index;
  });
  return anchors;
}

} // namespace

const char *whyNotEpilogue(Grouping &grouping, int id, linalg::GenericOp generic) {
  if (!isElementwise(generic))
    return "not element-wise";
  if (grouping.info(generic).isConstant != grouping.group(id).isConstant)
    return "computed from constants only";
  for (Value input : grouping.inputsOf(generic)) {
    Operation *def = stripReshapes(input).getDefiningOp();
    if (!def || grouping.info(def).group != id)
      continue;
    for (Use use : grouping.usesOf(stripReshapes(input))) {
      if (use.user != generic.getOperation())
        continue;
      if (use.isCaptured)
        return "reads the result at computed positions";
      if (!mapOf(*use.operand).isIdentity())
        return "reads the result through another map than the identity";
    }
  }
  return nullptr;
}

/// True for what an anchor's own epilogue computes: the one element-wise operation that reads the anchor's result, and so on from
/// there. Nobody else gains by taking it.
bool isEpilogue(Grouping &grouping, linalg::GenericOp generic) {
  return isElementwise(generic) && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
           Value value = stripReshapes(input->get());
           Operation *def = value.getDefiningOp();
           auto before = dyn_cast_or_null<linalg::GenericOp>(def);
           bool isAnchor = def && kern::isAnchor(def) && !isa<kern::ProgramOp>(def);
           return mapOf(*input).isIdentity() && (isAnchor || (before && isEpilogue(grouping, before))) &&
                  grouping.usesOf(value).size() == 1;
         });
}

/// Null when each element of `op` may be computed where an anchor asks for it; else the reason.
const char *whyNotPulled(Grouping &grouping, int id, Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!isa<linalg::TransposeOp, tensor::ConcatOp, tensor::ExtractSliceOp>(op) && !(generic && isElementwise(generic)))
    return "not element-wise";
  if (grouping.info(op).isConstant != grouping.group(id).isConstant)
    return "computed from constants only";
  if (scalarCost(op) > repeatBudget)
    return "too dear to repeat";
  if (generic && isEpilogue(grouping, generic))
    return "follows another anchor";
  for (Value input : grouping.inputsOf(op))
    if (Operation *def = stripReshapes(input).getDefiningOp(); def && isReduction(def) && !isa<linalg::FillOp>(def))
      return "goes on in a row";
  return nullptr;
}

/// What computes the pulled operands of `anchor` (the rotation of queries and keys) joins its group, as far as nothing else reads
/// it. The new rows of a cache may be read outside, too: they become results.
void pullOperands(Grouping &grouping, Operation *anchor, int id) {
  // Against the order of the block, so that an operation is looked at after all that read it.
  std::map<unsigned, Operation *, std::greater<>> candidates;
  auto addSource = [&](Value value) {
    if (Operation *def = stripReshapes(value).getDefiningOp())
      candidates.try_emplace(grouping.info(def).index, def);
  };
  llvm::SmallPtrSet<Operation *, 4> rows;
  for (OpOperand &operand : anchor->getOpOperands()) {
    if (!kern::isPulledOperand(operand))
      continue;
    const StridedView *view = grouping.absorbedView(operand);
    Value source = stripReshapes(view ? view->root : operand.get());
    addSource(source);
    auto attention = cast<kern::AttentionOp>(anchor);
    if ((operand.get() == attention.getNewKey() || operand.get() == attention.getNewValue()) && source.getDefiningOp())
      rows.insert(source.getDefiningOp());
  }
  while (!candidates.empty()) {
    Operation *op = candidates.begin()->second;
    candidates.erase(candidates.begin());
    if (!grouping.isFree(op) || op->getNumResults() != 1)
      continue;
    bool isReadOutside =
        llvm::any_of(grouping.usesOf(op->getResult(0)), [&](const Use &use) { return grouping.info(use.user).group != id; });
    const char *reason = whyNotPulled(grouping, id, op);
    if (!reason && isReadOutside && !rows.contains(op))
      reason = "read by others, too";
    if (!reason && grouping.wouldFormCycle(id, op))
      reason = "another operand depends on it on a way outside";
    if (reason) {
      grouping.noteMiss(op, id, Twine("into ") + anchor->getName().getStringRef() + ": " + reason);
      continue;
    }
    grouping.addToGroup(id, op);
    for (Value input : grouping.inputsOf(op))
      addSource(input);
  }
}

/// Statistics that `generic`, a member of group `id`, scales rows by are cheap to merge for each tile, and so are rows that it
/// normalizes by them: they join the group where nothing else reads them.
void pullNorms(Grouping &grouping, int id, linalg::GenericOp generic) {
  auto isMerge = [](Value value) { return kern::isMergeOfStatistics(stripReshapes(value).getDefiningOp()); };
  for (OpOperand *input : generic.getDpsInputOperands()) {
    Operation *def = stripReshapes(input->get()).getDefiningOp();
    auto norm = dyn_cast_or_null<linalg::GenericOp>(def);
    bool isNorm = norm && isElementwise(norm) && mapOf(*input).isIdentity() && llvm::any_of(norm.getDpsInputs(), isMerge) &&
                  !isEpilogue(grouping, norm);
    if (!(isNorm || isMerge(input->get())) || !grouping.isFree(def) || grouping.wouldFormCycle(id, def) ||
        llvm::any_of(grouping.usesOf(def->getResult(0)), [&](const Use &use) { return grouping.info(use.user).group != id; }))
      continue;
    grouping.addToGroup(id, def);
    if (isNorm)
      pullNorms(grouping, id, norm);
  }
}

/// Null where the region of group `id` can store statistics of its rows beside them; else the reason.
const char *whyNoStatistics(Grouping &grouping, int id, kern::RowStatisticsOp statistics) {
  auto matmul = dyn_cast<kern::MatmulOp>(grouping.group(id).ops.front());
  if (!matmul || !kern::canStoreStatistics(matmul))
    return "statistics of rows that its schedule does not store";
  auto source = stripReshapes(statistics.getInput()).getDefiningOp<linalg::GenericOp>();
  if (!source || grouping.info(source).group != id)
    return "statistics of rows that it does not compute";
  int64_t columns = matmul.getType().getShape().back();
  auto hasColumns = [&](Value value) { return cast<RankedTensorType>(value.getType()).getShape().back() == columns; };
  return hasColumns(source->getResult(0)) && hasColumns(statistics.getInput()) ? nullptr : "statistics of other rows";
}

void growEpilogue(Grouping &grouping, int id) {
  Operation *anchor = grouping.group(id).ops.front();
  // In block order, so that an operation is looked at after all that it reads.
  std::map<unsigned, Operation *> candidates;
  auto addUsers = [&](Operation *member) {
    for (Value result : member->getResults())
      for (Use use : grouping.usesOf(result))
        candidates.try_emplace(grouping.info(use.user).index, use.user);
  };
  SmallVector<Operation *> members = grouping.group(id).ops;
  for (Operation *member : members)
    addUsers(member);
  // Parts of a result with alternating columns: what follows goes over the elements of these instead.
  if (members.size() == 1 && isa<kern::MatmulOp, kern::ConvOp>(anchor))
    for (const InterleavedParts::Part &part : interleavedParts(anchor->getResult(0)).parts)
      if (Operation *slice = part.value.getDefiningOp(); grouping.isFree(slice)) {
        grouping.addToGroup(id, slice);
        addUsers(slice);
      }
  while (!candidates.empty()) {
    Operation *op = candidates.begin()->second;
    candidates.erase(candidates.begin());
    auto generic = dyn_cast<linalg::GenericOp>(op);
    auto statistics = dyn_cast<kern::RowStatisticsOp>(op);
    if (!(generic || statistics) || !grouping.isFree(op))
      continue;
    if (const char *reason = statistics ? whyNoStatistics(grouping, id, statistics) : whyNotEpilogue(grouping, id, generic)) {
      grouping.noteMiss(op, id, Twine("into ") + anchor->getName().getStringRef() + ": " + reason);
      continue;
    }
    if (grouping.wouldFormCycle(id, op)) {
      grouping.noteMiss(op, id,
                        Twine("into ") + anchor->getName().getStringRef() + ": another operand depends on it on a way outside");
      continue;
    }
    grouping.addToGroup(id, op);
    if (statistics)
      continue;
    pullNorms(grouping, id, generic);
    addUsers(op);
  }
}

void growAnchors(Grouping &grouping, bool epilogues) {
  for (Operation *anchor : anchorsDeepestFirst(grouping)) {
    int id = grouping.addGroup(GroupKind::Anchor, anchor);
    if (isa<kern::ProgramOp>(anchor) || !epilogues) // a program stays alone: its elements have no common order
      continue;
    pullOperands(grouping, anchor, id);
    growEpilogue(grouping, id);
  }
}

} // namespace ogc::fuse
