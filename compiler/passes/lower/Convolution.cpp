//===- Convolution.cpp - Conv, ConvTranspose and the integer forms --------===//
#include "compiler/passes/lower/Contraction.h"
#include "compiler/passes/lower/ConvolutionForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// `perGroup`: the channels that a filter has.
LogicalResult checkGroups(Node &n, int64_t groups, int64_t channels, int64_t filters, int64_t perGroup) {
  if (groups < 1 || channels % groups != 0 || filters % groups != 0)
    return n.fail("group is " + Twine(groups) + ", expected a divisor of " + Twine(channels) + " channels and " + Twine(filters) +
                  " filters");
  if (channels / groups != perGroup)
    return n.fail("filters have " + Twine(perGroup) + " channels, expected " + Twine(channels / groups));
  return success();
}

LogicalResult convOp(Node &n) {
  if (n.inRank(0) < 3 || n.inRank(1) != n.inRank(0))
    return n.fail("operands have ranks " + Twine(n.inRank(0)) + " and " + Twine(n.inRank(1)) +
                  ", expected the same rank of 3 or more");
  FailureOr<Window> window = readWindow(n, n.inShape(1).drop_front(2), n.inShape(0).drop_front(2), n.outShape().drop_front(2));
  if (failed(window))
    return failure();
  int64_t groups = n.op.getI64("group", 1);
  int64_t filters = n.inShape(1)[0];
  if (failed(checkGroups(n, groups, n.inShape(0)[1], filters, n.inShape(1)[1])) || failed(checkBias(n, 2, filters)))
    return failure();
  return n.result(convolve(n, {n.in(0), n.in(1), n.in(2), *window, groups}, n.outElement()));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Channels in one part of an exact convolution; 0 when the kernel alone has too many elements.
int64_t exactChannels(const Window &window) {
  int64_t channels = mostExactTerms / std::max<int64_t>(numElements(window.kernel), 1);
  return channels >= 8 ? channels / 8 * 8 : channels;
}

/// Input and filter in f16 that hold integers of 9 bits; the exact result in i32, plus a bias in i32.
Value exactConvolution(Node &n, Conv conv) {
  Value bias = conv.bias;
  conv.bias = Value();
  Type f32 = n.b.getF32Type();
  int64_t step = exactChannels(conv.window), perGroup = shapeOf(conv.filter)[1];
  if (step == 0 || (conv.groups > 1 && perGroup > step) || perGroup / step > mostExactParts) {
    Type i32 = n.b.getI32Type();
    for (Value *v : {&conv.input, &conv.filter})
      *v = elementwise(n.b, shapeOf(*v), i32, *v,
                       [&](Scalar &s, ValueRange x) -> Value { return arith::FPToSIOp::create(s.b, i32, x[0]); });
    conv.bias = bias;
    return genericConv(n, conv, i32);
  }
  SmallVector<Value> parts;
  for (int64_t first = 0; first < perGroup; first += step) {
    Conv part = conv;
    int64_t size = std::min(step, perGroup - first);
    if (size != perGroup) { // only without groups
      Shape offsets(shapeOf(conv.input).size(), 0), in(shapeOf(conv.input)), filter(shapeOf(conv.filter));
      offsets[1] = first;
      in[1] = filter[1] = size;
      part.input = slice(n.b, conv.input, offsets, in);
      part.filter = slice(n.b, conv.filter, offsets, filter);
    }
    parts.push_back(convolve(n, part, f32));
  }
  if (parts.empty()) {
    Scalar s(n.b, n.op.getLoc());
    parts.push_back(filled(n.b, n.outShape(), s.cst(f32, 0.0)));
  }
  return exactSum(n, parts, bias, 1);
}

/// Operands x and w less their zero points in an exact convolution.
FailureOr<Value> integerConvolution(Node &n, int x, int w, int xZero, int wZero, Value bias) {
  if (n.inRank(x) < 3 || n.inRank(w) != n.inRank(x))
    return n.fail("operands have ranks " + Twine(n.inRank(x)) + " and " + Twine(n.inRank(w)) +
                  ", expected the same rank of 3 or more");
  FailureOr<Window> window = readWindow(n, n.inShape(w).drop_front(2), n.inShape(x).drop_front(2), n.outShape().drop_front(2));
  int64_t groups = n.op.getI64("group", 1);
  if (failed(window) || failed(checkGroups(n, groups, n.inShape(x)[1], n.inShape(w)[0], n.inShape(w)[1])))
    return failure();
  return exactConvolution(n, {lessZeroPoint(n, x, xZero, 1), lessZeroPoint(n, w, wZero, 0), bias, *window, groups});
}

LogicalResult convInteger(Node &n) {
  FailureOr<Value> acc = integerConvolution(n, 0, 1, 2, 3, Value());
  if (failed(acc))
    return failure();
  return n.result(*acc);
}

LogicalResult qLinearConv(Node &n) {
  if (n.inRank(3) > 0 && failed(checkBias(n, 8, n.inShape(3)[0])))
    return failure();
  FailureOr<Value> acc = integerConvolution(n, 0, 3, 2, 5, n.in(8));
  if (failed(acc))
    return failure();
  // The scale of the weights is one number, or one a filter.
  auto scalar = [&](int i) { return reshape(n.b, n.in(i), {}); };
  Value weights = n.in(4);
  Shape shape;
  if (numElements(shapeOf(weights)) != 1) {
    if (numElements(shapeOf(weights)) != n.outShape()[1])
      return n.fail("w_scale has " + Twine(numElements(shapeOf(weights))) + " elements, expected " + Twine(n.outShape()[1]));
    shape.assign(n.outShape().size() - 1, 1);
    shape[0] = n.outShape()[1];
  }
  Value factor = elementwise(n.b, shape, n.b.getF32Type(), {scalar(1), reshape(n.b, weights, shape), scalar(6)},
                             [](Scalar &s, ValueRange x) { return s.div(s.mul(x[0], x[1]), x[2], false); });
  return n.result(requantize(n, *acc, factor, 7));
}

//===----------------------------------------------------------------------===//
// ConvTranspose
//===----------------------------------------------------------------------===//

/// The input with stride - 1 zeros between elements (and none outside): [.., in] to [.., (in - 1) * stride + 1].
Value spreadInput(Node &n, Value v, ArrayRef<int64_t> strides) {
  if (llvm::all_of(strides, [](int64_t s) { return s == 1; }))
    return v;
  Shape shape(shapeOf(v));
  for (size_t d = 0; d < strides.size(); ++d)
    shape[d + 2] = (shape[d + 2] - 1) * strides[d] + 1;
  Type element = elementOf(v);
  return generate(n.b, shape, element, [&](Scalar &s, ValueRange position) -> Value {
    SmallVector<Value> source(position);
    Value exists;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (strides[d] == 1)
        continue;
      Value stride = s.icst(s.b.getIndexType(), strides[d]), i = position[d + 2];
      Value hit = s.cmp(Compare::Equal, arith::RemUIOp::create(s.b, i, stride), s.icst(s.b.getIndexType(), 0), true);
      source[d + 2] = arith::DivUIOp::create(s.b, i, stride);
      exists = exists ? arith::AndIOp::create(s.b, exists, hit).getResult() : hit;
    }
    return s.select(exists, tensor::ExtractOp::create(s.b, v, source), s.icst(element, 0));
  });
}

