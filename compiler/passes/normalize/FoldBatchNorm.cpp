//===- FoldBatchNorm.cpp - BatchNormalization into Conv -------------------===//
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_FOLDBATCHNORM
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

/// y = (conv(x, w) + b - mean) * s + bias with s = scale / sqrt(var + epsilon)
///   = conv(x, w * s) + (b - mean) * s + bias. The arithmetic on constants is evaluated later, like all of it.
struct FoldBatchNormIntoConv : RewritePattern {
  FoldBatchNormIntoConv(MLIRContext *context) : RewritePattern("onnx.BatchNormalization", 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    onnx::OnnxOp norm(op);
    Operation *producing = onlyProducer(norm.input(0), "Conv");
    if (!producing || op->getNumResults() != 1 || norm.getI64("training_mode") != 0)
      return failure();
    onnx::OnnxOp conv(producing);
    RankedTensorType weightType = conv.inputType(1);
    auto element = weightType ? dyn_cast<FloatType>(weightType.getElementType()) : FloatType();
    if (!element || !weightType.hasStaticShape() || weightType.getRank() == 0 || !onnx::getConstant(conv.input(1)))
      return failure();
    // Nothing has checked the bias yet: one of another shape is an error of the Conv, which its lowering reports.
    auto isVector = [&](const onnx::OnnxOp &of, int input) {
      return onnx::getConstant(of.input(input)) &&
             of.inputType(input) == RankedTensorType::get({weightType.getDimSize(0)}, element);
    };
    if (conv.hasInput(2) && !isVector(conv, 2))
      return failure();
    for (int i = 1; i < 5; ++i)
      if (!isVector(norm, i))
        return failure();

    Location loc = rewriter.getFusedLoc({producing->getLoc(), op->getLoc()});
    auto make = [&](StringRef type, ValueRange operands) { return build(rewriter, loc, type, operands); };
    Value epsilon = onnx::createScalar(rewriter, loc, element, norm.getF32("epsilon", 1e-5f));
    Value scale = make("Div", {norm.input(1), make("Sqrt", make("Add", {norm.input(4), epsilon}))});
    SmallVector<int64_t> column(weightType.getRank(), 1);
    column[0] = weightType.getDimSize(0);
    Value weight = make("Mul", {conv.input(1), reshape(rewriter, loc, scale, column)});
    Value shift = conv.hasInput(2) ? make("Sub", {conv.input(2), norm.input(3)}) : make("Neg", norm.input(3));
    Value bias = make("Add", {make("Mul", {shift, scale}), norm.input(2)});
    if (!weight || !bias)
      return failure();
    Operation *folded =
        onnx::createOp(rewriter, loc, "Conv", op->getResultTypes(), {conv.input(0), weight, bias}, producing->getAttrs());
    rewriter.replaceOp(op, folded);
    return success();
  }
};

struct FoldBatchNormPass : impl::FoldBatchNormBase<FoldBatchNormPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldBatchNormIntoConv>(&getContext());
    if (failed(applyTo(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::normalize
