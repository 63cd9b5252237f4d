//===- Inference.cpp - result types by the schemas' inference -------------===//
#include "compiler/dialect/onnx/Inference.h"

#include "compiler/dialect/onnx/InferenceContext.h"
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/dialect/onnx/TypeLattice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::onnx {
namespace {

/// Operators whose schema has no inference, and whose first result has the type of the first operand.
bool keepsFirstType(StringRef type) { return type == "GroupNormalization" || type == "MeanVarianceNormalization"; }

const ::onnx::OpSchema::FormalParameter *formalParameter(const std::vector<::onnx::OpSchema::FormalParameter> &list, size_t i) {
  return list.empty() ? nullptr : &list[std::min(i, list.size() - 1)];
}

/// The type of a result that the schema's inference left open: the element type by the type constraints of the schema.
TensorType typeByConstraint(const ::onnx::OpSchema &schema, Operation *op, unsigned result) {
  if (keepsFirstType(schema.Name()) && result == 0)
    return dyn_cast<TensorType>(op->getOperand(0).getType());
  const auto *output = formalParameter(schema.outputs(), result);
  if (!output)
    return {};
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    const auto *input = formalParameter(schema.inputs(), i);
    auto type = dyn_cast<TensorType>(operand.getType());
    if (type && input && input->GetTypeStr() == output->GetTypeStr() && isKnownElement(type))
      return UnrankedTensorType::get(type.getElementType());
  }
  return {};
}

/// Attention: the presents and the scores, which the schema knows only with a past.
std::optional<SmallVector<int64_t>> attentionShape(const OnnxOp &op, unsigned result) {
  RankedTensorType query = op.inputType(0), key = op.inputType(1), value = op.inputType(2);
  if (!query || !key || !value || query.getRank() != key.getRank() || key.getRank() != value.getRank() || query.getRank() < 3 ||
      query.getRank() > 4)
    return std::nullopt;
  bool isRank3 = query.getRank() == 3;
  auto heads = [&](RankedTensorType type, StringRef name) { return isRank3 ? op.getI64(name) : type.getDimSize(1); };
  int64_t queryHeads = heads(query, "q_num_heads"), keyHeads = heads(key, "kv_num_heads"), past = 0;
  if (op.hasInput(4)) {
    RankedTensorType type = op.inputType(4);
    past = type && type.getRank() == 4 ? type.getDimSize(2) : ShapedType::kDynamic;
  }
  int64_t keys = key.getDimSize(isRank3 ? 1 : 2);
  int64_t total = ShapedType::isDynamic(past) || ShapedType::isDynamic(keys) ? ShapedType::kDynamic : past + keys;
  if (result == 3)
    return SmallVector<int64_t>{query.getDimSize(0), queryHeads, query.getDimSize(isRank3 ? 1 : 2), total};
  RankedTensorType source = result == 1 ? key : value;
  int64_t size = source.getDimSize(isRank3 ? 2 : 3);
  if (isRank3 && !ShapedType::isDynamic(size))
    size = keyHeads > 0 ? size / keyHeads : ShapedType::kDynamic;
  return SmallVector<int64_t>{source.getDimSize(0), keyHeads, total, size};
}

/// The shape of a result that the schema's inference left without a rank; nothing when it cannot be known.
std::optional<SmallVector<int64_t>> openShape(Operation *operation, unsigned result) {
  OnnxOp op(operation);
  if (op.opType() == "Attention" && result > 0)
    return attentionShape(op, result);
  if (op.opType() == "MaxUnpool" && op.hasInput(2))
    return getConstantInts(op.input(2));
  return std::nullopt;
}

LogicalResult setResultType(OpResult result, TensorType inferred, std::string &reason) {
  TensorType merged = meetTypes(cast<TensorType>(result.getType()), inferred);
  if (!merged) {
    llvm::raw_string_ostream(reason) << "output " << result.getResultNumber() << " is " << inferred << " by inference, but "
                                     << result.getType() << " here";
    return failure();
  }
  result.setType(merged);
  return success();
}

/// A transposed convolution with SAME padding has in * stride elements by its definition; the schema's inference adds the output
/// padding to that.
TensorType sameTransposedType(Operation *op, TensorType inferred) {
  auto input = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto mode = op->getAttrOfType<StringAttr>("auto_pad");
  auto sizes = op->getAttrOfType<DenseI64ArrayAttr>("output_shape");
  auto ranked = dyn_cast<RankedTensorType>(inferred);
  if (!mode || !mode.getValue().starts_with("SAME") || (sizes && !sizes.empty()) || !input || !ranked ||
      input.getRank() != ranked.getRank())
    return inferred;
  auto strides = op->getAttrOfType<DenseI64ArrayAttr>("strides");
  SmallVector<int64_t> shape(ranked.getShape());
  for (int64_t d = 2; d < ranked.getRank(); ++d) {
    int64_t stride = strides && d - 2 < strides.size() ? strides[d - 2] : 1;
    if (!input.isDynamicDim(d) && !llvm::MulOverflow(input.getDimSize(d), stride, stride))
      shape[d] = stride;
  }
  return RankedTensorType::get(shape, ranked.getElementType());
}

LogicalResult inferBySchema(Operation *op, const ::onnx::OpSchema &schema, std::string &reason) {
  OperationContext context(op);
  if (failed(context.run(schema, reason)))
    return failure();
  for (OpResult result : op->getResults()) {
    std::string why;
    TensorType inferred;
    if (context.resultType(result.getResultNumber()).value_case() != ::onnx::TypeProto::VALUE_NOT_SET) {
      FailureOr<TensorType> type = importType(op->getContext(), context.resultType(result.getResultNumber()), why);
      inferred = succeeded(type) ? *type : TensorType();
    }
    if (!inferred || !isa<RankedTensorType>(inferred))
      if (TensorType byConstraint = typeByConstraint(schema, op, result.getResultNumber()))
        inferred = byConstraint;
    if (inferred && !inferred.hasRank())
      if (std::optional<SmallVector<int64_t>> shape = openShape(op, result.getResultNumber()))
        inferred = RankedTensorType::get(*shape, inferred.getElementType());
    if (inferred && getOpType(op) == "ConvTranspose")
      inferred = sameTransposedType(op, inferred);
    if (inferred && failed(setResultType(result, inferred, reason)))
      return failure();
    if (!isKnownElement(cast<TensorType>(result.getType()))) {
      reason = "the type of output " + std::to_string(result.getResultNumber()) + " cannot be inferred" +
               (why.empty() ? "" : ": it " + why);
      return failure();
    }
  }
  return success();
}

YieldOp yieldOf(Region &region) {
  return region.empty() || region.front().empty() ? YieldOp() : dyn_cast<YieldOp>(region.front().back());
}

/// Infers the operators of a body anew: earlier results may be more exact than what holds for the new argument types.
LogicalResult inferBody(Region &body, std::string &reason) {
  for (Operation &op : body.front())
    if (isOperator(&op))
      for (OpResult result : op.getResults())
        result.setType(unknownType(op.getContext()));
  for (Operation &op : body.front()) {
    if (!isOperator(&op) || succeeded(inferTypes(&op, reason)))
      continue;
    std::string name = getNodeName(op.getLoc());
    reason = "in its body, " + getOpType(&op).str() + (name.empty() ? "" : " node '" + name + "'") + ": " + reason;
    return failure();
  }
  return success();
}

/// Takes the types of a body's yielded values as results; the first `skip` are no results.
LogicalResult resultsFromTypes(Operation *op, ArrayRef<TensorType> types, std::string &reason) {
  if (types.size() < op->getNumResults()) {
    reason = "its body yields " + std::to_string(types.size()) + " results, expected " + std::to_string(op->getNumResults());
    return failure();
  }
  // A body's types are derived anew each time: they replace the old ones.
  for (auto [result, type] : llvm::zip(op->getResults(), types))
    result.setType(type);
  return success();
}

FailureOr<SmallVector<TensorType>> yieldTypes(Region &region, std::string &reason) {
  YieldOp yield = yieldOf(region);
  if (!yield) {
    reason = "its body has no onnx.yield";
    return failure();
  }
  SmallVector<TensorType> types;
  for (Value value : yield.getValues()) {
    auto type = dyn_cast<TensorType>(value.getType());
    if (!type) {
      reason = "its body yields a value that is no tensor";
      return failure();
    }
    types.push_back(type);
  }
  return types;
}

LogicalResult inferIf(Operation *op, std::string &reason) {
  SmallVector<TensorType> merged;
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    if (region.empty() || failed(inferBody(region, reason)))
      return failure();
    FailureOr<SmallVector<TensorType>> types = yieldTypes(region, reason);
    if (failed(types))
      return failure();
    if (i == 0) {
      merged = *types;
      continue;
    }
    if (types->size() != merged.size()) {
      reason = "its branches yield different numbers of values";
      return failure();
    }
    for (auto [mine, other] : llvm::zip(merged, *types)) {
      TensorType joined = joinTypes(mine, other);
      if (!joined) {
        reason = "its branches yield different element types";
        return failure();
      }
      mine = joined;
    }
  }
  return resultsFromTypes(op, merged, reason);
}

