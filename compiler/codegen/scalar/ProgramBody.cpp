//===- ProgramBody.cpp - copies of a program's body for a target ----------===//
#include "compiler/codegen/scalar/ProgramBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace ogc::codegen {

/// Booleans may lie in memory as bytes.
static bool isByteOfBool(Value buffer, Type element) {
  return element.isInteger(1) && cast<MemRefType>(buffer.getType()).getElementType().isInteger(8);
}

static void emitLoad(OpBuilder &builder, memref::LoadOp op, IRMapping &mapping) {
  Value buffer = mapping.lookup(op.getMemRef());
  SmallVector<Value> indices = llvm::map_to_vector(op.getIndices(), [&](Value index) { return mapping.lookupOrDefault(index); });
  Value element = memref::LoadOp::create(builder, op.getLoc(), buffer, indices);
  if (isByteOfBool(buffer, op.getType())) {
    Value zero = arith::ConstantOp::create(builder, op.getLoc(), builder.getZeroAttr(element.getType()));
    element = arith::CmpIOp::create(builder, op.getLoc(), arith::CmpIPredicate::ne, element, zero);
  }
  mapping.map(op.getResult(), element);
}

static void emitStore(OpBuilder &builder, memref::StoreOp op, IRMapping &mapping) {
  Value buffer = mapping.lookup(op.getMemRef()), element = mapping.lookupOrDefault(op.getValueToStore());
  SmallVector<Value> indices = llvm::map_to_vector(op.getIndices(), [&](Value index) { return mapping.lookupOrDefault(index); });
  if (isByteOfBool(buffer, element.getType()))
    element = arith::ExtUIOp::create(builder, op.getLoc(), builder.getI8Type(), element);
  memref::StoreOp::create(builder, op.getLoc(), element, buffer, indices);
}

static void emitNested(OpBuilder &builder, Operation &op, IRMapping &mapping, EmitParallel emitParallel) {
  Operation *clone = op.cloneWithoutRegions(mapping);
  builder.insert(clone);
  for (auto [from, to] : llvm::zip_equal(op.getRegions(), clone->getRegions()))
    for (Block &block : from) {
      OpBuilder::InsertionGuard guard(builder);
      SmallVector<Location> locations(block.getNumArguments(), op.getLoc());
      Block *copy = builder.createBlock(&to, to.end(), block.getArgumentTypes(), locations);
      mapping.map(block.getArguments(), copy->getArguments());
      emitProgramBody(builder, block, mapping, emitParallel);
    }
  mapping.map(op.getResults(), clone->getResults());
}

void emitProgramBody(OpBuilder &builder, Block &body, IRMapping &mapping, EmitParallel emitParallel) {
  for (Operation &op : body) {
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      emitLoad(builder, load, mapping);
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      emitStore(builder, store, mapping);
    } else if (auto parallel = dyn_cast<kern::ParallelOp>(op)) {
      emitParallel(parallel, [&](Value iteration) {
        Block &block = parallel.getBody().front();
        mapping.map(block.getArgument(0), iteration);
        emitProgramBody(builder, block, mapping, emitParallel);
      });
    } else if (op.getNumRegions() != 0) {
      emitNested(builder, op, mapping, emitParallel);
    } else {
      builder.clone(op, mapping);
    }
  }
}

} // namespace ogc::codegen
