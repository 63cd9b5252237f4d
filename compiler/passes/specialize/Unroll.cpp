//===- Unroll.cpp - If, Loop and Scan as straight-line code ---------------===//
#include "compiler/passes/specialize/Unroll.h"

#include "compiler/dialect/onnx/Inference.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ogc::specialize {

static onnx::YieldOp yieldOf(Region &region) {
  return region.empty() || region.front().empty() ? onnx::YieldOp() : dyn_cast<onnx::YieldOp>(region.front().back());
}

/// Moves the operations of a branch in front of its If and returns what it yields.
static SmallVector<Value> inlineRegion(Operation *op, Region &region) {
  auto yield = yieldOf(region);
  SmallVector<Value> values(yield.getValues());
  yield.erase();
  op->getBlock()->getOperations().splice(op->getIterator(), region.front().getOperations());
  return values;
}

bool Unroller::takeBranch(Operation *op) {
  std::optional<SmallVector<int64_t>> condition = onnx::getConstantInts(op->getOperand(0));
  if (!condition || condition->size() != 1)
    return false;
  Region &branch = op->getRegion(condition->front() ? 0 : 1);
  auto yield = yieldOf(branch);
  if (!yield || yield.getNumOperands() != op->getNumResults())
    return false;
  op->replaceAllUsesWith(inlineRegion(op, branch));
  op->erase();
  return true;
}

LogicalResult Unroller::selectBranch(Operation *op) {
  auto refuse = [&] { return onnx::emitNodeError(op) << "its condition is known only at run time, and "; };
  auto yields = llvm::map_to_vector<2>(op->getRegions(), [](Region &region) { return yieldOf(region); });
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    auto types = llvm::map_to_vector<2>(yields, [&](onnx::YieldOp yield) {
      return yield && i < yield.getNumOperands() ? dyn_cast<RankedTensorType>(yield.getOperand(i).getType()) : RankedTensorType();
    });
    if (!types[0] || !types[1] || types[0] != types[1] || !types[0].hasStaticShape()) {
      InFlightDiagnostic diag = refuse() << "its branches yield ";
      for (auto [number, yield] : llvm::enumerate(yields)) {
        diag << (number ? " and " : "");
        if (yield && i < yield.getNumOperands())
          diag << yield.getOperand(i).getType();
        else
          diag << "nothing";
      }
      return diag << " for output " << i << ", expected one static type";
    }
  }
  auto condition = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  if (!condition || !condition.hasStaticShape() || condition.getNumElements() != 1)
    return refuse() << "it has type " << op->getOperand(0).getType() << ", expected one element";
  SmallVector<Value> results[2];
  for (int i : {0, 1})
    results[i] = inlineRegion(op, op->getRegion(i));
  OpBuilder builder(op);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    // A condition [1] would change the rank of a scalar.
    Value chosen = op->getOperand(0);
    if (condition.getRank() != 0) {
      Operation *scalar = onnx::createInferred(builder, op->getLoc(), "Squeeze", {chosen}, {}, 1);
      if (!scalar)
        return failure();
      chosen = scalar->getResult(0);
    }
    Operation *where = onnx::createInferred(builder, op->getLoc(), "Where", {chosen, results[0][i], results[1][i]}, {}, 1);
    if (!where)
      return failure();
    result.replaceAllUsesWith(where->getResult(0));
  }
  op->erase();
  return success();
}

/// Copies the body in front of `op` and folds the copy; returns what it yields.
FailureOr<Unroller::Values> Unroller::copyBody(Operation *op, ValueRange arguments) {
  Block &body = op->getRegion(0).front(), &block = *op->getBlock();
  copiedNodes += static_cast<int64_t>(body.getOperations().size());
  if (copiedNodes > maxCopiedNodes)
    return onnx::emitNodeError(op) << "unrolled loops have more than " << maxCopiedNodes << " nodes";
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &nested : body.without_terminator())
    builder.clone(nested, mapping);
  Values yielded;
  for (Value value : yieldOf(op->getRegion(0)).getValues())
    yielded.push_back(mapping.lookupOrDefault(value));
  // Folding replaces values: those that are yielded are kept as operands of an operation.
  auto keeper = UnrealizedConversionCastOp::create(builder, op->getLoc(), TypeRange(), yielded);
  LogicalResult folded = fold(block, before, keeper);
  yielded.assign(keeper->operand_begin(), keeper->operand_end());
  keeper.erase();
  if (failed(folded))
    return failure();
  return yielded;
}