/// Infers a body whose carried arguments start as `initial` (arguments from `firstArg` on) and go on as the values yielded from
/// `firstYield` on: dimensions that change from one iteration to the next become unknown.
LogicalResult inferCarried(Region &body, unsigned firstArg, unsigned firstYield, ArrayRef<TensorType> initial,
                           std::string &reason) {
  Block &block = body.front();
  if (block.getNumArguments() < firstArg + initial.size()) {
    reason = "its body has " + std::to_string(block.getNumArguments()) + " inputs, expected at least " +
             std::to_string(firstArg + initial.size());
    return failure();
  }
  SmallVector<TensorType> carried(initial);
  // Each round makes at least one dimension or rank unknown, so few rounds are needed.
  for (;;) {
    for (auto [i, type] : llvm::enumerate(carried))
      block.getArgument(firstArg + i).setType(type);
    if (failed(inferBody(body, reason)))
      return failure();
    FailureOr<SmallVector<TensorType>> types = yieldTypes(body, reason);
    if (failed(types))
      return failure();
    if (types->size() < firstYield + carried.size()) {
      reason = "its body yields " + std::to_string(types->size()) + " values, expected at least " +
               std::to_string(firstYield + carried.size());
      return failure();
    }
    bool isStable = true;
    for (auto [i, type] : llvm::enumerate(carried)) {
      TensorType joined = joinTypes(type, (*types)[firstYield + i]);
      if (!joined) {
        reason = "its body changes the element type of carried value " + std::to_string(i);
        return failure();
      }
      isStable &= joined == type;
      type = joined;
    }
    if (isStable)
      return success();
  }
}

