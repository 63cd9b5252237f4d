//===- ElementEmitter.cpp - scalar IR for one element of a tensor value ---===//
#include "compiler/codegen/scalar/ElementEmitter.h"

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ogc::codegen {

void ElementEmitter::bindBuffer(Value tensor, Value buffer) { buffers[tensor] = buffer; }

void ElementEmitter::bindScalar(Value tensor, Value scalar) {
  scalars[tensor] = scalar;
  elements.clear(); // elements that were computed from the previous scalar
}

void ElementEmitter::bindElement(Value tensor, ArrayRef<Value> indices, Value value) {
  boundElements[keyOf(tensor, indices)].push_back(value);
}

ElementEmitter::Key ElementEmitter::keyOf(Value tensor, ArrayRef<Value> indices) {
  Key key{tensor.getAsOpaquePointer(), {}};
  for (Value index : indices)
    key.second.push_back(index.getAsOpaquePointer());
  return key;
}

Value ElementEmitter::emit(Value tensor, ArrayRef<Value> indices) {
  if (Value scalar = scalars.lookup(tensor))
    return scalar;
  Key key = keyOf(tensor, indices);
  if (auto bound = boundElements.find(key); bound != boundElements.end())
    for (Value candidate : bound->second)
      if (isVisible(builder, candidate))
        return candidate;
  if (auto known = elements.find(key); known != elements.end())
    if (Value candidate = visibleAmong(builder, known->second))
      return candidate;
  Value element = emitUncached(tensor, indices);
  if (element)
    elements[key].push_back(element);
  return element;
}

Value ElementEmitter::emitUncached(Value tensor, ArrayRef<Value> indices) {
  if (Value buffer = buffers.lookup(tensor))
    return emitLoad(tensor, buffer, indices);
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    emitError(tensor.getLoc()) << "kernel argument of type " << tensor.getType() << " has no buffer";
    return {};
  }
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return emitStructured(structured, cast<OpResult>(tensor).getResultNumber(), indices);
  if (kern::isAnchor(op))
    return emitAnchor(op, indices);
  if (auto statistics = dyn_cast<kern::RowStatisticsOp>(op))
    return emitStatistic(statistics, tensor == statistics.getMeans(), indices);
  return emitTensorOp(op, indices);
}

Value ElementEmitter::emitLoad(Value tensor, Value buffer, ArrayRef<Value> indices) {
  Location loc = tensor.getLoc();
  auto type = cast<RankedTensorType>(tensor.getType());
  auto memory = cast<MemRefType>(buffer.getType());
  Value element = memory.getRank() == 1 && type.getRank() != 1
                      ? memref::LoadOp::create(builder, loc, buffer, math.linearize(loc, indices, type.getShape()))
                      : memref::LoadOp::create(builder, loc, buffer, indices);
  if (element.getType() == type.getElementType())
    return element;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element.getType()));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, element, zero); // a boolean kept as a byte
}

Value ElementEmitter::emitScalar(Value scalar) {
  if (Value bound = scalars.lookup(scalar))
    return bound;
  Operation *op = scalar.getDefiningOp();
  if (!op) {
    emitError(scalar.getLoc()) << "scalar kernel argument of type " << scalar.getType() << " is not supported";
    return {};
  }
  Key key = keyOf(scalar, {});
  if (Value candidate = visibleAmong(builder, elements[key]))
    return candidate;
  IRMapping mapping;
  if (failed(emitBodyOp(*op, {}, mapping)))
    return {};
  for (Value result : op->getResults())
    elements[keyOf(result, {})].push_back(mapping.lookup(result));
  return mapping.lookup(scalar);
}

//===----------------------------------------------------------------------===//
// Structured operations
//===----------------------------------------------------------------------===//

/// Moves the insertion point in front of the own loops that no index depends on.
void ElementEmitter::hoist(ArrayRef<Value> indices) {
  while (Operation *parent = builder.getInsertionBlock()->getParentOp()) {
    Block *block = builder.getInsertionBlock();
    if (!ownLoops.contains(parent) ||
        llvm::any_of(indices, [&](Value index) { return index.getParentBlock() == block && !math.constantValue(index); }))
      return;
    builder.setInsertionPoint(parent);
  }
}

