//===- Signal.cpp - DFT, STFT, MelWeightMatrix ----------------------------===//
#include "compiler/passes/lower/Fourier.h"

#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// The type in which transforms compute.
Type transformType(Type element) { return element.isF64() ? element : Float32Type::get(element.getContext()); }

/// Cuts dimension d, or appends zeros.
Value resizeDim(Node &n, Value v, int64_t d, int64_t extent) {
  Shape none(shapeOf(v).size(), 0), sizes(shapeOf(v)), high(none);
  if (sizes[d] > extent) {
    sizes[d] = extent;
    return slice(n.b, v, none, sizes);
  }
  high[d] = extent - sizes[d];
  Scalar s(n.b, n.op.getLoc());
  return pad(n.b, v, none, high, s.icst(elementOf(v), 0));
}

/// A constant integer operand with one element; `orElse` when it is absent.
FailureOr<int64_t> constantInt(Node &n, int i, StringRef name, int64_t orElse) {
  if (!n.has(i))
    return orElse;
  std::optional<Shape> value = n.constInts(i);
  if (!value || value->size() != 1)
    return n.fail(name + " is not a constant with one element");
  return value->front();
}

LogicalResult dft(Node &n) {
  int64_t rank = n.inRank(0);
  bool inverse = n.op.getI64("inverse") != 0, oneSided = n.op.getI64("onesided") != 0;
  FailureOr<int64_t> axis = constantInt(n, 2, "axis", -2);
  if (failed(axis))
    return failure();
  int64_t d = wrapAxis(*axis, rank);
  if (rank < 2 || d < 0 || d >= rank - 1)
    return n.fail("axis is " + Twine(*axis) + ", expected a dimension of the signal");
  int64_t parts = n.inShape(0).back(), extent = n.inShape(0)[d];
  if (parts != 1 && parts != 2)
    return n.fail("the last dimension has extent " + Twine(parts) + ", expected 1 (real) or 2 (complex)");
  FailureOr<int64_t> length = constantInt(n, 1, "dft_length", inverse && oneSided ? 2 * (extent - 1) : extent);
  if (failed(length))
    return failure();
  if (*length < 1)
    return n.fail("dft_length is " + Twine(*length) + ", expected a positive value");
  if (failed(checkTransformLength(n, *length)))
    return failure();
  // Signals along the last dimension but one.
  Shape permutation;
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != d)
      permutation.push_back(i);
  permutation.append({d, rank - 1});
  int64_t used = inverse && oneSided ? *length / 2 + 1 : *length;
  Value x = resizeDim(n, convertFloat(n.b, n.in(0), transformType(n.inElement(0))), d, used);
  x = transpose(n.b, x, permutation);
  Shape outer(shapeOf(x).drop_back(2));
  x = reshape(n.b, x, {numElements(outer), used, parts});
  if (inverse && oneSided && parts == 1)
    x = resizeDim(n, x, 2, 2); // real frequencies
  Value y = inverse && oneSided ? inverseOfOneSided(n, x, *length) : fourier(n, x, inverse, oneSided);
  Shape shape(outer), back(rank);
  shape.append({shapeOf(y)[1], shapeOf(y)[2]});
  for (auto [to, from] : llvm::enumerate(permutation))
    back[from] = static_cast<int64_t>(to);
  return n.result(convertFloat(n.b, transpose(n.b, reshape(n.b, y, shape), back), n.outElement()));
}

/// Overlapping frames [B, frames, length, parts] of signals [B, L, parts], times a window [length] (or null).
Value framesOf(Node &n, Value signal, Value window, int64_t frames, int64_t step, int64_t length) {
  MLIRContext *context = n.b.getContext();
  auto dim = [&](unsigned d) { return getAffineDimExpr(d, context); };
  Shape shape{shapeOf(signal)[0], frames, length, shapeOf(signal)[2]};
  SmallVector<Operand> operands{{signal, AffineMap::get(4, 0, {dim(0), dim(1) * step + dim(2), dim(3)}, context)}};
  if (window)
    operands.push_back({window, AffineMap::get(4, 0, dim(2), context)});
  return mapElements(n.b, shape, elementOf(signal), operands,
                     [](Scalar &s, ValueRange x) { return x.size() == 1 ? x[0] : s.mul(x[0], x[1]); });
}

