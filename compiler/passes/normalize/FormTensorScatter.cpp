//===- FormTensorScatter.cpp - rows written into a cache → one operator ---===//
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_FORMTENSORSCATTER
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

SmallVector<int64_t> permOf(Operation *transpose) { return SmallVector<int64_t>(onnx::OnnxOp(transpose).getI64s("perm")); }

/// The transpose of a value; of a value that is transposed already the one that does both.
Value transposed(PatternRewriter &rewriter, Location loc, Value value, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> all(perm);
  if (Operation *first = producer(value, "Transpose")) {
    all = applyPermutation(permOf(first), perm);
    value = first->getOperand(0);
  }
  return isIdentityPermutation(all) ? value : transpose(rewriter, loc, value, all);
}

/// One row of `cache` along `axis`, in all of its other dimensions: new rows `[…, 1, …]` and their position, one integer.
struct RowWrite {
  Value cache, rows, position;
  int64_t axis;
};

/// `onnx.TensorScatter` of a row. It takes a negative position for one from the end, as the operators that it replaces do.
Value build(PatternRewriter &rewriter, Location loc, const RowWrite &write) {
  RankedTensorType type = staticType(write.cache);
  auto constant = [&](int64_t value) { return onnx::createI64s(rewriter, loc, {value}); };
  Value position = reshape(rewriter, loc, write.position, {1});
  if (!staticType(position).getElementType().isInteger(64))
    position = normalize::build(rewriter, loc, "Cast", position, rewriter.getNamedAttr("to", rewriter.getI64IntegerAttr(7)));
  if (type.getDimSize(0) != 1)
    position = normalize::build(rewriter, loc, "Expand", {position, constant(type.getDimSize(0))});
  return normalize::build(rewriter, loc, "TensorScatter", {write.cache, write.rows, position},
                          {rewriter.getNamedAttr("axis", rewriter.getI64IntegerAttr(write.axis)),
                           rewriter.getNamedAttr("mode", rewriter.getStringAttr("linear"))});
}

bool isPlain(Operation *scatter) {
  StringRef reduction = onnx::OnnxOp(scatter).getStr("reduction", "none");
  return reduction == "none" || reduction.empty();
}

/// One row of the first dimension of a cache that was transposed for it.
struct FromScatterNd : RewritePattern {
  FromScatterNd(MLIRContext *context) : RewritePattern("onnx.ScatterND", 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Operation *moved = producer(op->getOperand(0), "Transpose");
    RankedTensorType data = staticType(op->getOperand(0)), indices = staticType(op->getOperand(1));
    if (!moved || !data || !indices || indices.getNumElements() != 1 || !isPlain(op) || data.getNumElements() == 0)
      return failure();
    SmallVector<int64_t> perm = permOf(moved), rowShape(data.getShape());
    if (perm[0] == 0) // the rows of a cache are in the same place of each batch, never batches themselves
      return failure();
    rowShape[0] = 1;
    Location loc = op->getLoc();
    Value rows = reshape(rewriter, loc, op->getOperand(2), rowShape);
    rows = transposed(rewriter, loc, rows, invertPermutationVector(perm));
    Value written = build(rewriter, loc, {moved->getOperand(0), rows, op->getOperand(1), perm[0]});
    written = written ? transpose(rewriter, loc, written, perm) : Value();
    if (!written)
      return failure();
    rewriter.replaceOp(op, written);
    return success();
  }
};

/// A row along any axis but the first, whose position was repeated for each of its elements.
struct FromScatterElements : RewritePattern {
  FromScatterElements(MLIRContext *context) : RewritePattern("onnx.ScatterElements", 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    RankedTensorType data = staticType(op->getOperand(0)), updates = staticType(op->getOperand(2));
    Operation *expand = producer(op->getOperand(1), "Expand");
    RankedTensorType index = expand ? staticType(expand->getOperand(0)) : RankedTensorType();
    if (!data || !updates || !index || index.getNumElements() != 1 || !isPlain(op) || data.getNumElements() == 0)
      return failure();
    int64_t axis = onnx::wrapAxis(onnx::OnnxOp(op).getI64("axis"), data.getRank());
    SmallVector<int64_t> row(data.getShape());
    if (axis < 1 || axis >= data.getRank())
      return failure();
    row[axis] = 1;
    if (updates.getShape() != ArrayRef(row))
      return failure();
    Value written = build(rewriter, op->getLoc(), {op->getOperand(0), op->getOperand(2), expand->getOperand(0), axis});
    if (!written)
      return failure();
    rewriter.replaceOp(op, written);
    return success();
  }
};

/// The transposes around a write: the cache goes on in the layout that it has.
struct JoinTransposes : RewritePattern {
  JoinTransposes(MLIRContext *context) : RewritePattern("onnx.Transpose", 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Operation *first = producer(op->getOperand(0), "Transpose");
    if (!first || !producer(first->getOperand(0), "TensorScatter"))
      return failure();
    Value joined = transposed(rewriter, op->getLoc(), op->getOperand(0), permOf(op));
    if (!joined)
      return failure();
    rewriter.replaceOp(op, joined);
    return success();
  }
};

struct FormTensorScatterPass : impl::FormTensorScatterBase<FormTensorScatterPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FromScatterNd, FromScatterElements, JoinTransposes>(&getContext());
    if (failed(applyTo(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::normalize