Value ElementEmitter::emitStructured(linalg::LinalgOp op, unsigned result, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(result));
  SmallVector<Value> loops(op.getNumLoops());
  for (auto [expr, index] : llvm::zip_equal(map.getResults(), indices)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      loops[dim.getPosition()] = index;
    } else if (!isa<AffineConstantExpr>(expr)) {
      op->emitError() << "output map " << AffineMapAttr::get(map) << " is not a projected permutation";
      return {};
    }
  }
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  bool reduces = false;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    if (loops[dim])
      continue;
    if (extents[dim] == 1 && kinds[dim] == utils::IteratorType::parallel) {
      loops[dim] = math.constant(loc, 0);
    } else if (kinds[dim] == utils::IteratorType::reduction && !ShapedType::isDynamic(extents[dim])) {
      reduces = true;
    } else {
      op->emitError() << "dimension " << dim << " of the iteration space is not determined by output map "
                      << AffineMapAttr::get(map);
      return {};
    }
  }

  OpBuilder::InsertionGuard guard(builder);
  if (reduces) {
    hoist(indices);
    for (Value &loop : loops)
      if (std::optional<int64_t> value = loop ? math.constantValue(loop) : std::nullopt; value && !isVisible(builder, loop))
        loop = math.constant(loc, *value);
  }
  SmallVector<Value> values = reduces ? emitReduction(op, loops) : emitAt(op, loops, {});
  if (values.empty())
    return {};
  // Further results with the same map came for free.
  for (unsigned other = 0; other < values.size(); ++other) {
    if (other == result || op.getMatchingIndexingMap(op.getDpsInitOperand(other)) != map)
      continue;
    elements[keyOf(op->getResult(other), indices)].push_back(values[other]);
  }
  return values[result];
}

SmallVector<Value> ElementEmitter::emitLoops(Location loc, ArrayRef<int64_t> extents, ArrayRef<Value> inits,
                                             function_ref<SmallVector<Value>(ArrayRef<Value>, ValueRange)> body) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> ivs, carried(inits);
  SmallVector<scf::ForOp> nest;
  Value zero = math.constant(loc, 0), one = math.constant(loc, 1);
  for (int64_t extent : extents) {
    if (extent == 1) {
      ivs.push_back(zero);
      continue;
    }
    auto loop = scf::ForOp::create(builder, loc, zero, math.constant(loc, extent), one, carried);
    ownLoops.insert(loop);
    builder.setInsertionPointToStart(loop.getBody());
    ivs.push_back(loop.getInductionVar());
    carried.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    nest.push_back(loop);
  }
  SmallVector<Value> results = body(ivs, carried);
  if (results.size() != inits.size())
    return {};
  for (scf::ForOp loop : llvm::reverse(nest)) {
    builder.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(builder, loc, results);
    results.assign(loop->result_begin(), loop->result_end());
  }
  return results;
}

SmallVector<Value> ElementEmitter::emitReduction(linalg::LinalgOp op, SmallVector<Value> loops) {
  Location loc = op.getLoc();
  SmallVector<Value> inits;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    inits.push_back(emitOperand(op, init, loops));
    if (!inits.back())
      return {};
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), extents;
  SmallVector<unsigned> reduced;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (!loops[dim]) {
      reduced.push_back(dim);
      extents.push_back(ranges[dim]);
    }
  return emitLoops(loc, extents, inits, [&](ArrayRef<Value> ivs, ValueRange carried) {
    for (auto [dim, iv] : llvm::zip_equal(reduced, ivs))
      loops[dim] = iv;
    return emitAt(op, loops, carried);
  });
}

Value ElementEmitter::emitOperand(linalg::LinalgOp op, OpOperand &operand, ArrayRef<Value> loops) {
  if (!isa<RankedTensorType>(operand.get().getType()))
    return emitScalar(operand.get());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    bool known = true;
    expr.walk([&](AffineExpr e) {
      if (auto dim = dyn_cast<AffineDimExpr>(e))
        known &= bool(loops[dim.getPosition()]);
    });
    Value index = known ? math.apply(op.getLoc(), expr, loops) : Value();
    if (!index) {
      op->emitError() << "indexing map " << AffineMapAttr::get(map) << " has no scalar form here";
      return {};
    }
    indices.push_back(index);
  }
  return emit(operand.get(), indices);
}

/// The yielded values at one point of the iteration space. `accumulators` stand for the outputs; without them (element-wise
/// operations) the outputs are read from their initial tensors where the body uses them.
SmallVector<Value> ElementEmitter::emitAt(linalg::LinalgOp op, ArrayRef<Value> loops, ValueRange accumulators) {
  SmallVector<Value> inputs, outputs(accumulators);
  outputs.resize(op.getNumDpsInits());
  for (OpOperand *input : op.getDpsInputOperands()) {
    bool used = !op.getMatchingBlockArgument(input).use_empty();
    inputs.push_back(used ? emitOperand(op, *input, loops) : Value());
    if (used && !inputs.back())
      return {};
  }
  if (accumulators.empty())
    for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      if (op.getMatchingBlockArgument(&init).use_empty())
        continue;
      outputs[index] = emitOperand(op, init, loops);
      if (!outputs[index])
        return {};
    }
  return emitBody(op, loops, inputs, outputs);
}

