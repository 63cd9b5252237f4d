//===- Grouping.cpp - which operations become one kernel region -----------===//
#include "compiler/passes/fuse/Grouping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace ogc::fuse {

bool isReshapeOp(Operation *op) { return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op); }

Value stripReshapes(Value value) {
  while (isReshapeOp(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

int64_t elementsOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

bool isElementwise(linalg::GenericOp op) {
  return op.getNumReductionLoops() == 0 && op.getNumDpsInits() > 0 &&
         llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) { return mapOf(init).isIdentity(); });
}

bool isReduction(Operation *op) {
  auto generic = dyn_cast<linalg::LinalgOp>(op);
  return generic && generic.getNumReductionLoops() > 0;
}

int64_t scalarCost(Operation *op) {
  if (!isa<linalg::GenericOp>(op))
    return 0;
  int64_t cost = 0;
  for (Operation &scalar : op->getRegion(0).front().without_terminator()) {
    if (isa<math::MathDialect>(scalar.getDialect()) || isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp>(scalar))
      cost += isa<math::AbsFOp, math::AbsIOp, math::FmaOp, math::CopySignOp>(scalar) ? 1 : 8;
    else if (!isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, linalg::IndexOp>(scalar))
      ++cost;
  }
  return cost;
}

/// True when an anchor asks for elements of `value`, as it is or through views.
static bool isPulled(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    return kern::isPulledOperand(use) || (isViewOp(use.getOwner()) && isPulled(use.getOwner()->getResult(0)));
  });
}

bool servesPulledOperand(Operation *op, unsigned depth) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  bool isSimple = isViewOp(op) || isa<tensor::ConcatOp>(op) || (generic && isElementwise(generic));
  if (depth == 0 || !isSimple || op->getNumResults() != 1 || scalarCost(op) > repeatBudget)
    return false;
  return isPulled(op->getResult(0)) ||
         llvm::all_of(op->getUsers(), [&](Operation *user) { return servesPulledOperand(user, depth - 1); });
}

AffineMap mapOf(OpOperand &operand) { return cast<linalg::LinalgOp>(operand.getOwner()).getMatchingIndexingMap(&operand); }

Grouping::Grouping(func::FuncOp function, bool emitRemarks) : block(function.getBody().front()), emitRemarks(emitRemarks) {
  infos.reserve(block.getOperations().size());
  for (Operation &op : block.without_terminator()) {
    OpInfo &opInfo = infos[&op];
    opInfo.index = ops.size();
    ops.push_back(&op);
    opInfo.isConstant = llvm::all_of(inputsOf(&op), [&](Value input) {
      Operation *def = input.getDefiningOp();
      return def && infos[def].isConstant;
    });
    if (kern::isAnchor(&op) && !isa<kern::ProgramOp>(op)) // programs read whole buffers
      absorbViews(&op);
  }
  infos[block.getTerminator()].index = ops.size();
  markDemanded();
}

/// The innermost dimension of what a convolution or matmul reads must be contiguous: their schedules load along it.
static bool isSuitable(const StridedView &view, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() == 0 || type.getShape().back() == 1 || view.strides.back() == 1;
}

void Grouping::absorbViews(Operation *anchor) {
  for (OpOperand &operand : anchor->getOpOperands()) {
    Value value = operand.get();
    if (!value.getDefiningOp() || infos[value.getDefiningOp()].isConstant)
      continue;
    StridedView view = kern::isStoredOperand(operand) ? resolveStoredView(value) : resolveStridedView(value);
    // Reshapes right below the root stay outside the region.
    size_t outside = 0;
    while (outside < view.chain.size() && isReshapeOp(view.chain[outside]))
      view.root = view.chain[outside++]->getResult(0);
    view.chain.erase(view.chain.begin(), view.chain.begin() + outside);
    if (view.chain.empty() || infos[view.chain.front()].isConstant)
      continue;
    if (!isSuitable(view, value)) {
      noteMiss(value.getDefiningOp(), -1, "view not read in place: its innermost stride is not one");
      continue;
    }
    viewUses[stripReshapes(view.root)].push_back(&operand);
    views.try_emplace(&operand, std::move(view));
  }
}

void Grouping::markDemanded() {
  SmallVector<Operation *> work{block.getTerminator()};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (Value input : inputsOf(op)) {
      Operation *def = input.getDefiningOp();
      if (def && !infos[def].isDemanded) {
        infos[def].isDemanded = true;
        work.push_back(def);
      }
    }
  }
}

SmallVector<Value> Grouping::inputsOf(Operation *op) {
  SmallVector<Value> inputs;
  for (OpOperand &operand : op->getOpOperands()) {
    const StridedView *view = absorbedView(operand);
    inputs.push_back(view ? view->root : operand.get());
  }
  if (op->getNumRegions() > 0) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    inputs.append(captured.begin(), captured.end());
  }
  return inputs;
}

