//===- Convolution.cpp - Conv, ConvTranspose and the integer forms --------===//
#include "compiler/passes/lower/Contraction.h"
#include "compiler/passes/lower/Window.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// A convolution over [N, C, spatial...] with a filter [F, C / groups, kernel...].
struct Conv {
  Value input, filter, bias; ///< bias may be null
  Window window;
  int64_t groups;
};

/// acc [.., F at dimension `channel`] + bias, in the storage type.
Value finish(Node &n, Value acc, Value bias, unsigned channel, Type element) {
  unsigned rank = static_cast<unsigned>(shapeOf(acc).size());
  MLIRContext *context = n.b.getContext();
  if (!bias)
    return convertFloat(n.b, acc, element);
  AffineMap same = AffineMap::getMultiDimIdentityMap(rank, context);
  AffineMap biasMap = AffineMap::get(rank, 0, getAffineDimExpr(channel, context), context);
  Shape shape(shapeOf(acc));
  return mapElements(n.b, shape, element, {{acc, same}, {bias, biasMap}},
                     [](Scalar &s, ValueRange x) { return s.add(x[0], x[1]); });
}

/// Adds a spatial dimension of extent one in front, so that 1-D convolutions run as 2-D ones.
Conv widenTo2d(Builder &b, Conv conv) {
  auto insert = [&](Value v) {
    Shape shape(shapeOf(v));
    shape.insert(shape.begin() + 2, 1);
    return reshape(b, v, shape);
  };
  conv.input = insert(conv.input);
  conv.filter = insert(conv.filter);
  Window &w = conv.window;
  for (Shape *list : {&w.in, &w.out, &w.kernel, &w.strides, &w.dilations})
    list->insert(list->begin(), 1);
  w.padBegin.insert(w.padBegin.begin(), 0);
  w.padEnd.insert(w.padEnd.begin(), 0);
  return conv;
}

/// The anchors, channels last inside: [N, C, H, W] to [N, F, OH, OW].
Value anchorConv2d(Node &n, const Conv &conv, Type element) {
  const Window &w = conv.window;
  int64_t batch = shapeOf(conv.input)[0], filters = shapeOf(conv.filter)[0], kh = w.kernel[0], kw = w.kernel[1];
  int64_t channels = shapeOf(conv.input)[1];
  Builder &b = n.b;
  Value x = transpose(b, conv.input, {0, 2, 3, 1});
  auto type = RankedTensorType::get({batch, w.out[0], w.out[1], filters}, b.getF32Type());
  // Windows past the declared padding do not exist here: the extents follow from it.
  SmallVector<int64_t> pads{w.padBegin[0], w.padBegin[1], w.padEnd[0], w.padEnd[1]};
  Value acc;
  if (conv.groups == 1) {
    Value rows = reshape(b, transpose(b, conv.filter, {2, 3, 1, 0}), {kh * kw * channels, filters});
    acc = kern::ConvOp::create(b, type, x, packPanels(b, rows, false), Value(), w.kernel, w.strides, w.dilations, pads, n.math);
  } else {
    Value taps = transpose(b, reshape(b, conv.filter, {channels, kh, kw}), {1, 2, 0});
    acc = kern::DepthwiseConvOp::create(b, type, x, taps, w.strides, w.dilations, pads);
  }
  return transpose(b, finish(n, acc, conv.bias, 3, element), {0, 3, 1, 2});
}

/// The channels of an image whose phases of the strides are channels: whole loads of 16 bytes.
int64_t phaseChannels(const Conv &conv) {
  int64_t lanes = 128 / elementOf(conv.input).getIntOrFloatBitWidth();
  return llvm::alignTo(shapeOf(conv.input)[1] * conv.window.strides[0] * conv.window.strides[1], lanes);
}

/// True for strided windows over an image of few channels, which channels last would load one by one: each stride-th row and
/// pixel can be channels instead, so that the windows have stride one and fewer, longer taps. The filter grows to a multiple of
/// the strides, at most to twice the products: so measured for 7x7 windows. Smaller ones and exact products of f32 were not.
bool foldsStrides(const Conv &conv, kern::MathMode math) {
  const Window &w = conv.window;
  int64_t channels = shapeOf(conv.input)[1], products = 1;
  bool hasType =
      elementOf(conv.input).getIntOrFloatBitWidth() == 16 || (elementOf(conv.input).isF32() && math == kern::MathMode::TF32);
  if (!hasType || conv.groups != 1 || w.rank() != 2 || channels > 4 || w.strides[0] * w.strides[1] == 1)
    return false;
  for (size_t d = 0; d < 2; ++d) {
    if (w.dilations[d] != 1 || w.strides[d] > w.kernel[d] || w.strides[d] > 4)
      return false;
    int64_t taps = llvm::divideCeil(w.kernel[d], w.strides[d]);
    if (w.in[d] == 0 || w.padBegin[d] < 0 || (w.out[d] + taps - 1) * w.strides[d] <= w.padBegin[d])
      return false; // nothing but padding
    products *= taps;
  }
  return products * phaseChannels(conv) <= 2 * numElements(w.kernel) * channels;
}

