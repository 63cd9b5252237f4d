//===- FormAttention.cpp - decomposed attention → one operator ------------===//
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"
#include <limits>

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_FORMATTENTION
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

/// A mask, and the scores that it was added to: it may broadcast to their shape.
struct Mask {
  Value value;
  RankedTensorType scores;
};

/// What the operators of softmax(scale * q kT + masks) v are made of. All shapes are static; q, kT and v have the same rank, 3
/// or 4.
struct Parts {
  Operation *product = nullptr; ///< q kT
  Value value;
  double scale = 1.0;
  SmallVector<Mask, 2> masks;
  SmallVector<std::pair<Operation *, Value>, 2> factors; ///< products with a scalar that is in `scale`, and what they multiply
};

/// Takes scalar factors off a value, as long as nothing else uses what they make; with `belowShapes` also those below reshapes
/// and transposes of it. Gives what the last factor multiplies.
Value takeFactors(Value value, bool belowShapes, Parts &parts) {
  Value last = value;
  for (;;) {
    Operation *op = value.hasOneUse() ? value.getDefiningOp() : nullptr;
    if (belowShapes && (onnx::isOp(op, "Reshape") || onnx::isOp(op, "Transpose"))) {
      value = op->getOperand(0);
      continue;
    }
    Value rest;
    double factor = 1.0;
    if (onnx::isOp(op, "Mul")) {
      auto [other, scalar] = splitOperands(op, [](Value v) { return scalarOf(v).has_value(); });
      rest = other;
      factor = scalar ? *scalarOf(scalar) : 1.0;
    } else if (onnx::isOp(op, "Div") && scalarOf(op->getOperand(1)).value_or(0.0) != 0.0) {
      rest = op->getOperand(0);
      factor = 1.0 / *scalarOf(op->getOperand(1));
    }
    if (!rest || rest.getType() != value.getType())
      return last;
    value = last = rest;
    parts.factors.emplace_back(op, rest);
    parts.scale *= factor;
  }
}

/// A zero, or one that is cast to the type of another value.
bool isZero(Value value) {
  if (Operation *cast = producer(value, "CastLike"))
    value = cast->getOperand(0);
  return scalarOf(value) == 0.0;
}

/// The mask whose rows of nothing but minus infinity a condition marks: max(mask, axis = -1, keepdims) == -inf.
Value matchMaskedRows(Value condition) {
  Operation *equal = onlyProducer(condition, "Equal");
  Operation *most = equal ? onlyProducer(equal->getOperand(0), "ReduceMax") : nullptr;
  if (!most || scalarOf(equal->getOperand(1)) != -std::numeric_limits<double>::infinity())
    return {};
  RankedTensorType from = staticType(most->getOperand(0)), to = staticType(most->getResult(0));
  std::optional<SmallVector<int64_t>> axes =
      most->getNumOperands() > 1 ? onnx::getConstantInts(most->getOperand(1)) : std::nullopt;
  if (!from || !to || from.getRank() != to.getRank() || !axes || axes->size() != 1)
    return {};
  return (*axes)[0] == -1 || (*axes)[0] == from.getRank() - 1 ? most->getOperand(0) : Value();
}

/// The softmax over the last axis that makes a value; through where(isnan(s), 0, s) and where(masked rows, 0, s), by which
/// exporters and the body of Attention give masked-out rows zero: so do we. `marked` gets the mask of the latter.
Operation *matchSoftmax(Value value, Value &marked) {
  Operation *softmax = producer(value, "Softmax");
  unsigned uses = 1;
  if (Operation *where = onlyProducer(value, "Where")) {
    Operation *isNaN = onlyProducer(where->getOperand(0), "IsNaN");
    marked = isNaN ? Value() : matchMaskedRows(where->getOperand(0));
    if (!(isNaN ? isNaN->getOperand(0) == where->getOperand(2) : bool(marked)) || !isZero(where->getOperand(1)))
      return nullptr;
    softmax = producer(where->getOperand(2), "Softmax");
    uses = isNaN || producer(where->getOperand(1), "CastLike") ? 2 : 1;
  }
  if (!softmax || !softmax->getResult(0).hasNUses(uses))
    return nullptr;
  RankedTensorType type = staticType(softmax->getResult(0));
  int64_t axis = onnx::OnnxOp(softmax).getI64("axis", -1);
  return type && (axis == -1 || axis == type.getRank() - 1) ? softmax : nullptr;
}

