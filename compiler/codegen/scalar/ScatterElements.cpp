//===- ScatterElements.cpp - tensor.scatter, element by element -----------===//
#include "compiler/codegen/scalar/ScatterElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

class ScatterEmitter {
public:
  ScatterEmitter(ElementEmitter &emitter, OpBuilder &builder, tensor::ScatterOp op)
      : emitter(emitter), builder(builder), op(op), loc(op.getLoc()), count(tensorType(op.getIndices()).getDimSize(0)),
        depth(static_cast<size_t>(tensorType(op.getIndices()).getDimSize(1))) {}

  Value element(ArrayRef<Value> indices) {
    Value old = emitter.emit(op.getDest(), indices);
    if (!old)
      return {};
    return fold(old, [&](Value update, Value value) -> Value {
      SmallVector<Value> named = positionsOf(update), from{update};
      llvm::append_range(from, indices.drop_front(depth));
      Value replacement = named.empty() ? Value() : emitter.emit(op.getSource(), from);
      if (!replacement)
        return {};
      return arith::SelectOp::create(builder, loc, allEqual(named, indices.take_front(depth)), replacement, value);
    });
  }

  ScatterTarget target(ArrayRef<Value> position) {
    ScatterTarget result;
    SmallVector<Value> named = positionsOf(position[0]);
    for (auto [d, index] : llvm::enumerate(named)) {
      Value inside = emitter.indices().lessThan(loc, index, tensorType(op.getDest()).getDimSize(d));
      result.isValid = result.isValid ? Value(arith::AndIOp::create(builder, loc, result.isValid, inside)) : inside;
    }
    if (named.empty())
      return {};
    if (count > 1) {
      // As if the updates were done one after the other.
      Value last = fold(bit(true), [&](Value update, Value isLast) -> Value {
        SmallVector<Value> other = positionsOf(update);
        if (other.empty())
          return {};
        Value isEarlier = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, update, position[0]);
        Value differs = arith::XOrIOp::create(builder, loc, allEqual(other, named), bit(true));
        return arith::AndIOp::create(builder, loc, isLast, arith::OrIOp::create(builder, loc, isEarlier, differs));
      });
      if (!last)
        return {};
      result.isValid = arith::AndIOp::create(builder, loc, result.isValid, last);
    }
    result.indices = std::move(named);
    llvm::append_range(result.indices, position.drop_front());
    return result;
  }

private:
  Value bit(bool value) { return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value)); }

  /// The positions along the first dimensions that an update names; empty after an error.
  SmallVector<Value> positionsOf(Value update) {
    SmallVector<Value> positions;
    for (size_t d = 0; d < depth; ++d) {
      Value index = emitter.emit(op.getIndices(), {update, emitter.indices().constant(loc, static_cast<int64_t>(d))});
      if (!index)
        return {};
      positions.push_back(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index));
    }
    return positions;
  }

  Value allEqual(ArrayRef<Value> a, ArrayRef<Value> b) {
    Value equal = bit(true);
    for (auto [x, y] : llvm::zip_equal(a, b)) {
      Value same = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, x, y);
      equal = arith::AndIOp::create(builder, loc, equal, same);
    }
    return equal;
  }

  /// `step(update, value)` for all updates in order, from `init`; null after an error.
  Value fold(Value init, function_ref<Value(Value, Value)> step) {
    IndexMath &math = emitter.indices();
    if (count == 1)
      return step(math.constant(loc, 0), init);
    Value zero = math.constant(loc, 0), end = math.constant(loc, count), one = math.constant(loc, 1);
    auto loop = scf::ForOp::create(builder, loc, zero, end, one, init);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value next = step(loop.getInductionVar(), loop.getRegionIterArg(0));
    if (!next)
      return {};
    scf::YieldOp::create(builder, loc, next);
    return loop.getResult(0);
  }

  ElementEmitter &emitter;
  OpBuilder &builder;
  tensor::ScatterOp op;
  Location loc;
  int64_t count;
  size_t depth;
};

} // namespace

Value emitScatter(ElementEmitter &emitter, OpBuilder &builder, tensor::ScatterOp op, ArrayRef<Value> indices) {
  return ScatterEmitter(emitter, builder, op).element(indices);
}

ScatterTarget emitScatterTarget(ElementEmitter &emitter, OpBuilder &builder, tensor::ScatterOp op, ArrayRef<Value> position) {
  return ScatterEmitter(emitter, builder, op).target(position);
}

tensor::ScatterOp inPlaceScatter(kern::KernelOp kernel) {
  std::optional<unsigned> argument = inPlaceArgument(kernel);
  auto scatter = kernel.getBody().front().getTerminator()->getOperand(0).getDefiningOp<tensor::ScatterOp>();
  return argument && scatter && scatter.getDest() == kernel.getBody().getArgument(*argument) ? scatter : nullptr;
}

} // namespace ogc::codegen
