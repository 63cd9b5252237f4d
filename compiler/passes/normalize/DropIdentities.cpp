//===- DropIdentities.cpp - drop operators that change nothing ------------===//
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_DROPIDENTITIES
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

bool isIdentityPermutation(ArrayRef<int64_t> perm) {
  return llvm::all_of(llvm::enumerate(perm),
                      [](const auto &entry) { return entry.value() == static_cast<int64_t>(entry.index()); });
}

/// Dropout that passes its input on: no training, and nothing asks for the mask.
bool isInferenceDropout(const onnx::OnnxOp &op) {
  if (op.isOutputUsed(1))
    return false;
  std::optional<SmallVector<int64_t>> training = onnx::getConstantInts(op.input(2));
  return !op.hasInput(2) || (training && training->size() == 1 && training->front() == 0);
}

/// True when output 0 equals input 0 whatever the values are.
bool changesNothing(const onnx::OnnxOp &op) {
  StringRef type = op.opType();
  if (type == "Identity")
    return true;
  if (type == "Dropout")
    return isInferenceDropout(op);
  if (type == "Concat" || type == "Sum" || type == "Max" || type == "Min" || type == "Mean")
    return op.numInputs() == 1;
  if (type == "Transpose")
    return isIdentityPermutation(op.getI64s("perm", {1}));
  // Same static type in and out: these only move or convert elements.
  RankedTensorType from = op.inputType(0), to = op.outputType(0);
  if (!from || from != to || !from.hasStaticShape())
    return type == "Cast" && from && to && from.getElementType() == to.getElementType();
  return type == "Cast" || type == "Reshape" || type == "Expand" || type == "Flatten" || type == "Squeeze" || type == "Unsqueeze";
}

struct DropIdentity : RewritePattern {
  DropIdentity(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    onnx::OnnxOp view(op);
    if (!onnx::isOperator(op) || op->getNumResults() == 0 || !view.hasInput(0) || !changesNothing(view))
      return failure();
    Value input = view.input(0);
    if (input.getType() != op->getResult(0).getType())
      return failure();
    rewriter.replaceAllUsesWith(op->getResult(0), input);
    rewriter.eraseOp(op);
    return success();
  }
};

struct DropIdentitiesPass : impl::DropIdentitiesBase<DropIdentitiesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DropIdentity>(&getContext());
    if (failed(applyTo(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::normalize