/// Finds scale * (q kT) below additions of masks, and reshapes of the dimensions before the last two: windows of an image that
/// have masks of their own are split off for the addition.
bool matchScores(Value value, Parts &parts) {
  if (Operation *add = onlyProducer(value, "Add"))
    for (unsigned i : {0u, 1u}) {
      Parts inner = parts;
      if (add->getOperand(i).getType() != value.getType() || !matchScores(add->getOperand(i), inner))
        continue;
      parts = inner;
      parts.masks.push_back({add->getOperand(1 - i), staticType(value)});
      return true;
    }
  RankedTensorType type = staticType(value);
  if (Operation *shaped = onlyProducer(value, "Reshape")) {
    RankedTensorType from = staticType(shaped->getOperand(0));
    return type && from && type.getRank() > 2 && from.getRank() > 2 &&
           type.getShape().take_back(2) == from.getShape().take_back(2) && matchScores(shaped->getOperand(0), parts);
  }
  Parts inner = parts;
  inner.product = onlyProducer(takeFactors(value, /*belowShapes=*/false, inner), "MatMul");
  if (!inner.product)
    return false;
  parts = inner;
  for (Value operand : parts.product->getOperands())
    takeFactors(operand, /*belowShapes=*/true, parts);
  return true;
}

/// The batch dimensions are the same in all parts, so that MatMul broadcasts nothing.
bool haveSameBatch(const Parts &parts, RankedTensorType scores) {
  for (Value part : {parts.product->getOperand(0), parts.product->getOperand(1), parts.value}) {
    RankedTensorType type = staticType(part);
    if (!type || type.getRank() != scores.getRank() || type.getElementType() != scores.getElementType() ||
        type.getShape().drop_back(2) != scores.getShape().drop_back(2))
      return false;
  }
  return scores.getRank() == 3 || scores.getRank() == 4;
}

std::optional<Parts> matchAttention(Operation *root) {
  Value marked;
  Operation *softmax = matchSoftmax(root->getOperand(0), marked);
  if (!softmax)
    return std::nullopt;
  RankedTensorType type = staticType(softmax->getResult(0)), result = staticType(root->getResult(0));
  if (!result || result.getNumElements() == 0) // the operator wants heads
    return std::nullopt;
  Parts parts;
  parts.value = root->getOperand(1);
  Value scores = softmax->getOperand(0);
  if (!matchScores(scores, parts))
    return std::nullopt;
  if (marked && (parts.masks.size() != 1 || marked != parts.masks[0].value))
    return std::nullopt;
  // The operator multiplies q and k by the root of the scale each.
  if (!isa<FloatType>(type.getElementType()) || !(parts.scale > 0) || !haveSameBatch(parts, type))
    return std::nullopt;
  for (const Mask &mask : parts.masks)
    if (RankedTensorType of = staticType(mask.value); !of || of.getRank() > mask.scores.getRank())
      return std::nullopt;
  return parts;
}

SmallVector<int64_t> swapLast(ArrayRef<int64_t> list) {
  SmallVector<int64_t> swapped(list);
  std::swap(swapped[list.size() - 1], swapped[list.size() - 2]);
  return swapped;
}

