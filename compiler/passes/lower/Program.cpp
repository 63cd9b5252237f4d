//===- Program.cpp - builders of kern.program -----------------------------===//
#include "compiler/passes/lower/Program.h"

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ogc::lower {

Value ProgramBody::loadRaw(Value buffer, Value position) { return memref::LoadOp::create(b, buffer, position); }
void ProgramBody::storeRaw(Value buffer, Value position, Value element) { memref::StoreOp::create(b, element, buffer, position); }
Value ProgramBody::load(Value buffer, Value position) { return widen(loadRaw(buffer, position)); }
void ProgramBody::store(Value buffer, Value position, Value element) {
  storeRaw(buffer, position, narrow(element, cast<MemRefType>(buffer.getType()).getElementType()));
}

Value ProgramBody::index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
Value ProgramBody::plus(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
Value ProgramBody::minus(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
Value ProgramBody::times(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
Value ProgramBody::over(Value x, int64_t y) { return y == 1 ? x : b.createOrFold<arith::DivUIOp>(x, index(y)); }
Value ProgramBody::rest(Value x, int64_t y) { return y == 1 ? index(0) : b.createOrFold<arith::RemUIOp>(x, index(y)); }
Value ProgramBody::smaller(Value x, Value y) { return b.createOrFold<arith::MinUIOp>(x, y); }
Value ProgramBody::isLess(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y); }
Value ProgramBody::both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
Value ProgramBody::either(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
Value ProgramBody::asI64(Value index) { return arith::IndexCastOp::create(b, b.getI64Type(), index); }

SmallVector<Value> ProgramBody::split(Value position, ArrayRef<int64_t> extents) {
  SmallVector<Value> result(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    result[d] = d == 0 ? position : rest(position, extents[d]);
    position = over(position, extents[d]);
  }
  return result;
}

SmallVector<Value> ProgramBody::loop(Value from, Value to, ValueRange inits, Step body) {
  auto loop = scf::ForOp::create(b, from, to, index(1), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> carried = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, carried);
  return SmallVector<Value>(loop.getResults());
}

void ProgramBody::loop(Value from, Value to, function_ref<void(Value)> body) {
  loop(from, to, ValueRange(), [&](Value i, ValueRange) -> SmallVector<Value> { return body(i), SmallVector<Value>(); });
}

SmallVector<Value> ProgramBody::whileLoop(ValueRange inits, function_ref<Value(ValueRange)> condition,
                                          function_ref<SmallVector<Value>(ValueRange)> body) {
  auto loop = scf::WhileOp::create(b, TypeRange(inits), inits);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(inits.size(), b.getLoc());
  Block *before = b.createBlock(&loop.getBefore(), {}, TypeRange(inits), locations);
  Value goesOn = condition(before->getArguments());
  scf::ConditionOp::create(b, goesOn, before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, TypeRange(inits), locations);
  SmallVector<Value> next = body(after->getArguments());
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(loop.getResults());
}

void ProgramBody::when(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value ProgramBody::choose(Value condition, function_ref<Value()> then, function_ref<Value()> otherwise) {
  // The type of the result is known when the first branch is there: it is built aside and moved.
  Block first;
  Value value;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&first);
    value = then();
    scf::YieldOp::create(b, value);
  }
  auto branch = scf::IfOp::create(b, TypeRange(value.getType()), condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  branch.thenBlock()->getOperations().splice(branch.thenBlock()->begin(), first.getOperations());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise());
  return branch.getResult(0);
}

void ProgramBody::parallel(Value extent, int64_t width, function_ref<void(Value)> body) {
  auto op = kern::ParallelOp::create(b, extent, width);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&op.getBody(), {}, {b.getIndexType()}, {b.getLoc()});
  body(block->getArgument(0));
}

SmallVector<Value> program(Builder &b, ValueRange inputs, ArrayRef<RankedTensorType> results, int64_t groups,
                           function_ref<void(ProgramBody &)> body) {
  auto flat = [](RankedTensorType type) { return MemRefType::get({type.getNumElements()}, type.getElementType()); };
  SmallVector<Type> types(results.begin(), results.end()), arguments{b.getIndexType()};
  for (Value input : inputs)
    arguments.push_back(flat(typeOf(input)));
  for (RankedTensorType result : results)
    arguments.push_back(flat(result));
  auto op = kern::ProgramOp::create(b, types, inputs, groups);
  SmallVector<Location> locations(arguments.size(), b.getLoc());
  OpBuilder inner(b.getContext());
  Block *block = inner.createBlock(&op.getBody(), {}, arguments, locations);
  ProgramBody builder(inner, b.getLoc(), *block, static_cast<unsigned>(inputs.size()));
  body(builder);
  return SmallVector<Value>(op.getOutputs());
}

Lines::Lines(ArrayRef<int64_t> shape, int64_t axis)
    : outer(numElements(shape.take_front(axis))), length(shape[axis]), stride(numElements(shape.drop_front(axis + 1))) {}

Value Lines::start(ProgramBody &p, Value line) const {
  return p.plus(p.times(p.over(line, stride), length * stride), p.rest(line, stride));
}

} // namespace ogc::lower
