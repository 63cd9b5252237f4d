//===- BlockQuantized.cpp - MatMulNBits, GatherBlockQuantized -------------===//
//
// Weights of 2, 4 and 8 bits in blocks that share a scale and a zero point. They stay packed: the product unpacks them where it
// multiplies, one generic over [m, n, byte].
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// Element `part` of a byte (already i32, 0 … 255) that holds 8 / bits of them, the first in the low bits.
Value unpackPart(Scalar &s, Value byte, Value part, int64_t bits) {
  Value shift = s.mul(part, s.icst(part.getType(), bits));
  return arith::AndIOp::create(s.b, arith::ShRUIOp::create(s.b, byte, shift), s.icst(byte.getType(), (1 << bits) - 1));
}
Value unpackPart(Scalar &s, Value byte, int64_t part, int64_t bits) {
  return unpackPart(s, byte, s.icst(byte.getType(), part), bits);
}

//===----------------------------------------------------------------------===//
// MatMulNBits
//===----------------------------------------------------------------------===//

/// Extents and bit counts of one product.
struct BlockProduct {
  int64_t depth, columns, bits, block, blocks;

  int64_t perByte() const { return 8 / bits; }
  int64_t rowBytes() const { return blocks * block / perByte(); }
};

FailureOr<BlockProduct> readProduct(Node &n) {
  n.op.ignore("accuracy_level"); // which precision a kernel may compute in: ours is f32, as level 0 and 1 are
  n.op.ignore("weight_prepacked");
  BlockProduct p{n.op.getI64("K"), n.op.getI64("N"), n.op.getI64("bits", 4), n.op.getI64("block_size"), 0};
  if (n.op.getI64("weight_prepacked", 0) != 0)
    return n.fail("weight_prepacked is not 0, the layout of packed weights is that of one program");
  if (p.bits != 2 && p.bits != 4 && p.bits != 8)
    return n.fail("bits is " + Twine(p.bits) + ", expected 2, 4 or 8");
  if (p.block < 16 || p.block > (1 << 20) || (p.block & (p.block - 1)) || p.depth < 1 || p.columns < 1)
    return n.fail("block_size is " + Twine(p.block) + ", expected a power of two of at least 16");
  p.blocks = (p.depth + p.block - 1) / p.block;
  auto check = [&](int i, int64_t expected, StringRef what) -> LogicalResult {
    if (!n.has(i) || numElements(n.inShape(i)) == expected)
      return success();
    return n.fail(what + " has " + Twine(numElements(n.inShape(i))) + " elements, expected " + Twine(expected));
  };
  bool packedZeros = n.has(3) && isa<IntegerType>(n.inElement(3));
  int64_t zeros = packedZeros ? p.columns * ((p.blocks * p.bits + 7) / 8) : p.columns * p.blocks;
  if (failed(check(1, p.columns * p.rowBytes(), "operand B")) || failed(check(2, p.columns * p.blocks, "operand scales")) ||
      failed(check(3, zeros, "operand zero_points")) || failed(check(5, p.columns, "operand bias")) ||
      failed(check(4, p.depth, "operand g_idx")))
    return failure();
  if (!n.inElement(1).isInteger(8))
    return n.fail("operand B is not of type uint8");
  return p;
}

/// Zero points as [N, blocks] of a float type; null when all are the middle of the range.
Value zeroPoints(Node &n, const BlockProduct &p) {
  if (!n.has(3))
    return {};
  if (isa<FloatType>(n.inElement(3)))
    return reshape(n.b, n.in(3), {p.columns, p.blocks});
  int64_t bytes = (p.blocks * p.bits + 7) / 8;
  MLIRContext *context = n.b.getContext();
  AffineExpr column = getAffineDimExpr(0, context), block = getAffineDimExpr(1, context);
  AffineMap map = AffineMap::get(2, 0, {column, block.floorDiv(p.perByte())}, context);
  return mapElements(n.b, {p.columns, p.blocks}, n.inElement(0), {{reshape(n.b, n.in(3), {p.columns, bytes}), map}},
                     [&](Scalar &s, ValueRange x) {
                       Type i32 = s.b.getI32Type();
                       Value byte = s.cast(x[0], true, i32, false);
                       Value at = arith::IndexCastOp::create(s.b, i32, linalg::IndexOp::create(s.b, 1));
                       Value part = arith::AndIOp::create(s.b, at, s.icst(i32, p.perByte() - 1));
                       return s.cast(unpackPart(s, byte, part, p.bits), false, computeType(n.inElement(0)), false);
                     });
}

