//===- IntegerProducts.cpp - MatMulInteger, QLinearMatMul -----------------===//
//
// Products of 8-bit integers are exact in int32. They run on the f16 anchors: numbers less their zero point have 9 bits, which
// f16 holds, and up to 256 products of them have a sum that f32 holds. Longer sums are cut into parts, which are added in i32.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Contraction.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ogc::lower {

Value lessZeroPoint(Node &n, int i, int zero, int64_t axis) {
  SmallVector<Value> operands{n.in(i)};
  if (n.has(zero)) {
    Value point = n.in(zero);
    Shape shape(shapeOf(point));
    if (numElements(shape) == 1)
      shape.clear();
    else if (shape.size() == 1) {
      shape.assign(n.inRank(i), 1);
      shape[axis] = n.inShape(zero)[0];
    }
    operands.push_back(reshape(n.b, point, shape));
  }
  Type from = n.declaredIn(i), f32 = n.b.getF32Type();
  return elementwise(n.b, n.inShape(i), n.b.getF16Type(), operands, [&](Scalar &s, ValueRange x) {
    Value number = castElement(s, x[0], from, f32);
    return x.size() == 1 ? number : s.sub(number, castElement(s, x[1], n.declaredIn(zero), f32));
  });
}

Value exactSum(Node &n, ArrayRef<Value> parts, Value bias, unsigned dimension) {
  Shape shape(shapeOf(parts.front()));
  SmallVector<Value> operands(parts);
  if (bias) {
    Shape aligned(shape.size(), 1);
    aligned[dimension] = numElements(shapeOf(bias));
    operands.push_back(reshape(n.b, bias, aligned));
  }
  Type i32 = n.b.getI32Type();
  return elementwise(n.b, shape, i32, operands, [&](Scalar &s, ValueRange x) {
    Value sum;
    for (Value part : x) {
      // In range, so that no rule for other numbers is needed.
      Value number = part.getType() == i32 ? part : arith::FPToSIOp::create(s.b, i32, part).getResult();
      sum = sum ? s.add(sum, number) : number;
    }
    return sum;
  });
}

Value requantize(Node &n, Value acc, Value factor, int zero) {
  SmallVector<Value> operands{acc, factor};
  if (n.has(zero))
    operands.push_back(reshape(n.b, n.in(zero), numElements(n.inShape(zero)) == 1 ? Shape{} : Shape(n.inShape(zero))));
  Type f32 = n.b.getF32Type(), to = n.declaredOut();
  return elementwise(n.b, shapeOf(acc), n.outElement(), operands, [&](Scalar &s, ValueRange x) {
    Value value = s.mul(s.cast(x[0], false, f32, false), s.cast(x[1], false, f32, false));
    Value point = x.size() > 2 ? castElement(s, x[2], n.declaredIn(zero), f32) : Value();
    auto integer = dyn_cast<IntegerType>(to);
    if (integer)
      value = s.roundHalfEven(value);
    value = point ? s.add(value, point) : value;
    return integer ? saturateToInteger(s, value, integer) : castElement(s, value, f32, to);
  });
}

