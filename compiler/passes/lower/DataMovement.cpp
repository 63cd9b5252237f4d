//===- DataMovement.cpp - operators that move elements by fixed rules -----===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// Operators that only change the shape; the result type already says how.
LogicalResult reshapeOp(Node &n) {
  for (StringRef name : {"allowzero", "axis", "axes"})
    n.op.ignore(name);
  return n.result(reshape(n.b, n.in(0), n.outShape()));
}

LogicalResult transposeOp(Node &n) {
  Shape reversed;
  for (int64_t d = n.inRank(0) - 1; d >= 0; --d)
    reversed.push_back(d);
  Shape perm = n.op.getI64s("perm", reversed);
  if (static_cast<int64_t>(perm.size()) != n.inRank(0))
    return n.fail("perm has " + Twine(perm.size()) + " values, expected " + Twine(n.inRank(0)));
  for (int64_t &d : perm)
    d = wrapAxis(d, n.inRank(0));
  return n.result(transpose(n.b, n.in(0), perm));
}

/// A copy with extents of one repeated.
Value expandTo(Builder &b, Value v, ArrayRef<int64_t> shape) {
  if (shapeOf(v) == shape)
    return v;
  return elementwise(b, shape, elementOf(v), v, [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
}

LogicalResult expandOp(Node &n) { return n.result(expandTo(n.b, n.in(0), n.outShape())); }

//===----------------------------------------------------------------------===//
// Slice, Split, Concat
//===----------------------------------------------------------------------===//

LogicalResult sliceOp(Node &n) {
  std::optional<Shape> starts = n.constInts(1), ends = n.constInts(2), axes = n.constInts(3), steps = n.constInts(4);
  if (!starts || !ends || (n.has(3) && !axes) || (n.has(4) && !steps))
    return n.fail("starts, ends, axes or steps are not constant");
  Shape offsets(n.inRank(0), 0), strides(n.inRank(0), 1), shape(n.inShape(0));
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = axes ? wrapAxis((*axes)[i], n.inRank(0)) : static_cast<int64_t>(i);
    if (axis < 0 || axis >= n.inRank(0))
      return n.fail("axis " + Twine(axis) + " is out of range");
    int64_t extent = shape[axis], step = steps ? (*steps)[i] : 1, start = (*starts)[i];
    if (step == 0)
      return n.fail("step 0 is not allowed");
    start = std::clamp(start < 0 ? start + extent : start, int64_t(0), step > 0 ? extent : std::max<int64_t>(extent - 1, 0));
    offsets[axis] = start;
    strides[axis] = step;
  }
  return n.result(stridedRead(n.b, n.in(0), offsets, n.outShape(), strides));
}

LogicalResult splitOp(Node &n) {
  n.op.ignore("num_outputs");
  int64_t axis = wrapAxis(n.op.getI64("axis"), n.inRank(0));
  if (n.has(1) && !n.constInts(1))
    return n.fail("split is not constant");
  Shape offsets(n.inRank(0), 0);
  for (int i = 0; i < n.op.numOutputs(); ++i) {
    if (failed(n.result(slice(n.b, n.in(0), offsets, n.outShape(i)))))
      return failure();
    offsets[axis] += n.outShape(i)[axis];
  }
  if (offsets[axis] != n.inShape(0)[axis])
    return n.fail("parts have " + Twine(offsets[axis]) + " of " + Twine(n.inShape(0)[axis]) + " elements along axis " +
                  Twine(axis));
  return success();
}

LogicalResult concatOp(Node &n) {
  int64_t axis = wrapAxis(n.op.getI64("axis"), static_cast<int64_t>(n.outShape().size()));
  SmallVector<Value> parts;
  for (int i = 0; i < n.numInputs(); ++i)
    parts.push_back(n.in(i));
  return n.result(concat(n.b, axis, parts));
}

//===----------------------------------------------------------------------===//
// Pad, Tile
//===----------------------------------------------------------------------===//

/// The source position of position `i` (index, relative to the input) in the modes that read the input again.
Value sourcePosition(Scalar &s, Value i, int64_t extent, StringRef mode) {
  Type type = i.getType();
  if (mode == "edge")
    return s.min(s.max(i, s.icst(type, 0), false), s.icst(type, extent - 1), false);
  // wrap has period `extent`; reflect has period 2 * extent - 2 and mirrors the second half.
  int64_t period = mode == "wrap" ? extent : std::max<int64_t>(2 * extent - 2, 1);
  Value p = s.mod(i, s.icst(type, period), false, /*fmod=*/false);
  if (mode == "wrap")
    return p;
  return s.min(p, s.sub(s.icst(type, period), p), false);
}

LogicalResult padOp(Node &n) {
  StringRef mode = n.op.getStr("mode", "constant");
  std::optional<Shape> pads = n.constInts(1), axes = n.constInts(3);
  if (!pads || (n.has(3) && !axes))
    return n.fail("pads or axes are not constant");
  int64_t rank = n.inRank(0);
  Shape low(rank, 0), high(rank, 0);
  int64_t count = axes ? static_cast<int64_t>(axes->size()) : rank;
  if (static_cast<int64_t>(pads->size()) != 2 * count)
    return n.fail("pads has " + Twine(pads->size()) + " values, expected " + Twine(2 * count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = axes ? wrapAxis((*axes)[i], rank) : i;
    if (axis < 0 || axis >= rank)
      return n.fail("axis " + Twine(axis) + " is out of range");
    low[axis] = (*pads)[i];
    high[axis] = (*pads)[count + i];
  }
  if (mode == "constant") {
    // Negative pads crop first.
    Shape offsets, sizes(n.inShape(0));
    for (int64_t d = 0; d < rank; ++d) {
      offsets.push_back(std::max<int64_t>(-low[d], 0));
      sizes[d] += std::min<int64_t>(low[d], 0) + std::min<int64_t>(high[d], 0);
      low[d] = std::max<int64_t>(low[d], 0);
      high[d] = std::max<int64_t>(high[d], 0);
      if (sizes[d] < 0)
        return n.fail("pads crop more than the extent of dimension " + Twine(d));
    }
    Scalar s(n.b, n.op.getLoc());
    Value scalar = n.has(2) ? Value() : s.icst(n.outElement(), 0);
    if (n.has(2)) {
      Value value = reshape(n.b, n.in(2), {});
      DenseElementsAttr splat = getSplat(value);
      scalar = splat ? arith::ConstantOp::create(n.b, cast<TypedAttr>(splat.getSplatValue<Attribute>())).getResult()
                     : tensor::ExtractOp::create(n.b, value, ValueRange{}).getResult();
    }
    return n.result(pad(n.b, slice(n.b, n.in(0), offsets, sizes), low, high, scalar));
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    return n.fail("mode is '" + mode + "', expected constant, reflect, edge or wrap");
  for (int64_t d = 0; d < rank; ++d)
    if ((low[d] || high[d]) && n.inShape(0)[d] == 0)
      return n.fail("cannot pad dimension " + Twine(d) + " of extent 0 in mode " + mode);
  Value source = n.in(0);
  return n.result(generate(n.b, n.outShape(), n.outElement(), [&](Scalar &s, ValueRange position) -> Value {
    SmallVector<Value> indices(position);
    for (int64_t d = 0; d < rank; ++d)
      if (low[d] || high[d])
        indices[d] = sourcePosition(s, s.sub(indices[d], s.icst(indices[d].getType(), low[d])), shapeOf(source)[d], mode);
    return tensor::ExtractOp::create(s.b, source, indices);
  }));
}

LogicalResult tileOp(Node &n) {
  // [d0, d1] repeated r0, r1 times is [r0, d0, r1, d1] with the r dimensions broadcast.
  Shape wide;
  SmallVector<AffineExpr> exprs;
  for (auto [from, to] : llvm::zip(n.inShape(0), n.outShape())) {
    wide.push_back(from ? to / from : 0);
    exprs.push_back(getAffineDimExpr(static_cast<unsigned>(wide.size()), n.b.getContext()));
    wide.push_back(from);
  }
  if (n.inShape(0) == n.outShape())
    return n.result(n.in(0));
  AffineMap map = AffineMap::get(static_cast<unsigned>(wide.size()), 0, exprs, n.b.getContext());
  Value repeated =
      mapElements(n.b, wide, n.outElement(), {{n.in(0), map}}, [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
  return n.result(reshape(n.b, repeated, n.outShape()));
}

//===----------------------------------------------------------------------===//
// Space, channels, triangles
//===----------------------------------------------------------------------===//

/// The block divides `extents`, once or, for channels that become blocks, squared.
LogicalResult checkBlock(Node &n, int64_t block, ArrayRef<int64_t> extents, bool squared) {
  constexpr int64_t largest = 1 << 20; // squared it is far from overflow
  auto divides = [&](int64_t extent) { return extent % (squared ? block * block : block) == 0; };
  if (block >= 1 && block <= largest && llvm::all_of(extents, divides))
    return success();
  std::string found = llvm::join(llvm::map_range(extents, [](int64_t extent) { return std::to_string(extent); }), "x");
  return n.fail("blocksize is " + Twine(block) + (squared ? ", whose square does not divide " : ", which does not divide ") +
                found + (squared ? " channels" : " pixels"));
}

LogicalResult depthToSpace(Node &n) {
  int64_t block = n.op.getI64("blocksize"), c = n.inShape(0)[1];
  if (failed(checkBlock(n, block, c, /*squared=*/true)))
    return failure();
  StringRef mode = n.op.getStr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return n.fail("mode is '" + mode + "', expected DCR or CRD");
  int64_t batch = n.inShape(0)[0], h = n.inShape(0)[2], w = n.inShape(0)[3], depth = c / (block * block);
  Value v;
  if (mode == "DCR")
    v = transpose(n.b, reshape(n.b, n.in(0), {batch, block, block, depth, h, w}), {0, 3, 4, 1, 5, 2});
  else
    v = transpose(n.b, reshape(n.b, n.in(0), {batch, depth, block, block, h, w}), {0, 1, 4, 2, 5, 3});
  return n.result(reshape(n.b, v, n.outShape()));
}

LogicalResult spaceToDepth(Node &n) {
  int64_t block = n.op.getI64("blocksize");
  if (failed(checkBlock(n, block, n.inShape(0).take_back(2), /*squared=*/false)))
    return failure();
  StringRef mode = n.op.getStr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return n.fail("mode is '" + mode + "', expected DCR or CRD");
  ArrayRef<int64_t> in = n.inShape(0);
  Value v = reshape(n.b, n.in(0), {in[0], in[1], in[2] / block, block, in[3] / block, block});
  return n.result(
      reshape(n.b, transpose(n.b, v, mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4}), n.outShape()));
}

LogicalResult trilu(Node &n) {
  bool upper = n.op.getI64("upper", 1) != 0;
  int64_t rank = n.inRank(0);
  if (rank < 2)
    return n.fail("operand 0 has rank " + Twine(rank) + ", expected at least 2");
  if (n.has(1) && numElements(n.inShape(1)) != 1)
    return n.fail("k has " + Twine(numElements(n.inShape(1))) + " elements, expected 1");
  SmallVector<Value> operands{n.in(0)};
  if (n.has(1))
    operands.push_back(reshape(n.b, n.in(1), {}));
  return n.result(elementwise(
      n.b, n.outShape(), n.outElement(), operands,
      [&](Scalar &s, ValueRange x) {
        Type i64 = s.b.getI64Type();
        auto position = [&](int64_t d) -> Value { return arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, d)); };
        Value diagonal = x.size() > 1 ? s.add(position(rank - 2), x[1]) : position(rank - 2);
        Value keep = s.cmp(upper ? Compare::GreaterOrEqual : Compare::LessOrEqual, position(rank - 1), diagonal, false);
        return s.select(keep, x[0], s.icst(x[0].getType(), 0));
      },
      /*widen=*/false));
}

//===----------------------------------------------------------------------===//
// Tensors made from nothing
//===----------------------------------------------------------------------===//

LogicalResult shapeOfOp(Node &n) {
  for (StringRef name : {"start", "end"})
    n.op.ignore(name);
  int64_t rank = n.inRank(0), start = n.op.getI64("start", 0), end = n.op.findI64("end").value_or(rank);
  start = std::clamp(wrapAxis(start, rank), int64_t(0), rank);
  end = std::clamp(wrapAxis(end, rank), start, rank);
  Shape part(n.inShape(0).slice(start, end - start));
  auto type = RankedTensorType::get({end - start}, n.b.getI64Type());
  return n.result(constantTensor(n.b, DenseElementsAttr::get(type, ArrayRef<int64_t>(part))));
}

LogicalResult sizeOp(Node &n) {
  auto type = RankedTensorType::get({}, n.b.getI64Type());
  return n.result(constantTensor(n.b, DenseElementsAttr::get(type, ArrayRef<int64_t>{numElements(n.inShape(0))})));
}

LogicalResult constantOfShape(Node &n) {
  Scalar s(n.b, n.op.getLoc());
  ElementsAttr value = n.op.getTensor("value");
  if (!value)
    return n.result(filled(n.b, n.outShape(), s.icst(n.outElement(), 0)));
  auto dense = dyn_cast_or_null<DenseElementsAttr>(storageElements(value));
  if (!dense || !dense.isSplat())
    return n.fail("value is not a tensor of one element");
  auto type = RankedTensorType::get(n.outShape(), n.outElement());
  return n.result(constantTensor(n.b, dense.resizeSplat(type)));
}

LogicalResult eyeLike(Node &n) {
  n.op.ignore("dtype");
  int64_t k = n.op.getI64("k");
  return n.result(generate(n.b, n.outShape(), n.outElement(), [&](Scalar &s, ValueRange position) {
    Value onDiagonal = s.cmp(Compare::Equal, position[1], s.add(position[0], s.icst(position[0].getType(), k)), false);
    return s.select(onDiagonal, s.icst(n.outElement(), 1), s.icst(n.outElement(), 0));
  }));
}

LogicalResult range(Node &n) {
  n.op.ignore("stash_type"); // 16-bit floats compute in f32
  Value start = reshape(n.b, n.in(0), {}), delta = reshape(n.b, n.in(2), {});
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), {start, delta}, [&](Scalar &s, ValueRange x) {
    Value i = linalg::IndexOp::create(s.b, 0);
    Value number = arith::IndexCastOp::create(s.b, s.b.getI64Type(), i);
    return s.add(x[0], s.mul(s.cast(number, false, x[0].getType(), false), x[1]));
  }));
}

} // namespace

void registerDataMovement(Table &t) {
  for (StringRef name : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
    t.add(name, reshapeOp);
  t.add("Transpose", transposeOp);
  t.add("Expand", expandOp);
  t.add("Slice", sliceOp);
  t.add("Split", splitOp);
  t.add("Concat", concatOp);
  t.add("Pad", padOp);
  t.add("Tile", tileOp);
  t.add("DepthToSpace", depthToSpace);
  t.add("SpaceToDepth", spaceToDepth);
  t.add("Trilu", trilu);
  t.add("Shape", shapeOfOp);
  t.add("Size", sizeOp);
  t.add("ConstantOfShape", constantOfShape);
  t.add("EyeLike", eyeLike);
  t.add("Range", range);
}

} // namespace ogc::lower