const StridedView *Grouping::absorbedView(OpOperand &operand) {
  auto it = views.find(&operand);
  return it == views.end() ? nullptr : &it->second;
}

bool Grouping::isCheapConstant(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return false;
  if (isReshapeOp(def))
    return isCheapConstant(def->getOperand(0));
  if (isa<tensor::EmptyOp>(def))
    return true;
  if (auto constant = dyn_cast<arith::ConstantOp>(def)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    return !isa<ShapedType>(constant.getType()) || (elements && elements.isSplat());
  }
  auto fill = dyn_cast<linalg::FillOp>(def);
  return fill && matchPattern(fill.getInputs()[0], m_Constant()) &&
         isa_and_nonnull<tensor::EmptyOp>(fill.getOutputs()[0].getDefiningOp());
}

bool Grouping::isFree(Operation *op) {
  if (!op || op->getBlock() != &block || op->hasTrait<OpTrait::IsTerminator>() || isReshapeOp(op) || isa<arith::ConstantOp>(op) ||
      op->getNumResults() == 0 || isCheapConstant(op->getResult(0)))
    return false;
  const OpInfo &opInfo = infos[op];
  return opInfo.isDemanded && opInfo.group < 0 && !opInfo.isInlined;
}

SmallVector<Use> Grouping::usesOf(Value value) {
  SmallVector<Use> uses;
  SmallVector<std::pair<Value, bool>> work{{value, false}};
  while (!work.empty()) {
    auto [current, isReshaped] = work.pop_back_val();
    for (OpOperand &operand : current.getUses()) {
      Operation *user = block.findAncestorOpInBlock(*operand.getOwner());
      if (!user || (!user->hasTrait<OpTrait::IsTerminator>() && !infos[user].isDemanded) || absorbedView(operand))
        continue;
      if (isReshapeOp(user))
        work.push_back({user->getResult(0), true});
      else
        uses.push_back({user, &operand, user != operand.getOwner(), isReshaped});
    }
  }
  for (OpOperand *operand : viewUses.lookup(value))
    if (infos[operand->getOwner()].isDemanded)
      uses.push_back({operand->getOwner(), operand, false, false});
  return uses;
}

int Grouping::addGroup(GroupKind kind, Operation *op) {
  OpInfo &opInfo = infos[op];
  opInfo.group = groups.size();
  groups.push_back({kind, opInfo.isConstant, {op}, opInfo.index, opInfo.index});
  return opInfo.group;
}

void Grouping::addToGroup(int id, Operation *op) {
  OpInfo &opInfo = infos[op];
  Group &target = groups[id];
  opInfo.group = id;
  target.ops.push_back(op);
  target.minIndex = std::min(target.minIndex, opInfo.index);
  target.maxIndex = std::max(target.maxIndex, opInfo.index);
}

bool Grouping::wouldFormCycle(int id, Operation *op) {
  const Group &target = groups[id];
  unsigned minIndex = std::min(target.minIndex, infos[op].index);
  auto isMember = [&](Operation *other) { return other == op || infos[other].group == id; };

  // Everything outside that the members read; when one of these reaches a member again, there is a cycle.
  llvm::SmallPtrSet<Operation *, 32> seen;
  SmallVector<Operation *> work;
  auto visitInputs = [&](Operation *reader, bool isReaderMember) {
    for (Value input : inputsOf(reader)) {
      Operation *def = stripReshapes(input).getDefiningOp();
      if (!def)
        continue;
      if (isMember(def)) {
        if (!isReaderMember)
          return true;
        continue;
      }
      const OpInfo &defInfo = infos[def];
      unsigned last = defInfo.group >= 0 ? groups[defInfo.group].maxIndex : defInfo.index;
      if (last > minIndex && seen.insert(def).second)
        work.push_back(def);
    }
    return false;
  };
  visitInputs(op, true);
  for (Operation *member : target.ops)
    visitInputs(member, true);

  while (!work.empty()) {
    Operation *current = work.pop_back_val();
    int other = infos[current].group;
    if (other < 0) {
      if (visitInputs(current, false))
        return true;
      continue;
    }
    // All of a region is computed at once, so that it needs the inputs of all its members.
    for (Operation *member : groups[other].ops)
      if (seen.insert(member).second || member == current)
        if (visitInputs(member, false))
          return true;
  }
  return false;
}

void Grouping::noteMiss(Operation *op, int id, const Twine &reason) {
  if (emitRemarks && !infos[op].isConstant)
    misses[{op, id}] = reason.str();
}

void Grouping::emitMisses() {
  for (auto &[key, reason] : misses) {
    auto [op, id] = key;
    if (id < 0 || infos[op].group != id)
      op->emitRemark() << "not fused: " << reason;
  }
}

} // namespace ogc::fuse
