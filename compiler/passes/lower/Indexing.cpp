//===- Indexing.cpp - gathers ---------------------------------------------===//
//
// Everything is in pull form: a body computes one element of the result. Indices wrap once when negative and are clamped
// outside the tensor, so no input makes a kernel read foreign memory.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

AffineMap dimsMap(MLIRContext *context, unsigned numDims, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t d : dims)
    exprs.push_back(getAffineDimExpr(static_cast<unsigned>(d), context));
  return AffineMap::get(numDims, 0, exprs, context);
}

Shape iota(int64_t begin, int64_t end) {
  auto range = llvm::seq<int64_t>(begin, end);
  return Shape(range.begin(), range.end());
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// Data and indices of one rank, the axis inside it, and no extent of the indices beyond that of the data but along the axis.
LogicalResult checkSameRank(Node &n, int64_t axis) {
  if (n.inRank(0) != n.inRank(1))
    return n.fail("data has rank " + Twine(n.inRank(0)) + " and indices have rank " + Twine(n.inRank(1)) +
                  ", expected equal ranks");
  if (axis < 0 || axis >= n.inRank(0))
    return n.fail("axis is out of range for rank " + Twine(n.inRank(0)));
  for (int64_t d = 0; d < n.inRank(0); ++d)
    if (d != axis && n.inShape(1)[d] > n.inShape(0)[d])
      return n.fail("indices have extent " + Twine(n.inShape(1)[d]) + " in dimension " + Twine(d) + ", expected at most " +
                    Twine(n.inShape(0)[d]));
  return success();
}

/// The common step of constant indices in [0, extent), or nothing when they are no arithmetic sequence. A single index has
/// step 1.
std::optional<int64_t> constantStep(const Shape &indices) {
  int64_t step = indices.size() > 1 ? indices[1] - indices[0] : 1;
  for (size_t i = 1; i < indices.size(); ++i)
    if (indices[i] - indices[i - 1] != step)
      return std::nullopt;
  return step == 0 ? std::nullopt : std::optional<int64_t>(step);
}

/// Constant indices in an arithmetic sequence are a slice. Null when they are not.
Value gatherAsSlice(Node &n, int64_t axis) {
  std::optional<Shape> indices = n.constInts(1);
  if (!indices || indices->empty() || n.inRank(1) > 1)
    return {};
  int64_t extent = n.inShape(0)[axis];
  for (int64_t &index : *indices) {
    index = wrapAxis(index, extent);
    if (index < 0 || index >= extent)
      return {};
  }
  std::optional<int64_t> step = constantStep(*indices);
  if (!step)
    return {};
  Shape offsets(n.inRank(0), 0), sizes(n.inShape(0)), steps(n.inRank(0), 1);
  offsets[axis] = indices->front();
  sizes[axis] = static_cast<int64_t>(indices->size());
  steps[axis] = *step;
  return reshape(n.b, stridedRead(n.b, n.in(0), offsets, sizes, steps), n.outShape());
}

LogicalResult gather(Node &n) {
  int64_t axis = wrapAxis(n.op.getI64("axis"), n.inRank(0));
  if (axis < 0 || axis >= n.inRank(0))
    return n.fail("axis is out of range");
  if (Value v = gatherAsSlice(n, axis))
    return n.result(v);
  int64_t extent = n.inShape(0)[axis], indexRank = n.inRank(1), outRank = static_cast<int64_t>(n.outShape().size());
  if (extent == 0 && numElements(n.outShape()) != 0)
    return n.fail("gathers from an axis without elements");
  Value data = n.in(0);
  AffineMap indexMap = dimsMap(n.b.getContext(), static_cast<unsigned>(outRank), iota(axis, axis + indexRank));
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), {{n.in(1), indexMap}},
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < outRank; ++d) {
          if (d == axis)
            position.push_back(s.wrapIndex(x[0], extent, n.isUnsignedIn(1)));
          if (d < axis || d >= axis + indexRank)
            position.push_back(linalg::IndexOp::create(s.b, d));
        }
        if (axis == outRank) // a scalar index into the last axis
          position.push_back(s.wrapIndex(x[0], extent, n.isUnsignedIn(1)));
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

