//===- Attention.cpp - Attention (ai.onnx 23 and later) -------------------===//
#include "compiler/passes/lower/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Operand i as [B, S, H, D]: from [B, S, H * D] by shape, from [B, H, S, D] by a transpose.
Value headsInside(Node &n, int i, int64_t heads) {
  ArrayRef<int64_t> shape = n.inShape(i);
  if (shape.size() == 3)
    return reshape(n.b, n.in(i), {shape[0], shape[1], heads, shape[2] / heads});
  return transpose(n.b, n.in(i), {0, 2, 1, 3});
}

/// Which keys a query sees, as far as the anchor cannot express it. The position of query s is s + offset.
struct Mask {
  Value mask;          ///< operand attn_mask as rank 4, or null
  Value valid;         ///< operand nonpad_kv_seqlen, the number of keys that count in each batch, or null
  bool causal = false; ///< keys at or before the query
  int64_t left = -1;   ///< at most so many positions before the query; -1: any number
  int64_t right = -1;  ///< likewise after it
  int64_t offset = 0;  ///< without `valid`; with it the offset is that number less the number of queries

  bool dependsOnQuery() const { return causal || left >= 0 || right >= 0; }
  bool isEmpty() const { return !mask && !valid && !dependsOnQuery(); }
};

/// The mask padded to all keys: those past its end are hidden. (An extent of one is a broadcast.)
Value padMask(Node &n, Value mask, int64_t keys) {
  int64_t missing = keys - shapeOf(mask)[3];
  if (missing <= 0 || shapeOf(mask)[3] == 1)
    return mask;
  Scalar s(n.b, n.op.getLoc());
  Type element = elementOf(mask);
  return pad(n.b, mask, {0, 0, 0, 0}, {0, 0, 0, missing}, element.isInteger(1) ? s.icst(element, 0) : s.lowest(element, false));
}

/// True (i1) where the query at domain dimension 2 sees the key at dimension 3; null when it sees all. `valid` may be null.
Value isVisible(Scalar &s, const Mask &mask, Value valid, int64_t queries) {
  Type i64 = s.b.getI64Type();
  auto position = [&](int64_t d) -> Value { return arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, d)); };
  Value key = position(3), visible;
  auto require = [&](Compare c, Value x, Value y) {
    Value condition = s.cmp(c, x, y, false);
    visible = visible ? arith::AndIOp::create(s.b, visible, condition).getResult() : condition;
  };
  if (valid)
    require(Compare::Less, key, valid);
  if (!mask.dependsOnQuery())
    return visible;
  Value offset = valid ? s.sub(valid, s.icst(i64, queries)) : s.icst(i64, mask.offset);
  Value query = s.add(position(2), offset);
  if (mask.causal)
    require(Compare::LessOrEqual, key, query);
  if (mask.left >= 0)
    require(Compare::GreaterOrEqual, key, s.sub(query, s.icst(i64, mask.left)));
  if (mask.right >= 0)
    require(Compare::LessOrEqual, key, s.add(query, s.icst(i64, mask.right)));
  return visible;
}

/// Everything that hides keys as one additive bias [B or 1, H or 1, S or 1, T]: -inf where hidden.
Value additiveBias(Node &n, Mask mask, Type type, int64_t batch, int64_t queries, int64_t keys) {
  MLIRContext *context = n.b.getContext();
  Shape shape{mask.valid ? batch : 1, 1, mask.dependsOnQuery() ? queries : 1, keys};
  SmallVector<Operand> operands;
  if (mask.mask) {
    mask.mask = padMask(n, mask.mask, keys);
    for (int d = 0; d < 3; ++d)
      shape[d] = std::max(shape[d], shapeOf(mask.mask)[d]);
    operands.push_back({mask.mask, broadcastMap(context, shapeOf(mask.mask), shape)});
  }
  if (mask.valid)
    operands.push_back({mask.valid, AffineMap::get(4, 0, getAffineDimExpr(0, context), context)});
  return mapElements(n.b, shape, type, operands, [&](Scalar &s, ValueRange x) {
    Value bias = s.cst(type, 0.0), hidden = s.lowest(type, false);
    if (mask.mask)
      bias = x[0].getType().isInteger(1) ? s.select(x[0], bias, hidden) : s.cast(x[0], false, type, false);
    Value visible = isVisible(s, mask, mask.valid ? x.back() : Value(), queries);
    return visible ? s.select(visible, bias, hidden) : bias;
  });
}