/// The transpose of a value in its last two dimensions; undoes the transpose that made the value where there is one.
Value untranspose(PatternRewriter &rewriter, Location loc, Value value) {
  RankedTensorType type = staticType(value);
  SmallVector<int64_t> wanted = swapLast(type.getShape());
  if (Operation *made = producer(value, "Transpose")) {
    SmallVector<int64_t> perm = swapLast(onnx::OnnxOp(made).getI64s("perm"));
    bool isIdentity = llvm::equal(perm, llvm::seq<int64_t>(0, type.getRank()));
    return isIdentity ? made->getOperand(0) : transpose(rewriter, loc, made->getOperand(0), perm);
  }
  // A reshape of the dimensions before the last two, around a transpose of the last two.
  Operation *outer = producer(value, "Reshape"), *inner = outer ? producer(outer->getOperand(0), "Transpose") : nullptr;
  RankedTensorType innerType = inner ? staticType(inner->getResult(0)) : RankedTensorType();
  if (innerType && innerType.getRank() >= 2 && innerType.getShape().take_back(2) == type.getShape().take_back(2)) {
    SmallVector<int64_t> perm = swapLast(onnx::OnnxOp(inner).getI64s("perm"));
    if (llvm::equal(perm, llvm::seq<int64_t>(0, innerType.getRank()))) {
      Value source = inner->getOperand(0);
      Operation *before = producer(source, "Reshape");
      RankedTensorType beforeType = before ? staticType(before->getOperand(0)) : RankedTensorType();
      if (beforeType && beforeType.getShape() == ArrayRef(wanted))
        return before->getOperand(0);
      return reshape(rewriter, loc, source, wanted);
    }
  }
  SmallVector<int64_t> identity = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  return transpose(rewriter, loc, value, swapLast(identity));
}

/// Heads repeated by Unsqueeze, Expand, Reshape: the value before, [B, HK, T, D] of [B, HK * repeats, T, D]. Null when there are
/// none.
Value beforeRepeat(Value value, int64_t &repeats) {
  Operation *merge = producer(value, "Reshape"), *expand = merge ? producer(merge->getOperand(0), "Expand") : nullptr;
  Operation *split = expand ? expand->getOperand(0).getDefiningOp() : nullptr;
  if (!onnx::isOp(split, "Unsqueeze") && !onnx::isOp(split, "Reshape"))
    return {};
  RankedTensorType to = staticType(value), wide = staticType(expand->getResult(0)), from = staticType(split->getOperand(0));
  if (!to || !wide || !from || to.getRank() != 4 || wide.getRank() != 5 || from.getRank() != 4)
    return {};
  repeats = wide.getDimSize(2);
  ArrayRef<int64_t> s = from.getShape();
  RankedTensorType column = staticType(split->getResult(0));
  if (!column || column.getShape() != ArrayRef<int64_t>({s[0], s[1], 1, s[2], s[3]}) ||
      wide.getShape() != ArrayRef<int64_t>({s[0], s[1], repeats, s[2], s[3]}) ||
      to.getShape() != ArrayRef<int64_t>({s[0], s[1] * repeats, s[2], s[3]}))
    return {};
  return split->getOperand(0);
}

/// Queries [B, HK, G, D] that are the heads of one position, [B, HK * G, 1, D], in groups that share a key head: the value before
/// the reshape, null when it is another one. Heads are then where they were, without a transpose.
Value beforeGrouping(Value query, Value mask) {
  Operation *group = producer(query, "Reshape");
  RankedTensorType to = staticType(query), from = group ? staticType(group->getOperand(0)) : RankedTensorType();
  if (!from || to.getRank() != 4 || from.getRank() != 4)
    return {};
  ArrayRef<int64_t> s = to.getShape();
  if (from.getShape() != ArrayRef<int64_t>({s[0], s[1] * s[2], 1, s[3]}))
    return {};
  // A mask that differs among the heads of a group would have to be reshaped, too.
  bool isShared = !mask || llvm::all_of(staticType(mask).getShape().drop_back(1).take_back(2), [](int64_t d) { return d == 1; });
  return isShared ? group->getOperand(0) : Value();
}

SmallVector<int64_t> toRank4(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> padded(4 - shape.size(), 1);
  llvm::append_range(padded, shape);
  return padded;
}