/// Slices of all iterations side by side along a new axis.
FailureOr<Value> Unroller::stack(Operation *op, unsigned result, ArrayRef<Value> slices, int64_t axis) {
  OpBuilder builder(op);
  if (slices.empty()) {
    auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
    SmallVector<int64_t> shape;
    if (type)
      shape.assign(type.getShape().begin(), type.getShape().end());
    if (axis < 0)
      axis += static_cast<int64_t>(shape.size());
    if (axis >= 0 && axis < static_cast<int64_t>(shape.size()))
      shape[axis] = 0;
    if (!type || llvm::is_contained(shape, ShapedType::kDynamic))
      return onnx::emitNodeError(op) << "output " << result << " has no elements, and its other extents are not known";
    auto empty = DenseElementsAttr::get(RankedTensorType::get(shape, type.getElementType()), ArrayRef<Attribute>());
    return onnx::createConstant(builder, op->getLoc(), empty);
  }
  SmallVector<Value> parts;
  Value axes = onnx::createI64s(builder, op->getLoc(), axis);
  for (Value slice : slices) {
    Operation *part = onnx::createInferred(builder, op->getLoc(), "Unsqueeze", {slice, axes}, {}, 1);
    if (!part)
      return failure();
    parts.push_back(part->getResult(0));
  }
  NamedAttribute attribute = builder.getNamedAttr("axis", builder.getI64IntegerAttr(axis));
  Operation *whole = onnx::createInferred(builder, op->getLoc(), "Concat", parts, attribute, 1);
  if (!whole)
    return failure();
  return whole->getResult(0);
}

/// Takes what the body gave in one iteration: the values carried to the next one, then a slice for each scanned result.
static void takeYielded(ArrayRef<Value> yielded, SmallVector<Value> &carried, std::vector<SmallVector<Value>> &scanned) {
  carried.assign(yielded.begin(), yielded.begin() + carried.size());
  for (auto [slices, value] : llvm::zip_equal(scanned, yielded.drop_front(carried.size())))
    slices.push_back(value);
}

/// Replaces `op` by what was carried out of the last iteration and the scanned slices along `axisOf` each.
LogicalResult Unroller::replace(Operation *op, ArrayRef<Value> carried, ArrayRef<SmallVector<Value>> scanned,
                                llvm::function_ref<int64_t(size_t)> axisOf) {
  SmallVector<Value> results(carried);
  for (auto [i, slices] : llvm::enumerate(scanned)) {
    FailureOr<Value> whole = stack(op, static_cast<unsigned>(carried.size() + i), slices, axisOf(i));
    if (failed(whole))
      return failure();
    results.push_back(*whole);
  }
  op->replaceAllUsesWith(results);
  op->erase();
  return success();
}

LogicalResult Unroller::unrollLoop(Operation *op) {
  auto yield = yieldOf(op->getRegion(0));
  unsigned numCarried = op->getNumOperands() < 2 ? 0 : op->getNumOperands() - 2;
  Block &body = op->getRegion(0).front();
  if (!yield || body.getNumArguments() != 2 + numCarried || yield.getNumOperands() != 1 + op->getNumResults() ||
      op->getNumResults() < numCarried)
    return onnx::emitNodeError(op) << "its body does not have the inputs and outputs that its operands ask for";
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (op->getNumOperands() > 0 && !onnx::isAbsent(op->getOperand(0))) {
    std::optional<SmallVector<int64_t>> count = onnx::getConstantInts(op->getOperand(0));
    if (!count || count->size() != 1)
      return onnx::emitNodeError(op) << "its trip count is known only at run time";
    trips = std::max<int64_t>(0, count->front());
  }
  OpBuilder builder(op);
  auto scalar = [&](Type type, int64_t value) {
    auto tensor = RankedTensorType::get({}, type);
    return onnx::createConstant(builder, op->getLoc(), DenseElementsAttr::get(tensor, builder.getIntegerAttr(type, value)));
  };
  Value condition = op->getNumOperands() > 1 && !onnx::isAbsent(op->getOperand(1)) ? op->getOperand(1) : Value();
  SmallVector<Value> carried(op->getOperands().drop_front(std::min(2u, op->getNumOperands())));
  std::vector<SmallVector<Value>> scanned(op->getNumResults() - numCarried);
  for (int64_t trip = 0; trip < trips; ++trip) {
    if (condition) {
      std::optional<SmallVector<int64_t>> goesOn = onnx::getConstantInts(condition);
      if (!goesOn || goesOn->size() != 1)
        return onnx::emitNodeError(op) << "its condition is known only at run time (before iteration " << trip << ")";
      if (!goesOn->front())
        break;
    }
    if (trip == maxIterations)
      return onnx::emitNodeError(op) << "has more than " << maxIterations << " iterations, the limit for unrolling";
    SmallVector<Value> arguments{scalar(builder.getI64Type(), trip), scalar(builder.getI1Type(), 1)};
    llvm::append_range(arguments, carried);
    FailureOr<Values> yielded = copyBody(op, arguments);
    if (failed(yielded))
      return failure();
    // Without a condition at the start the body's own counts from the first iteration on.
    condition = yielded->front();
    takeYielded(ArrayRef(*yielded).drop_front(), carried, scanned);
  }
  return replace(op, carried, scanned, [](size_t) { return 0; });
}

