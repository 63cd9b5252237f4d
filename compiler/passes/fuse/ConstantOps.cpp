//===- ConstantOps.cpp - operations that are evaluated at compile time ----===//
#include "compiler/passes/fuse/ConstantOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace ogc::fuse {

/// Operands and values that the regions of `op` read.
static llvm::SetVector<Value> inputsOf(Operation *op) {
  llvm::SetVector<Value> inputs(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), inputs);
  return inputs;
}

ConstantOps::ConstantOps(Block &block) {
  for (Operation &op : block.without_terminator())
    if (llvm::all_of(inputsOf(&op), [&](Value input) { return contains(input); }))
      ops.insert(&op);
}

llvm::SetVector<Attribute> ConstantOps::rootsOf(Value value) {
  llvm::SetVector<Attribute> roots;
  llvm::SetVector<Value> work;
  work.insert(value);
  for (size_t i = 0; i < work.size(); ++i) {
    Operation *def = work[i].getDefiningOp();
    if (auto constant = dyn_cast<arith::ConstantOp>(def)) {
      auto type = dyn_cast<ShapedType>(constant.getType());
      if (type && type.getNumElements() > 1)
        roots.insert(constant.getValue());
    }
    work.insert(def->operand_begin(), def->operand_end());
  }
  return roots;
}

Value ConstantOps::hoist(OpBuilder &builder, Value value) {
  Operation *def = value.getDefiningOp();
  if (def->isBeforeInBlock(&*builder.getInsertionPoint()))
    return value;
  IRMapping mapping;
  for (Value input : inputsOf(def))
    mapping.map(input, hoist(builder, input));
  return builder.clone(*def, mapping)->getResult(cast<OpResult>(value).getResultNumber());
}

} // namespace ogc::fuse
