//===- ConvolutionForms.cpp - the forms that convolutions are computed in -===//
#include "compiler/passes/lower/ConvolutionForms.h"

#include "compiler/passes/lower/Contraction.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::lower {
namespace {

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

} // namespace

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

} // namespace ogc::lower
