//===- PaddingSafety.cpp - do rows along a named dimension mix? -----------===//
#include "compiler/analysis/PaddingSafety.h"

#include "compiler/analysis/RowFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc {
namespace {

using rows::Factor;
using rows::State;

/// Attributes that are allowed to differ, because the values' types are compared anyway.
bool isSizeAttribute(Operation *op, StringRef name) {
  if (isa<arith::ConstantOp>(op))
    return name == "value";
  return (isa<tensor::ExpandShapeOp>(op) && name == "static_output_shape") ||
         (isa<tensor::ExtractSliceOp>(op) && name == "static_sizes");
}

bool haveSameAttributes(Operation *a, Operation *b) {
  NamedAttrList first(a->getAttrDictionary()), second(b->getAttrDictionary());
  for (NamedAttribute attribute : a->getAttrDictionary())
    if (isSizeAttribute(a, attribute.getName().getValue())) {
      first.erase(attribute.getName());
      second.erase(attribute.getName());
    }
  return first.getDictionary(a->getContext()) == second.getDictionary(a->getContext());
}

class Analysis {
public:
  Analysis(func::FuncOp small, func::FuncOp large, StringRef symbol, int64_t smallSize, int64_t largeSize)
      : small(small), large(large), symbol(symbol), flow(smallSize, largeSize) {}

  PaddingSafety run() {
    if (small.isExternal() || large.isExternal() || small.getNumArguments() != large.getNumArguments()) {
      result.reason = "there is no function to look at";
      return result;
    }
    if (failed(addArguments()) || failed(walk())) {
      if (result.reason.empty())
        result.reason = flow.reason();
      return result;
    }
    result.isSafe = true;
    return result;
  }

private:
  LogicalResult addArguments() {
    for (auto [argument, other] : llvm::zip_equal(small.getArguments(), large.getArguments())) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      auto symbols = small.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "onnx.symbols");
      State state;
      state.dims.resize(type ? type.getRank() : 0);
      for (size_t dim = 0; symbols && dim < std::min(state.dims.size(), symbols.size()); ++dim) {
        auto name = dyn_cast<StringAttr>(symbols[dim]);
        if (!name || name.getValue() != symbol)
          continue;
        if (state.row >= 0) {
          auto input = small.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "onnx.name");
          result.reason = "input '" + (input ? input.str() : "") + "' has it in two dimensions";
          return failure();
        }
        state.row = dim;
        state.dims[dim] = Factor{};
      }
      if (failed(flow.define(argument, other, state)))
        return failure();
    }
    return success();
  }

  /// Without operands, so that equal ones of one size may have been merged: they are matched where they are used.
  static bool isLeaf(Operation &op) { return isa<arith::ConstantOp, tensor::EmptyOp>(op); }

  LogicalResult walk() {
    Block &first = small.front(), &second = large.front();
    auto other = second.begin();
    for (Operation &op : first) {
      if (isLeaf(op))
        continue;
      while (other != second.end() && isLeaf(*other))
        ++other;
      if (other == second.end() || !isSameOperation(&op, &*other))
        return blame(&op, "is another computation for another size");
      for (auto [operand, pair] : llvm::zip_equal(op.getOperands(), other->getOperands()))
        if (failed(matchOperand(operand, pair)))
          return blame(&op, flow.reason());
      if (isa<func::ReturnOp>(op))
        return addOutputs(op);
      if (failed(flow.visit(&op, &*other)))
        return blame(&op, flow.reason());
      ++other;
    }
    return failure();
  }

  static bool isSameOperation(Operation *a, Operation *b) {
    return a->getName() == b->getName() && a->getNumOperands() == b->getNumOperands() &&
           a->getNumResults() == b->getNumResults() && haveSameAttributes(a, b);
  }

  LogicalResult matchOperand(Value value, Value pair) {
    Operation *leaf = value.getDefiningOp(), *other = pair.getDefiningOp();
    if (leaf && isLeaf(*leaf) && other && leaf->getName() == other->getName())
      return flow.visit(leaf, other);
    return flow.counterpart(value) == pair ? success() : flow.fail("is another computation for another size");
  }

  LogicalResult addOutputs(Operation &terminator) {
    for (OpOperand &operand : terminator.getOpOperands()) {
      const State &state = flow.stateOf(operand.get());
      unsigned varying = llvm::count_if(state.dims, [](const auto &dim) { return dim.has_value(); });
      for (auto [dim, factor] : llvm::enumerate(state.dims)) {
        if (!factor)
          continue;
        bool isCut = varying == 1 && (factor->isAny || factor->outer == 1);
        if (!isCut)
          return blame(operand.get().getDefiningOp(), "makes an output that holds the positions in more than one piece");
        int64_t size = cast<RankedTensorType>(operand.get().getType()).getDimSize(dim);
        result.cuts.push_back(
            {operand.getOperandNumber(), static_cast<unsigned>(dim), factor->isAny ? size / flow.smallSize : factor->inner});
      }
    }
    return success();
  }

  /// Remembers the operator whose lowering `op` belongs to.
  LogicalResult blame(Operation *op, const std::string &what) {
    result.cuts.clear();
    result.reason = what;
    auto name = op ? op->getLoc()->findInstanceOf<NameLoc>() : NameLoc();
    if (!name)
      return failure();
    // "node name (OpType)"
    auto [node, type] = name.getName().getValue().rsplit(" (");
    result.node = node.str();
    result.operatorType = type.drop_back(type.ends_with(")") ? 1 : 0).str();
    return failure();
  }

  func::FuncOp small, large;
  StringRef symbol;
  rows::RowFlow flow;
  PaddingSafety result;
};

} // namespace

PaddingSafety analyzePadding(func::FuncOp small, func::FuncOp large, StringRef symbol, int64_t smallSize, int64_t largeSize) {
  return Analysis(small, large, symbol, smallSize, largeSize).run();
}

} // namespace ogc
