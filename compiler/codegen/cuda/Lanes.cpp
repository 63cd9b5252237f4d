//===- Lanes.cpp - several neighbouring elements in one thread ------------===//
#include "compiler/codegen/cuda/Lanes.h"

#include "compiler/codegen/cuda/CudaTypes.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ogc::codegen {

static constexpr int64_t largestDivisor = int64_t(1) << 30;

static int64_t powerOfTwoIn(int64_t value) { return value == 0 ? largestDivisor : std::min(largestDivisor, value & -value); }

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

LaneAnalysis::LaneAnalysis(Block &block, Value root, ValueRange varying, int64_t width) : width(width) {
  lanes[root] = {Lane::Consecutive, width};
  for (Value value : varying)
    lanes[value] = {Lane::Varying, 1};
  // Values only fall (uniform, consecutive, varying; smaller divisors), so this ends.
  while (visit(block)) {
  }
}

Lane LaneAnalysis::of(Value value) const {
  auto it = lanes.find(value);
  if (it != lanes.end())
    return it->second;
  std::optional<int64_t> constant = constantOf(value);
  return {Lane::Uniform, constant ? powerOfTwoIn(*constant) : 1};
}

bool LaneAnalysis::update(Value value, Lane lane) {
  auto [it, inserted] = lanes.try_emplace(value, lane);
  if (inserted)
    return true;
  Lane merged{std::max(it->second.kind, lane.kind), std::min(it->second.divisor, lane.divisor)};
  // A loop-carried index that is not the same in each turn is not followed further.
  if (it->second.kind != lane.kind)
    merged.kind = Lane::Varying;
  if (it->second == merged)
    return false;
  it->second = merged;
  return true;
}

/// The lanes of a result that is computed from index arithmetic; anything else is uniform if its operands are.
Lane LaneAnalysis::transfer(Operation *op) const {
  bool allUniform = llvm::all_of(op->getOperands(), [&](Value v) { return of(v).kind == Lane::Uniform; });
  Lane otherwise{allUniform ? Lane::Uniform : Lane::Varying, 1};
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    // Aligned lanes lie together below or above an aligned bound.
    using P = arith::CmpIPredicate;
    Lane a = of(compare.getLhs()), b = of(compare.getRhs());
    bool isBound = llvm::is_contained({P::ult, P::slt, P::uge, P::sge}, compare.getPredicate());
    if (isBound && a.kind == Lane::Consecutive && b.kind == Lane::Uniform && std::min(a.divisor, b.divisor) >= width)
      return {Lane::Uniform, 1};
  }
  if (op->getNumOperands() != 2 || !op->getResult(0).getType().isIndex())
    return otherwise;
  Lane a = of(op->getOperand(0)), b = of(op->getOperand(1));
  int64_t smaller = std::min(a.divisor, b.divisor);
  if (isa<arith::AddIOp>(op) && (a.kind == Lane::Uniform || b.kind == Lane::Uniform))
    return {std::max(a.kind, b.kind), smaller};
  if (isa<arith::SubIOp>(op) && b.kind == Lane::Uniform)
    return {a.kind, smaller};
  if (isa<arith::MulIOp>(op) && allUniform)
    return {Lane::Uniform, std::min(largestDivisor, a.divisor * b.divisor)};
  std::optional<int64_t> divisor = constantOf(op->getOperand(1));
  if (!divisor || *divisor <= 0 || !isa<arith::DivUIOp, arith::RemUIOp>(op) || a.kind == Lane::Varying)
    return otherwise;
  bool isPowerOfTwo = (*divisor & (*divisor - 1)) == 0;
  // Lanes that start at a multiple of the width stay between two multiples of a divisor that is one itself.
  bool together = a.kind == Lane::Uniform || (a.divisor >= width && *divisor % width == 0);
  if (isa<arith::DivUIOp>(op))
    return together ? Lane{Lane::Uniform, isPowerOfTwo ? std::max<int64_t>(1, a.divisor / *divisor) : 1} : otherwise;
  return together ? Lane{a.kind, std::min(a.divisor, powerOfTwoIn(*divisor))} : otherwise;
}