/// [C, F / groups, kernel...] to [F, C / groups, kernel...] with the kernel mirrored.
Value mirrorFilter(Node &n, Value v, int64_t groups) {
  ArrayRef<int64_t> shape = shapeOf(v);
  int64_t channels = shape[0], perGroup = shape[1];
  MLIRContext *context = n.b.getContext();
  Shape split{groups, channels / groups, perGroup}, target{groups, perGroup, channels / groups},
      merged{groups * perGroup, channels / groups};
  SmallVector<AffineExpr> exprs{getAffineDimExpr(0, context), getAffineDimExpr(2, context), getAffineDimExpr(1, context)};
  for (auto [d, extent] : llvm::enumerate(shape.drop_front(2))) {
    for (Shape *s : {&split, &target, &merged})
      s->push_back(extent);
    exprs.push_back(getAffineConstantExpr(extent - 1, context) - getAffineDimExpr(static_cast<unsigned>(d + 3), context));
  }
  AffineMap map = AffineMap::get(static_cast<unsigned>(target.size()), 0, exprs, context);
  Value mirrored = mapElements(
      n.b, target, elementOf(v), {{reshape(n.b, v, split), map}}, [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
  return reshape(n.b, mirrored, merged);
}

/// An ordinary convolution of the spread input with the mirrored filter; pads crop the full result of (in-1)*stride +
/// dilation*(kernel-1) + 1.
LogicalResult convTranspose(Node &n) {
  if (n.inRank(0) < 3 || n.inRank(1) != n.inRank(0))
    return n.fail("operands have ranks " + Twine(n.inRank(0)) + " and " + Twine(n.inRank(1)) +
                  ", expected the same rank of 3 or more");
  FailureOr<Window> given = readWindow(n, n.inShape(1).drop_front(2), n.inShape(0).drop_front(2), n.outShape().drop_front(2));
  if (failed(given))
    return failure();
  int64_t groups = n.op.getI64("group", 1), filters = n.inShape(1)[1] * groups;
  if (failed(checkGroups(n, groups, n.inShape(0)[1], filters, n.inShape(1)[0] / std::max<int64_t>(groups, 1))) ||
      failed(checkBias(n, 2, filters)))
    return failure();
  Window w = *given;
  size_t rank = w.rank();
  Shape zeros(rank, 0), extra = n.op.getI64s("output_padding", zeros);
  if (extra.size() != rank)
    extra = zeros;
  bool sized = n.op.findI64s("output_shape").has_value() && !n.op.getI64s("output_shape").empty();
  StringRef autoPad = n.op.getStr("auto_pad", "NOTSET");
  Value input = spreadInput(n, n.in(0), w.strides);
  for (size_t d = 0; d < rank; ++d) {
    int64_t reach = w.dilations[d] * (w.kernel[d] - 1), full = (w.in[d] - 1) * w.strides[d] + reach + 1 + extra[d];
    int64_t begin = given->padBegin[d];
    if (sized || autoPad.starts_with("SAME")) {
      int64_t total = std::max<int64_t>(full - w.out[d], 0);
      begin = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    // Output o reads spread positions o + begin - reach ... o + begin.
    w.padBegin[d] = reach - begin;
    w.in[d] = (w.in[d] - 1) * w.strides[d] + 1;
    w.padEnd[d] = w.out[d] + reach - w.in[d] - w.padBegin[d];
    w.strides[d] = 1;
  }
  // A negative padding crops the input.
  Shape offsets(shapeOf(input).size(), 0), sizes(shapeOf(input));
  for (size_t d = 0; d < rank; ++d) {
    offsets[d + 2] = std::max<int64_t>(-w.padBegin[d], 0);
    sizes[d + 2] += std::min<int64_t>(w.padBegin[d], 0) + std::min<int64_t>(w.padEnd[d], 0);
    if (sizes[d + 2] <= 0)
      return n.fail("pads crop the whole input");
    w.padBegin[d] = std::max<int64_t>(w.padBegin[d], 0);
    w.padEnd[d] = std::max<int64_t>(w.padEnd[d], 0);
    w.in[d] = sizes[d + 2];
  }
  Conv conv{slice(n.b, input, offsets, sizes), mirrorFilter(n, n.in(1), groups), n.in(2), w, groups};
  return n.result(convolve(n, conv, n.outElement()));
}

} // namespace

void registerConvolution(Table &t) {
  t.add("Conv", convOp);
  t.add("ConvTranspose", convTranspose);
  t.add("ConvInteger", convInteger);
  t.add("QLinearConv", qLinearConv);
}

} // namespace ogc::lower
