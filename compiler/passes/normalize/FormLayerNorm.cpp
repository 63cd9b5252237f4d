//===- FormLayerNorm.cpp - decomposed layer normalization → one operator --===//
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_FORMLAYERNORM
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

/// x - mean(x) over the last axis: returns x.
Value matchCentered(Value value) {
  Operation *sub = producer(value, "Sub");
  Operation *mean = sub ? producer(sub->getOperand(1), "ReduceMean") : nullptr;
  return mean && mean->getOperand(0) == sub->getOperand(0) && reducesLastAxis(mean) ? sub->getOperand(0) : Value();
}

/// The base of a square: x of Pow(x, 2) and of Mul(x, x).
Value matchSquare(Value value) {
  if (Operation *pow = producer(value, "Pow"))
    return isScalarNear(pow->getOperand(1), 2.0) || onnx::getConstantInts(pow->getOperand(1)) == SmallVector<int64_t>{2}
               ? pow->getOperand(0)
               : Value();
  Operation *mul = producer(value, "Mul");
  return mul && mul->getOperand(0) == mul->getOperand(1) ? mul->getOperand(0) : Value();
}

/// sqrt(mean(base^2) + epsilon) over the last axis.
bool matchRoot(Value value, Value &base, double &epsilon) {
  Operation *root = producer(value, "Sqrt");
  Operation *add = root ? producer(root->getOperand(0), "Add") : nullptr;
  if (!add)
    return false;
  auto [sum, constant] = splitOperands(add, [](Value v) { return scalarOf(v).has_value(); });
  Operation *mean = producer(sum, "ReduceMean");
  if (!mean || !reducesLastAxis(mean))
    return false;
  epsilon = *scalarOf(constant);
  base = matchSquare(mean->getOperand(0));
  return static_cast<bool>(base);
}

/// A division by matchRoot's root: x / root, or x * (1 / root).
bool matchNormalized(Operation *op, Value &numerator, Value &base, double &epsilon) {
  if (onnx::isOp(op, "Div")) {
    numerator = op->getOperand(0);
    return matchRoot(op->getOperand(1), base, epsilon);
  }
  if (!onnx::isOp(op, "Mul"))
    return false;
  auto inverseOf = [](Value v) -> Value {
    if (Operation *reciprocal = producer(v, "Reciprocal"))
      return reciprocal->getOperand(0);
    Operation *div = producer(v, "Div");
    return div && isScalarNear(div->getOperand(0), 1.0) ? div->getOperand(1) : Value();
  };
  auto [rest, inverse] = splitOperands(op, [&](Value v) { return static_cast<bool>(inverseOf(v)); });
  numerator = rest;
  return inverse && matchRoot(inverseOf(inverse), base, epsilon);
}

/// The only user of a value, when it is the operator `type` with another operand of the shape of the last axis.
Operation *matchAffine(Value value, StringRef type, Value &parameter) {
  if (!value.hasOneUse())
    return nullptr;
  Operation *user = *value.user_begin();
  auto valueType = dyn_cast<RankedTensorType>(value.getType());
  if (!onnx::isOp(user, type) || !valueType)
    return nullptr;
  parameter = user->getOperand(user->getOperand(0) == value ? 1 : 0);
  auto wanted = RankedTensorType::get(valueType.getShape().take_back(1), valueType.getElementType());
  return parameter.getType() == wanted ? user : nullptr;
}

Value ones(PatternRewriter &rewriter, Location loc, RankedTensorType like) {
  auto element = cast<FloatType>(like.getElementType());
  auto type = RankedTensorType::get(like.getShape().take_back(1), element);
  return onnx::createConstant(rewriter, loc, DenseElementsAttr::get(type, rewriter.getFloatAttr(element, 1.0).getValue()));
}

/// Layer normalization, or RMS normalization when nothing is subtracted, with whatever scale and bias follow.
struct FormNorm : RewritePattern {
  FormNorm(StringRef root, MLIRContext *context) : RewritePattern(root, 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Value numerator, base;
    double epsilon;
    if (!matchNormalized(op, numerator, base, epsilon) || numerator != base)
      return failure();
    Value centered = matchCentered(base), input = centered ? centered : base;
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (!type || type != op->getResult(0).getType() || !isa<FloatType>(type.getElementType()) || type.getRank() == 0 ||
        type.isDynamicDim(type.getRank() - 1))
      return failure();
    Value scale, bias;
    Operation *last = op;
    if (Operation *mul = matchAffine(last->getResult(0), "Mul", scale))
      last = mul;
    else
      scale = {};
    Operation *add = centered ? matchAffine(last->getResult(0), "Add", bias) : nullptr;
    last = add ? add : last;
    rewriter.setInsertionPoint(last);
    SmallVector<Value> operands = {input, scale ? scale : ones(rewriter, op->getLoc(), type)};
    if (add)
      operands.push_back(bias);
    NamedAttribute attribute = rewriter.getNamedAttr("epsilon", rewriter.getF32FloatAttr(static_cast<float>(epsilon)));
    Value formed = build(rewriter, last->getLoc(), centered ? "LayerNormalization" : "RMSNormalization", operands, attribute);
    if (!formed)
      return failure();
    rewriter.replaceOp(last, formed);
    return success();
  }
};

struct FormLayerNormPass : impl::FormLayerNormBase<FormLayerNormPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FormNorm>("onnx.Div", &getContext());
    patterns.add<FormNorm>("onnx.Mul", &getContext());
    if (failed(applyTo(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::normalize
