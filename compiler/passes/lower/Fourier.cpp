//===- Fourier.cpp --------------------------------------------------------===//
//
// A short transform is a product with a constant matrix, which both targets do at the speed of a product. A long one is split
// (Cooley and Tukey): N = N1 * N2 gives transforms of N1, a product with constant twiddle factors, and transforms of N2, so that
// it costs N * (N1 + N2 + ...). A long prime factor goes through a convolution of a power of two (Bluestein).
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Fourier.h"

#include "compiler/passes/lower/Contraction.h"
#include <complex>

using namespace mlir;
using Complex = std::complex<double>;

namespace ogc::lower {
namespace {

constexpr double pi = 3.14159265358979323846;
/// The longest transform that is one product, and the longest prime that is.
constexpr int64_t longestDirect = 256, longestPrime = 1024;
/// Of transforms, and of those that are not split into shorter ones.
constexpr int64_t longestTransform = 1 << 20, longestUnsplit = 1 << 17;

/// exp(-2 pi i numerator / denominator), with the angle reduced while it is exact.
Complex root(int64_t numerator, int64_t denominator, bool inverse) {
  double angle = 2 * pi * static_cast<double>(numerator % denominator) / static_cast<double>(denominator);
  return std::polar(1.0, inverse ? angle : -angle);
}

Value constantOf(Builder &b, ArrayRef<int64_t> shape, Type element, ArrayRef<double> values) {
  auto type = RankedTensorType::get(shape, element);
  if (element.isF64())
    return constantTensor(b, DenseElementsAttr::get(type, values));
  SmallVector<float> narrow(values.begin(), values.end());
  return constantTensor(b, DenseElementsAttr::get(type, ArrayRef<float>(narrow)));
}

/// Rows [B, K] times a constant matrix [K, N].
Value timesConstant(Node &n, Value rows, Value matrix) {
  int64_t batch = shapeOf(rows)[0], k = shapeOf(rows)[1], columns = shapeOf(matrix)[1];
  Value lhs = reshape(n.b, rows, {1, batch, k});
  if (n.packWeights && isAnchorElement(elementOf(rows)))
    return reshape(n.b, matmul(n, lhs, {packPanels(n.b, matrix, false), true, false}, columns), {batch, columns});
  return reshape(n.b, product(n, lhs, reshape(n.b, matrix, {1, k, columns})), {batch, columns});
}

/// The matrix of a transform from [N, parts] to [count, 2], flattened; complex products as real ones.
Value transformMatrix(Builder &b, int64_t length, int64_t parts, int64_t count, bool inverse, Type element) {
  SmallVector<double> values;
  double scale = inverse ? 1.0 / static_cast<double>(length) : 1.0;
  for (int64_t i = 0; i < length; ++i)
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t k = 0; k < count; ++k) {
        Complex w = root(i * k, length, inverse) * scale;
        if (part == 1) // times i
          w = Complex(-w.imag(), w.real());
        values.append({w.real(), w.imag()});
      }
  return constantOf(b, {length * parts, count * 2}, element, values);
}

Value direct(Node &n, Value signals, int64_t count, bool inverse) {
  ArrayRef<int64_t> shape = shapeOf(signals);
  Value matrix = transformMatrix(n.b, shape[1], shape[2], count, inverse, elementOf(signals));
  Value rows = reshape(n.b, signals, {shape[0], shape[1] * shape[2]});
  return reshape(n.b, timesConstant(n, rows, matrix), {shapeOf(rows)[0], count, 2});
}

/// Complex numbers [B, N, 2] (or real ones [B, N, 1]) times constants [N], which repeat over B.
Value timesFactors(Node &n, Value x, ArrayRef<Complex> factors) {
  Builder &b = n.b;
  Type element = elementOf(x);
  int64_t batch = shapeOf(x)[0], length = shapeOf(x)[1];
  bool isReal = shapeOf(x)[2] == 1;
  // One table for the part itself and one for the other part, so that the body needs no choice.
  SmallVector<double> own, other;
  for (Complex w : factors) {
    own.append({w.real(), isReal ? w.imag() : w.real()});
    other.append({-w.imag(), w.imag()});
  }
  MLIRContext *context = b.getContext();
  AffineExpr d0 = getAffineDimExpr(0, context), d1 = getAffineDimExpr(1, context), d2 = getAffineDimExpr(2, context);
  auto map = [&](ArrayRef<AffineExpr> exprs) { return AffineMap::get(3, 0, exprs, context); };
  Operand ownTable{constantOf(b, {length, 2}, element, own), map({d1, d2})};
  if (isReal)
    return mapElements(b, {batch, length, 2}, element, {{x, map({d0, d1, getAffineConstantExpr(0, context)})}, ownTable},
                       [](Scalar &s, ValueRange v) { return s.mul(v[0], v[1]); });
  Operand otherTable{constantOf(b, {length, 2}, element, other), map({d1, d2})};
  return mapElements(b, {batch, length, 2}, element,
                     {{x, map({d0, d1, d2})}, {x, map({d0, d1, getAffineConstantExpr(1, context) - d2})}, ownTable, otherTable},
                     [](Scalar &s, ValueRange v) { return s.add(s.mul(v[0], v[2]), s.mul(v[1], v[3])); });
}

/// The largest divisor that is at most the root of the length; 1 for primes.
int64_t splitOf(int64_t length) {
  int64_t best = 1;
  for (int64_t d = 2; d * d <= length; ++d)
    if (length % d == 0)
      best = d;
  return best;
}

Value transform(Node &n, Value signals, bool inverse);

/// k = k1 + N1 * k2 from i = N2 * i1 + i2.
Value cooleyTukey(Node &n, Value signals, int64_t first, bool inverse) {
  Builder &b = n.b;
  int64_t batch = shapeOf(signals)[0], length = shapeOf(signals)[1], parts = shapeOf(signals)[2], second = length / first;
  Value x = transpose(b, reshape(b, signals, {batch, first, second, parts}), {0, 2, 1, 3});
  Value inner = transform(n, reshape(b, x, {batch * second, first, parts}), inverse);
  SmallVector<Complex> twiddles;
  for (int64_t i2 = 0; i2 < second; ++i2)
    for (int64_t k1 = 0; k1 < first; ++k1)
      twiddles.push_back(root(i2 * k1, length, inverse));
  Value turned = timesFactors(n, reshape(b, inner, {batch, length, 2}), twiddles);
  Value columns = transpose(b, reshape(b, turned, {batch, second, first, 2}), {0, 2, 1, 3});
  Value outer = transform(n, reshape(b, columns, {batch * first, second, 2}), inverse);
  return reshape(b, transpose(b, reshape(b, outer, {batch, first, second, 2}), {0, 2, 1, 3}), {batch, length, 2});
}

/// Transforms a constant at compile time; the size is a power of two.
SmallVector<Complex> transformConstant(ArrayRef<Complex> x) {
  if (x.size() == 1)
    return {x[0]};
  SmallVector<Complex> halves[2];
  for (size_t i = 0; i < x.size(); ++i)
    halves[i % 2].push_back(x[i]);
  SmallVector<Complex> even = transformConstant(halves[0]), odd = transformConstant(halves[1]), result(x.size());
  for (size_t k = 0; k < even.size(); ++k) {
    Complex turned = odd[k] * root(static_cast<int64_t>(k), static_cast<int64_t>(x.size()), false);
    result[k] = even[k] + turned;
    result[k + even.size()] = even[k] - turned;
  }
  return result;
}

/// i * k = (i^2 + k^2 - (k - i)^2) / 2 makes a convolution of the transform.
Value bluestein(Node &n, Value signals, bool inverse) {
  Builder &b = n.b;
  int64_t batch = shapeOf(signals)[0], length = shapeOf(signals)[1], size = 1;
  while (size < 2 * length - 1)
    size *= 2;
  SmallVector<Complex> chirp, last, response(size, 0.0);
  for (int64_t i = 0; i < length; ++i) {
    chirp.push_back(root(i * i, 2 * length, inverse));
    last.push_back(chirp.back() * (inverse ? 1.0 / static_cast<double>(length) : 1.0));
    response[i] = response[(size - i) % size] = std::conj(chirp.back());
  }
  Scalar s(b, n.op.getLoc());
  Value x = pad(b, timesFactors(n, signals, chirp), {0, 0, 0}, {0, size - length, 0}, s.cst(elementOf(signals), 0.0));
  Value filtered = timesFactors(n, transform(n, x, false), transformConstant(response));
  Value y = slice(b, transform(n, filtered, true), {0, 0, 0}, {batch, length, 2});
  return timesFactors(n, y, last);
}

/// [B, N, 1 or 2] to [B, N, 2].
Value transform(Node &n, Value signals, bool inverse) {
  int64_t length = shapeOf(signals)[1], first = length > longestDirect ? splitOf(length) : 1;
  // A split with a long prime on one side is no gain there; that side takes care of itself.
  if (first > 1)
    return cooleyTukey(n, signals, first, inverse);
  return length <= longestPrime ? direct(n, signals, length, inverse) : bluestein(n, signals, inverse);
}

/// The longest transform that is left after all splits.
int64_t longestPart(int64_t length) {
  int64_t first = length > longestDirect ? splitOf(length) : 1;
  return first > 1 ? std::max(longestPart(first), longestPart(length / first)) : length;
}

} // namespace