/// A convolution with the phases of its strides as channels: of [N, OH + KH' - 1, OW + KW' - 1, SH * SW * C] with stride one.
Value phaseConv2d(Node &n, const Conv &conv, Type element) {
  const Window &w = conv.window;
  Builder &b = n.b;
  Scalar s(b, n.op.getLoc());
  int64_t batch = shapeOf(conv.input)[0], channels = shapeOf(conv.input)[1], filters = shapeOf(conv.filter)[0];
  int64_t inner = channels * w.strides[0] * w.strides[1], lines = phaseChannels(conv);
  Value x = conv.input, filter = conv.filter;
  Value zero = s.icst(elementOf(x), 0);
  Shape kernel, split{batch, channels}, filterSplit{filters, channels};
  for (unsigned d = 0; d < 2; ++d) {
    kernel.push_back(llvm::divideCeil(w.kernel[d], w.strides[d]));
    int64_t blocks = w.out[d] + kernel[d] - 1, end = blocks * w.strides[d] - w.padBegin[d]; // of what the windows meet
    Shape low(4, 0), high(4, 0), sizes(shapeOf(x)), filterHigh(4, 0);
    sizes[2 + d] = std::min(end, w.in[d]);
    if (sizes[2 + d] < w.in[d])
      x = slice(b, x, Shape(4, 0), sizes);
    low[2 + d] = w.padBegin[d], high[2 + d] = end - sizes[2 + d], filterHigh[2 + d] = kernel[d] * w.strides[d] - w.kernel[d];
    x = pad(b, x, low, high, zero);
    filter = pad(b, filter, Shape(4, 0), filterHigh, zero);
    split.append({blocks, w.strides[d]});
    filterSplit.append({kernel[d], w.strides[d]});
  }
  // [N, C, BH, SH, BW, SW] to [N, BH, BW, (SH, SW, C)], the filter likewise.
  x = transpose(b, reshape(b, x, split), {0, 2, 4, 3, 5, 1});
  x = pad(b, reshape(b, x, {batch, split[2], split[4], inner}), Shape(4, 0), {0, 0, 0, lines - inner}, zero);
  filter = transpose(b, reshape(b, filter, filterSplit), {2, 4, 3, 5, 1, 0});
  filter = pad(b, reshape(b, filter, {kernel[0], kernel[1], inner, filters}), Shape(4, 0), {0, 0, lines - inner, 0}, zero);
  Value rows = reshape(b, filter, {kernel[0] * kernel[1] * lines, filters});
  auto type = RankedTensorType::get({batch, w.out[0], w.out[1], filters}, b.getF32Type());
  Shape ones{1, 1}, none(4, 0);
  Value acc = kern::ConvOp::create(b, type, x, packPanels(b, rows, false), Value(), kernel, ones, ones, none, n.math);
  return transpose(b, finish(n, acc, conv.bias, 3, element), {0, 3, 1, 2});
}

/// True for windows that tile an image of few channels, the patches of a vision transformer: no pixel is read twice, and channels
/// last would leave nothing to load at once.
bool readsPatches(const Conv &conv) {
  const Window &w = conv.window;
  constexpr int64_t lanes = 8; // 16-bit elements in a load of 16 bytes
  if (conv.groups != 1 || numElements(w.kernel) < lanes || shapeOf(conv.input)[1] % lanes == 0)
    return false;
  for (size_t d = 0; d < w.rank(); ++d)
    if (w.strides[d] != w.kernel[d] || w.padBegin[d] != 0 || w.neededEnd(d) != 0 || (w.dilations[d] != 1 && w.kernel[d] != 1))
      return false;
  return true;
}