/// The weights as floats, [N, K], for a g_idx that gives each row of K its block.
Value scatteredWeights(Node &n, const BlockProduct &p, Value zeros) {
  Value bytes = reshape(n.b, n.in(1), {p.columns, p.rowBytes()}), scales = reshape(n.b, n.in(2), {p.columns, p.blocks});
  Value groups = n.in(4);
  Type f32 = n.b.getF32Type();
  return generate(n.b, {p.columns, p.depth}, n.inElement(0), [&](Scalar &s, ValueRange at) -> Value {
    Type i32 = s.b.getI32Type(), index = s.b.getIndexType();
    Value per = s.icst(index, p.perByte());
    Value byte = tensor::ExtractOp::create(s.b, bytes, ValueRange{at[0], arith::DivUIOp::create(s.b, at[1], per)});
    Value part = arith::IndexCastOp::create(s.b, i32, arith::RemUIOp::create(s.b, at[1], per));
    Value number = s.cast(unpackPart(s, s.cast(byte, true, i32, false), part, p.bits), false, f32, false);
    Value group = s.wrapIndex(tensor::ExtractOp::create(s.b, groups, ValueRange{at[1]}), p.blocks, false);
    Value scale = s.widen(tensor::ExtractOp::create(s.b, scales, ValueRange{at[0], group}));
    Value zero = zeros ? s.cast(tensor::ExtractOp::create(s.b, zeros, ValueRange{at[0], group}), false, f32, false)
                       : s.cst(f32, static_cast<double>(1 << (p.bits - 1)));
    return s.mul(s.sub(number, zero), scale);
  });
}

/// sum over k of x[m, k] * (q[n, k] - zero) * scale in f32, [M, N]; x has blocks * block columns.
Value packedProduct(Node &n, const BlockProduct &p, Value x, Value zeros) {
  MLIRContext *context = n.b.getContext();
  int64_t rows = shapeOf(x)[0], per = p.perByte();
  AffineExpr m = getAffineDimExpr(0, context), column = getAffineDimExpr(1, context), byte = getAffineDimExpr(2, context);
  auto map = [&](AffineExpr first, AffineExpr second) { return AffineMap::get(3, 0, {first, second}, context); };
  SmallVector<Operand> operands{{reshape(n.b, n.in(1), {p.columns, p.rowBytes()}), map(column, byte)},
                                {reshape(n.b, n.in(2), {p.columns, p.blocks}), map(column, byte.floorDiv(p.block / per))}};
  if (zeros)
    operands.push_back({zeros, map(column, byte.floorDiv(p.block / per))});
  size_t first = operands.size();
  for (int64_t part = 0; part < per; ++part)
    operands.push_back({x, map(m, byte * per + part)});
  SmallVector<IteratorType> iterators{IteratorType::parallel, IteratorType::parallel, IteratorType::reduction};
  Scalar s(n.b, n.op.getLoc());
  Type f32 = n.b.getF32Type();
  Operand init{filled(n.b, {rows, p.columns}, s.cst(f32, 0.0)), AffineMap::get(3, 0, {m, column}, context)};
  Value acc = reduceInto(n.b, init, operands, iterators, [&](Scalar &s, ValueRange v) {
    Value bits = s.cast(v[0], true, s.b.getI32Type(), false);
    Value zero = zeros ? s.cast(v[2], false, f32, false) : s.cst(f32, static_cast<double>(1 << (p.bits - 1)));
    Value sum;
    for (int64_t part = 0; part < per; ++part) {
      Value number = s.cast(unpackPart(s, bits, part, p.bits), false, f32, false);
      Value term = s.mul(s.sub(number, zero), v[first + part]);
      sum = sum ? s.add(sum, term) : term;
    }
    return s.add(v.back(), s.mul(sum, v[1]));
  });
  // What this reduction is, for targets with a kernel of their own: bits, block, whether there are zero points.
  if (Operation *op = acc.getDefiningOp())
    op->setAttr("ogc.block_product", n.b.getDenseI64ArrayAttr({p.bits, p.block, zeros ? 1 : 0}));
  return acc;
}