/// A mask of scores in one shape as one of scores in another, of which the last dimensions are the same.
Value maskOf(PatternRewriter &rewriter, Location loc, const Mask &mask, ArrayRef<int64_t> scores) {
  ArrayRef<int64_t> from = mask.scores.getShape();
  if (from == scores)
    return mask.value;
  size_t shared = 0;
  while (shared < std::min(from.size(), scores.size()) && from.rbegin()[shared] == scores.rbegin()[shared])
    ++shared;
  SmallVector<int64_t> full(from.size() - staticType(mask.value).getRank(), 1);
  llvm::append_range(full, staticType(mask.value).getShape());
  // Where dimensions are joined or split, the mask has all of them or none.
  MutableArrayRef<int64_t> leading = MutableArrayRef(full).drop_back(shared);
  bool isSingle = llvm::all_of(leading, [](int64_t extent) { return extent == 1; });
  Value value = reshape(rewriter, loc, mask.value, full);
  if (!isSingle && ArrayRef<int64_t>(leading) != from.drop_back(shared)) {
    llvm::copy(from.drop_back(shared), leading.begin());
    value = build(rewriter, loc, "Expand", {value, onnx::createI64s(rewriter, loc, full)});
  }
  SmallVector<int64_t> shape(scores.drop_back(shared));
  if (isSingle)
    llvm::fill(shape, 1);
  llvm::append_range(shape, ArrayRef(full).take_back(shared));
  return reshape(rewriter, loc, value, shape);
}

/// The sum of the masks as [B or 1, H or 1, S or 1, T]; null when there are none. The operator pads a shorter last dimension with
/// minus infinity, so that one of size 1 is expanded.
Value prepareMask(PatternRewriter &rewriter, Location loc, ArrayRef<Mask> masks, ArrayRef<int64_t> scores) {
  Value sum;
  for (const Mask &mask : masks) {
    Value next = maskOf(rewriter, loc, mask, scores);
    next = reshape(rewriter, loc, next, toRank4(staticType(next).getShape()));
    sum = sum ? build(rewriter, loc, "Add", {sum, next}) : next;
  }
  if (!sum || staticType(sum).getShape().back() == scores.back())
    return sum;
  SmallVector<int64_t> shape(staticType(sum).getShape());
  shape.back() = scores.back();
  return build(rewriter, loc, "Expand", {sum, onnx::createI64s(rewriter, loc, shape)});
}

struct FormAttentionFromMatMul : RewritePattern {
  FormAttentionFromMatMul(MLIRContext *context) : RewritePattern("onnx.MatMul", 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    std::optional<Parts> parts = matchAttention(op);
    if (!parts)
      return failure();
    Location loc = op->getLoc();
    for (auto [scaled, factor] : parts->factors) // each has one use, below which is nothing but this attention
      rewriter.replaceAllUsesWith(scaled->getResult(0), factor);
    Value queries = parts->product->getOperand(0);
    auto shapeOf = [](Value v) { return toRank4(staticType(v).getShape()); };
    Value query = reshape(rewriter, loc, queries, shapeOf(queries));
    Value key = untranspose(rewriter, loc, parts->product->getOperand(1)), value = parts->value;
    if (!query || !key)
      return failure();
    int64_t keyRepeats = 1, valueRepeats = 1;
    Value sharedKey = beforeRepeat(key, keyRepeats), sharedValue = beforeRepeat(value, valueRepeats);
    if (sharedKey && sharedValue && keyRepeats == valueRepeats) {
      key = sharedKey;
      value = sharedValue;
    }
    ArrayRef<int64_t> scores = staticType(op->getOperand(0)).getShape();
    Value mask = prepareMask(rewriter, loc, parts->masks, scores);
    if (Value heads = keyRepeats == 1 ? beforeGrouping(query, mask) : Value())
      query = heads;
    key = reshape(rewriter, loc, key, shapeOf(key));
    value = reshape(rewriter, loc, value, shapeOf(value));
    SmallVector<Value> operands = {query, key, value};
    if (mask)
      operands.push_back(mask);
    NamedAttribute scale = rewriter.getNamedAttr("scale", rewriter.getF32FloatAttr(static_cast<float>(parts->scale)));
    Value formed = build(rewriter, loc, "Attention", operands, scale);
    formed = formed ? reshape(rewriter, loc, formed, staticType(op->getResult(0)).getShape()) : Value();
    if (!formed)
      return failure();
    rewriter.replaceOp(op, formed);
    return success();
  }
};

struct FormAttentionPass : impl::FormAttentionBase<FormAttentionPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FormAttentionFromMatMul>(&getContext());
    if (failed(applyTo(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::normalize