LogicalResult gatherElements(Node &n) {
  int64_t axis = wrapAxis(n.op.getI64("axis"), n.inRank(0));
  if (failed(checkSameRank(n, axis)))
    return failure();
  if (n.inShape(0)[axis] == 0 && numElements(n.outShape()) != 0)
    return n.fail("gathers from an axis without elements");
  Value data = n.in(0);
  return n.result(elementwise(
      n.b, n.outShape(), n.outElement(), n.in(1),
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < n.inRank(0); ++d)
          position.push_back(d == axis ? s.wrapIndex(x[0], shapeOf(data)[d], false)
                                       : linalg::IndexOp::create(s.b, d).getResult());
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

/// out[batch..., i..., slice...] = data[batch..., indices[batch..., i..., :]..., slice...].
LogicalResult gatherNd(Node &n) {
  if (n.inRank(1) < 1)
    return n.fail("indices are a scalar");
  int64_t batch = n.op.getI64("batch_dims"), depth = n.inShape(1).back(), indexDims = n.inRank(1) - 1;
  if (batch < 0 || batch + depth > n.inRank(0) || batch > indexDims)
    return n.fail("indices of depth " + Twine(depth) + " with " + Twine(batch) + " batch dimensions do not fit data of rank " +
                  Twine(n.inRank(0)));
  unsigned outRank = static_cast<unsigned>(n.outShape().size());
  Value data = n.in(0);
  for (int64_t j = 0; j < depth; ++j)
    if (n.inShape(0)[batch + j] == 0 && numElements(n.outShape()) != 0)
      return n.fail("gathers from an axis without elements");
  MLIRContext *context = n.b.getContext();
  SmallVector<Operand> operands;
  for (int64_t j = 0; j < depth; ++j) {
    SmallVector<AffineExpr> exprs(dimsMap(context, outRank, iota(0, indexDims)).getResults());
    exprs.push_back(getAffineConstantExpr(j, context));
    operands.push_back({n.in(1), AffineMap::get(outRank, 0, exprs, context)});
  }
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), operands,
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < batch; ++d)
          position.push_back(linalg::IndexOp::create(s.b, d));
        for (int64_t j = 0; j < depth; ++j)
          position.push_back(s.wrapIndex(x[j], shapeOf(data)[batch + j], false));
        for (int64_t d = batch + depth; d < static_cast<int64_t>(shapeOf(data).size()); ++d)
          position.push_back(linalg::IndexOp::create(s.b, indexDims + d - batch - depth));
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

LogicalResult reverseSequence(Node &n) {
  int64_t batchAxis = n.op.getI64("batch_axis", 1), timeAxis = n.op.getI64("time_axis", 0);
  if (batchAxis == timeAxis || std::min(batchAxis, timeAxis) < 0 || std::max(batchAxis, timeAxis) >= n.inRank(0))
    return n.fail("batch_axis " + Twine(batchAxis) + " and time_axis " + Twine(timeAxis) + " are no two dimensions of rank " +
                  Twine(n.inRank(0)));
  Value data = n.in(0);
  AffineMap map = dimsMap(n.b.getContext(), static_cast<unsigned>(n.inRank(0)), {batchAxis});
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), {{n.in(1), map}},
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < n.inRank(0); ++d)
          position.push_back(linalg::IndexOp::create(s.b, d));
        Value time = position[timeAxis], length = s.toIndex(x[0], false);
        Value mirrored = s.sub(s.sub(length, s.icst(time.getType(), 1)), time);
        Value source = s.select(s.cmp(Compare::Less, time, length, false), mirrored, time);
        position[timeAxis] = s.wrapIndex(source, shapeOf(data)[timeAxis], false);
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false));
}

/// Element l along the axis is update l - start where there is one; circular: modulo the extent.
LogicalResult tensorScatter(Node &n) {
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("axis", -2), rank);
  StringRef mode = n.op.getStr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.fail("mode is '" + mode + "', expected linear or circular");
  if (axis < 1 || axis >= rank || n.inRank(1) != rank)
    return n.fail("axis is out of range for rank " + Twine(rank) + ", or the update has another rank");
  int64_t extent = n.inShape(0)[axis], count = n.inShape(1)[axis];
  Shape expected(n.inShape(0));
  expected[axis] = count;
  if (n.inShape(1) != ArrayRef(expected) || count > extent)
    return n.fail("the update does not fit the cache");
  if (count == 0 || numElements(n.outShape()) == 0)
    return n.result(n.in(0));
  Value update = n.in(1);
  SmallVector<Operand> operands{{n.in(0), AffineMap::getMultiDimIdentityMap(static_cast<unsigned>(rank), n.b.getContext())}};
  if (n.has(2))
    operands.push_back({n.in(2), dimsMap(n.b.getContext(), static_cast<unsigned>(rank), {0})});
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(), operands,
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (int64_t d = 0; d < rank; ++d)
          position.push_back(linalg::IndexOp::create(s.b, d));
        Type index = s.b.getIndexType();
        Value number = position[axis];
        if (x.size() > 1)
          number = s.sub(number, s.toIndex(x[1], false));
        if (mode == "circular")
          number = s.mod(number, s.icst(index, extent), false, /*fmod=*/false);
        Value exists = s.mul(s.cmp(Compare::GreaterOrEqual, number, s.icst(index, 0), false),
                             s.cmp(Compare::Less, number, s.icst(index, count), false));
        position[axis] = s.min(s.max(number, s.icst(index, 0), false), s.icst(index, count - 1), false);
        return s.select(exists, tensor::ExtractOp::create(s.b, update, position), x[0]);
      },
      /*widen=*/false));
}

LogicalResult oneHot(Node &n) {
  int64_t rank = static_cast<int64_t>(n.outShape().size()), axis = wrapAxis(n.op.getI64("axis", -1), rank),
          depth = n.outShape()[axis];
  MLIRContext *context = n.b.getContext();
  Shape dims = iota(0, rank);
  dims.erase(dims.begin() + axis);
  unsigned numDims = static_cast<unsigned>(rank);
  auto constant = [&](int64_t i) { return AffineMap::get(numDims, 0, getAffineConstantExpr(i, context), context); };
  return n.result(mapElements(
      n.b, n.outShape(), n.outElement(),
      {{n.in(0), dimsMap(context, numDims, dims)}, {n.in(2), constant(0)}, {n.in(2), constant(1)}},
      [&](Scalar &s, ValueRange x) -> Value {
        Type i64 = s.b.getI64Type();
        Value index = s.cast(x[0], n.isUnsignedIn(0), i64, false);
        index = s.select(s.cmp(Compare::Less, index, s.icst(i64, 0), false), s.add(index, s.icst(i64, depth)), index);
        Value here = arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, axis));
        return s.select(s.cmp(Compare::Equal, index, here, false), x[2], x[1]);
      },
      /*widen=*/false));
}

} // namespace

void registerIndexing(Table &t) {
  t.add("Gather", gather);
  t.add("GatherElements", gatherElements);
  t.add("GatherND", gatherNd);
  t.add("TensorScatter", tensorScatter);
  t.add("OneHot", oneHot);
  t.add("ReverseSequence", reverseSequence);
}

} // namespace ogc::lower
