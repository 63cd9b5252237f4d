//===- AnchorElements.cpp - elements of anchors as sequential loops -------===//
//
// The plain meaning of the anchors: what an anchor computes where its schedule does not apply, and the reference of its tests.
//
#include "compiler/codegen/scalar/ElementEmitter.h"

#include "compiler/dialect/kern/RowNorm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static Value toF32(OpBuilder &builder, Location loc, Value value) {
  if (!value || value.getType().isF32())
    return value;
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
}

Value multiplyRounded(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  Value product = arith::MulFOp::create(builder, loc, toF32(builder, loc, lhs), toF32(builder, loc, rhs));
  return lhs.getType().isF32() ? product : arith::TruncFOp::create(builder, loc, lhs.getType(), product).getResult();
}

static Value constantF32(OpBuilder &builder, Location loc, float value) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value));
}

Value ElementEmitter::emitDot(Location loc, ArrayRef<int64_t> extents, function_ref<Value(ArrayRef<Value>)> lhs,
                              function_ref<Value(ArrayRef<Value>)> rhs) {
  SmallVector<Value> sum =
      emitLoops(loc, extents, {constantF32(builder, loc, 0)}, [&](ArrayRef<Value> ivs, ValueRange carried) -> SmallVector<Value> {
        Value a = toF32(builder, loc, lhs(ivs)), b = a ? toF32(builder, loc, rhs(ivs)) : Value();
        if (!b)
          return {};
        Value product = arith::MulFOp::create(builder, loc, a, b);
        return {arith::AddFOp::create(builder, loc, carried[0], product)};
      });
  return sum.empty() ? Value() : sum.front();
}

Value ElementEmitter::emitMatmul(kern::MatmulOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  Value rhs = op.getRhs(), zero = math.constant(loc, 0);
  Value batch = tensorType(rhs).getDimSize(0) == 1 ? zero : indices[0];
  Value dot = emitDot(
      loc, {tensorType(op.getLhs()).getDimSize(2)},
      [&](ArrayRef<Value> k) { return emit(op.getLhs(), {indices[0], indices[1], k[0]}); },
      [&](ArrayRef<Value> k) -> Value {
        if (op.getPacked()) {
          int64_t panel = tensorType(rhs).getDimSize(2);
          return emit(rhs, {math.div(loc, indices[2], panel), k[0], math.rem(loc, indices[2], panel)});
        }
        return op.getTransposeRhs() ? emit(rhs, {batch, indices[2], k[0]}) : emit(rhs, {batch, k[0], indices[2]});
      });
  std::optional<kern::RowNorm> norm = kern::rowNormOf(op);
  if (!norm || !dot)
    return dot;
  int64_t extent = tensorType(op.getLhs()).getDimSize(2);
  auto meanOver = [&](function_ref<Value(Value)> term) -> Value {
    SmallVector<Value> sum = emitLoops(
        loc, {extent}, {constantF32(builder, loc, 0)}, [&](ArrayRef<Value> k, ValueRange carried) -> SmallVector<Value> {
          Value x = toF32(builder, loc, emit(op.getLhs(), {indices[0], indices[1], k[0]}));
          return x ? SmallVector<Value>{arith::AddFOp::create(builder, loc, carried[0], term(x))} : SmallVector<Value>();
        });
    Value share = constantF32(builder, loc, 1.f / static_cast<float>(extent));
    return sum.empty() ? Value() : arith::MulFOp::create(builder, loc, sum[0], share).getResult();
  };
  Value mean = norm->kind == kern::RowNorm::StandardDeviation ? meanOver([](Value x) { return x; }) : Value();
  Value spread = meanOver([&](Value x) -> Value {
    Value distance = mean ? arith::SubFOp::create(builder, loc, x, mean).getResult() : x;
    return arith::MulFOp::create(builder, loc, distance, distance);
  });
  if (!spread)
    return {};
  Value sum = arith::AddFOp::create(builder, loc, spread, arith::ConstantOp::create(builder, loc, norm->epsilon));
  return arith::DivFOp::create(builder, loc, dot, math::SqrtOp::create(builder, loc, sum));
}

