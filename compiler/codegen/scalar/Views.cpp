//===- Views.cpp - elements of tensor operations --------------------------===//
#include "compiler/codegen/scalar/ElementEmitter.h"
#include "compiler/codegen/scalar/ScatterElements.h"
#include "compiler/dialect/kern/Kern.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// An `scf.if` with one result, or only the branch taken when the condition is a constant.
Value ElementEmitter::emitIf(Location loc, Type type, Value condition, function_ref<Value()> then,
                             function_ref<Value()> otherwise) {
  if (std::optional<int64_t> known = math.constantValue(condition))
    return *known ? then() : otherwise();
  auto choice = scf::IfOp::create(builder, loc, TypeRange{type}, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  auto fill = [&](Block *block, function_ref<Value()> branch) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(block);
    Value value = branch();
    if (value)
      scf::YieldOp::create(builder, loc, value);
    return bool(value);
  };
  if (!fill(choice.thenBlock(), then) || !fill(choice.elseBlock(), otherwise))
    return {};
  return choice.getResult(0);
}

/// A slice offset, size or stride as an index value.
Value ElementEmitter::emitOffset(Location loc, OpFoldResult offset) {
  if (auto value = dyn_cast<Value>(offset))
    return emitScalar(value);
  return math.constant(loc, cast<IntegerAttr>(cast<Attribute>(offset)).getInt());
}

Value ElementEmitter::emitTensorOp(Operation *op, ArrayRef<Value> indices) {
  Location loc = op->getLoc();
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](tensor::CollapseShapeOp collapse) -> Value {
        ArrayRef<int64_t> extents = tensorType(collapse.getSrc()).getShape();
        SmallVector<Value> source(extents.size(), math.constant(loc, 0));
        for (auto [index, group] : llvm::zip_equal(indices, collapse.getReassociationIndices()))
          for (auto [offset, value] : llvm::enumerate(math.delinearize(loc, index, extents.slice(group.front(), group.size()))))
            source[group[offset]] = value;
        return emit(collapse.getSrc(), source);
      })
      .Case([&](tensor::ExpandShapeOp expand) -> Value {
        ArrayRef<int64_t> extents = tensorType(expand.getResult()).getShape();
        SmallVector<Value> source;
        for (const ReassociationIndices &group : expand.getReassociationIndices())
          source.push_back(
              math.linearize(loc, indices.slice(group.front(), group.size()), extents.slice(group.front(), group.size())));
        return emit(expand.getSrc(), source);
      })
      .Case([&](tensor::ReshapeOp reshape) -> Value {
        Value position = math.linearize(loc, indices, tensorType(reshape.getResult()).getShape());
        return emit(reshape.getSource(), math.delinearize(loc, position, tensorType(reshape.getSource()).getShape()));
      })
      .Case([&](tensor::ExtractSliceOp slice) { return emitExtractSlice(slice, indices); })
      .Case([&](tensor::InsertSliceOp slice) { return emitInsertSlice(slice, indices); })
      .Case([&](tensor::ConcatOp concat) { return emitConcat(concat, 0, concat.getInputs().size(), 0, indices); })
      .Case([&](tensor::PadOp pad) { return emitPad(pad, indices); })
      .Case([&](kern::MergeStatisticsOp merge) { return emitFactor(merge, indices); })
      .Case([&](kern::MergeMeansOp merge) { return emitMean(merge, indices); })
      .Case([&](tensor::CastOp cast) { return emit(cast.getSource(), indices); })
      .Case([&](tensor::SplatOp splat) { return emitScalar(splat.getInput()); })
      .Case([&](tensor::InsertOp insert) { return emitInsert(insert, indices); })
      .Case([&](tensor::ScatterOp scatter) { return emitScatter(*this, builder, scatter, indices); })
      .Case([&](tensor::GenerateOp generate) { return emitRegion(generate, indices); })
      .Case(
          [&](tensor::FromElementsOp elements) { return emitFromElements(elements, 0, elements.getElements().size(), indices); })
      .Case([&](tensor::BitcastOp bitcast) -> Value {
        Value element = emit(bitcast.getSource(), indices);
        return element ? Value(arith::BitcastOp::create(builder, loc, tensorType(bitcast.getResult()).getElementType(), element))
                       : Value();
      })
      .Case([&](tensor::EmptyOp empty) -> Value {
        // Never observed by a correct kernel; zero keeps it deterministic.
        return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(empty.getType().getElementType()));
      })
      .Case([&](arith::ConstantOp constant) { return emitConstant(constant, indices); })
      .Case([&](arith::SelectOp select) -> Value { // an element-wise select that was not turned into a generic
        auto pick = [&](Value operand) {
          return isa<RankedTensorType>(operand.getType()) ? emit(operand, indices) : emitScalar(operand);
        };
        Value condition = pick(select.getCondition());
        Value onTrue = condition ? pick(select.getTrueValue()) : Value(),
              onFalse = onTrue ? pick(select.getFalseValue()) : Value();
        return onFalse ? Value(arith::SelectOp::create(builder, loc, condition, onTrue, onFalse)) : Value();
      })
      .Default([&](Operation *) -> Value {
        if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1)
          return emitElementwise(op, indices);
        op->emitError() << "has no scalar form in a kernel";
        return {};
      });
}