LogicalResult matMulNBits(Node &n) {
  FailureOr<BlockProduct> product = readProduct(n);
  if (failed(product))
    return failure();
  const BlockProduct &p = *product;
  if (p.depth != n.inShape(0).back())
    return n.fail("operand A has " + Twine(n.inShape(0).back()) + " columns, expected K = " + Twine(p.depth));
  int64_t rows = numElements(n.inShape(0).drop_back());
  Value x = reshape(n.b, n.in(0), {rows, p.depth}), zeros = zeroPoints(n, p), acc;
  Scalar s(n.b, n.op.getLoc());
  if (n.has(4)) {
    Value weights = scatteredWeights(n, p, zeros);
    MLIRContext *context = n.b.getContext();
    AffineExpr m = getAffineDimExpr(0, context), column = getAffineDimExpr(1, context), k = getAffineDimExpr(2, context);
    auto map = [&](AffineExpr first, AffineExpr second) { return AffineMap::get(3, 0, {first, second}, context); };
    acc = reduceInto(n.b, {filled(n.b, {rows, p.columns}, s.cst(n.b.getF32Type(), 0.0)), map(m, column)},
                     {{x, map(m, k)}, {weights, map(column, k)}},
                     {IteratorType::parallel, IteratorType::parallel, IteratorType::reduction},
                     [](Scalar &s, ValueRange v) { return s.add(v[2], s.mul(v[0], v[1])); });
  } else {
    if (int64_t missing = p.blocks * p.block - p.depth)
      x = pad(n.b, x, {0, 0}, {0, missing}, s.icst(n.inElement(0), 0));
    acc = packedProduct(n, p, x, zeros);
  }
  SmallVector<Value> operands{acc};
  if (n.has(5))
    operands.push_back(n.in(5));
  Value y = elementwise(n.b, {rows, p.columns}, n.outElement(), operands, [](Scalar &s, ValueRange v) {
    return v.size() > 1 ? s.add(v[0], s.cast(v[1], false, v[0].getType(), false)) : v[0];
  });
  return n.result(reshape(n.b, y, n.outShape()));
}

//===----------------------------------------------------------------------===//
// GatherBlockQuantized
//===----------------------------------------------------------------------===//

/// The number at `at` of a tensor of bytes that hold 8 / bits numbers along the last dimension, or of one number a byte, as f32.
Value packedNumber(Scalar &s, Value tensor, ArrayRef<Value> at, int64_t bits, Type declared) {
  SmallVector<Value> position(at);
  Type i32 = s.b.getI32Type(), index = s.b.getIndexType();
  if (!declared.isUnsignedInteger(8) || bits == 8) {
    Value number = tensor::ExtractOp::create(s.b, tensor, position);
    return s.cast(number, declared.isUnsignedInteger(), s.b.getF32Type(), false);
  }
  Value per = s.icst(index, 8 / bits);
  position.back() = arith::DivUIOp::create(s.b, at.back(), per);
  Value byte = s.cast(tensor::ExtractOp::create(s.b, tensor, position), true, i32, false);
  Value part = arith::IndexCastOp::create(s.b, i32, arith::RemUIOp::create(s.b, at.back(), per));
  return s.cast(unpackPart(s, byte, part, bits), false, s.b.getF32Type(), false);
}

LogicalResult gatherBlockQuantized(Node &n) {
  int64_t rank = n.inRank(0), axis = wrapAxis(n.op.getI64("gather_axis"), rank),
          blocked = wrapAxis(n.op.getI64("quantize_axis", 1), rank);
  int64_t block = n.op.getI64("block_size", 128), bits = n.op.getI64("bits", 4), indexRank = n.inRank(1);
  bool isByte = n.declaredIn(0).isUnsignedInteger(8);
  if (axis < 0 || axis >= rank || blocked < 0 || blocked >= rank || block < 16 || (isByte && bits != 2 && bits != 4 && bits != 8))
    return n.fail("gather_axis, quantize_axis, block_size or bits is out of range");
  if (isByte && bits != 8 && (blocked != rank - 1 || axis == rank - 1))
    return n.fail("packed data has its blocks along the last dimension and is gathered along another, expected so");
  if (n.inRank(2) != rank)
    return n.fail("scales has rank " + Twine(n.inRank(2)) + ", expected " + Twine(rank));
  Value data = n.in(0), indices = n.in(1), scales = n.in(2), zeros = n.in(3);
  int64_t extent = n.inShape(0)[axis];
  return n.result(generate(n.b, n.outShape(), n.outElement(), [&](Scalar &s, ValueRange at) -> Value {
    SmallVector<Value> where(at.slice(axis, indexRank));
    Value row = s.wrapIndex(tensor::ExtractOp::create(s.b, indices, where), extent, n.isUnsignedIn(1));
    SmallVector<Value> position(at.take_front(axis));
    position.push_back(row);
    llvm::append_range(position, at.drop_front(axis + indexRank));
    SmallVector<Value> group(position);
    group[blocked] = arith::DivUIOp::create(s.b, position[blocked], s.icst(s.b.getIndexType(), block));
    Value number = packedNumber(s, data, position, bits, n.declaredIn(0));
    Value zero = s.cst(s.b.getF32Type(), isByte ? static_cast<double>(1 << (bits - 1)) : 0.0);
    if (zeros)
      zero = packedNumber(s, zeros, group, bits, n.declaredIn(3));
    return s.mul(s.sub(number, zero), s.widen(tensor::ExtractOp::create(s.b, scales, group)));
  }));
}

} // namespace

void registerBlockQuantized(Table &t) {
  t.add("com.microsoft.MatMulNBits", matMulNBits);
  t.add("com.microsoft.GatherBlockQuantized", gatherBlockQuantized);
}

} // namespace ogc::lower