/// A convolution whose windows are patches: these as the rows of a matrix [1, N * out..., C * kernel...], times the filters.
Value patchProduct(Node &n, const Conv &conv, Type element) {
  const Window &w = conv.window;
  Builder &b = n.b;
  int64_t batch = shapeOf(conv.input)[0], channels = shapeOf(conv.input)[1], filters = shapeOf(conv.filter)[0],
          terms = channels * numElements(w.kernel), pixels = numElements(w.out), rank = static_cast<int64_t>(w.rank());
  Shape used{batch, channels}, split{batch, channels}, outer{0}, inner{1}, result{batch}, channelsFirst{0, rank + 1};
  for (int64_t d = 0; d < rank; ++d) {
    used.push_back(w.out[d] * w.kernel[d]);
    split.append({w.out[d], w.kernel[d]});
    outer.push_back(2 + 2 * d);
    inner.push_back(3 + 2 * d);
    channelsFirst.push_back(d + 1);
  }
  Value x = conv.input;
  if (ArrayRef<int64_t>(used) != shapeOf(x))
    x = slice(b, x, Shape(used.size(), 0), used);
  llvm::append_range(outer, inner);
  Value rows = reshape(b, transpose(b, reshape(b, x, split), outer), {1, batch * pixels, terms});
  Value acc = matmul(n, rows, {packPanels(b, reshape(b, conv.filter, {filters, terms}), true), true, false}, filters);
  llvm::append_range(result, w.out);
  result.push_back(filters);
  return transpose(b, finish(n, reshape(b, acc, result), conv.bias, static_cast<unsigned>(rank) + 1, element), channelsFirst);
}

/// Any groups, rank and element type: a reduction over [c, kernel...] of the padded input.
Value genericConv(Node &n, const Conv &conv, Type element) {
  const Window &w = conv.window;
  Builder &b = n.b;
  MLIRContext *context = b.getContext();
  unsigned rank = static_cast<unsigned>(w.rank());
  int64_t batch = shapeOf(conv.input)[0], groups = conv.groups, filters = shapeOf(conv.filter)[0],
          perGroup = shapeOf(conv.filter)[1];
  Scalar s(b, n.op.getLoc());
  Type type = computeType(elementOf(conv.input));
  Value padded = padWindow(n, conv.input, w, 2, s.icst(elementOf(conv.input), 0));
  Shape split{batch, groups, perGroup}, filterShape{groups, filters / groups, perGroup},
      outShape{batch, groups, filters / groups};
  llvm::append_range(split, shapeOf(padded).drop_front(2));
  llvm::append_range(filterShape, w.kernel);
  llvm::append_range(outShape, w.out);
  // The domain: batch, group, filter, out..., channel, kernel...
  unsigned dims = 4 + 2 * rank, c = 3 + rank;
  auto dim = [&](unsigned d) { return getAffineDimExpr(d, context); };
  SmallVector<AffineExpr> in{dim(0), dim(1), dim(c)}, filter{dim(1), dim(2), dim(c)};
  llvm::append_range(in, windowExprs(context, w, 3, c + 1));
  for (unsigned d = 0; d < rank; ++d)
    filter.push_back(dim(c + 1 + d));
  SmallVector<IteratorType> iterators(3 + rank, IteratorType::parallel);
  iterators.append(1 + rank, IteratorType::reduction);
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(dims, context).getMajorSubMap(3 + rank);
  Value acc = reduceInto(b, {filled(b, outShape, s.icst(type, 0)), outMap},
                         {{reshape(b, padded, split), AffineMap::get(dims, 0, in, context)},
                          {reshape(b, conv.filter, filterShape), AffineMap::get(dims, 0, filter, context)}},
                         iterators, [](Scalar &s, ValueRange x) { return s.add(x[2], s.mul(x[0], x[1])); });
  Shape merged{batch, filters};
  llvm::append_range(merged, w.out);
  return finish(n, reshape(b, acc, merged), conv.bias, 1, element);
}

