//===- Resize.cpp - Resize: taps computed at compile time -----------------===//
//
// Every mode reads, for each output position of an axis, a fixed number of input positions (taps) with fixed weights. Both are
// constants.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Attributes of the operator.
struct Options {
  StringRef mode, coordinates, nearest;
  double cubic = -0.75;
  bool antialias = false, excludeOutside = false;
};

struct Axis {
  int64_t dim, in, out;
  double scale;
  double roiStart = 0, roiEnd = 1; ///< of tf_crop_and_resize
};

/// Input positions and weights of one axis, [out, taps].
struct Taps {
  int64_t count;
  SmallVector<int64_t> positions;
  SmallVector<float> weights;
};

/// The position in the input, as a real number, of output position o.
double sourcePosition(const Axis &axis, StringRef coordinates, int64_t o) {
  double x = static_cast<double>(o), in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  if (coordinates == "align_corners") {
    // With scales, the last corner is that of the unrounded extent.
    double exact = axis.scale * in;
    return axis.out > 1 ? x * (in - 1) / (exact > 1 ? exact - 1 : out - 1) : 0.0;
  }
  if (coordinates == "tf_crop_and_resize") {
    if (axis.out == 1)
      return 0.5 * (axis.roiStart + axis.roiEnd) * (in - 1);
    return axis.roiStart * (in - 1) + x * (axis.roiEnd - axis.roiStart) * (in - 1) / (out - 1);
  }
  if (coordinates == "asymmetric")
    return x / axis.scale;
  if (coordinates == "pytorch_half_pixel" && axis.out == 1)
    return 0.0;
  if (coordinates == "tf_half_pixel_for_nn")
    return (x + 0.5) / axis.scale;
  double position = (x + 0.5) / axis.scale - 0.5;
  if (coordinates == "half_pixel_symmetric")
    position += in / 2 * (1 - out / (axis.scale * in));
  return position;
}

int64_t nearestPosition(double x, StringRef mode) {
  if (mode == "floor")
    return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil")
    return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
}

