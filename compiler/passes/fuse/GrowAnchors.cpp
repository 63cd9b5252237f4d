//===- GrowAnchors.cpp - element-wise chains behind anchors ---------------===//
#include "compiler/analysis/InterleavedParts.h"
#include "compiler/passes/fuse/Grouping.h"

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
    if (!generic || !grouping.isFree(op))
      continue;
    if (const char *reason = whyNotEpilogue(grouping, id, generic)) {
      grouping.noteMiss(op, id, Twine("into ") + anchor->getName().getStringRef() + ": " + reason);
      continue;
    }
    if (grouping.wouldFormCycle(id, op)) {
      grouping.noteMiss(op, id,
                        Twine("into ") + anchor->getName().getStringRef() + ": another operand depends on it on a way outside");
      continue;
    }
    grouping.addToGroup(id, op);
    addUsers(op);
  }
}

void growAnchors(Grouping &grouping, bool epilogues) {
  for (Operation *anchor : anchorsDeepestFirst(grouping)) {
    int id = grouping.addGroup(GroupKind::Anchor, anchor);
    if (!isa<kern::ProgramOp>(anchor) && epilogues) // a program stays alone: its elements have no common order
      growEpilogue(grouping, id);
  }
}

} // namespace ogc::fuse
