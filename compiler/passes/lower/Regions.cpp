//===- Regions.cpp - pooling of regions of interest, Col2Im ---------------===//
#include "compiler/passes/lower/Regions.h"
#include "compiler/passes/lower/Interpolation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// Reads the constant column `column` of [regions, columns] along domain dimension 0.
Operand regionOperand(Value regions, int64_t column, unsigned dims) {
  MLIRContext *context = regions.getContext();
  return {regions, AffineMap::get(dims, 0, {getAffineDimExpr(0, context), getAffineConstantExpr(column, context)}, context)};
}

/// A domain index as a float.
Value indexAsFloat(Scalar &s, int64_t dim, Type type) {
  Value i = arith::IndexCastOp::create(s.b, s.b.getI64Type(), linalg::IndexOp::create(s.b, dim));
  return arith::SIToFPOp::create(s.b, type, i);
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

} // namespace

RoiBins roiBins(Scalar &s, Value begin, Value end, const RoiAlignOptions &options, int64_t count) {
  Type type = begin.getType();
  auto place = [&](Value v) {
    Value scaled = s.mul(v, s.cst(type, options.scale));
    return options.halfPixel ? s.sub(scaled, s.cst(type, 0.5)) : scaled;
  };
  Value start = place(begin), extent = s.sub(place(end), start);
  if (!options.halfPixel)
    extent = s.max(extent, s.cst(type, 1.0), false); // malformed regions are 1 x 1
  return {start, s.div(extent, s.icst(type, count), false)};
}