/// An arith or math operation on whole tensors.
Value ElementEmitter::emitElementwise(Operation *op, ArrayRef<Value> indices) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(isa<RankedTensorType>(operand.getType()) ? emit(operand, indices) : emitScalar(operand));
    if (!operands.back())
      return {};
  }
  Type type = tensorType(op->getResult(0)).getElementType();
  return builder.create(op->getLoc(), op->getName().getIdentifier(), operands, type, op->getAttrs())->getResult(0);
}

Value ElementEmitter::emitExtractSlice(tensor::ExtractSliceOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<Value> source;
  unsigned next = 0;
  for (auto [dim, offset, stride] : llvm::enumerate(op.getMixedOffsets(), op.getMixedStrides())) {
    Value position = emitOffset(loc, offset);
    if (position && !dropped.test(dim)) {
      Value step = emitOffset(loc, stride);
      position = step ? math.add(loc, math.mul(loc, indices[next++], step), position) : Value();
    }
    if (!position)
      return {};
    source.push_back(position);
  }
  return emit(op.getSource(), source);
}

Value ElementEmitter::emitInsertSlice(tensor::InsertSliceOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  if (ShapedType::isDynamicShape(op.getStaticOffsets()) || ShapedType::isDynamicShape(op.getStaticStrides()) ||
      ShapedType::isDynamicShape(op.getStaticSizes())) {
    op->emitError() << "with dynamic offsets, sizes or strides has no scalar form";
    return {};
  }
  llvm::SmallBitVector dropped = op.getDroppedDims();
  ArrayRef<int64_t> destination = op.getDestType().getShape();
  Value inside = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  auto require = [&](Value condition) {
    inside = math.constantValue(inside) == -1 ? condition : builder.createOrFold<arith::AndIOp>(loc, inside, condition);
  };
  SmallVector<Value> positions;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    int64_t offset = op.getStaticOffsets()[dim], size = op.getStaticSizes()[dim], stride = op.getStaticStrides()[dim];
    Value position = math.sub(loc, index, offset);
    if (offset != 0 || (size - 1) * stride + 1 != destination[dim])
      require(math.lessThan(loc, position, size == 0 ? 0 : (size - 1) * stride + 1));
    if (stride != 1) {
      Value rest = math.rem(loc, position, stride);
      require(builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, rest, math.constant(loc, 0)));
    }
    if (!dropped.test(dim))
      positions.push_back(position);
  }
  auto source = [&]() -> Value {
    unsigned next = 0;
    for (auto [dim, stride] : llvm::enumerate(op.getStaticStrides()))
      if (!dropped.test(dim)) {
        positions[next] = math.div(loc, positions[next], stride);
        ++next;
      }
    return emit(op.getSource(), positions);
  };
  return emitIf(loc, op.getDestType().getElementType(), inside, source, [&] { return emit(op.getDest(), indices); });
}

/// The operands `first` to `last` of a concatenation; `offset` is where they begin. Halves of them are told apart first: a chain
/// of a thousand branches, each in the last one, is more than compilers take.
Value ElementEmitter::emitConcat(tensor::ConcatOp op, size_t first, size_t last, int64_t offset, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  int64_t dim = op.getDim();
  if (first + 1 == last) {
    SmallVector<Value> source(indices);
    source[dim] = math.sub(loc, indices[dim], offset);
    return emit(op.getInputs()[first], source);
  }
  size_t middle = first + (last - first) / 2;
  int64_t end = offset;
  for (Value input : op.getInputs().slice(first, middle - first))
    end += tensorType(input).getDimSize(dim);
  return emitIf(
      loc, op.getResultType().getElementType(), math.lessThan(loc, indices[dim], end),
      [&] { return emitConcat(op, first, middle, offset, indices); }, [&] { return emitConcat(op, middle, last, end, indices); });
}