/// One group, three spatial dimensions: a sum of 2-D convolutions, one for each plane of the filter. They read planes of the
/// input in place and add up in their epilogues.
Value planeByPlane(Node &n, const Conv &conv, Type element) {
  const Window &w = conv.window;
  Builder &b = n.b;
  int64_t batch = shapeOf(conv.input)[0], channels = shapeOf(conv.input)[1], filters = shapeOf(conv.filter)[0];
  int64_t kh = w.kernel[1], kw = w.kernel[2], rows = batch * w.out[0];
  Scalar s(b, n.op.getLoc());
  Value x = transpose(b, conv.input, {0, 2, 3, 4, 1}); // [N, D, H, W, C]
  x = pad(b, x, {0, w.padBegin[0], 0, 0, 0}, {0, w.neededEnd(0), 0, 0, 0}, s.icst(elementOf(x), 0));
  Value taps = transpose(b, conv.filter, {2, 3, 4, 1, 0}); // [KD, KH, KW, C, F]
  auto type = RankedTensorType::get({rows, w.out[1], w.out[2], filters}, b.getF32Type());
  SmallVector<int64_t> kernel{kh, kw}, strides{w.strides[1], w.strides[2]}, dilations{w.dilations[1], w.dilations[2]},
      pads{w.padBegin[1], w.padBegin[2], w.padEnd[1], w.padEnd[2]};
  Value acc;
  for (int64_t k = 0; k < w.kernel[0]; ++k) {
    Value planes =
        slice(b, x, {0, k * w.dilations[0], 0, 0, 0}, {batch, w.out[0], w.in[1], w.in[2], channels}, {1, w.strides[0], 1, 1, 1});
    Value filter = slice(b, taps, {k, 0, 0, 0, 0}, {1, kh, kw, channels, filters});
    Value term = kern::ConvOp::create(b, type, reshape(b, planes, {rows, w.in[1], w.in[2], channels}),
                                      packPanels(b, reshape(b, filter, {kh * kw * channels, filters}), false), Value(), kernel,
                                      strides, dilations, pads, n.math);
    acc = acc ? elementwise(b, type.getShape(), b.getF32Type(), {term, acc},
                            [](Scalar &s, ValueRange v) { return s.add(v[0], v[1]); })
              : term;
  }
  Value y = reshape(b, finish(n, acc, conv.bias, 3, element), {batch, w.out[0], w.out[1], w.out[2], filters});
  return transpose(b, y, {0, 4, 1, 2, 3});
}

/// Several groups: the windows as rows of a matrix for each group, times the filters of the group.
Value groupedProduct(Node &n, const Conv &conv, Type element) {
  const Window &w = conv.window;
  Builder &b = n.b;
  MLIRContext *context = b.getContext();
  unsigned rank = static_cast<unsigned>(w.rank()), dims = 3 + 2 * rank, c = 2 + rank;
  int64_t batch = shapeOf(conv.input)[0], groups = conv.groups, perGroup = shapeOf(conv.filter)[1],
          filters = shapeOf(conv.filter)[0] / groups, pixels = numElements(w.out), terms = perGroup * numElements(w.kernel);
  Scalar s(b, n.op.getLoc());
  Value padded = padWindow(n, conv.input, w, 2, s.icst(elementOf(conv.input), 0));
  Shape split{batch, groups, perGroup}, rows{groups, batch}, result{groups, batch};
  llvm::append_range(split, shapeOf(padded).drop_front(2));
  llvm::append_range(rows, w.out);
  rows.push_back(perGroup);
  llvm::append_range(rows, w.kernel);
  // The domain: group, batch, out..., channel, kernel...
  SmallVector<AffineExpr> in{getAffineDimExpr(1, context), getAffineDimExpr(0, context), getAffineDimExpr(c, context)};
  llvm::append_range(in, windowExprs(context, w, 2, c + 1));
  Value windows = mapElements(
      b, rows, elementOf(padded), {{reshape(b, padded, split), AffineMap::get(dims, 0, in, context)}},
      [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
  Value y = product(n, reshape(b, windows, {groups, batch * pixels, terms}), reshape(b, conv.filter, {groups, filters, terms}),
                    /*transposed=*/true);
  llvm::append_range(result, w.out);
  result.push_back(filters);
  Shape permutation{1, 0, static_cast<int64_t>(c)}, merged{batch, groups * filters};
  for (int64_t d = 2; d < c; ++d)
    permutation.push_back(d);
  llvm::append_range(merged, w.out);
  return finish(n, reshape(b, transpose(b, reshape(b, y, result), permutation), merged), conv.bias, 1, element);
}

Value convolve(Node &n, Conv conv, Type element) {
  int64_t channels = shapeOf(conv.input)[1], filters = shapeOf(conv.filter)[0];
  bool depthwise = conv.groups == channels && filters == channels && conv.groups > 1;
  size_t rank = conv.window.rank();
  Shape shape{shapeOf(conv.input)[0], filters};
  llvm::append_range(shape, conv.window.out);
  if (!isAnchorElement(elementOf(conv.input)) || numElements(shape) == 0 || channels == 0)
    return genericConv(n, conv, element);
  if (readsPatches(conv))
    return patchProduct(n, conv, element);
  if (foldsStrides(conv, n.math))
    return phaseConv2d(n, conv, element);
  if (rank <= 2 && (conv.groups == 1 || depthwise)) {
    if (rank == 1)
      conv = widenTo2d(n.b, conv);
    return reshape(n.b, anchorConv2d(n, conv, element), shape);
  }
  if (conv.groups > 1)
    return groupedProduct(n, conv, element);
  constexpr int64_t mostPlanes = 32;
  return rank == 3 && conv.window.kernel[0] <= mostPlanes ? planeByPlane(n, conv, element) : genericConv(n, conv, element);
}

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