/// True when the mask as it is serves as a bias: floats for each key, and nothing else hides keys.
bool isBias(const Mask &mask, int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  if (!mask.mask || mask.valid || mask.dependsOnQuery() || !isAnchorElement(elementOf(mask.mask)))
    return false;
  ArrayRef<int64_t> shape = shapeOf(mask.mask);
  auto fits = [&](int d, int64_t full) { return shape[d] == full || shape[d] == 1; };
  return fits(0, batch) && fits(1, heads) && fits(2, queries) && shape[3] == keys;
}

/// Key or value with the past in front, [B, T, H, D]; adds the present [B, H, T, D] to the results when it is read.
Value withPast(Node &n, int current, int past, int present, int64_t heads, SmallVectorImpl<Value> &presents) {
  Value v = headsInside(n, current, heads);
  if (n.has(past))
    v = concat(n.b, 1, {transpose(n.b, n.in(past), {0, 2, 1, 3}), v});
  presents.push_back(n.op.isOutputUsed(present) ? transpose(n.b, v, {0, 2, 1, 3}) : Value());
  return v;
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// The cache and the new rows that operand i is made of by TensorScatter, as key or value [B, T, HK, D]; null when it is not.
struct CachedRows {
  Value cache, rows, position;
};

CachedRows readCache(Node &n, int i, int64_t heads) {
  Operation *op = n.op.input(i).getDefiningOp();
  if (!onnx::isOp(op, "TensorScatter"))
    return {};
  onnx::OnnxOp scatter(op);
  int64_t rank = n.inRank(i), axis = wrapAxis(scatter.getI64("axis", -2), rank);
  if (scatter.getStr("mode", "linear") != "linear" || axis != rank - 2 || !scatter.hasInput(2))
    return {};
  CachedRows result{n.lowered(scatter.input(0)), n.lowered(scatter.input(1)), n.lowered(scatter.input(2))};
  for (Value *v : {&result.cache, &result.rows}) {
    Shape shape(shapeOf(*v));
    *v = rank == 3 ? reshape(n.b, *v, {shape[0], shape[1], heads, shape[2] / heads}) : transpose(n.b, *v, {0, 2, 1, 3});
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Without the anchor
//===----------------------------------------------------------------------===//

/// Softmax over the last dimension of f32 or f64 scores; a row that is hidden as a whole gives zeros.
Value softmaxOrZero(Node &n, Value scores) {
  RowDomain domain(n.b.getContext(), shapeOf(scores), {static_cast<int64_t>(shapeOf(scores).size()) - 1});
  Scalar s(n.b, n.op.getLoc());
  Type type = elementOf(scores);
  Operand x{scores, domain.full};
  Value max = reduceRows(n.b, domain, x, s.lowest(type, false), [](Scalar &s, ValueRange v) { return s.max(v[1], v[0], false); });
  Value power = mapRows(n.b, domain, {x, {max, domain.outerMap}}, type, [&](Scalar &s, ValueRange v) {
    Value isHidden = s.cmp(Compare::Equal, v[1], s.lowest(type, false), false);
    return s.select(isHidden, s.cst(type, 0.0), s.exp(s.sub(v[0], v[1])));
  });
  Value sum = reduceRows(n.b, domain, {{power, domain.full}}, s.cst(type, 0.0),
                         [](Scalar &s, ValueRange v) { return s.add(v[1], v[0]); });
  return mapRows(n.b, domain, {{power, domain.full}, {sum, domain.outerMap}}, type, [&](Scalar &s, ValueRange v) {
    Value isZero = s.cmp(Compare::Equal, v[1], s.cst(type, 0.0), false);
    return s.div(v[0], s.select(isZero, s.cst(type, 1.0), v[1]), false);
  });
}

/// Attention from two products: for a soft cap, and where the scores are a result. Query, key and value are heads inside; so is
/// the result, in f32 (f64 for f64). `scores` becomes the output qk_matmul_output, [B, H, S, T] in that type.
Value decomposedAttention(Node &n, Value q, Value k, Value v, Value bias, float scale, Value &scores) {
  float cap = n.op.getF32("softcap", 0.0f);
  int64_t mode = n.op.getI64("qk_matmul_output_mode");
  int64_t batch = shapeOf(q)[0], queries = shapeOf(q)[1], heads = shapeOf(q)[2], size = shapeOf(q)[3];
  int64_t keys = shapeOf(k)[1], keyHeads = shapeOf(k)[2], valueSize = shapeOf(v)[3];
  // The query heads of one key head are rows of one product.
  int64_t products = batch * keyHeads, rows = heads / keyHeads * queries;
  auto headsOutside = [&](Value x, ArrayRef<int64_t> shape) { return reshape(n.b, transpose(n.b, x, {0, 2, 1, 3}), shape); };
  Shape shape{batch, heads, queries, keys};
  Value raw = product(n, headsOutside(q, {products, rows, size}), headsOutside(k, {products, keys, size}), /*transposed=*/true);
  Type type = elementOf(raw);
  raw = elementwise(n.b, shape, type, reshape(n.b, raw, shape),
                    [&](Scalar &s, ValueRange x) { return s.mul(x[0], s.cst(type, scale)); });
  Value capped = raw;
  if (cap > 0)
    capped = elementwise(n.b, shape, type, raw, [&](Scalar &s, ValueRange x) {
      return s.mul(s.tanh(s.div(x[0], s.cst(type, cap), false)), s.cst(type, cap));
    });
  Value biased = capped;
  if (bias)
    biased = elementwise(n.b, shape, type, {capped, bias}, [](Scalar &s, ValueRange x) { return s.add(x[0], x[1]); });
  Value weights = softmaxOrZero(n, biased);
  Value stages[] = {raw, capped, biased, weights};
  scores = stages[mode];
  Value lhs = reshape(n.b, convertFloat(n.b, weights, elementOf(v)), {products, rows, keys});
  Value y = product(n, lhs, headsOutside(v, {products, keys, valueSize}));
  return transpose(n.b, reshape(n.b, y, {batch, heads, queries, valueSize}), {0, 2, 1, 3});
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

LogicalResult checkAttributes(Node &n) {
  n.op.ignore("softmax_precision"); // softmax is f32
  int64_t mode = n.op.getI64("qk_matmul_output_mode");
  if (mode < 0 || mode > 3)
    return n.fail("qk_matmul_output_mode is " + Twine(mode) + ", expected 0, 1, 2 or 3");
  for (int i : {0, 1, 2})
    if (n.inElement(i) != n.inElement(0) || !isa<FloatType>(n.inElement(i)))
      return n.fail("operand " + Twine(i) + " is not of the float type of the query");
  return success();
}

constexpr int64_t any = -1;

/// Operand i, when present, must have these extents.
LogicalResult checkOperand(Node &n, int i, ArrayRef<int64_t> expected) {
  if (!n.has(i))
    return success();
  if (n.inShape(i).size() != expected.size())
    return n.fail("operand " + Twine(i) + " has rank " + Twine(n.inRank(i)) + ", expected " + Twine(expected.size()));
  for (auto [d, extents] : llvm::enumerate(llvm::zip_equal(n.inShape(i), expected)))
    if (auto [actual, wanted] = extents; wanted != any && actual != wanted)
      return n.fail("operand " + Twine(i) + " has size " + Twine(actual) + " in dimension " + Twine(d) + ", expected " +
                    Twine(wanted));
  return success();
}

/// The operands are heads of one size in one batch, which inference does not compare.
LogicalResult checkShapes(Node &n, int64_t heads, int64_t keyHeads) {
  ArrayRef<int64_t> q = n.inShape(0), k = n.inShape(1), v = n.inShape(2);
  bool isRank3 = q.size() == 3;
  for (int i : {0, 1, 2}) {
    if (n.inRank(i) != (isRank3 ? 3 : 4))
      return n.fail("operand " + Twine(i) + " has rank " + Twine(n.inRank(i)) + ", expected " +
                    (i == 0 ? Twine("3 or 4") : "that of the query, " + Twine(q.size())));
    if (int64_t count = i == 0 ? heads : keyHeads; isRank3 && n.inShape(i)[2] % count != 0)
      return n.fail("operand " + Twine(i) + " has size " + Twine(n.inShape(i)[2]) + " in dimension 2, expected a multiple of " +
                    Twine(count) + " heads");
  }
  int64_t batch = q[0], size = isRank3 ? q[2] / heads : q[3], valueSize = isRank3 ? v[2] / keyHeads : v[3];
  if (failed(isRank3 ? checkOperand(n, 1, {batch, any, keyHeads * size}) : checkOperand(n, 1, {batch, keyHeads, any, size})) ||
      failed(isRank3 ? checkOperand(n, 2, {batch, k[1], any}) : checkOperand(n, 2, {batch, keyHeads, k[2], any})) ||
      failed(checkOperand(n, 4, {batch, keyHeads, any, size})) ||
      failed(checkOperand(n, 5, {batch, keyHeads, n.has(4) ? n.inShape(4)[2] : any, valueSize})) ||
      failed(checkOperand(n, 6, {batch})))
    return failure();
  if (n.has(4) != n.has(5))
    return n.fail("past_key and past_value are not both given");
  if (n.has(3) && n.inRank(3) > 4)
    return n.fail("operand 3 has rank " + Twine(n.inRank(3)) + ", expected at most 4");
  return success();
}

Mask readMask(Node &n) {
  Mask mask;
  mask.causal = n.op.getI64("is_causal") != 0;
  mask.left = n.op.getI64("left_window_size", -1);
  mask.right = n.op.getI64("right_window_size", -1);
  mask.offset = n.has(4) ? n.inShape(4)[2] : 0;
  mask.valid = n.in(6);
  if (n.has(3)) {
    Shape shape(4 - std::min<size_t>(n.inRank(3), 4), 1);
    llvm::append_range(shape, n.inShape(3));
    mask.mask = reshape(n.b, n.in(3), shape);
  }
  return mask;
}

LogicalResult attention(Node &n) {
  if (failed(checkAttributes(n)))
    return failure();
  bool isRank3 = n.inRank(0) == 3;
  int64_t heads = n.op.getI64("q_num_heads"), keyHeads = n.op.getI64("kv_num_heads");
  if (n.inRank(0) == 4 && n.inRank(1) == 4) {
    heads = n.inShape(0)[1];
    keyHeads = n.inShape(1)[1];
  }
  if (heads <= 0 || keyHeads <= 0 || heads % keyHeads != 0)
    return n.fail("q_num_heads is " + Twine(heads) + ", expected a multiple of kv_num_heads " + Twine(keyHeads));
  if (failed(checkShapes(n, heads, keyHeads)))
    return failure();
  SmallVector<Value> presents;
  Value q = headsInside(n, 0, heads);
  Value k = withPast(n, 1, 4, 1, keyHeads, presents), v = withPast(n, 2, 5, 2, keyHeads, presents);
  int64_t batch = shapeOf(q)[0], queries = shapeOf(q)[1], keys = shapeOf(k)[1], valueSize = shapeOf(v)[3];
  float scale = n.op.findF32("scale").value_or(0.0f);
  if (scale == 0.0f)
    scale = 1.0f / std::sqrt(static_cast<float>(shapeOf(q)[3]));

  bool decomposes = n.op.getF32("softcap", 0.0f) > 0 || n.op.isOutputUsed(3) || !isAnchorElement(n.inElement(0));
  Mask mask = readMask(n);
  // The anchor aligns causality with the last key, ONNX with the first key after the past.
  bool anchorCausal = mask.causal && !decomposes && !mask.valid && queries + mask.offset == keys;
  mask.causal &= !anchorCausal;
  Type type = n.inElement(0).isF64() ? n.inElement(0) : Type(n.b.getF32Type());
  Value bias;
  if (!decomposes && isBias(mask, batch, heads, queries, keys))
    bias = mask.mask;
  else if (!mask.isEmpty())
    bias = additiveBias(n, mask, type, batch, queries, keys);
  Value acc, scores;
  if (decomposes) {
    acc = decomposedAttention(n, q, k, v, bias, scale, scores);
  } else {
    // What is written into both caches now is read from where it comes, so that attention does not wait for the caches.
    CachedRows keyRows, valueRows;
    if (kern::readsElements(queries * heads / keyHeads, elementOf(q)))
      keyRows = readCache(n, 1, keyHeads), valueRows = readCache(n, 2, keyHeads);
    bool isCached = keyRows.cache && valueRows.cache && keyRows.position == valueRows.position && !n.has(4) && !n.has(5) &&
                    shapeOf(keyRows.rows)[1] == shapeOf(valueRows.rows)[1] && numElements(shapeOf(keyRows.rows)) > 0;
    if (isCached) {
      k = keyRows.cache;
      v = valueRows.cache;
    } else {
      keyRows = valueRows = {};
    }
    acc = kern::AttentionOp::create(n.b, RankedTensorType::get({batch, queries, heads, valueSize}, type), q, k, v, bias,
                                    keyRows.rows, valueRows.rows, keyRows.position, n.b.getF32FloatAttr(scale),
                                    anchorCausal ? n.b.getUnitAttr() : UnitAttr(),
                                    kern::MathModeAttr::get(n.b.getContext(), n.math));
  }
  Value y = convertFloat(n.b, acc, n.outElement());
  y = isRank3 ? reshape(n.b, y, n.outShape()) : transpose(n.b, y, {0, 2, 1, 3});
  if (failed(n.result(y)))
    return failure();
  for (Value present : presents) {
    // A null result stands for one that nobody reads.
    if (!present)
      n.results.push_back({});
    else if (failed(n.result(present)))
      return failure();
  }
  return n.op.isOutputUsed(3) ? n.result(convertFloat(n.b, scores, n.outElement(3))) : success();
}

} // namespace

void registerAttention(Table &t) { t.add("Attention", attention); }

} // namespace ogc::lower