FailureOr<SmallVector<TensorType>> operandTypes(Operation *op, unsigned first, unsigned count, std::string &reason) {
  SmallVector<TensorType> types;
  for (unsigned i = first; i < first + count; ++i) {
    auto type = i < op->getNumOperands() ? dyn_cast<TensorType>(op->getOperand(i).getType()) : TensorType();
    if (!type) {
      reason = "input " + std::to_string(i) + " is absent, expected a tensor";
      return failure();
    }
    types.push_back(type);
  }
  return types;
}

LogicalResult inferLoop(Operation *op, std::string &reason) {
  Region &body = op->getRegion(0);
  unsigned numCarried = op->getNumOperands() < 2 ? 0 : op->getNumOperands() - 2;
  FailureOr<SmallVector<TensorType>> initial = operandTypes(op, 2, numCarried, reason);
  if (body.empty() || failed(initial) || failed(inferCarried(body, 2, 1, *initial, reason)))
    return failure();
  FailureOr<SmallVector<TensorType>> types = yieldTypes(body, reason);
  if (failed(types))
    return failure();
  SmallVector<TensorType> results;
  for (unsigned i = 0; i < numCarried; ++i)
    results.push_back(cast<TensorType>(body.front().getArgument(2 + i).getType()));
  for (TensorType slice : ArrayRef(*types).drop_front(1 + numCarried))
    results.push_back(insertDim(slice, 0, ShapedType::kDynamic));
  return resultsFromTypes(op, results, reason);
}