SmallVector<Value> ElementEmitter::emitBody(linalg::LinalgOp op, ArrayRef<Value> loops, ArrayRef<Value> inputs,
                                            ArrayRef<Value> accumulators) {
  Block *body = op.getBlock();
  IRMapping mapping;
  for (auto [index, input] : llvm::enumerate(op.getDpsInputOperands()))
    if (inputs[index])
      mapping.map(op.getMatchingBlockArgument(input), inputs[index]);
  for (auto [index, init] : llvm::enumerate(op.getDpsInitsMutable()))
    if (accumulators[index])
      mapping.map(op.getMatchingBlockArgument(&init), accumulators[index]);
  for (Operation &bodyOp : body->without_terminator())
    if (failed(emitBodyOp(bodyOp, loops, mapping)))
      return {};
  SmallVector<Value> values;
  for (Value yielded : body->getTerminator()->getOperands()) {
    values.push_back(resolve(yielded, mapping));
    if (!values.back())
      return {};
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Scalar bodies
//===----------------------------------------------------------------------===//

/// The emitted value of an operand in a body: mapped already, or a scalar of the kernel body around it.
Value ElementEmitter::resolve(Value value, IRMapping &mapping) {
  if (Value mapped = mapping.lookupOrNull(value))
    return mapped;
  Value scalar = emitScalar(value);
  if (scalar)
    mapping.map(value, scalar);
  return scalar;
}

LogicalResult ElementEmitter::emitBodyOp(Operation &op, ArrayRef<Value> loops, IRMapping &mapping) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    if (index.getDim() >= loops.size())
      return op.emitError("is outside of a structured operation");
    mapping.map(index.getResult(), loops[index.getDim()]);
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
    mapping.map(constant.getResult(), math.constant(op.getLoc(), constant.value()));
    return success();
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Value> indices;
    for (Value index : extract.getIndices()) {
      indices.push_back(resolve(index, mapping));
      if (!indices.back())
        return failure();
    }
    Value element = emit(extract.getTensor(), indices);
    if (!element)
      return failure();
    mapping.map(extract.getResult(), element);
    return success();
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> position = dim.getConstantIndex();
    auto type = cast<RankedTensorType>(dim.getSource().getType());
    if (!position || type.isDynamicDim(*position))
      return op.emitError("of a dynamic extent has no scalar form");
    mapping.map(dim.getResult(), math.constant(op.getLoc(), type.getDimSize(*position)));
    return success();
  }
  for (Value operand : op.getOperands()) {
    if (isa<ShapedType>(operand.getType()))
      return op.emitError("takes a tensor and has no scalar form");
    if (!resolve(operand, mapping))
      return failure();
  }
  if (op.getNumRegions() != 0)
    return cloneWithRegions(op, loops, mapping) ? success() : failure();
  Operation *clone = builder.clone(op, mapping);
  // Index arithmetic folds, so that bounds of slices and pads stay constants.
  SmallVector<Value> folded;
  if (op.getNumResults() == 1 && op.getResult(0).getType().isIntOrIndex() && !op.hasTrait<OpTrait::ConstantLike>() &&
      succeeded(builder.tryFold(clone, folded)) && folded.size() == 1) {
    mapping.map(op.getResult(0), folded.front());
    clone->erase();
  }
  return success();
}

/// Copies a control flow operation, emitting the operations of its regions one by one.
Operation *ElementEmitter::cloneWithRegions(Operation &op, ArrayRef<Value> loops, IRMapping &mapping) {
  Operation *clone = op.cloneWithoutRegions(mapping);
  builder.insert(clone);
  for (auto [from, to] : llvm::zip_equal(op.getRegions(), clone->getRegions())) {
    for (Block &block : from) {
      OpBuilder::InsertionGuard guard(builder);
      SmallVector<Location> locations;
      for (BlockArgument argument : block.getArguments())
        locations.push_back(argument.getLoc());
      Block *copy = builder.createBlock(&to, to.end(), block.getArgumentTypes(), locations);
      mapping.map(block.getArguments(), copy->getArguments());
      for (Operation &nested : block)
        if (failed(emitBodyOp(nested, loops, mapping)))
          return nullptr;
    }
  }
  mapping.map(op.getResults(), clone->getResults());
  return clone;
}

} // namespace ogc::codegen
