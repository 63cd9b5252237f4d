//===- GrowRows.cpp - row reductions with what feeds and follows them -----===//
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/RowDomain.h"

using namespace mlir;

namespace ogc::fuse {

namespace {

class RowGrower {
public:
  RowGrower(Grouping &grouping, linalg::GenericOp reduction, RowDomain domain)
      : grouping(grouping), domain(std::move(domain)), id(grouping.addGroup(GroupKind::Row, reduction)) {
    roles[reduction] = RowRole::Reduction;
    work.push_back(reduction);
  }

  void run() {
    while (!work.empty()) {
      Operation *member = work.pop_back_val();
      SmallVector<Operation *> neighbours;
      for (Value input : grouping.inputsOf(member))
        if (Operation *def = stripReshapes(input).getDefiningOp())
          neighbours.push_back(def);
      for (Value result : member->getResults())
        for (Use use : grouping.usesOf(result))
          neighbours.push_back(use.user);
      for (Operation *neighbour : neighbours)
        tryAdd(neighbour);
    }
    // A value that several members read is computed again in each pass over the row, and with it what is pulled into it.
    SmallVector<Operation *> members = grouping.group(id).ops;
    llvm::sort(members, [&](Operation *a, Operation *b) { return grouping.info(a).index > grouping.info(b).index; });
    for (Operation *member : members) { // readers first
      int numReads = 0;
      for (Value result : member->getResults())
        numReads += llvm::count_if(grouping.usesOf(result), [&](const Use &use) { return roles.count(use.user); });
      bool isReduction = roles[member] == RowRole::Reduction;
      grouping.info(member).isRepeated = !isReduction && (numReads > 1 || isRepeatedBelow(member));
    }
  }

private:
  /// True when what `op` feeds inside the row is computed more than once.
  bool isRepeatedBelow(Operation *op) {
    for (Value result : op->getResults())
      for (Use use : grouping.usesOf(result))
        if (roles.count(use.user) && grouping.info(use.user).isRepeated)
          return true;
    return false;
  }

  void tryAdd(Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !grouping.isFree(op) || kern::isAnchor(op))
      return;
    if (grouping.info(op).isConstant != grouping.group(id).isConstant)
      return;
    RowRole role = domain.roleOf(generic);
    if (role == RowRole::None)
      return grouping.noteMiss(op, id, "into a row: its loops are not those of the row");
    roles[op] = role;
    if (!isRowLocal(op)) {
      roles.erase(op);
      return grouping.noteMiss(op, id, "into a row: reads other rows");
    }
    if (grouping.wouldFormCycle(id, op)) {
      roles.erase(op);
      return grouping.noteMiss(op, id, "into a row: a way outside leads from the row back to it");
    }
    grouping.addToGroup(id, op);
    work.push_back(op);
    // A neighbour refused before may fit now that more of what it reads is inside: it is seen again as a neighbour of `op`.
  }

  /// True when all reads between `op` and the members stay in one row.
  bool isRowLocal(Operation *op) {
    for (Value input : grouping.inputsOf(op)) {
      Value source = stripReshapes(input);
      Operation *def = source.getDefiningOp();
      if (def && roles.count(def) && !readsOwnRows(source, def, op))
        return false;
    }
    for (Value result : op->getResults())
      for (Use use : grouping.usesOf(result))
        if (roles.count(use.user) && !readsOwnRows(result, op, use.user))
          return false;
    return true;
  }

  bool readsOwnRows(Value value, Operation *def, Operation *reader) {
    return llvm::all_of(grouping.usesOf(value), [&](Use use) {
      return use.user != reader ||
             (!use.isCaptured && domain.readsOwnRow(*use.operand, roles[reader], roles[def], use.isReshaped));
    });
  }

  Grouping &grouping;
  RowDomain domain;
  int id;
  llvm::DenseMap<Operation *, RowRole> roles; ///< of the members, and of the operation being tried
  SmallVector<Operation *> work;
};

/// True when something over the whole domain reads what `op` reduces, directly or through statistics.
bool feedsItsRow(Grouping &grouping, const RowDomain &domain, Operation *op) {
  for (Value result : op->getResults())
    for (const Use &use : grouping.usesOf(result)) {
      auto reader = dyn_cast<linalg::GenericOp>(use.user);
      if (!reader || use.isCaptured)
        continue;
      RowRole role = domain.roleOf(reader);
      if (role == RowRole::Full || role == RowRole::Reduction)
        return true;
      if (role == RowRole::Statistic && feedsItsRow(grouping, domain, reader))
        return true;
    }
  return false;
}

} // namespace

void growRows(Grouping &grouping) {
  for (Operation *op : grouping.getOps()) {
    auto reduction = dyn_cast<linalg::GenericOp>(op);
    if (!reduction || !grouping.isFree(op))
      continue;
    FailureOr<RowDomain> domain =
        RowDomain::ofReduction(reduction, [&](const RowDomain &shape) { return feedsItsRow(grouping, shape, reduction); });
    if (succeeded(domain))
      RowGrower(grouping, reduction, *domain).run();
  }
}

} // namespace ogc::fuse