namespace {

/// The two taps of a sample, both inside the map, and whether the sample counts.
std::pair<SmallVector<Tap>, Value> sampleTaps(Scalar &s, Value position, int64_t extent) {
  Type type = position.getType();
  Value counts = arith::AndIOp::create(s.b, s.cmp(Compare::GreaterOrEqual, position, s.cst(type, -1.0), false),
                                       s.cmp(Compare::LessOrEqual, position, s.icst(type, extent), false));
  Value inside = clampPosition(s, position, extent), base = math::FloorOp::create(s.b, inside), above = s.sub(inside, base);
  Value next = clampPosition(s, s.add(base, s.cst(type, 1.0)), extent);
  return {{Tap{indexOf(s, base), {}, s.sub(s.cst(type, 1.0), above)}, Tap{indexOf(s, next), {}, above}}, counts};
}

LogicalResult roiAlign(Node &n) {
  StringRef mode = n.op.getStr("mode", "avg"), coordinates = n.op.getStr("coordinate_transformation_mode", "half_pixel");
  bool isMax = mode == "max", halfPixel = coordinates == "half_pixel";
  float scale = n.op.getF32("spatial_scale", 1.0f);
  int64_t ratio = n.op.getI64("sampling_ratio");
  for (StringRef name : {"output_height", "output_width"})
    n.op.ignore(name); // the result type says it
  if (!isMax && mode != "avg")
    return n.fail("mode is '" + mode + "', expected avg or max");
  if (!halfPixel && coordinates != "output_half_pixel")
    return n.fail("coordinate_transformation_mode is '" + coordinates + "', expected half_pixel or output_half_pixel");
  if (!isa<FloatType>(n.inElement(0)) || n.inRank(0) != 4 || n.inRank(1) != 2 || n.inShape(1)[1] != 4)
    return n.fail("expected data [N, C, H, W] of a float type and regions [count, 4]");
  if (numElements(n.inShape(0)) == 0)
    return n.fail("pools a tensor without elements");
  RoiAlignOptions options{isMax, halfPixel, scale};
  if (ratio <= 0 && numElements(n.outShape()) != 0)
    return n.result(roiAlignAdaptive(n, options));
  ratio = std::max<int64_t>(ratio, 1);
  Value data = n.in(0);
  MLIRContext *context = n.b.getContext();
  unsigned dims = 6; // region, channel, out y, out x, sample y, sample x
  SmallVector<Operand> operands;
  for (int64_t column = 0; column < 4; ++column)
    operands.push_back(regionOperand(n.in(1), column, dims));
  operands.push_back({n.in(2), AffineMap::get(dims, 0, getAffineDimExpr(0, context), context)});
  // An operand that no body reads gives the samples their extents.
  AffineMap samples = AffineMap::getMultiDimIdentityMap(dims, context).getMinorSubMap(2);
  operands.push_back({empty(n.b, {ratio, ratio}, n.inElement(0)), samples});
  SmallVector<IteratorType> iterators(4, IteratorType::parallel);
  iterators.append(2, IteratorType::reduction);
  Scalar outer(n.b, n.op.getLoc());
  Type type = computeType(n.inElement(0));
  Value start = isMax ? outer.lowest(type, false) : outer.cst(type, 0.0);
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(dims, context).getMajorSubMap(4);
  Value pooled = reduceInto(n.b, {filled(n.b, n.outShape(), start), outMap}, operands, iterators, [&](Scalar &s, ValueRange x) {
    SmallVector<SmallVector<Tap>> taps;
    Value counts;
    for (int64_t d : {0, 1}) {
      RoiBins bins = roiBins(s, x[1 - d], x[3 - d], options, n.outShape()[2 + d]);
      Value sample = s.mul(s.add(indexAsFloat(s, 4 + d, type), s.cst(type, 0.5)), s.cst(type, 1.0 / static_cast<double>(ratio)));
      Value position = s.add(bins.start, s.mul(s.add(indexAsFloat(s, 2 + d, type), sample), bins.size));
      auto [two, inside] = sampleTaps(s, position, shapeOf(data)[2 + d]);
      taps.push_back(two);
      counts = counts ? arith::AndIOp::create(s.b, counts, inside).getResult() : inside;
    }
    Value batch = s.wrapIndex(x[4], shapeOf(data)[0], n.isUnsignedIn(2)), channel = linalg::IndexOp::create(s.b, 1);
    Value acc = x.back(), zero = s.cst(type, 0.0);
    if (!isMax)
      return s.add(acc, s.select(counts, interpolate(s, data, {batch, channel}, taps), zero));
    // The maximum is over the weighted corners, as the operator's reference has it.
    Value corners;
    for (const Tap &y : taps[0])
      for (const Tap &right : taps[1]) {
        Value corner = interpolate(s, data, {batch, channel}, {{y}, {right}});
        corners = corners ? s.max(corners, corner, false) : corner;
      }
    return s.max(acc, s.select(counts, corners, zero), false);
  });
  double share = isMax ? 1.0 : 1.0 / static_cast<double>(ratio * ratio);
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), pooled,
                              [&](Scalar &s, ValueRange x) { return isMax ? x[0] : s.mul(x[0], s.cst(type, share)); }));
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

/// Window positions of Col2Im, one value a dimension.
struct Blocks {
  Shape image, block, strides, dilations, padBegin, columns;
};

FailureOr<Blocks> readBlocks(Node &n) {
  std::optional<Shape> image = n.constInts(1), block = n.constInts(2);
  if (!image || !block || image->size() != block->size() || image->empty())
    return n.fail("image_shape and block_shape are not constants of one length");
  size_t rank = image->size();
  Shape ones(rank, 1), zeros(2 * rank, 0);
  Blocks blocks{*image, *block, n.op.getI64s("strides", ones), n.op.getI64s("dilations", ones), {}, {}};
  Shape pads = n.op.getI64s("pads", zeros);
  for (Shape *list : {&blocks.strides, &blocks.dilations})
    if (list->empty())
      *list = ones;
  if (pads.empty())
    pads = zeros;
  if (blocks.strides.size() != rank || blocks.dilations.size() != rank || pads.size() != 2 * rank)
    return n.fail("strides, dilations or pads do not fit " + Twine(rank) + " dimensions");
  for (size_t d = 0; d < rank; ++d) {
    if (blocks.strides[d] < 1 || blocks.dilations[d] < 1 || blocks.block[d] < 1 || pads[d] < 0 || pads[rank + d] < 0)
      return n.fail("strides, dilations and block_shape must be positive, and pads not negative");
    int64_t free = blocks.image[d] + pads[d] + pads[rank + d] - blocks.dilations[d] * (blocks.block[d] - 1) - 1;
    if (free < 0)
      return n.fail("a block does not fit the image in dimension " + Twine(d));
    blocks.columns.push_back(free / blocks.strides[d] + 1);
    blocks.padBegin.push_back(pads[d]);
  }
  return blocks;
}