Value ElementEmitter::emitStatistic(kern::RowStatisticsOp op, bool isMean, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  SmallVector<Value> at(indices);
  Value first = math.mul(loc, indices.back(), op.width);
  auto sumOf = [&](function_ref<Value(Value)> term) -> Value {
    SmallVector<Value> sum = emitLoops(
        loc, {op.width}, {constantF32(builder, loc, 0)}, [&](ArrayRef<Value> k, ValueRange carried) -> SmallVector<Value> {
          at.back() = math.add(loc, first, k[0]);
          Value x = toF32(builder, loc, emit(op.getInput(), at));
          return x ? SmallVector<Value>{arith::AddFOp::create(builder, loc, carried[0], term(x))} : SmallVector<Value>();
        });
    return sum.empty() ? Value() : sum[0];
  };
  Value mean = sumOf([](Value x) { return x; });
  if (mean)
    mean = arith::MulFOp::create(builder, loc, mean, constantF32(builder, loc, 1.f / op.width));
  if (!mean || isMean)
    return mean;
  return sumOf([&](Value x) -> Value {
    Value distance = arith::SubFOp::create(builder, loc, x, mean);
    return arith::MulFOp::create(builder, loc, distance, distance);
  });
}

SmallVector<Value> ElementEmitter::emitRun(Value tensor, ArrayRef<Value> indices, int64_t count) {
  Location loc = tensor.getLoc();
  SmallVector<Value> elements, at(indices);
  if (Value buffer = buffers.lookup(tensor); buffer && count > 1) {
    if (cast<MemRefType>(buffer.getType()).getRank() == 1)
      at = {math.linearize(loc, indices, tensorType(tensor).getShape())};
    auto type = VectorType::get({count}, tensorType(tensor).getElementType());
    Value loaded = vector::LoadOp::create(builder, loc, type, buffer, at);
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(vector::ExtractOp::create(builder, loc, loaded, i));
    return elements;
  }
  for (int64_t i = 0; i < count; ++i) {
    at.back() = math.add(loc, indices.back(), i);
    elements.push_back(emit(tensor, at));
    if (!elements.back())
      return {};
  }
  return elements;
}

/// Parts of a row that are read at once.
static int64_t runOf(int64_t parts) { return parts % 4 == 0 ? 4 : parts % 2 == 0 ? 2 : 1; }

Value ElementEmitter::emitMean(kern::MergeMeansOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  int64_t parts = tensorType(op.getMeans()).getShape().back(), run = runOf(parts);
  SmallVector<Value> at(indices);
  at.push_back({});
  SmallVector<Value> sum = emitLoops(loc, {parts / run}, {constantF32(builder, loc, 0)},
                                     [&](ArrayRef<Value> part, ValueRange carried) -> SmallVector<Value> {
                                       at.back() = math.mul(loc, part[0], run);
                                       Value total = carried[0];
                                       SmallVector<Value> means = emitRun(op.getMeans(), at, run);
                                       for (Value mean : means)
                                         total = arith::AddFOp::create(builder, loc, total, mean);
                                       return means.empty() ? SmallVector<Value>() : SmallVector<Value>{total};
                                     });
  if (sum.empty())
    return {};
  return arith::MulFOp::create(builder, loc, sum[0], constantF32(builder, loc, 1.f / static_cast<float>(parts)));
}

/// Distances of the parts' means are taken from the first of them, so that a mean far larger than the spread loses nothing.
Value ElementEmitter::emitFactor(kern::MergeStatisticsOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  int64_t parts = tensorType(op.getMeans()).getShape().back();
  float width = kern::RowStatisticsOp::width;
  Value zero = constantF32(builder, loc, 0), origin = zero;
  SmallVector<Value> at(indices);
  at.push_back(math.constant(loc, 0));
  if (!op.getAroundZero() && !(origin = emit(op.getMeans(), at)))
    return {};
  int64_t run = runOf(parts);
  SmallVector<Value> sums =
      emitLoops(loc, {parts / run}, {zero, zero, zero}, [&](ArrayRef<Value> part, ValueRange carried) -> SmallVector<Value> {
        at.back() = math.mul(loc, part[0], run);
        SmallVector<Value> means = emitRun(op.getMeans(), at, run), squares = emitRun(op.getSquares(), at, run), next(carried);
        if (means.empty() || squares.empty())
          return {};
        for (auto [mean, distances] : llvm::zip_equal(means, squares)) {
          Value distance = arith::SubFOp::create(builder, loc, mean, origin);
          Value square = arith::MulFOp::create(builder, loc, distance, distance);
          for (auto [sum, term] : llvm::zip_equal(next, std::array{distance, square, distances}))
            sum = arith::AddFOp::create(builder, loc, sum, term);
        }
        return next;
      });
  if (sums.empty())
    return {};
  auto scaled = [&](Value value, float by) { return arith::MulFOp::create(builder, loc, value, constantF32(builder, loc, by)); };
  Value between = sums[1]; // of the parts' means
  if (!op.getAroundZero()) {
    Value shared = scaled(arith::MulFOp::create(builder, loc, sums[0], sums[0]), 1.f / static_cast<float>(parts));
    between = arith::MaxNumFOp::create(builder, loc, arith::SubFOp::create(builder, loc, between, shared), zero);
  }
  Value total = arith::AddFOp::create(builder, loc, sums[2], scaled(between, width));
  Value variance = scaled(total, 1.f / (width * static_cast<float>(parts)));
  Value root = math::SqrtOp::create(
      builder, loc, arith::AddFOp::create(builder, loc, variance, arith::ConstantOp::create(builder, loc, op.getEpsilonAttr())));
  return arith::DivFOp::create(builder, loc, constantF32(builder, loc, 1), root);
}