LogicalResult checkTransformLength(Node &n, int64_t length) {
  if (length > longestTransform)
    return n.fail("transforms " + Twine(length) + " values, expected at most " + Twine(longestTransform));
  if (int64_t part = longestPart(length); part > longestUnsplit)
    return n.fail("transforms " + Twine(length) + " values, which have the prime factor " + Twine(part) + ", expected at most " +
                  Twine(longestUnsplit));
  return success();
}

Value fourier(Node &n, Value signals, bool inverse, bool oneSided) {
  int64_t batch = shapeOf(signals)[0], length = shapeOf(signals)[1], count = oneSided ? length / 2 + 1 : length;
  if (length <= longestDirect)
    return direct(n, signals, count, inverse);
  return slice(n.b, transform(n, signals, inverse), {0, 0, 0}, {batch, count, 2});
}

Value inverseOfOneSided(Node &n, Value spectrum, int64_t length) {
  Builder &b = n.b;
  int64_t batch = shapeOf(spectrum)[0], count = length / 2 + 1;
  Type element = elementOf(spectrum);
  if (length > longestDirect) {
    // The other half is the conjugate, mirrored.
    MLIRContext *context = b.getContext();
    AffineExpr d0 = getAffineDimExpr(0, context), d1 = getAffineDimExpr(1, context), d2 = getAffineDimExpr(2, context);
    int64_t rest = length - count;
    Operand mirrored{spectrum, AffineMap::get(3, 0, {d0, getAffineConstantExpr(rest, context) - d1, d2}, context)};
    Operand signs{constantOf(b, {2}, element, {1.0, -1.0}), AffineMap::get(3, 0, d2, context)};
    Value upper =
        mapElements(b, {batch, rest, 2}, element, {mirrored, signs}, [](Scalar &s, ValueRange v) { return s.mul(v[0], v[1]); });
    Value whole = rest ? concat(b, 1, {spectrum, upper}) : spectrum;
    return slice(b, transform(n, whole, true), {0, 0, 0}, {batch, length, 1});
  }
  SmallVector<double> values;
  for (int64_t k = 0; k < count; ++k)
    for (bool imaginary : {false, true})
      for (int64_t i = 0; i < length; ++i) {
        // The first and (for even lengths) the last frequency have no partner, and their imaginary parts do not count.
        bool alone = k == 0 || 2 * k == length;
        Complex w = root(i * k, length, true) * ((alone ? 1.0 : 2.0) / static_cast<double>(length));
        values.push_back(!imaginary ? w.real() : alone ? 0.0 : -w.imag());
      }
  Value rows = reshape(b, spectrum, {batch, count * 2});
  return reshape(b, timesConstant(n, rows, constantOf(b, {count * 2, length}, element, values)), {batch, length, 1});
}

} // namespace ogc::lower