/// Each pixel is the sum over the elements of a block of the one column whose block has that element there.
LogicalResult col2Im(Node &n) {
  FailureOr<Blocks> read = readBlocks(n);
  if (failed(read))
    return failure();
  const Blocks &w = *read;
  int64_t rank = static_cast<int64_t>(w.image.size()), size = numElements(w.block);
  if (n.inRank(0) != 3 || n.inShape(0)[1] % size || n.inShape(0)[2] != numElements(w.columns))
    return n.fail("data does not fit: expected [N, C * " + Twine(size) + ", " + Twine(numElements(w.columns)) + "]");
  Shape split{n.inShape(0)[0], n.inShape(0)[1] / size};
  llvm::append_range(split, w.block);
  llvm::append_range(split, w.columns);
  Value data = reshape(n.b, n.in(0), split);
  MLIRContext *context = n.b.getContext();
  unsigned dims = static_cast<unsigned>(2 + 2 * rank);
  SmallVector<IteratorType> iterators(2 + rank, IteratorType::parallel);
  iterators.append(rank, IteratorType::reduction);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(dims, context);
  Scalar outer(n.b, n.op.getLoc());
  Value start = outer.icst(computeType(n.inElement(0)), 0);
  Value sum =
      reduceInto(n.b, {filled(n.b, n.outShape(), start), identity.getMajorSubMap(static_cast<unsigned>(2 + rank))},
                 {{empty(n.b, w.block, n.inElement(0)), identity.getMinorSubMap(static_cast<unsigned>(rank))}}, iterators,
                 [&](Scalar &s, ValueRange x) {
                   Type index = s.b.getIndexType();
                   Value zero = s.icst(index, 0), valid;
                   SmallVector<Value> position{linalg::IndexOp::create(s.b, 0), linalg::IndexOp::create(s.b, 1)}, columns;
                   for (int64_t d = 0; d < rank; ++d) {
                     Value pixel = linalg::IndexOp::create(s.b, 2 + d), k = linalg::IndexOp::create(s.b, 2 + rank + d);
                     Value from = s.sub(s.add(pixel, s.icst(index, w.padBegin[d])), s.mul(k, s.icst(index, w.dilations[d])));
                     Value stride = s.icst(index, w.strides[d]), column = arith::DivSIOp::create(s.b, from, stride);
                     Value hit = s.cmp(Compare::Equal, arith::RemSIOp::create(s.b, from, stride), zero, false);
                     hit = arith::AndIOp::create(s.b, hit, s.cmp(Compare::GreaterOrEqual, from, zero, false));
                     hit = arith::AndIOp::create(s.b, hit, s.cmp(Compare::Less, column, s.icst(index, w.columns[d]), false));
                     valid = valid ? arith::AndIOp::create(s.b, valid, hit).getResult() : hit;
                     position.push_back(k);
                     columns.push_back(s.min(s.max(column, zero, false), s.icst(index, w.columns[d] - 1), false));
                   }
                   llvm::append_range(position, columns);
                   Value element = s.widen(tensor::ExtractOp::create(s.b, data, position));
                   return s.add(x.back(), s.select(valid, element, s.icst(element.getType(), 0)));
                 });
  return n.result(convertFloat(n.b, sum, n.outElement()));
}

} // namespace

void registerRegions(Table &t) {
  t.add("RoiAlign", roiAlign);
  t.add("Col2Im", col2Im);
}

} // namespace ogc::lower