Value ElementEmitter::emitPadded(Location loc, Value input, ArrayRef<Value> indices, ArrayRef<int64_t> kernel,
                                 ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations, ArrayRef<int64_t> pads,
                                 ArrayRef<Value> taps, Value channel) {
  Value inside, position[2];
  for (int axis = 0; axis < 2; ++axis) {
    Value start = math.mul(loc, indices[1 + axis], strides[axis]);
    position[axis] = math.sub(loc, math.add(loc, start, math.mul(loc, taps[axis], dilations[axis])), pads[axis]);
    if (pads[axis] == 0 && pads[2 + axis] == 0)
      continue;
    Value condition = math.lessThan(loc, position[axis], tensorType(input).getDimSize(1 + axis));
    inside = inside ? builder.createOrFold<arith::AndIOp>(loc, inside, condition) : condition;
  }
  auto take = [&] { return emit(input, {indices[0], position[0], position[1], channel}); };
  Type type = tensorType(input).getElementType();
  auto zero = [&]() -> Value { return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)); };
  return inside ? emitIf(loc, type, inside, take, zero) : take();
}

Value ElementEmitter::emitConv(kern::ConvOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  int64_t channels = tensorType(op.getInput()).getDimSize(3), panel = tensorType(op.getFilter()).getDimSize(2);
  SmallVector<int64_t> extents(op.getKernel());
  extents.push_back(channels);
  return emitDot(
      loc, extents,
      [&](ArrayRef<Value> k) -> Value {
        Value element = emitPadded(loc, op.getInput(), indices, op.getKernel(), op.getStrides(), op.getDilations(), op.getPads(),
                                   k.take_front(2), k[2]);
        if (!element || !op.getScale())
          return element;
        Value zero = math.constant(loc, 0), factor = emit(op.getScale(), {indices[0], zero, zero, k[2]});
        return factor ? multiplyRounded(builder, loc, element, factor) : Value();
      },
      [&](ArrayRef<Value> k) {
        return emit(op.getFilter(),
                    {math.div(loc, indices[3], panel), math.linearize(loc, k, extents), math.rem(loc, indices[3], panel)});
      });
}

Value ElementEmitter::emitDepthwise(kern::DepthwiseConvOp op, ArrayRef<Value> indices) {
  ArrayRef<int64_t> kernel = tensorType(op.getFilter()).getShape().take_front(2);
  return emitDot(
      op.getLoc(), kernel,
      [&](ArrayRef<Value> k) {
        return emitPadded(op.getLoc(), op.getInput(), indices, kernel, op.getStrides(), op.getDilations(), op.getPads(), k,
                          indices[3]);
      },
      [&](ArrayRef<Value> k) { return emit(op.getFilter(), {k[0], k[1], indices[3]}); });
}

Value ElementEmitter::emitPosition(kern::AttentionOp op, Value batch) {
  Location loc = op.getLoc();
  Value given = emit(op.getPosition(), {batch});
  if (!given)
    return {};
  Type type = builder.getIndexType();
  given = arith::IndexCastOp::create(builder, loc, type, given);
  Value keys = arith::ConstantIndexOp::create(builder, loc, tensorType(op.getKey()).getDimSize(1));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isNegative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, given, zero);
  return arith::SelectOp::create(builder, loc, isNegative, arith::AddIOp::create(builder, loc, given, keys), given);
}