bool LaneAnalysis::visit(Block &block) {
  bool changed = false;
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      bool sameTrips = llvm::all_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                                    [&](Value v) { return of(v).kind == Lane::Uniform; });
      Lane step{sameTrips ? Lane::Uniform : Lane::Varying,
                std::min(of(loop.getLowerBound()).divisor, of(loop.getStep()).divisor)};
      changed |= update(loop.getInductionVar(), step);
      for (auto [arg, init] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
        changed |= update(arg, {of(init).kind == Lane::Uniform ? Lane::Uniform : Lane::Varying, 1});
      changed |= visit(*loop.getBody());
      for (auto [arg, result, yielded] :
           llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults(), loop.getBody()->getTerminator()->getOperands())) {
        Lane lane{sameTrips && of(yielded).kind == Lane::Uniform ? Lane::Uniform : Lane::Varying, 1};
        changed |= update(arg, lane);
        changed |= update(result, {of(arg).kind, 1});
      }
      continue;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      changed |= visit(*branch.thenBlock());
      if (branch.elseBlock())
        changed |= visit(*branch.elseBlock());
      for (auto [i, result] : llvm::enumerate(branch.getResults())) {
        bool uniform = of(branch.getCondition()).kind == Lane::Uniform &&
                       of(branch.thenBlock()->getTerminator()->getOperand(i)).kind == Lane::Uniform &&
                       of(branch.elseBlock()->getTerminator()->getOperand(i)).kind == Lane::Uniform;
        changed |= update(result, {uniform ? Lane::Uniform : Lane::Varying, 1});
      }
      continue;
    }
    // Other control flow is not looked into: its results are taken to differ.
    for (Value result : op.getResults()) {
      Lane lane = op.getNumRegions() ? Lane{Lane::Varying, 1} : transfer(&op);
      if (op.hasTrait<OpTrait::ConstantLike>())
        lane = {Lane::Uniform, powerOfTwoIn(constantOf(result).value_or(1))};
      changed |= update(result, lane);
    }
  }
  return changed;
}

bool LaneAnalysis::isVectorAccess(Value buffer, ValueRange indices) const {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (indices.empty() || failed(cast<MemRefType>(buffer.getType()).getStridesAndOffset(strides, offset)) || strides.back() != 1 ||
      offset % width != 0)
    return false;
  Lane last = of(indices.back());
  if (last.kind != Lane::Consecutive || last.divisor < width)
    return false;
  for (auto [index, stride] : llvm::zip_equal(indices.drop_back(), ArrayRef(strides).drop_back())) {
    Lane lane = of(index);
    if (lane.kind != Lane::Uniform || std::min(lane.divisor, width) * powerOfTwoIn(stride) % width != 0)
      return false;
  }
  return true;
}

bool LaneAnalysis::isUniform(Operation *op) const {
  bool uniform = true;
  op->walk([&](Operation *nested) {
    for (Value value : nested->getOperands())
      uniform &= of(value).kind == Lane::Uniform;
    for (Value value : nested->getResults())
      uniform &= of(value).kind == Lane::Uniform;
  });
  return uniform;
}