LogicalResult Unroller::unrollScan(Operation *op) {
  onnx::OnnxOp scan(op);
  auto yield = yieldOf(op->getRegion(0));
  int64_t numScanned = scan.getI64("num_scan_inputs"), numCarried = op->getNumOperands() - numScanned;
  if (!yield || numScanned < 1 || numCarried < 0 || yield.getNumOperands() != op->getNumResults() ||
      op->getRegion(0).front().getNumArguments() != op->getNumOperands() || op->getNumResults() < numCarried)
    return onnx::emitNodeError(op) << "its body does not have the inputs and outputs that its operands ask for";
  SmallVector<int64_t> inAxes = scan.getI64s("scan_input_axes"), outAxes = scan.getI64s("scan_output_axes"),
                       inReversed = scan.getI64s("scan_input_directions"), outReversed = scan.getI64s("scan_output_directions");
  auto entry = [](ArrayRef<int64_t> list, size_t i) { return i < list.size() ? list[i] : 0; };
  int64_t length = -1;
  for (int64_t i = 0; i < numScanned; ++i) {
    auto type = dyn_cast<RankedTensorType>(op->getOperand(numCarried + i).getType());
    int64_t axis = entry(inAxes, i);
    axis += axis < 0 && type ? type.getRank() : 0;
    if (!type || axis < 0 || axis >= type.getRank() || type.isDynamicDim(axis))
      return onnx::emitNodeError(op) << "the extent of scan input " << i << " along its axis is known only at run time";
    if (length >= 0 && type.getDimSize(axis) != length)
      return onnx::emitNodeError(op) << "scan input " << i << " has " << type.getDimSize(axis) << " slices, expected " << length;
    length = type.getDimSize(axis);
  }
  if (length > maxIterations)
    return onnx::emitNodeError(op) << "has more than " << maxIterations << " iterations, the limit for unrolling";
  SmallVector<Value> carried(op->getOperands().take_front(numCarried));
  std::vector<SmallVector<Value>> scanned(op->getNumResults() - numCarried);
  OpBuilder builder(op);
  for (int64_t trip = 0; trip < length; ++trip) {
    SmallVector<Value> arguments(carried);
    for (int64_t i = 0; i < numScanned; ++i) {
      int64_t at = entry(inReversed, i) ? length - 1 - trip : trip;
      auto type = RankedTensorType::get({}, builder.getI64Type());
      Value index = onnx::createConstant(builder, op->getLoc(), DenseElementsAttr::get(type, at));
      NamedAttribute axis = builder.getNamedAttr("axis", builder.getI64IntegerAttr(entry(inAxes, i)));
      Operation *slice = onnx::createInferred(builder, op->getLoc(), "Gather", {op->getOperand(numCarried + i), index}, axis, 1);
      if (!slice)
        return failure();
      arguments.push_back(slice->getResult(0));
    }
    FailureOr<Values> yielded = copyBody(op, arguments);
    if (failed(yielded))
      return failure();
    takeYielded(*yielded, carried, scanned);
  }
  for (auto [i, slices] : llvm::enumerate(scanned))
    if (entry(outReversed, i)) // the last iteration is the first slice
      std::reverse(slices.begin(), slices.end());
  return replace(op, carried, scanned, [&](size_t i) { return entry(outAxes, i); });
}

} // namespace ogc::specialize