/// Scores are computed twice for each element: once for their maximum, once for the two sums.
Value ElementEmitter::emitAttention(kern::AttentionOp op, ArrayRef<Value> indices) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> query = tensorType(op.getQuery()).getShape(), key = tensorType(op.getKey()).getShape();
  Value b = indices[0], s = indices[1], h = indices[2], keyHead = math.div(loc, h, query[2] / key[2]);
  Value lowest = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(builder.getF32Type(), APFloat::getInf(APFloat::IEEEsingle(), true)));
  Value zero = constantF32(builder, loc, 0);
  // An element of a cache with its new rows.
  auto cached = [&](Value cache, Value rows, Value t, Value d) -> Value {
    auto old = [&] { return emit(cache, {b, t, keyHead, d}); };
    Value first = rows ? emitPosition(op, b) : Value();
    if (!first)
      return rows ? Value() : old();
    Value row = arith::SubIOp::create(builder, loc, t, first); // wraps to a large number before the first row
    Value count = math.constant(loc, tensorType(rows).getDimSize(1));
    Value isNew = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, row, count);
    return emitIf(loc, tensorType(cache).getElementType(), isNew, [&] { return emit(rows, {b, row, keyHead, d}); }, old);
  };
  auto score = [&](Value t) -> Value {
    Value dot = emitDot(
        loc, {query[3]}, [&](ArrayRef<Value> d) { return emit(op.getQuery(), {b, s, h, d[0]}); },
        [&](ArrayRef<Value> d) { return cached(op.getKey(), op.getNewKey(), t, d[0]); });
    if (!dot)
      return {};
    Value result = arith::MulFOp::create(builder, loc, dot, arith::ConstantOp::create(builder, loc, op.getScaleAttr()));
    if (Value bias = op.getBias()) {
      SmallVector<Value> at{b, h, s, t};
      for (unsigned dim = 0; dim < 3; ++dim)
        if (tensorType(bias).getDimSize(dim) == 1)
          at[dim] = math.constant(loc, 0);
      Value element = toF32(builder, loc, emit(bias, at));
      if (!element)
        return {};
      result = arith::AddFOp::create(builder, loc, result, element);
    }
    if (op.getCausal()) { // t <= s + T - S, written without negative numbers
      Value limit = math.add(loc, s, key[1]), at = math.add(loc, t, query[1]);
      Value visible = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule, at, limit);
      result = arith::SelectOp::create(builder, loc, visible, result, lowest);
    }
    return result;
  };
  SmallVector<Value> top = emitLoops(loc, {key[1]}, {lowest}, [&](ArrayRef<Value> t, ValueRange carried) -> SmallVector<Value> {
    Value value = score(t[0]);
    if (!value)
      return {};
    return {arith::MaximumFOp::create(builder, loc, carried[0], value)};
  });
  if (top.empty())
    return {};
  Value masked = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, top[0], lowest);
  Value shift = arith::SelectOp::create(builder, loc, masked, zero, top[0]);
  SmallVector<Value> sums =
      emitLoops(loc, {key[1]}, {zero, zero}, [&](ArrayRef<Value> t, ValueRange carried) -> SmallVector<Value> {
        Value value = score(t[0]),
              element = value ? toF32(builder, loc, cached(op.getValue(), op.getNewValue(), t[0], indices[3])) : Value();
        if (!element)
          return {};
        Value weight = math::ExpOp::create(builder, loc, arith::SubFOp::create(builder, loc, value, shift));
        Value product = arith::MulFOp::create(builder, loc, weight, element);
        return {arith::AddFOp::create(builder, loc, carried[0], weight),
                arith::AddFOp::create(builder, loc, carried[1], product)};
      });
  if (sums.empty())
    return {};
  Value quotient = arith::DivFOp::create(builder, loc, sums[1], sums[0]);
  return arith::SelectOp::create(builder, loc, masked, zero, quotient);
}

Value ElementEmitter::emitAnchor(Operation *op, ArrayRef<Value> indices) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](kern::MatmulOp matmul) { return emitMatmul(matmul, indices); })
      .Case([&](kern::ConvOp conv) { return emitConv(conv, indices); })
      .Case([&](kern::DepthwiseConvOp conv) { return emitDepthwise(conv, indices); })
      .Case([&](kern::AttentionOp attention) { return emitAttention(attention, indices); })
      .Default([&](Operation *) -> Value {
        op->emitError() << "has no scalar form in a kernel";
        return {};
      });
}

} // namespace ogc::codegen
