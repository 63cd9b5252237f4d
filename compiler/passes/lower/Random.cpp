//===- Random.cpp - Random*, Bernoulli, Multinomial, Dropout --------------===//
//
// Numbers come from Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a function of the
// element's position and a key, so that every target, thread count and fusion gives the same ones. docs/numerics.md states the
// keys.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::lower {
namespace {

struct Key {
  uint32_t low, high;
};

bool drawsNumbers(Operation *op) {
  StringRef type = onnx::getOpType(op);
  return type.starts_with("Random") || type == "Multinomial" || type == "Bernoulli" || type == "Dropout";
}

/// The key of an operator without a seed: its number among those that draw, so that no two use the same numbers.
Key streamOf(Operation *op) {
  uint32_t number = 1;
  for (Operation *other = op->getPrevNode(); other; other = other->getPrevNode())
    number += onnx::isOperator(other) && drawsNumbers(other);
  return {0, number};
}

Key keyOf(Node &n) {
  std::optional<float> seed = n.op.findF32("seed");
  return seed ? Key{llvm::bit_cast<uint32_t>(*seed), 0} : streamOf(n.op.getOperation());
}

/// Four words of 32 bits for the element with number `counter` (i64).
std::array<Value, 4> philox(Scalar &s, Value counter, Key key) {
  Type i32 = s.b.getI32Type(), i64 = s.b.getI64Type();
  auto word = [&](uint32_t value) { return s.icst(i32, static_cast<int32_t>(value)); };
  auto wide = [&](Value v) -> Value { return arith::ExtUIOp::create(s.b, i64, v); };
  auto low = [&](Value v) -> Value { return arith::TruncIOp::create(s.b, i32, v); };
  auto high = [&](Value v) -> Value { return low(arith::ShRUIOp::create(s.b, v, s.icst(i64, 32))); };
  auto mix = [&](Value a, Value b, uint32_t k) -> Value {
    return arith::XOrIOp::create(s.b, arith::XOrIOp::create(s.b, a, b), word(k));
  };
  std::array<Value, 4> x{low(counter), high(counter), word(0), word(0)};
  for (int round = 0; round < 10; ++round) {
    Value first = s.mul(wide(x[0]), s.icst(i64, 0xD2511F53)), second = s.mul(wide(x[2]), s.icst(i64, 0xCD9E8D57));
    x = {mix(high(second), x[1], key.low), low(second), mix(high(first), x[3], key.high), low(first)};
    key = {key.low + 0x9E3779B9u, key.high + 0xBB67AE85u};
  }
  return x;
}

/// The number of the element of `shape` at the position of the loops.
Value counterOf(Scalar &s, ArrayRef<int64_t> shape) {
  Type index = s.b.getIndexType();
  Value flat = s.icst(index, 0);
  for (auto [d, extent] : llvm::enumerate(shape))
    flat = s.add(s.mul(flat, s.icst(index, extent)), linalg::IndexOp::create(s.b, static_cast<int64_t>(d)));
  return arith::IndexCastOp::create(s.b, s.b.getI64Type(), flat);
}

/// Uniform in [0, 1) from two words: 24 bits in f32, 53 in f64. Every value is exact.
Value uniform(Scalar &s, Value first, Value second, Type type) {
  Type i64 = s.b.getI64Type();
  Value high = arith::ExtUIOp::create(s.b, i64, first);
  if (!type.isF64()) {
    Value bits = arith::ShRUIOp::create(s.b, high, s.icst(i64, 8));
    return s.mul(arith::SIToFPOp::create(s.b, type, bits), s.cst(type, 0x1p-24));
  }
  Value all =
      arith::OrIOp::create(s.b, arith::ShLIOp::create(s.b, high, s.icst(i64, 32)), arith::ExtUIOp::create(s.b, i64, second));
  Value bits = arith::ShRUIOp::create(s.b, all, s.icst(i64, 11));
  return s.mul(arith::SIToFPOp::create(s.b, type, bits), s.cst(type, 0x1p-53));
}

LogicalResult requireFloat(Node &n) {
  return isa<FloatType>(n.outElement()) ? success() : n.fail("result 0 is not of a float type");
}

/// A tensor of the result's type whose elements are `element(s, words, type)`: the random words of each, and the type to compute
/// in.
template <typename Element> LogicalResult generateFloats(Node &n, Element element) {
  for (StringRef name : {"dtype", "shape"})
    n.op.ignore(name); // the result type says it
  Key key = keyOf(n);
  if (failed(requireFloat(n)))
    return failure();
  Shape shape(n.outShape());
  return n.result(generate(n.b, shape, n.outElement(), [&](Scalar &s, ValueRange) {
    return element(s, philox(s, counterOf(s, shape), key), computeType(n.outElement()));
  }));
}

LogicalResult randomUniform(Node &n) {
  double low = n.op.getF32("low", 0.0f), high = n.op.getF32("high", 1.0f);
  return generateFloats(n, [&](Scalar &s, const std::array<Value, 4> &words, Type type) {
    Value u = uniform(s, words[0], words[1], type);
    return s.add(s.mul(u, s.cst(type, high - low)), s.cst(type, low));
  });
}

/// 1 with the probability that the operand says. (The operator's function body has it the other way round.)
LogicalResult bernoulli(Node &n) {
  n.op.ignore("dtype"); // the result type says it
  Key key = keyOf(n);
  if (!isa<FloatType>(n.inElement(0)))
    return n.fail("operand 0 is not of a float type");
  Shape shape(n.outShape());
  return n.result(elementwise(n.b, shape, n.outElement(), n.in(0), [&](Scalar &s, ValueRange x) {
    std::array<Value, 4> words = philox(s, counterOf(s, shape), key);
    Value hit = s.cmp(Compare::Less, uniform(s, words[0], words[1], x[0].getType()), x[0], false);
    return s.cast(hit, true, n.outElement(), n.isUnsignedOut());
  }));
}

/// Box and Muller: radius from one uniform number, angle from another.
LogicalResult randomNormal(Node &n) {
  double mean = n.op.getF32("mean", 0.0f), scale = n.op.getF32("scale", 1.0f);
  return generateFloats(n, [&](Scalar &s, const std::array<Value, 4> &words, Type type) {
    Value one = s.cst(type, 1.0), nonZero = s.sub(one, uniform(s, words[0], words[1], type)); // in (0, 1]
    Value radius = s.sqrt(s.mul(s.cst(type, -2.0), math::LogOp::create(s.b, nonZero)));
    Value angle = s.mul(uniform(s, words[2], words[3], type), s.cst(type, 6.283185307179586));
    Value normal = s.mul(radius, math::CosOp::create(s.b, angle));
    return s.add(s.mul(normal, s.cst(type, scale)), s.cst(type, mean));
  });
}

/// The class with the largest logit plus Gumbel noise has the probability that the logits say.
LogicalResult multinomial(Node &n) {
  for (StringRef name : {"dtype", "sample_size"})
    n.op.ignore(name);
  if (n.inRank(0) != 2 || !isa<FloatType>(n.inElement(0)))
    return n.fail("operand 0 has rank " + Twine(n.inRank(0)) + ", expected logits [batch, classes] of a float type");
  int64_t classes = n.inShape(0)[1];
  if (classes == 0 && numElements(n.outShape()) != 0)
    return n.fail("draws from no classes");
  Key key = keyOf(n);
  Shape shape{n.outShape()[0], n.outShape()[1], classes};
  MLIRContext *context = n.b.getContext();
  AffineMap map = AffineMap::get(3, 0, {getAffineDimExpr(0, context), getAffineDimExpr(2, context)}, context);
  Type f32 = n.b.getF32Type();
  Value noisy = mapElements(n.b, shape, f32, {{n.in(0), map}}, [&](Scalar &s, ValueRange x) {
    Type i64 = s.b.getI64Type();
    Value word = arith::ExtUIOp::create(s.b, i64, philox(s, counterOf(s, shape), key)[0]);
    // 23 bits and a half, so that neither 0 nor 1 comes out.
    Value bits = arith::SIToFPOp::create(s.b, f32, arith::ShRUIOp::create(s.b, word, s.icst(i64, 9)));
    Value u = s.mul(s.add(bits, s.cst(f32, 0.5)), s.cst(f32, 0x1p-23));
    Value gumbel = s.neg(math::LogOp::create(s.b, s.neg(math::LogOp::create(s.b, u))));
    return s.add(s.cast(x[0], false, f32, false), gumbel);
  });
  RowDomain domain(context, shape, {2});
  Scalar s(n.b, n.op.getLoc());
  Operand row{noisy, domain.full};
  Value max =
      reduceRows(n.b, domain, row, s.lowest(f32, false), [](Scalar &s, ValueRange v) { return s.max(v[1], v[0], false); });
  Value start = s.icst(n.outElement(), std::max<int64_t>(classes - 1, 0));
  return n.result(reduceRows(n.b, domain, {row, {max, domain.outerMap}}, start, [&](Scalar &s, ValueRange v) {
    Value i = arith::IndexCastOp::create(s.b, n.outElement(), linalg::IndexOp::create(s.b, 2));
    return s.select(s.cmp(Compare::Equal, v[0], v[1], false), s.min(v[2], i, false), v[2]);
  }));
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// training_mode: known to be off (or absent), known to be on, or a value of the run.
enum class Training { Off, On, Dynamic };

Training trainingOf(Node &n) {
  if (!n.has(2))
    return Training::Off;
  std::optional<Shape> value = n.constInts(2);
  if (!value || value->size() != 1)
    return Training::Dynamic;
  return value->front() ? Training::On : Training::Off;
}

LogicalResult dropout(Node &n) {
  Training training = trainingOf(n);
  std::optional<int64_t> seed = n.op.findI64("seed");
  Scalar outer(n.b, n.op.getLoc());
  Type i1 = n.b.getI1Type();
  if (training == Training::Off) {
    if (failed(n.result(n.in(0))))
      return failure();
    return n.op.isOutputUsed(1) ? n.result(filled(n.b, n.outShape(1), outer.icst(i1, 1))) : success();
  }
  if (failed(requireFloat(n)))
    return failure();
  Key key = seed ? Key{static_cast<uint32_t>(*seed), static_cast<uint32_t>(*seed >> 32)} : streamOf(n.op.getOperation());
  Type type = computeType(n.outElement());
  Shape shape(n.outShape());
  SmallVector<Value> options;
  if (n.has(1))
    options.push_back(reshape(n.b, n.in(1), {}));
  if (training == Training::Dynamic)
    options.push_back(reshape(n.b, n.in(2), {}));
  auto ratioOf = [&](Scalar &s, ValueRange x) { return n.has(1) ? s.cast(x[0], false, type, false) : s.cst(type, 0.5); };
  Value keep = elementwise(n.b, shape, i1, options, [&](Scalar &s, ValueRange x) -> Value {
    std::array<Value, 4> words = philox(s, counterOf(s, shape), key);
    Value drawn = s.cmp(Compare::GreaterOrEqual, uniform(s, words[0], words[1], type), ratioOf(s, x), false);
    return training == Training::On ? drawn : s.select(x.back(), drawn, s.icst(i1, 1));
  });
  SmallVector<Value> operands(options);
  operands.append({n.in(0), keep});
  Value y = elementwise(n.b, shape, n.outElement(), operands, [&](Scalar &s, ValueRange x) {
    Value value = x[x.size() - 2], one = s.cst(type, 1.0);
    Value kept = s.div(value, s.sub(one, ratioOf(s, x)), false);
    Value dropped = s.select(x.back(), kept, s.cst(type, 0.0));
    return training == Training::On ? dropped : s.select(x[x.size() - 3], dropped, value);
  });
  if (failed(n.result(y)))
    return failure();
  return n.op.isOutputUsed(1) ? n.result(keep) : success();
}

} // namespace

void registerRandom(Table &t) {
  for (StringRef name : {"RandomUniform", "RandomUniformLike"})
    t.add(name, randomUniform);
  for (StringRef name : {"RandomNormal", "RandomNormalLike"})
    t.add(name, randomNormal);
  t.add("Bernoulli", bernoulli);
  t.add("Multinomial", multinomial);
  t.add("Dropout", dropout);
}

} // namespace ogc::lower
