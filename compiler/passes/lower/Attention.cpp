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

/// The mask as an additive bias [B or 1, H or 1, S or 1, T], combined with causality where the anchor cannot express it.
struct Mask {
  Value mask;             ///< operand attn_mask as rank 4, or null
  bool causal = false;    ///< query s sees keys t <= s + offset
  int64_t offset = 0;
};

/// Additive bias of a boolean mask, an additive mask and causality; f32. T may exceed the mask's last extent: keys past it are hidden.
Value additiveBias(Node &n, const Mask &mask, int64_t queries, int64_t keys) {
  Shape shape{1, 1, mask.causal ? queries : 1, keys};
  SmallVector<Value> operands;
  bool isBool = false;
  if (mask.mask) {
    Value v = mask.mask;
    isBool = elementOf(v).isInteger(1);
    int64_t missing = keys - shapeOf(v)[3];
    Scalar s(n.b, n.op.getLoc());
    if (missing > 0 && shapeOf(v)[3] != 1)
      v = pad(n.b, v, {0, 0, 0, 0}, {0, 0, 0, missing}, isBool ? s.icst(elementOf(v), 0) : s.lowest(elementOf(v), false));
    for (int d = 0; d < 3; ++d)
      shape[d] = std::max(shape[d], shapeOf(v)[d]);
    operands.push_back(v);
  }
  return elementwise(n.b, shape, n.b.getF32Type(), operands, [&](Scalar &s, ValueRange x) {
    Type f32 = s.b.getF32Type();
    Value zero = s.cst(f32, 0.0), hidden = s.lowest(f32, false), bias = zero;
    if (!x.empty())
      bias = isBool ? s.select(x[0], zero, hidden) : s.cast(x[0], false, f32, false);
    if (!mask.causal)
      return bias;
    Value query = linalg::IndexOp::create(s.b, 2), key = linalg::IndexOp::create(s.b, 3);
    Value visible = s.cmp(Compare::LessOrEqual, key, s.add(query, s.icst(s.b.getIndexType(), mask.offset)), false);
    return s.select(visible, bias, hidden);
  });
}

/// Key or value with the past in front, [B, T, H, D]; adds the present [B, H, T, D] to the results when it is read.
Value withPast(Node &n, int current, int past, int present, int64_t heads, SmallVectorImpl<Value> &presents) {
  Value v = headsInside(n, current, heads);
  if (n.has(past))
    v = concat(n.b, 1, {transpose(n.b, n.in(past), {0, 2, 1, 3}), v});
  presents.push_back(n.op.isOutputUsed(present) ? transpose(n.b, v, {0, 2, 1, 3}) : Value());
  return v;
}

LogicalResult checkAttributes(Node &n) {
  n.op.ignore("softmax_precision"); // softmax is f32
  n.op.ignore("qk_matmul_output_mode");
  if (n.op.getF32("softcap", 0.0f) != 0.0f)
    return n.fail("softcap is not supported");
  for (StringRef name : {"left_window_size", "right_window_size"})
    if (n.op.getI64(name, -1) >= 0)
      return n.fail(name + " is not supported");
  if (n.has(6))
    return n.fail("operand nonpad_kv_seqlen is not supported");
  if (n.op.isOutputUsed(3))
    return n.fail("output qk_matmul_output is not supported");
  if (!isAnchorElement(n.inElement(0)))
    return n.fail("element type is not f32, f16 or bf16");
  return success();
}

LogicalResult attention(Node &n) {
  if (failed(checkAttributes(n)))
    return failure();
  bool isRank3 = n.inRank(0) == 3;
  int64_t heads = n.op.getI64("q_num_heads"), keyHeads = n.op.getI64("kv_num_heads");
  if (!isRank3) {
    heads = n.inShape(0)[1];
    keyHeads = n.inShape(1)[1];
  }
  if (heads <= 0 || keyHeads <= 0 || heads % keyHeads != 0)
    return n.fail("q_num_heads is " + Twine(heads) + ", expected a multiple of kv_num_heads " + Twine(keyHeads));
  SmallVector<Value> presents;
  Value q = headsInside(n, 0, heads);
  Value k = withPast(n, 1, 4, 1, keyHeads, presents), v = withPast(n, 2, 5, 2, keyHeads, presents);
  int64_t batch = shapeOf(q)[0], queries = shapeOf(q)[1], keys = shapeOf(k)[1], valueSize = shapeOf(v)[3];
  float scale = n.op.findF32("scale").value_or(0.0f);
  if (scale == 0.0f)
    scale = 1.0f / std::sqrt(static_cast<float>(shapeOf(q)[3]));

  // The anchor aligns causality with the last key, ONNX with the first key after the past.
  Mask mask;
  bool causal = n.op.getI64("is_causal") != 0;
  int64_t pastLength = n.has(4) ? n.inShape(4)[2] : 0;
  bool anchorCausal = causal && (queries + pastLength == keys);
  mask.causal = causal && !anchorCausal;
  mask.offset = pastLength;
  if (n.has(3)) {
    Shape shape(4 - std::min<size_t>(n.inRank(3), 4), 1);
    llvm::append_range(shape, n.inShape(3));
    mask.mask = reshape(n.b, n.in(3), shape);
  }
  Value bias = mask.mask || mask.causal ? additiveBias(n, mask, queries, keys) : Value();
  auto type = RankedTensorType::get({batch, queries, heads, valueSize}, n.b.getF32Type());
  Value acc = kern::AttentionOp::create(n.b, type, q, k, v, bias, n.b.getF32FloatAttr(scale),
                                        anchorCausal ? n.b.getUnitAttr() : UnitAttr(), kern::MathModeAttr::get(n.b.getContext(), n.math));
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
  return success();
}

} // namespace

void registerAttention(Table &t) { t.add("Attention", attention); }

} // namespace ogc::lower