LogicalResult inferScan(Operation *op, std::string &reason) {
  OnnxOp scan(op);
  Region &body = op->getRegion(0);
  int64_t numScanned = scan.getI64("num_scan_inputs"), numCarried = op->getNumOperands() - numScanned;
  if (body.empty() || numScanned < 1 || numCarried < 0) {
    reason = "num_scan_inputs is " + std::to_string(numScanned) + " with " + std::to_string(op->getNumOperands()) + " inputs";
    return failure();
  }
  FailureOr<SmallVector<TensorType>> initial = operandTypes(op, 0, numCarried, reason);
  FailureOr<SmallVector<TensorType>> scanned = operandTypes(op, numCarried, numScanned, reason);
  if (failed(initial) || failed(scanned))
    return failure();
  if (body.front().getNumArguments() != op->getNumOperands()) {
    reason = "its body has " + std::to_string(body.front().getNumArguments()) + " inputs, expected " +
             std::to_string(op->getNumOperands());
    return failure();
  }
  SmallVector<int64_t> inAxes = scan.getI64s("scan_input_axes"), outAxes = scan.getI64s("scan_output_axes");
  int64_t length = ShapedType::kDynamic;
  for (auto [i, type] : llvm::enumerate(*scanned)) {
    int64_t axis = i < inAxes.size() ? inAxes[i] : 0, size = ShapedType::kDynamic;
    TensorType slice = removeDim(type, axis, size);
    if (!slice) {
      reason = "scan_input_axes " + std::to_string(axis) + " is out of range";
      return failure();
    }
    length = ShapedType::isDynamic(length) ? size : length;
    body.front().getArgument(numCarried + i).setType(slice);
  }
  if (failed(inferCarried(body, 0, 0, *initial, reason)))
    return failure();
  FailureOr<SmallVector<TensorType>> types = yieldTypes(body, reason);
  if (failed(types))
    return failure();
  SmallVector<TensorType> results;
  for (int64_t i = 0; i < numCarried; ++i)
    results.push_back(cast<TensorType>(body.front().getArgument(i).getType()));
  for (auto [i, slice] : llvm::enumerate(ArrayRef(*types).drop_front(numCarried))) {
    results.push_back(insertDim(slice, i < outAxes.size() ? outAxes[i] : 0, length));
    if (!results.back()) {
      reason = "scan_output_axes " + std::to_string(outAxes[i]) + " is out of range";
      return failure();
    }
  }
  return resultsFromTypes(op, results, reason);
}

} // namespace

LogicalResult inferTypes(Operation *op, std::string &reason) {
  StringRef type = getOpType(op);
  if (type == "If" && op->getNumRegions() == 2)
    return inferIf(op, reason);
  if (type == "Loop" && op->getNumRegions() == 1)
    return inferLoop(op, reason);
  if (type == "Scan" && op->getNumRegions() == 1)
    return inferScan(op, reason);
  const ::onnx::OpSchema *schema = findNewestSchema(type);
  if (!schema) {
    reason = "unknown operator";
    return failure();
  }
  return inferBySchema(op, *schema, reason);
}

LogicalResult inferTypes(Operation *op) {
  std::string reason;
  if (succeeded(inferTypes(op, reason)))
    return success();
  return emitNodeError(op) << reason;
}

LogicalResult inferBlock(Block &block) {
  LogicalResult result = success();
  for (Operation &op : block)
    if (isOperator(&op) && failed(inferTypes(&op)))
      result = failure();
  return result;
}

Operation *createInferred(OpBuilder &builder, Location loc, StringRef opType, ValueRange operands,
                          ArrayRef<NamedAttribute> attributes, unsigned numResults) {
  SmallVector<Type> types(numResults, unknownType(builder.getContext()));
  Operation *op = createOp(builder, loc, opType, types, operands, attributes);
  if (succeeded(inferTypes(op)))
    return op;
  op->erase();
  return nullptr;
}

} // namespace ogc::onnx
