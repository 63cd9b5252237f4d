//===- DeformConv.cpp - convolution with moved sampling points ------------===//
//
// The sampled values of all windows are one tensor, computed like any element-wise operation; the rest is a product.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Contraction.h"
#include "compiler/passes/lower/Interpolation.h"
#include "compiler/passes/lower/Window.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// What an element's position in [N, C, kernel..., out...] says about the offsets (and the mask).
struct Layout {
  const Window &window;
  int64_t channels, offsetGroups;

  unsigned rank() const { return static_cast<unsigned>(window.rank()); }
  Shape columns(int64_t batch) const {
    Shape shape{batch, channels};
    llvm::append_range(shape, window.kernel);
    llvm::append_range(shape, window.out);
    return shape;
  }
  /// The map into [N, offset group, kernel..., (coordinate,) out...].
  AffineMap map(MLIRContext *context, std::optional<int64_t> coordinate) const {
    unsigned dims = 2 + 2 * rank();
    SmallVector<AffineExpr> exprs{getAffineDimExpr(0, context), getAffineDimExpr(1, context).floorDiv(channels / offsetGroups)};
    for (unsigned d = 2; d < 2 + rank(); ++d)
      exprs.push_back(getAffineDimExpr(d, context));
    if (coordinate)
      exprs.push_back(getAffineConstantExpr(*coordinate, context));
    for (unsigned d = 2 + rank(); d < dims; ++d)
      exprs.push_back(getAffineDimExpr(d, context));
    return AffineMap::get(dims, 0, exprs, context);
  }
};

/// [N, C, kernel..., out...]: the input at the moved points, times the mask.
Value sampledColumns(Node &n, const Layout &layout, Value mask) {
  const Window &w = layout.window;
  int64_t batch = n.inShape(0)[0], rank = layout.rank();
  Shape offsetShape{batch, layout.offsetGroups}, maskShape(offsetShape);
  for (Shape *shape : {&offsetShape, &maskShape})
    llvm::append_range(*shape, w.kernel);
  offsetShape.push_back(rank);
  for (Shape *shape : {&offsetShape, &maskShape})
    llvm::append_range(*shape, w.out);
  MLIRContext *context = n.b.getContext();
  Value offsets = reshape(n.b, n.in(2), offsetShape), data = n.in(0);
  SmallVector<Operand> operands;
  for (int64_t d = 0; d < rank; ++d)
    operands.push_back({offsets, layout.map(context, d)});
  if (mask)
    operands.push_back({reshape(n.b, mask, maskShape), layout.map(context, std::nullopt)});
  return mapElements(n.b, layout.columns(batch), n.inElement(0), operands, [&](Scalar &s, ValueRange x) {
    Type index = s.b.getIndexType(), i64 = s.b.getI64Type();
    SmallVector<SmallVector<Tap>> taps;
    for (int64_t d = 0; d < rank; ++d) {
      Value k = linalg::IndexOp::create(s.b, 2 + d), o = linalg::IndexOp::create(s.b, 2 + rank + d);
      Value start = s.add(s.mul(o, s.icst(index, w.strides[d])), s.mul(k, s.icst(index, w.dilations[d])));
      start = arith::IndexCastOp::create(s.b, i64, s.sub(start, s.icst(index, w.padBegin[d])));
      taps.push_back(linearTaps(s, s.add(s.cast(start, false, x[d].getType(), false), x[d]), w.in[d]));
    }
    Value value =
        interpolate(s, data, {linalg::IndexOp::create(s.b, 0).getResult(), linalg::IndexOp::create(s.b, 1).getResult()}, taps);
    return mask ? s.mul(value, x.back()) : value;
  });
}

/// The filters of each group times the columns of each image and group: [N, F, out...] in the type of products.
Value multiply(Node &n, Value columns, const Window &w, int64_t groups) {
  int64_t batch = n.inShape(0)[0], filters = n.inShape(1)[0], perGroup = filters / groups;
  int64_t terms = n.inShape(1)[1] * numElements(w.kernel), pixels = numElements(w.out);
  Value weights = reshape(n.b, n.in(1), {groups, perGroup, terms});
  if (batch > 1) {
    MLIRContext *context = n.b.getContext();
    AffineMap map =
        AffineMap::get(4, 0, {getAffineDimExpr(1, context), getAffineDimExpr(2, context), getAffineDimExpr(3, context)}, context);
    weights = mapElements(
        n.b, {batch, groups, perGroup, terms}, elementOf(weights), {{weights, map}}, [](Scalar &, ValueRange x) { return x[0]; },
        /*widen=*/false);
    weights = reshape(n.b, weights, {batch * groups, perGroup, terms});
  }
  Value y = product(n, weights, reshape(n.b, columns, {batch * groups, terms, pixels}));
  Shape shape{batch, filters};
  llvm::append_range(shape, w.out);
  return reshape(n.b, y, shape);
}

LogicalResult deformConv(Node &n) {
  int64_t rank = n.inRank(0) - 2, groups = n.op.getI64("group", 1), offsetGroups = n.op.getI64("offset_group", 1);
  if (rank < 1 || n.inRank(1) != n.inRank(0) || n.inRank(2) != n.inRank(0))
    return n.fail("operands have ranks " + Twine(n.inRank(0)) + ", " + Twine(n.inRank(1)) + " and " + Twine(n.inRank(2)) +
                  ", expected the same rank of 3 or more");
  FailureOr<Window> w = readWindow(n, n.inShape(1).drop_front(2), n.inShape(0).drop_front(2), n.outShape().drop_front(2));
  if (failed(w))
    return failure();
  int64_t channels = n.inShape(0)[1], filters = n.inShape(1)[0];
  if (groups < 1 || offsetGroups < 1 || channels % groups || filters % groups || channels % offsetGroups ||
      n.inShape(1)[1] != channels / groups)
    return n.fail("group is " + Twine(groups) + " and offset_group " + Twine(offsetGroups) + ", which do not fit " +
                  Twine(channels) + " channels and " + Twine(filters) + " filters");
  if (failed(checkBias(n, 3, filters)))
    return failure();
  int64_t points = offsetGroups * numElements(w->kernel);
  bool fits = n.inShape(2)[1] == points * rank && n.inShape(2).drop_front(2) == n.outShape().drop_front(2);
  Shape maskShape(n.inShape(2));
  maskShape[1] = points;
  if (!fits || (n.has(4) && n.inShape(4) != ArrayRef<int64_t>(maskShape)))
    return n.fail("offset or mask do not fit " + Twine(points) + " sampling points a pixel");
  Value y = multiply(n, sampledColumns(n, {*w, channels, offsetGroups}, n.in(4)), *w, groups);
  if (!n.has(3))
    return n.result(convertFloat(n.b, y, n.outElement()));
  Value bias = reshape(n.b, n.in(3), [&] {
    Shape shape(rank + 1, 1);
    shape[0] = filters;
    return shape;
  }());
  return n.result(
      elementwise(n.b, n.outShape(), n.outElement(), {y, bias}, [](Scalar &s, ValueRange x) { return s.add(x[0], x[1]); }));
}

} // namespace

void registerDeformConv(Table &t) { t.add("DeformConv", deformConv); }

} // namespace ogc::lower
