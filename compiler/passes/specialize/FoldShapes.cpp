//===- FoldShapes.cpp - infer all types, evaluate the shape arithmetic ----===//
#include "compiler/dialect/onnx/Inference.h"
#include "compiler/passes/specialize/Folder.h"
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/Unroll.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_FOLDSHAPES
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

bool replaceByConstants(Operation *op, FoldListener listener) {
  std::optional<SmallVector<ElementsAttr>> values = foldOperator(onnx::OnnxOp(op));
  if (!values)
    return false;
  if (listener)
    listener(op, *values);
  OpBuilder builder(op);
  SmallVector<Value> constants;
  for (ElementsAttr value : *values)
    constants.push_back(onnx::createConstant(builder, op->getLoc(), value));
  op->replaceAllUsesWith(constants);
  op->erase();
  return true;
}

/// Walks a function in program order.
class ShapeFolder {
public:
  explicit ShapeFolder(FoldListener listener) : listener(listener) {}

  LogicalResult fold(Block &block) { return foldRange(block, nullptr, nullptr); }

private:
  /// The operators of a block after `previous` (null: from its start) up to `end` (null: its end).
  LogicalResult foldRange(Block &block, Operation *previous, Operation *end) {
    LogicalResult result = success();
    // What takes the place of an operator is visited too, so the next operation is found from the one before.
    for (;;) {
      Operation *op = previous ? previous->getNextNode() : (block.empty() ? nullptr : &block.front());
      if (!op || op == end)
        return result;
      Operation *mark = previous;
      previous = op;
      if (!onnx::isOperator(op))
        continue;
      if (op->getNumRegions()) {
        bool replaced = false;
        if (failed(foldControlFlow(op, replaced)))
          result = failure();
        else if (replaced)
          previous = mark;
        continue;
      }
      if (failed(onnx::inferTypes(op)))
        result = failure();
      else if (replaceByConstants(op, listener))
        previous = mark; // the constants are visited next, and skipped
    }
  }

  LogicalResult foldControlFlow(Operation *op, bool &replaced) {
    if (onnx::isOp(op, "If") && unroller.takeBranch(op)) {
      replaced = true;
      return success();
    }
    if (failed(onnx::inferTypes(op)))
      return failure();
    if (onnx::isOp(op, "Loop"))
      return replaced = true, unroller.unrollLoop(op);
    if (onnx::isOp(op, "Scan"))
      return replaced = true, unroller.unrollScan(op);
    for (Region &region : op->getRegions())
      if (!region.empty() && failed(fold(region.front())))
        return failure();
    // What was folded inside may have made the results exact.
    if (failed(onnx::inferTypes(op)))
      return failure();
    if (onnx::isOp(op, "If"))
      return replaced = true, unroller.selectBranch(op);
    return success();
  }

  FoldListener listener;
  Unroller unroller{[this](Block &block, Operation *previous, Operation *end) { return foldRange(block, previous, end); }};
};

/// "graph 'b4': batch = 4, seq = 128", or "" where the model names no dimension.
std::string describeSizes(func::FuncOp function) {
  auto id = function->getAttrOfType<StringAttr>("ogc.graph_id");
  auto symbols = function->getAttrOfType<DictionaryAttr>("ogc.symbols");
  std::string text;
  for (NamedAttribute symbol : symbols ? symbols.getValue() : ArrayRef<NamedAttribute>())
    if (auto size = dyn_cast<IntegerAttr>(symbol.getValue()))
      text += (text.empty() ? "" : ", ") + symbol.getName().str() + " = " + std::to_string(size.getInt());
  return text.empty() ? text : "graph '" + (id ? id.str() : function.getName().str()) + "': " + text;
}

struct FoldShapesPass : impl::FoldShapesBase<FoldShapesPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(foldShapes(function))) {
      if (std::string sizes = describeSizes(function); !sizes.empty())
        function.emitError() << sizes << " does not fit the model";
      return signalPassFailure();
    }
    // Constants that fed folded operators only.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
      if (op.use_empty() && isa<onnx::ConstantOp, onnx::AbsentOp>(op))
        op.erase();
  }
};

} // namespace

LogicalResult foldShapes(func::FuncOp function, FoldListener listener) {
  if (failed(ShapeFolder(listener).fold(function.front())))
    return failure();
  auto terminator = function.front().getTerminator();
  function.setFunctionType(FunctionType::get(function.getContext(), function.getArgumentTypes(), terminator->getOperandTypes()));
  return success();
}

} // namespace ogc::specialize