namespace {

/// lhs [..., M, K] times rhs [..., K, N], both f16 and exact: the partial products over pieces of K in f32, [batch..., M, N].
SmallVector<Value> partialProducts(Node &n, Value lhs, Value rhs, bool rhsIsConstant, ArrayRef<int64_t> batch) {
  int64_t m = shapeOf(lhs)[shapeOf(lhs).size() - 2], k = shapeOf(lhs).back(), columns = shapeOf(rhs).back();
  Shape shape(batch);
  shape.append({m, columns});
  bool isWeight = numElements(shapeOf(rhs).drop_back(2)) == 1;
  Value rows = isWeight ? reshape(n.b, lhs, {1, numElements(shapeOf(lhs).drop_back(1)), k}) : collapseBatch(n.b, lhs, batch);
  Value columnsOf = isWeight ? reshape(n.b, rhs, {1, k, columns}) : collapseBatch(n.b, rhs, batch);
  SmallVector<Value> parts;
  for (int64_t first = 0; first < std::max<int64_t>(k, 1); first += mostExactTerms) {
    int64_t depth = std::min(mostExactTerms, k - first);
    Value left = slice(n.b, rows, {0, 0, first}, {shapeOf(rows)[0], shapeOf(rows)[1], depth});
    Value right = slice(n.b, columnsOf, {0, first, 0}, {shapeOf(columnsOf)[0], depth, columns});
    Rhs weight{right, false, false};
    if (isWeight && rhsIsConstant && n.packWeights && depth > 0)
      weight = {packPanels(n.b, reshape(n.b, right, {depth, columns}), false), true, false};
    parts.push_back(reshape(n.b, matmul(n, left, weight, columns), shape));
  }
  return parts;
}

/// Vectors as matrices; the batch shape of the result.
Shape promote(Node &n, Value &lhs, Value &rhs) {
  size_t dropped = 0;
  if (shapeOf(lhs).size() == 1) {
    lhs = reshape(n.b, lhs, {1, shapeOf(lhs)[0]});
    ++dropped;
  }
  if (shapeOf(rhs).size() == 1) {
    rhs = reshape(n.b, rhs, {shapeOf(rhs)[0], 1});
    ++dropped;
  }
  return Shape(n.outShape().drop_back(2 - dropped));
}

/// Operands a and b less their zero points, and their product in i32 (f32 for 8-bit floats).
FailureOr<Value> integerProduct(Node &n, int a, int b, int aZero, int bZero) {
  if (n.inRank(a) == 0 || n.inRank(b) == 0)
    return n.fail("operands are scalars");
  Value lhs = lessZeroPoint(n, a, aZero, std::max<int64_t>(n.inRank(a) - 2, 0)),
        rhs = lessZeroPoint(n, b, bZero, n.inRank(b) - 1);
  Shape batch = promote(n, lhs, rhs);
  if (shapeOf(lhs).back() > mostExactTerms * mostExactParts)
    return n.fail("sums " + Twine(shapeOf(lhs).back()) + " products, more than " + Twine(mostExactTerms * mostExactParts));
  SmallVector<Value> parts = partialProducts(n, lhs, rhs, n.isConstantIn(b) && (!n.has(bZero) || n.isConstantIn(bZero)), batch);
  if (!isSmallFloat(n.declaredIn(a)))
    return exactSum(n, parts, Value(), 0);
  return elementwise(n.b, shapeOf(parts.front()), n.b.getF32Type(), parts, [](Scalar &s, ValueRange x) {
    Value sum = x[0];
    for (Value part : x.drop_front())
      sum = s.add(sum, part);
    return sum;
  });
}

LogicalResult matMulInteger(Node &n) {
  FailureOr<Value> acc = integerProduct(n, 0, 1, 2, 3);
  if (failed(acc))
    return failure();
  return n.result(reshape(n.b, *acc, n.outShape()));
}

/// A scale as f32 that broadcasts against [..., M, N]: one number, one a row (of a) or one a column (of b).
Value scaleOf(Node &n, int i, bool isRow) {
  Value scale = n.in(i);
  Shape shape(shapeOf(scale));
  if (numElements(shape) == 1)
    shape.clear();
  else if (shape.size() == 1 && isRow)
    shape.push_back(1);
  return reshape(n.b, scale, shape);
}

LogicalResult qLinearMatMul(Node &n) {
  FailureOr<Value> acc = integerProduct(n, 0, 3, 2, 5);
  if (failed(acc))
    return failure();
  Value a = scaleOf(n, 1, true), b = scaleOf(n, 4, false), y = scaleOf(n, 6, true);
  Shape shape(shapeOf(*acc));
  bool isScalar = shapeOf(a).empty() && shapeOf(b).empty() && shapeOf(y).empty();
  Value factor = elementwise(n.b, isScalar ? Shape{} : shape, n.b.getF32Type(), {a, b, y},
                             [](Scalar &s, ValueRange x) { return s.div(s.mul(x[0], x[1]), x[2], false); });
  return n.result(reshape(n.b, requantize(n, *acc, factor, 7), n.outShape()));
}

} // namespace

void registerIntegerProducts(Table &t) {
  t.add("MatMulInteger", matMulInteger);
  t.add("QLinearMatMul", qLinearMatMul);
}

} // namespace ogc::lower