/// The interpolation kernels: a triangle, and the cubic convolution of Keys with parameter a.
double kernelWeight(const Options &options, double x) {
  x = std::abs(x);
  if (options.mode == "linear")
    return std::max(1 - x, 0.0);
  double a = options.cubic;
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

Taps computeTaps(const Axis &axis, const Options &options) {
  Taps taps;
  bool isNearest = options.mode == "nearest";
  double support = options.mode == "cubic" ? 2 : 1;
  // Downscaling with antialiasing widens the kernel.
  double shrink = options.antialias ? std::min(axis.scale, 1.0) : 1.0;
  int64_t start = static_cast<int64_t>(std::floor(-support / shrink)) + 1;
  taps.count = isNearest ? 1 : 2 - 2 * start;
  for (int64_t o = 0; o < axis.out; ++o) {
    double x = sourcePosition(axis, options.coordinates, o);
    if (isNearest) {
      taps.positions.push_back(std::clamp<int64_t>(nearestPosition(x, options.nearest), 0, axis.in - 1));
      taps.weights.push_back(1.0f);
      continue;
    }
    int64_t base = static_cast<int64_t>(std::ceil(x)) - 1;
    SmallVector<double> weights;
    double sum = 0;
    for (int64_t j = 0; j < taps.count; ++j) {
      int64_t position = base + start + j;
      bool outside = position < 0 || position >= axis.in;
      double weight =
          options.excludeOutside && outside ? 0.0 : kernelWeight(options, (static_cast<double>(position) - x) * shrink);
      taps.positions.push_back(std::clamp<int64_t>(position, 0, axis.in - 1));
      weights.push_back(weight);
      sum += weight;
    }
    for (double weight : weights)
      taps.weights.push_back(static_cast<float>(sum == 0 ? weight : weight / sum));
  }
  return taps;
}

Value positionsTensor(Builder &b, const Axis &axis, const Taps &taps) {
  auto type = RankedTensorType::get({axis.out, taps.count}, b.getI64Type());
  return constantTensor(b, DenseElementsAttr::get(type, ArrayRef<int64_t>(taps.positions)));
}

/// The value with `fill` where a position along some axis lies outside of the input: tf_crop_and_resize.
Value extrapolate(Node &n, Value v, ArrayRef<Axis> axes, const Options &options, double fill) {
  MLIRContext *context = n.b.getContext();
  unsigned rank = static_cast<unsigned>(n.inRank(0));
  SmallVector<Operand> operands{{v, AffineMap::getMultiDimIdentityMap(rank, context)}};
  for (const Axis &axis : axes) {
    SmallVector<bool> inside;
    for (int64_t o = 0; o < axis.out; ++o) {
      double x = sourcePosition(axis, options.coordinates, o);
      // A crop that ends at the last element ends there, whatever its rounding.
      double slack = 1e-6 * static_cast<double>(axis.in);
      inside.push_back(x >= -slack && x <= static_cast<double>(axis.in - 1) + slack);
    }
    if (llvm::all_of(inside, [](bool b) { return b; }))
      continue;
    auto type = RankedTensorType::get({axis.out}, n.b.getI1Type());
    operands.push_back({constantTensor(n.b, DenseElementsAttr::get(type, ArrayRef<bool>(inside))),
                        AffineMap::get(rank, 0, getAffineDimExpr(static_cast<unsigned>(axis.dim), context), context)});
  }
  if (operands.size() == 1)
    return v;
  return mapElements(n.b, n.outShape(), n.outElement(), operands, [&](Scalar &s, ValueRange x) {
    Value inside = x[1];
    for (Value other : x.drop_front(2))
      inside = s.mul(inside, other);
    return s.select(inside, x[0], s.cst(x[0].getType(), fill));
  });
}

/// All axes at once: one gather.
Value resizeNearest(Node &n, ArrayRef<Axis> axes, const Options &options) {
  MLIRContext *context = n.b.getContext();
  unsigned rank = static_cast<unsigned>(n.inRank(0));
  Value data = n.in(0);
  SmallVector<Operand> operands;
  for (const Axis &axis : axes) {
    AffineExpr dim = getAffineDimExpr(static_cast<unsigned>(axis.dim), context), zero = getAffineConstantExpr(0, context);
    operands.push_back({positionsTensor(n.b, axis, computeTaps(axis, options)), AffineMap::get(rank, 0, {dim, zero}, context)});
  }
  return mapElements(
      n.b, n.outShape(), n.outElement(), operands,
      [&](Scalar &s, ValueRange x) -> Value {
        SmallVector<Value> position;
        for (unsigned d = 0; d < rank; ++d)
          position.push_back(linalg::IndexOp::create(s.b, d));
        for (auto [axis, index] : llvm::zip(axes, x))
          position[axis.dim] = s.toIndex(index, false);
        return tensor::ExtractOp::create(s.b, data, position);
      },
      /*widen=*/false);
}

/// One axis: a weighted sum over the taps, in f32 for 16-bit floats.
Value resizeAxis(Node &n, Value data, const Axis &axis, const Options &options) {
  MLIRContext *context = n.b.getContext();
  unsigned rank = static_cast<unsigned>(n.inRank(0)), dims = rank + 1;
  Taps taps = computeTaps(axis, options);
  Type type = computeType(elementOf(data));
  AffineMap map = AffineMap::get(
      dims, 0, {getAffineDimExpr(static_cast<unsigned>(axis.dim), context), getAffineDimExpr(rank, context)}, context);
  SmallVector<Attribute> weightAttrs;
  for (float weight : taps.weights)
    weightAttrs.push_back(n.b.getFloatAttr(type, weight));
  Value weights = constantTensor(n.b, DenseElementsAttr::get(RankedTensorType::get({axis.out, taps.count}, type), weightAttrs));
  Shape shape(shapeOf(data));
  shape[axis.dim] = axis.out;
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  iterators.push_back(IteratorType::reduction);
  Scalar s(n.b, n.op.getLoc());
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(dims, context).getMajorSubMap(rank);
  return reduceInto(n.b, {filled(n.b, shape, s.cst(type, 0.0)), outMap},
                    {{positionsTensor(n.b, axis, taps), map}, {weights, map}}, iterators, [&](Scalar &s, ValueRange x) {
                      SmallVector<Value> position;
                      for (unsigned d = 0; d < rank; ++d)
                        position.push_back(d == axis.dim ? s.toIndex(x[0], false) : linalg::IndexOp::create(s.b, d).getResult());
                      Value element = s.widen(tensor::ExtractOp::create(s.b, data, position));
                      return s.add(x[2], s.mul(element, x[1]));
                    });
}

/// The resized axes and their scales, from scales or sizes.
FailureOr<SmallVector<Axis>> readAxes(Node &n, bool crops) {
  int64_t rank = n.inRank(0);
  Shape dims = n.op.getI64s("axes");
  if (dims.empty())
    dims.append(llvm::seq<int64_t>(0, rank).begin(), llvm::seq<int64_t>(0, rank).end());
  StringRef policy = n.op.getStr("keep_aspect_ratio_policy", "stretch");
  std::optional<SmallVector<double>> scales;
  if (n.has(2) && numElements(n.inShape(2)) != 0) {
    scales = onnx::getConstantFloats(n.op.input(2));
    if (!scales || scales->size() != dims.size())
      return n.fail("scales are not constant or not one for each axis");
  } else if (!n.constInts(3)) {
    return n.fail("sizes are not constant");
  }
  std::optional<SmallVector<double>> roi;
  if (crops) {
    roi = n.has(1) ? onnx::getConstantFloats(n.op.input(1)) : std::nullopt;
    if (!roi || roi->size() != 2 * dims.size())
      return n.fail("roi is not constant or does not have two values for each axis");
  }
  SmallVector<Axis> axes;
  double common = 0;
  for (auto [i, d] : llvm::enumerate(dims)) {
    d = wrapAxis(d, rank);
    if (d < 0 || d >= rank)
      return n.fail("axis is out of range for rank " + Twine(rank));
    Axis axis{d, n.inShape(0)[d], n.outShape()[d], 1.0};
    if (axis.in == 0 || axis.out == 0)
      return n.fail("dimension " + Twine(d) + " has no elements");
    if (roi) {
      axis.roiStart = (*roi)[i];
      axis.roiEnd = (*roi)[dims.size() + i];
    }
    axis.scale = scales ? (*scales)[i] : static_cast<double>((*n.constInts(3))[i]) / static_cast<double>(axis.in);
    // The taps of an axis are a table in the code: its size must be one that a person would ask for.
    constexpr double mostTaps = 1 << 20;
    if (!(axis.scale > 0) || static_cast<double>(axis.out) * std::max(1.0, 4.0 / axis.scale) > mostTaps)
      return n.fail("scale of dimension " + Twine(d) + " from " + Twine(axis.in) + " to " + Twine(axis.out) + " is out of range");
    bool takes = i == 0 || (policy == "not_larger" ? axis.scale < common : axis.scale > common);
    common = takes ? axis.scale : common;
    axes.push_back(axis);
  }
  if (!scales && policy != "stretch")
    for (Axis &axis : axes)
      axis.scale = common;
  llvm::erase_if(
      axes, [](const Axis &axis) { return axis.in == axis.out && axis.scale == 1.0 && axis.roiStart == 0 && axis.roiEnd == 1; });
  return axes;
}

Value convertNumber(Node &n, Value v, Type element, bool fromUnsigned, bool toUnsigned) {
  if (elementOf(v) == element)
    return v;
  return elementwise(
      n.b, shapeOf(v), element, v, [&](Scalar &s, ValueRange x) { return s.cast(x[0], fromUnsigned, element, toUnsigned); },
      /*widen=*/false);
}

LogicalResult resize(Node &n) {
  double fill = n.op.getF32("extrapolation_value", 0.0f); // only for tf_crop_and_resize
  Options options{n.op.getStr("mode", "nearest"),
                  n.op.getStr("coordinate_transformation_mode", "half_pixel"),
                  n.op.getStr("nearest_mode", "round_prefer_floor"),
                  n.op.getF32("cubic_coeff_a", -0.75f),
                  n.op.getI64("antialias") != 0,
                  n.op.getI64("exclude_outside") != 0};
  if (!llvm::is_contained({"nearest", "linear", "cubic"}, options.mode))
    return n.fail("mode is '" + options.mode + "', expected nearest, linear or cubic");
  if (!llvm::is_contained({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                           "tf_half_pixel_for_nn", "tf_crop_and_resize"},
                          options.coordinates))
    return n.fail("coordinate_transformation_mode '" + options.coordinates + "' is not supported");
  if (!llvm::is_contained({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, options.nearest))
    return n.fail("nearest_mode '" + options.nearest + "' is not supported");
  bool crops = options.coordinates == "tf_crop_and_resize";
  FailureOr<SmallVector<Axis>> axes = readAxes(n, crops);
  if (failed(axes))
    return failure();
  if (axes->empty())
    return n.result(n.in(0));
  auto finish = [&](Value v) { return n.result(crops ? extrapolate(n, v, *axes, options, fill) : v); };
  if (options.mode == "nearest")
    return finish(resizeNearest(n, *axes, options));
  // Integers are computed in f32 and converted by the rule of casts.
  Value v =
      convertNumber(n, n.in(0), isa<FloatType>(n.inElement(0)) ? n.inElement(0) : n.b.getF32Type(), n.isUnsignedIn(0), false);
  for (const Axis &axis : *axes)
    v = resizeAxis(n, v, axis, options);
  return finish(convertNumber(n, v, n.outElement(), false, n.isUnsignedOut()));
}

} // namespace

void registerResize(Table &t) { t.add("Resize", resize); }

} // namespace ogc::lower