LogicalResult stft(Node &n) {
  bool oneSided = n.op.getI64("onesided", 1) != 0;
  if (n.inRank(0) != 2 && n.inRank(0) != 3)
    return n.fail("the signal has rank " + Twine(n.inRank(0)) + ", expected [batch, length, 1 or 2]");
  Type type = transformType(n.inElement(0));
  Value signal = convertFloat(n.b, n.in(0), type), window;
  if (n.inRank(0) == 2)
    signal = reshape(n.b, signal, {n.inShape(0)[0], n.inShape(0)[1], 1});
  int64_t length = shapeOf(signal)[1], parts = shapeOf(signal)[2];
  if (n.has(2)) {
    if (n.inRank(2) != 1)
      return n.fail("the window has rank " + Twine(n.inRank(2)) + ", expected 1");
    window = convertFloat(n.b, n.in(2), type);
  }
  FailureOr<int64_t> step = constantInt(n, 1, "frame_step", 0);
  FailureOr<int64_t> frame = constantInt(n, 3, "frame_length", window ? shapeOf(window)[0] : length);
  if (failed(step) || failed(frame))
    return failure();
  if (*step < 1 || *frame < 1 || *frame > length)
    return n.fail("frame_step is " + Twine(*step) + " and frame_length " + Twine(*frame) +
                  ", expected positive values that fit " + Twine(length) + " samples");
  if (parts != 1 && parts != 2)
    return n.fail("the last dimension has extent " + Twine(parts) + ", expected 1 (real) or 2 (complex)");
  if (parts == 2 && oneSided)
    return n.fail("onesided is 1, but the signal is complex");
  if (failed(checkTransformLength(n, *frame)))
    return failure();
  if (window)
    window = resizeDim(n, window, 0, *frame); // samples past the window are zero
  int64_t frames = 1 + (length - *frame) / *step;
  Value cut = framesOf(n, signal, window, frames, *step, *frame);
  Value y = fourier(n, reshape(n.b, cut, {shapeOf(signal)[0] * frames, *frame, parts}), /*inverse=*/false, oneSided);
  Shape shape{shapeOf(signal)[0], frames, shapeOf(y)[1], 2};
  return n.result(convertFloat(n.b, reshape(n.b, y, shape), n.outElement()));
}

//===----------------------------------------------------------------------===//
// MelWeightMatrix
//===----------------------------------------------------------------------===//

/// The first spectrogram bin of each of bins + 2 mel bands.
Shape melBands(int64_t bins, int64_t length, int64_t rate, double low, double high) {
  auto toMel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (toMel(high) - toMel(low)) / static_cast<double>(bins + 2);
  Shape bands;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + toMel(low)) / 2595) - 1);
    bands.push_back(static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  return bands;
}

LogicalResult melWeightMatrix(Node &n) {
  n.op.ignore("output_datatype"); // the result type says it
  int64_t counts[3];
  double hertz[2];
  for (int i = 0; i < 5; ++i) {
    std::optional<Shape> ints = i < 3 ? n.constInts(i) : std::nullopt;
    std::optional<SmallVector<double>> floats = i >= 3 ? onnx::getConstantFloats(n.op.input(i)) : std::nullopt;
    if ((i < 3 ? !ints || ints->size() != 1 : !floats || floats->size() != 1))
      return n.fail("operand " + Twine(i) + " is not a constant with one element");
    (i < 3 ? void(counts[i] = ints->front()) : void(hertz[i - 3] = floats->front()));
  }
  auto [bins, length, rate] = counts;
  int64_t rows = n.outShape()[0];
  constexpr int64_t mostElements = 1 << 22;
  if (bins < 1 || length < 1 || rate < 1 || rows < 1 || bins > mostElements / rows || !(hertz[0] >= 0 && hertz[0] < hertz[1]))
    return n.fail("num_mel_bins, dft_length, sample_rate or the edges are out of range");
  Shape bands = melBands(bins, length, rate, hertz[0], hertz[1]);
  if (bands.back() > rows)
    return n.fail("the upper edge lies past the last bin of the spectrogram");
  SmallVector<double> values(rows * bins, 0.0);
  for (int64_t i = 0; i < bins; ++i) {
    int64_t left = bands[i], center = bands[i + 1], right = bands[i + 2];
    for (int64_t j = left; j <= center && j < rows; ++j)
      values[j * bins + i] = left == center ? 1.0 : static_cast<double>(j - left) / static_cast<double>(center - left);
    for (int64_t j = center; j < right && j < rows; ++j)
      values[j * bins + i] = static_cast<double>(right - j) / static_cast<double>(right - center);
  }
  auto f64 = RankedTensorType::get(n.outShape(), n.b.getF64Type());
  Value matrix = constantTensor(n.b, DenseElementsAttr::get(f64, ArrayRef<double>(values)));
  return n.result(elementwise(n.b, n.outShape(), n.outElement(), matrix,
                              [&](Scalar &s, ValueRange x) { return s.cast(x[0], false, n.outElement(), n.isUnsignedOut()); }));
}

} // namespace

void registerSignal(Table &t) {
  t.add("DFT", dft);
  t.add("STFT", stft);
  t.add("MelWeightMatrix", melWeightMatrix);
}

} // namespace ogc::lower