bool LaneAnalysis::canWiden(Block &block, bool strictLoads) const {
  for (Operation &op : block.without_terminator()) {
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      if (strictLoads && !isUniform(&op) && !isVectorAccess(load.getMemRef(), load.getIndices()))
        return false;
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (!isVectorAccess(store.getMemRef(), store.getIndices()))
        return false;
    } else if (op.getNumRegions() != 0 && !isUniform(&op)) {
      bool together =
          isa<scf::ForOp, scf::IfOp>(op) && llvm::all_of(isa<scf::IfOp>(op) ? op.getOperands() : op.getOperands().take_front(3),
                                                         [&](Value v) { return of(v).kind == Lane::Uniform; });
      if (!together)
        return false;
      for (Region &region : op.getRegions())
        if (!region.empty() && !canWiden(region.front(), strictLoads))
          return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Widening
//===----------------------------------------------------------------------===//

namespace {

class LaneCloner {
public:
  LaneCloner(OpBuilder &builder, const LaneAnalysis &analysis, MutableArrayRef<IRMapping> mappings)
      : builder(builder), analysis(analysis), mappings(mappings) {}

  void cloneBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      cloneOp(op);
  }

private:
  void cloneOp(Operation &op);
  void cloneLoad(memref::LoadOp op);
  void cloneStore(memref::StoreOp op);
  void cloneStatistics(kern::StoreStatisticsOp op);
  void cloneFor(scf::ForOp op);
  void cloneIf(scf::IfOp op);
  void cloneRegion(Block &from, Block &to);
  SmallVector<Value> indicesOfLane0(ValueRange indices) const {
    return llvm::map_to_vector(indices, [&](Value v) { return mappings[0].lookupOrDefault(v); });
  }
  /// The values of all lanes, value by value.
  SmallVector<Value> spread(ValueRange values) const {
    SmallVector<Value> all;
    for (Value value : values)
      for (IRMapping &mapping : mappings)
        all.push_back(mapping.lookupOrDefault(value));
    return all;
  }
  void mapSpread(ValueRange values, ValueRange spreadValues) {
    for (auto [i, value] : llvm::enumerate(values))
      for (auto [lane, mapping] : llvm::enumerate(mappings))
        mapping.map(value, spreadValues[i * mappings.size() + lane]);
  }
  /// Lanes that one access of at most 16 bytes can take.
  int64_t chunk(Type element) const { return std::min<int64_t>(mappings.size(), 16 / std::max(1u, cudaElementBytes(element))); }

  OpBuilder &builder;
  const LaneAnalysis &analysis;
  MutableArrayRef<IRMapping> mappings;
};

void LaneCloner::cloneOp(Operation &op) {
  if (mappings.size() == 1 || (analysis.isUniform(&op) && !isa<memref::StoreOp>(op))) {
    Operation *clone = builder.clone(op, mappings[0]);
    for (IRMapping &mapping : mappings.drop_front())
      mapping.map(op.getResults(), clone->getResults());
    return;
  }
  if (auto load = dyn_cast<memref::LoadOp>(op); load && analysis.isVectorAccess(load.getMemRef(), load.getIndices()))
    return cloneLoad(load);
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return cloneStore(store);
  if (auto store = dyn_cast<kern::StoreStatisticsOp>(op))
    return cloneStatistics(store);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return cloneFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return cloneIf(branch);
  for (IRMapping &mapping : mappings)
    builder.clone(op, mapping);
}

void LaneCloner::cloneLoad(memref::LoadOp op) {
  SmallVector<Value> indices = indicesOfLane0(op.getIndices());
  Value base = mappings[0].lookupOrDefault(op.getMemRef()), first = indices.back();
  int64_t width = chunk(op.getType());
  for (int64_t lane = 0; lane < int64_t(mappings.size()); lane += width) {
    if (lane)
      indices.back() =
          arith::AddIOp::create(builder, op.getLoc(), first, arith::ConstantIndexOp::create(builder, op.getLoc(), lane));
    Value vector = vector::LoadOp::create(builder, op.getLoc(), VectorType::get({width}, op.getType()), base, indices);
    for (int64_t i = 0; i < width; ++i)
      mappings[lane + i].map(op.getResult(), Value(vector::ExtractOp::create(builder, op.getLoc(), vector, i)));
  }
}

void LaneCloner::cloneStore(memref::StoreOp op) {
  SmallVector<Value> indices = indicesOfLane0(op.getIndices()), values = spread(op.getValueToStore());
  Value base = mappings[0].lookupOrDefault(op.getMemRef()), first = indices.back();
  int64_t width = chunk(op.getValueToStore().getType());
  for (int64_t lane = 0; lane < int64_t(mappings.size()); lane += width) {
    if (lane)
      indices.back() =
          arith::AddIOp::create(builder, op.getLoc(), first, arith::ConstantIndexOp::create(builder, op.getLoc(), lane));
    auto type = VectorType::get({width}, op.getValueToStore().getType());
    Value vector = vector::FromElementsOp::create(builder, op.getLoc(), type, ArrayRef(values).slice(lane, width));
    vector::StoreOp::create(builder, op.getLoc(), vector, base, indices);
  }
}

void LaneCloner::cloneStatistics(kern::StoreStatisticsOp op) {
  auto ofLane0 = [&](Value v) { return mappings[0].lookupOrDefault(v); };
  kern::StoreStatisticsOp::create(builder, op.getLoc(), spread(op.getElements()), ofLane0(op.getMeans()),
                                  ofLane0(op.getSquares()), indicesOfLane0(op.getPosition()));
}

void LaneCloner::cloneRegion(Block &from, Block &to) {
  OpBuilder::InsertionGuard guard(builder);
  if (!to.empty() && to.back().hasTrait<OpTrait::IsTerminator>())
    to.back().erase();
  builder.setInsertionPointToEnd(&to);
  cloneBlock(from);
  scf::YieldOp::create(builder, from.getTerminator()->getLoc(), spread(from.getTerminator()->getOperands()));
}

void LaneCloner::cloneFor(scf::ForOp op) {
  auto bound = [&](Value v) { return mappings[0].lookupOrDefault(v); };
  auto loop = scf::ForOp::create(builder, op.getLoc(), bound(op.getLowerBound()), bound(op.getUpperBound()), bound(op.getStep()),
                                 spread(op.getInitArgs()));
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (IRMapping &mapping : mappings)
    mapping.map(op.getInductionVar(), loop.getInductionVar());
  mapSpread(op.getRegionIterArgs(), loop.getRegionIterArgs());
  cloneRegion(*op.getBody(), *loop.getBody());
  mapSpread(op.getResults(), loop.getResults());
}

void LaneCloner::cloneIf(scf::IfOp op) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.append(mappings.size(), type);
  auto branch =
      scf::IfOp::create(builder, op.getLoc(), types, mappings[0].lookupOrDefault(op.getCondition()), op.elseBlock() != nullptr);
  cloneRegion(*op.thenBlock(), *branch.thenBlock());
  if (op.elseBlock())
    cloneRegion(*op.elseBlock(), *branch.elseBlock());
  mapSpread(op.getResults(), branch.getResults());
}

} // namespace

void cloneLanes(OpBuilder &builder, Block &block, const LaneAnalysis &analysis, MutableArrayRef<IRMapping> mappings) {
  LaneCloner(builder, analysis, mappings).cloneBlock(block);
}

} // namespace ogc::codegen