Value ElementEmitter::emitPad(tensor::PadOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  if (ShapedType::isDynamicShape(op.getStaticLow()) || ShapedType::isDynamicShape(op.getStaticHigh())) {
    op->emitError() << "with dynamic padding has no scalar form";
    return {};
  }
  SmallVector<Value> source;
  Value inside;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    int64_t low = op.getStaticLow()[dim], high = op.getStaticHigh()[dim];
    source.push_back(math.sub(loc, index, low));
    if (low == 0 && high == 0)
      continue;
    Value condition = math.lessThan(loc, source.back(), op.getSourceType().getDimSize(dim));
    inside = inside ? builder.createOrFold<arith::AndIOp>(loc, inside, condition) : condition;
  }
  auto take = [&] { return emit(op.getSource(), source); };
  return inside ? emitIf(loc, op.getResultType().getElementType(), inside, take, [&] { return emitRegion(op, indices); })
                : take();
}

Value ElementEmitter::emitInsert(tensor::InsertOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  Value same = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  for (auto [index, wanted] : llvm::zip_equal(indices, op.getIndices())) {
    Value position = emitScalar(wanted);
    if (!position)
      return {};
    Value equal = builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, index, position);
    same = builder.createOrFold<arith::AndIOp>(loc, same, equal);
  }
  return emitIf(
      loc, op.getScalar().getType(), same, [&] { return emitScalar(op.getScalar()); },
      [&] { return emit(op.getDest(), indices); });
}

/// The value yielded by the region of `tensor.pad` or `tensor.generate` at `indices`.
Value ElementEmitter::emitRegion(Operation *op, ArrayRef<Value> indices) {
  Block &body = op->getRegion(0).front();
  IRMapping mapping;
  mapping.map(body.getArguments(), indices);
  for (Operation &nested : body.without_terminator())
    if (failed(emitBodyOp(nested, {}, mapping)))
      return {};
  return resolve(body.getTerminator()->getOperand(0), mapping);
}

/// Element of a constant. Large constants are inputs of a kernel; the few small ones inside become a chain of selections.
Value ElementEmitter::emitConstant(arith::ConstantOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  Type type = tensorType(op.getResult()).getElementType();
  auto make = [&](Attribute value) -> Value { return arith::ConstantOp::create(builder, loc, type, cast<TypedAttr>(value)); };
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || (!dense.isSplat() && dense.getNumElements() > 64)) {
    op->emitError() << "of type " << op.getType() << " inside a kernel body: expected a splat or at most 64 elements";
    return {};
  }
  if (dense.isSplat())
    return make(dense.getSplatValue<Attribute>());
  SmallVector<Attribute> values(dense.getValues<Attribute>());
  Value position = math.linearize(loc, indices, dense.getType().getShape());
  if (std::optional<int64_t> known = math.constantValue(position))
    return *known >= 0 && *known < int64_t(values.size()) ? make(values[*known]) : make(values[0]);
  Value result = make(values[0]);
  for (size_t i = 1; i < values.size(); ++i) {
    Value here = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, position, math.constant(loc, i));
    result = arith::SelectOp::create(builder, loc, here, make(values[i]), result);
  }
  return result;
}

/// `tensor.from_elements`: its elements `first` to `last`, at row-major position; halves are told apart first, as above.
Value ElementEmitter::emitFromElements(tensor::FromElementsOp op, size_t first, size_t last, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  if (first + 1 >= last)
    return emitScalar(op.getElements()[first]);
  size_t middle = first + (last - first) / 2;
  Value position = math.linearize(loc, indices, tensorType(op.getResult()).getShape());
  return emitIf(
      loc, tensorType(op.getResult()).getElementType(), math.lessThan(loc, position, static_cast<int64_t>(middle)),
      [&] { return emitFromElements(op, first, middle, indices); }, [&] { return emitFromElements(op, middle, last, indices); });
}

} // namespace ogc::codegen
