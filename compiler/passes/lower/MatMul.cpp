//===- MatMul.cpp - MatMul and Gemm ---------------------------------------===//
#include "compiler/passes/lower/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace ogc::lower {

int64_t panelWidth(int64_t n) {
  auto padded = [n](int64_t width) { return (n + width - 1) / width * width; };
  int64_t limit = std::max(padded(16), n + n / 3);
  for (int64_t width : {64, 32})
    if (padded(width) <= limit)
      return width;
  return 16;
}

bool isAnchorElement(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

Value packPanels(Builder &b, Value weight, bool transposed) {
  int64_t k = shapeOf(weight)[transposed ? 1 : 0], n = shapeOf(weight)[transposed ? 0 : 1];
  int64_t width = panelWidth(n), panels = (n + width - 1) / width, extra = panels * width - n;
  Scalar s(b, b.getLoc());
  Shape none{0, 0}, high = transposed ? Shape{extra, 0} : Shape{0, extra};
  if (extra)
    weight = pad(b, weight, none, high, s.icst(elementOf(weight), 0));
  if (transposed)
    return transpose(b, reshape(b, weight, {panels, width, k}), {0, 2, 1});
  return transpose(b, reshape(b, weight, {k, panels, width}), {1, 0, 2});
}

Value matmul(Node &node, Value lhs, const Rhs &rhs, int64_t n) {
  Builder &b = node.b;
  Shape shape{shapeOf(lhs)[0], shapeOf(lhs)[1], n};
  Scalar s(b, node.op.getLoc());
  if (numElements(shape) == 0 || shapeOf(lhs)[2] == 0)
    return filled(b, shape, s.cst(b.getF32Type(), 0.0));
  return kern::MatmulOp::create(b, RankedTensorType::get(shape, b.getF32Type()), lhs, rhs.value, rhs.transposed, rhs.packed,
                                node.math);
}

Value product(Node &node, Value lhs, Value rhs, bool transposed) {
  int64_t batch = shapeOf(lhs)[0], rows = shapeOf(lhs)[1], columns = shapeOf(rhs)[transposed ? 1 : 2];
  if (isAnchorElement(elementOf(lhs)))
    return matmul(node, lhs, {rhs, false, transposed}, columns);
  MLIRContext *context = node.b.getContext();
  auto dims = [&](ArrayRef<unsigned> list) {
    auto exprs = llvm::map_to_vector(list, [&](unsigned d) { return getAffineDimExpr(d, context); });
    return AffineMap::get(4, 0, exprs, context);
  };
  SmallVector<IteratorType> iterators(3, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  Scalar s(node.b, node.op.getLoc());
  Value zero = s.icst(computeType(elementOf(lhs)), 0);
  return reduceInto(node.b, {filled(node.b, {batch, rows, columns}, zero), dims({0, 1, 2})},
                    {{lhs, dims({0, 1, 3})}, {rhs, transposed ? dims({0, 2, 3}) : dims({0, 3, 2})}}, iterators,
                    [](Scalar &s, ValueRange x) { return s.add(x[2], s.mul(x[0], x[1])); });
}

/// A tensor whose leading dimensions are broadcast to `batch` and collapsed to one: [B, d, e].
Value collapseBatch(Builder &b, Value v, ArrayRef<int64_t> batch) {
  Shape shape(batch);
  llvm::append_range(shape, shapeOf(v).take_back(2));
  if (numElements(shape) != numElements(shapeOf(v)))
    v = elementwise(b, shape, elementOf(v), v, [](Scalar &, ValueRange x) { return x[0]; }, /*widen=*/false);
  return reshape(b, v, {numElements(batch), shape[shape.size() - 2], shape.back()});
}

namespace {

/// Batched product with any element type: a generic over [batch..., m, n, k]. Operands are broadcast in their batch dimensions.
Value genericMatmul(Node &n, Value lhs, Value rhs, ArrayRef<int64_t> shape, Type accumulator,
                    function_ref<Value(Scalar &, Value, bool isLhs)> load) {
  MLIRContext *context = n.b.getContext();
  unsigned rank = static_cast<unsigned>(shape.size()), dims = rank + 1;
  AffineExpr m = getAffineDimExpr(rank - 2, context), column = getAffineDimExpr(rank - 1, context),
             k = getAffineDimExpr(rank, context);
  auto map = [&](Value v, AffineExpr second, AffineExpr last) {
    ArrayRef<int64_t> batch = shapeOf(v).drop_back(2);
    SmallVector<AffineExpr> exprs(broadcastMap(context, batch, shape.drop_back(2)).getResults());
    exprs.append({second, last});
    return AffineMap::get(dims, 0, exprs, context);
  };
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  Scalar s(n.b, n.op.getLoc());
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(dims, context).getMajorSubMap(rank);
  return reduceInto(n.b, {filled(n.b, shape, s.icst(accumulator, 0)), outMap},
                    {{lhs, map(lhs, m, k)}, {rhs, map(rhs, k, column)}}, iterators,
                    [&](Scalar &s, ValueRange x) { return s.add(x[2], s.mul(load(s, x[0], true), load(s, x[1], false))); });
}

/// A right operand [batch..., K, N] read through the transpose that made it, when that leaves K contiguous.
std::pair<Value, bool> lookThroughTranspose(Builder &b, Value rhs) {
  auto op = rhs.getDefiningOp<linalg::TransposeOp>();
  if (!op)
    return {rhs, false};
  Shape perm(op.getPermutation());
  size_t rank = perm.size();
  if (rank < 2 || perm[rank - 2] != static_cast<int64_t>(rank) - 1)
    return {rhs, false};
  std::swap(perm[rank - 2], perm[rank - 1]);
  return {transpose(b, op.getInput(), perm), true};
}

/// lhs [..., M, K] times rhs [..., K, N] with at least two dimensions each: [batch..., M, N] in the storage type, rounded in the
/// shape of the anchor.
Value anchorMatmul(Node &n, Value lhs, Value rhs, bool rhsIsConstant, ArrayRef<int64_t> batch, Type element) {
  int64_t m = shapeOf(lhs)[shapeOf(lhs).size() - 2], k = shapeOf(lhs).back(), columns = shapeOf(rhs).back();
  Shape shape(batch);
  shape.append({m, columns});
  bool rhsHasNoBatch = numElements(shapeOf(rhs).drop_back(2)) == 1;
  if (rhsHasNoBatch) {
    // One weight for all: the leading dimensions of lhs are rows.
    Value rows = reshape(n.b, lhs, {1, numElements(shapeOf(lhs).drop_back(1)), k});
    Rhs weight;
    if (rhsIsConstant && n.packWeights) {
      weight = {packPanels(n.b, reshape(n.b, rhs, {k, columns}), false), true, false};
    } else {
      auto [source, transposed] = lookThroughTranspose(n.b, rhs);
      weight = {reshape(n.b, source, transposed ? Shape{1, columns, k} : Shape{1, k, columns}), false, transposed};
    }
    return reshape(n.b, convertFloat(n.b, matmul(n, rows, weight, columns), element), shape);
  }
  auto [source, transposed] = lookThroughTranspose(n.b, rhs);
  Rhs weight{collapseBatch(n.b, source, batch), false, transposed};
  return reshape(n.b, convertFloat(n.b, matmul(n, collapseBatch(n.b, lhs, batch), weight, columns), element), shape);
}

} // namespace

Value matrixProduct(Node &n, Value lhs, Value rhs, bool rhsIsConstant, ArrayRef<int64_t> batch, Type element) {
  if (isAnchorElement(elementOf(lhs)))
    return anchorMatmul(n, lhs, rhs, rhsIsConstant, batch, element);
  Shape shape(batch);
  shape.append({shapeOf(lhs)[shapeOf(lhs).size() - 2], shapeOf(rhs).back()});
  return genericMatmul(n, lhs, rhs, shape, element, [](Scalar &, Value x, bool) { return x; });
}

namespace {

/// Vectors as matrices; returns the batch shape of the result.
Shape promote(Node &n, Value &lhs, Value &rhs) {
  if (n.inRank(0) == 1)
    lhs = reshape(n.b, lhs, {1, n.inShape(0)[0]});
  if (n.inRank(1) == 1)
    rhs = reshape(n.b, rhs, {n.inShape(1)[0], 1});
  size_t dropped = (n.inRank(0) == 1 ? 1 : 0) + (n.inRank(1) == 1 ? 1 : 0);
  return Shape(n.outShape().drop_back(2 - dropped));
}

LogicalResult matMul(Node &n) {
  Value lhs = n.in(0), rhs = n.in(1);
  if (n.inRank(0) == 0 || n.inRank(1) == 0)
    return n.fail("operands are scalars");
  Shape batch = promote(n, lhs, rhs);
  Value result = matrixProduct(n, lhs, rhs, n.isConstantIn(1), batch, n.outElement());
  return n.result(reshape(n.b, result, n.outShape()));
}

/// alpha * A' * B' + beta * C.
LogicalResult gemm(Node &n) {
  float alpha = n.op.getF32("alpha", 1.0f), beta = n.op.getF32("beta", 1.0f);
  bool transA = n.op.getI64("transA") != 0, transB = n.op.getI64("transB") != 0;
  int64_t rows = n.outShape()[0], columns = n.outShape()[1];
  Value lhs = transA ? transpose(n.b, n.in(0), {1, 0}) : n.in(0), product;
  int64_t k = shapeOf(lhs)[1];
  if (isAnchorElement(n.outElement())) {
    Rhs weight;
    if (n.isConstantIn(1) && n.packWeights)
      weight = {packPanels(n.b, n.in(1), transB), true, false};
    else
      weight = {reshape(n.b, n.in(1), transB ? Shape{1, columns, k} : Shape{1, k, columns}), false, transB};
    product = matmul(n, reshape(n.b, lhs, {1, rows, k}), weight, columns);
  } else {
    Value rhs = transB ? transpose(n.b, n.in(1), {1, 0}) : n.in(1);
    product = reshape(n.b, genericMatmul(n, lhs, rhs, n.outShape(), n.outElement(), [](Scalar &, Value x, bool) { return x; }),
                      {1, rows, columns});
  }
  bool hasBias = n.has(2) && beta != 0.0f;
  if (alpha == 1.0f && !hasBias)
    return n.result(reshape(n.b, convertFloat(n.b, product, n.outElement()), n.outShape()));
  SmallVector<Value> operands{product};
  if (hasBias)
    operands.push_back(n.in(2));
  Value result = elementwise(n.b, {1, rows, columns}, n.outElement(), operands, [&](Scalar &s, ValueRange x) {
    Type type = x[0].getType();
    Value scaled = alpha == 1.0f ? x[0] : s.mul(x[0], s.cst(type, alpha));
    if (!hasBias)
      return scaled;
    return s.add(scaled, beta == 1.0f ? x[1] : s.mul(x[1], s.cst(type, beta)));
  });
  return n.result(reshape(n.b, result, n.outShape()));
}

} // namespace

void registerMatMul(Table &t) {
  t.add("MatMul", matMul);
  t.add("Gemm", gemm);
}

} // namespace ogc::lower
