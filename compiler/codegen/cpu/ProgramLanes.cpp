//===- ProgramLanes.cpp - neighbouring iterations as vectors --------------===//
#include "compiler/codegen/cpu/ProgramLanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ogc::codegen {

ProgramLanes::ProgramLanes(kern::ParallelOp op, int64_t fewest) : op(op) {
  Block &body = op.getBody().front();
  for (width = 64; width >= fewest; width /= 2) {
    kinds.clear();
    hasLoop = false;
    kinds[body.getArgument(0)] = Kind::Contiguous;
    if (static_cast<int64_t>(op.getWidth()) >= width && analyze(body) && hasLoop)
      return;
  }
  width = 0;
}

ProgramLanes::Kind ProgramLanes::kindOf(Value value) const {
  auto it = kinds.find(value);
  return it == kinds.end() ? Kind::Uniform : it->second;
}

static bool isFloat(Type type) { return isa<FloatType>(type); }

bool ProgramLanes::analyze(Block &block) {
  for (Operation &nested : block)
    if (!analyzeOp(nested))
      return false;
  return true;
}

/// Positions: the iteration itself, digits of it that all lanes share or that run along, and sums with common offsets.
bool ProgramLanes::analyzeIndex(Operation &nested) {
  Value iteration = op.getBody().front().getArgument(0);
  APInt divisor;
  bool isDigit = nested.getNumOperands() == 2 && nested.getOperand(0) == iteration &&
                 matchPattern(nested.getOperand(1), m_ConstantInt(&divisor)) && divisor.getSExtValue() % width == 0;
  if (isa<arith::DivUIOp>(nested) && isDigit)
    return true; // uniform
  bool runsAlong = isa<arith::RemUIOp>(nested) && isDigit;
  if (isa<arith::AddIOp>(nested))
    runsAlong = (kindOf(nested.getOperand(0)) == Kind::Contiguous) != (kindOf(nested.getOperand(1)) == Kind::Contiguous);
  if (runsAlong)
    kinds[nested.getResult(0)] = Kind::Contiguous;
  return runsAlong;
}

bool ProgramLanes::analyzeOp(Operation &nested) {
  bool isUniform = llvm::all_of(nested.getOperands(), [&](Value v) { return kindOf(v) == Kind::Uniform; });
  if (auto load = dyn_cast<memref::LoadOp>(nested)) {
    if (isUniform)
      return true;
    if (load.getIndices().size() != 1 || kindOf(load.getIndices()[0]) != Kind::Contiguous || !isFloat(load.getType()))
      return false;
    kinds[load.getResult()] = Kind::Varying;
    return true;
  }
  if (auto store = dyn_cast<memref::StoreOp>(nested))
    return store.getIndices().size() == 1 && kindOf(store.getIndices()[0]) == Kind::Contiguous &&
           isFloat(store.getValueToStore().getType()) && kindOf(store.getValueToStore()) != Kind::Contiguous;
  if (auto loop = dyn_cast<scf::ForOp>(nested)) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      if (kindOf(bound) != Kind::Uniform)
        return false;
    for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
      if (!isFloat(argument.getType()))
        return false;
      kinds[argument] = kinds[result] = Kind::Varying;
    }
    hasLoop = true;
    return analyze(*loop.getBody());
  }
  if (isa<scf::YieldOp>(nested))
    return true;
  if (nested.getNumRegions() != 0 || nested.getNumResults() != 1)
    return false;
  if (isUniform)
    return true;
  if (nested.getResult(0).getType().isIndex())
    return analyzeIndex(nested);
  if (!OpTrait::hasElementwiseMappableTraits(&nested) ||
      llvm::any_of(nested.getOperands(), [&](Value v) { return kindOf(v) == Kind::Contiguous; }))
    return false;
  kinds[nested.getResult(0)] = Kind::Varying;
  return true;
}

Type ProgramLanes::widened(Type element) const { return VectorType::get({width}, element); }

Value ProgramLanes::varying(OpBuilder &builder, Value value, IRMapping &mapping) const {
  Value copy = mapping.lookupOrDefault(value);
  if (kindOf(value) == Kind::Varying)
    return copy;
  return vector::BroadcastOp::create(builder, copy.getLoc(), widened(copy.getType()), copy);
}

void ProgramLanes::emit(OpBuilder &builder, Value first, const IRMapping &outer) {
  IRMapping mapping(outer);
  Block &body = op.getBody().front();
  mapping.map(body.getArgument(0), first);
  emitBlock(builder, body, mapping);
}

void ProgramLanes::emitBlock(OpBuilder &builder, Block &block, IRMapping &mapping) {
  for (Operation &nested : block)
    emitOp(builder, nested, mapping);
}

void ProgramLanes::emitOp(OpBuilder &builder, Operation &nested, IRMapping &mapping) {
  Location loc = nested.getLoc();
  auto lookup = [&](Value value) { return mapping.lookupOrDefault(value); };
  if (auto load = dyn_cast<memref::LoadOp>(nested); load && kindOf(load.getResult()) == Kind::Varying) {
    auto type = cast<VectorType>(widened(load.getType()));
    mapping.map(load.getResult(),
                vector::LoadOp::create(builder, loc, type, lookup(load.getMemRef()), lookup(load.getIndices()[0])).getResult());
    return;
  }
  if (auto store = dyn_cast<memref::StoreOp>(nested)) {
    Value value = varying(builder, store.getValueToStore(), mapping);
    vector::StoreOp::create(builder, loc, value, lookup(store.getMemRef()), lookup(store.getIndices()[0]));
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(nested)) {
    SmallVector<Value> inits;
    for (Value init : loop.getInitArgs())
      inits.push_back(varying(builder, init, mapping));
    auto copy = scf::ForOp::create(builder, loc, lookup(loop.getLowerBound()), lookup(loop.getUpperBound()),
                                   lookup(loop.getStep()), inits);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(copy.getBody());
    mapping.map(loop.getInductionVar(), copy.getInductionVar());
    mapping.map(loop.getRegionIterArgs(), copy.getRegionIterArgs());
    for (Operation &step : loop.getBody()->without_terminator())
      emitOp(builder, step, mapping);
    SmallVector<Value> next;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      next.push_back(varying(builder, value, mapping));
    if (!inits.empty())
      scf::YieldOp::create(builder, loc, next);
    mapping.map(loop.getResults(), copy.getResults());
    return;
  }
  if (nested.getNumResults() == 1 && kindOf(nested.getResult(0)) == Kind::Varying) {
    OperationState state(loc, nested.getName());
    for (Value operand : nested.getOperands())
      state.addOperands(varying(builder, operand, mapping));
    state.addTypes(widened(nested.getResult(0).getType()));
    state.addAttributes(nested.getAttrs());
    mapping.map(nested.getResult(0), builder.create(state)->getResult(0));
    return;
  }
  builder.clone(nested, mapping);
}

} // namespace ogc::codegen
