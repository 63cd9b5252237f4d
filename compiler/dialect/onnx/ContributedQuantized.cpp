//===- ContributedQuantized.cpp - operators on quantized tensors ----------===//
//
// QLinear operators are the float operator between DequantizeLinear and QuantizeLinear; products of integers are exact in int32.
//
//===----------------------------------------------------------------------===//
#include "compiler/dialect/onnx/ContributedWindow.h"

#include "onnx/defs/math/utils.h"
#include "llvm/ADT/STLExtras.h"

namespace ogc::onnx::contributed {
namespace {

/// ", name" when the operand is there.
std::string optional(const Body &b, llvm::StringRef name) { return b.has(name) ? ", " + name.str() : ""; }

std::string dequantize(Body &b, llvm::StringRef x, llvm::StringRef scale, llvm::StringRef zero) {
  return b.make("DequantizeLinear (" + x + ", " + scale + optional(b, zero) + ")");
}

/// Quantizes `value` into the result `y`; without a zero point it has the type of the operand `like`.
void quantize(Body &b, llvm::StringRef y, const std::string &value, llvm::StringRef scale, llvm::StringRef zero,
              llvm::StringRef like) {
  std::string type = b.has(zero) ? "" : " <output_dtype = " + std::to_string(b.type(like)) + ">";
  b.add(y + " = QuantizeLinear" + type + " (" + value + ", " + scale + optional(b, zero) + ")");
}

void binary(Body &b, llvm::StringRef operation) {
  std::string lhs = dequantize(b, "A", "A_scale", "A_zero_point"), rhs = dequantize(b, "B", "B_scale", "B_zero_point");
  quantize(b, "C", b.make(operation + " (" + lhs + ", " + rhs + ")"), "C_scale", "C_zero_point", "A");
}
void qLinearAdd(Body &b) { binary(b, "Add"); }
void qLinearMul(Body &b) { binary(b, "Mul"); }

void inferBinary(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  if (::onnx::hasInputShape(context, 0) && ::onnx::hasInputShape(context, 3))
    ::onnx::bidirectionalBroadcastShapeInference(::onnx::getInputShape(context, 0), ::onnx::getInputShape(context, 3),
                                                 *::onnx::getOutputShape(context, 0));
}

/// An operator of one operand on the float values.
void unary(Body &b, const std::string &operation) {
  std::string x = dequantize(b, "X", "X_scale", "X_zero_point");
  quantize(b, "Y", b.make(operation + " (" + x + ")"), "Y_scale", "Y_zero_point", "X");
}
void qLinearLeakyRelu(Body &b) { unary(b, "LeakyRelu <alpha = " + literal(b.real("alpha")) + ">"); }
void qLinearSigmoid(Body &b) { unary(b, "Sigmoid"); }

void qLinearSoftmax(Body &b) {
  int64_t axis = b.integer("axis", -1), rank = b.rank("X"), opset = b.integer("opset", 13);
  axis = axis < 0 ? axis + rank : axis;
  if (opset >= 13 || axis == rank - 1)
    return unary(b, "Softmax <axis = " + std::to_string(axis) + ">");
  // Before opset 13 all dimensions from the axis on are one.
  Dims shape = b.shape("X");
  int64_t rows = 1, columns = 1;
  for (auto [d, extent] : llvm::enumerate(shape))
    (static_cast<int64_t>(d) < axis ? rows : columns) *= extent;
  std::string flat = b.reshape(dequantize(b, "X", "X_scale", "X_zero_point"), {rows, columns});
  quantize(b, "Y", b.reshape(b.make("Softmax <axis = 1> (" + flat + ")"), shape), "Y_scale", "Y_zero_point", "X");
}

//===----------------------------------------------------------------------===//
// Pools, means, concat, where
//===----------------------------------------------------------------------===//

/// Operand X in floats with channels first.
std::string channelsFirst(Body &b) {
  std::string x = dequantize(b, "X", "X_scale", "X_zero_point");
  if (!b.integer("channels_last"))
    return x;
  int64_t rank = b.rank("X");
  Dims permutation{0, rank - 1};
  for (int64_t d = 1; d + 1 < rank; ++d)
    permutation.push_back(d);
  return b.transpose(x, permutation);
}

void quantizePool(Body &b, std::string pooled) {
  if (b.integer("channels_last")) {
    int64_t rank = b.rank("X");
    Dims permutation{0};
    for (int64_t d = 2; d < rank; ++d)
      permutation.push_back(d);
    permutation.push_back(1);
    pooled = b.transpose(pooled, permutation);
  }
  quantize(b, "Y", pooled, "Y_scale", "Y_zero_point", "X");
}

void qLinearGlobalAveragePool(Body &b) { quantizePool(b, b.make("GlobalAveragePool (" + channelsFirst(b) + ")")); }

void qLinearAveragePool(Body &b) {
  std::string attributes = "ceil_mode = " + std::to_string(b.integer("ceil_mode")) +
                           ", count_include_pad = " + std::to_string(b.integer("count_include_pad"));
  for (llvm::StringRef name : {"kernel_shape", "strides", "pads"})
    if (Dims list = b.integers(name); !list.empty())
      attributes += (", " + name + " = " + listOf(list)).str();
  if (std::string autoPad = b.text("auto_pad"); !autoPad.empty())
    attributes += ", auto_pad = \"" + autoPad + "\"";
  quantizePool(b, b.make("AveragePool <" + attributes + "> (" + channelsFirst(b) + ")"));
}

void inferGlobalPool(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  Dims shape;
  if (!partialShape(context, 0, shape) || shape.size() < 2)
    return;
  bool last = ::onnx::getAttribute(context, "channels_last", 0);
  for (size_t d = last ? 1 : 2; d < shape.size() - (last ? 1 : 0); ++d)
    shape[d] = 1;
  setShape(context, 0, shape);
}

void inferPool(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  Dims shape, kernel;
  if (!partialShape(context, 0, shape) || !::onnx::getRepeatedAttribute(context, "kernel_shape", kernel))
    return;
  SpatialWindow window(context, std::move(kernel));
  if (shape.size() != window.rank() + 2)
    fail("kernel_shape has ", window.rank(), " extents, expected ", shape.size() - 2);
  size_t first = ::onnx::getAttribute(context, "channels_last", 0) ? 1 : 2;
  for (size_t d = 0; d < window.rank(); ++d)
    shape[first + d] = window.extent(d, shape[first + d]);
  setShape(context, 0, shape);
}

void qLinearReduceMean(Body &b) {
  std::string x = dequantize(b, "data", "data_scale", "data_zero_point");
  Dims axes = b.integers("axes");
  std::string operands = axes.empty() ? x : x + ", " + b.ints(axes);
  std::string mean = b.make("ReduceMean <keepdims = " + llvm::Twine(b.integer("keepdims", 1)) + "> (" + operands + ")");
  quantize(b, "reduced", mean, "reduced_scale", "reduced_zero_point", "data");
}

void inferReduceMean(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  Dims shape, axes, result;
  if (!partialShape(context, 0, shape))
    return;
  ::onnx::getRepeatedAttribute(context, "axes", axes);
  int64_t rank = static_cast<int64_t>(shape.size());
  for (int64_t &axis : axes)
    axis = axis < 0 ? axis + rank : axis;
  bool keep = ::onnx::getAttribute(context, "keepdims", 1);
  for (int64_t d = 0; d < rank; ++d) {
    bool isReduced = axes.empty() || llvm::is_contained(axes, d);
    if (!isReduced || keep)
      result.push_back(isReduced ? 1 : shape[d]);
  }
  setShape(context, 0, result);
}

/// The operands after scale and zero point of the result are triples: tensor, scale, zero point.
void qLinearConcat(Body &b) {
  std::string parts;
  int count = b.variadicCount("inputs");
  if (count % 3 != 0)
    b.refuse("has " + llvm::Twine(count) + " inputs after the zero point, expected a multiple of 3");
  for (int i = 0; i < count; i += 3) {
    auto name = [&](int offset) { return b.variadicName("inputs", i + offset); };
    parts += (i ? ", " : "") + b.make("DequantizeLinear (" + name(0) + ", " + name(1) + ", " + name(2) + ")");
  }
  std::string joined = b.make("Concat <axis = " + llvm::Twine(b.integer("axis")) + "> (" + parts + ")");
  quantize(b, "Y", joined, "Y_scale", "Y_zero_point", "Y_zero_point");
}

void inferConcat(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 1, 0);
  Dims result;
  for (size_t i = 2; i < context.getNumInputs(); i += 3) {
    Dims shape;
    if (!partialShape(context, i, shape))
      return;
    int64_t rank = static_cast<int64_t>(shape.size()), axis = ::onnx::getAttribute(context, "axis", 0);
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank || (i > 2 && shape.size() != result.size()))
      fail("axis or rank of operand ", i, " does not fit");
    if (i == 2)
      result = shape;
    else
      result[axis] = result[axis] < 0 || shape[axis] < 0 ? -1 : result[axis] + shape[axis];
  }
  setShape(context, 0, result);
}

void qLinearWhere(Body &b) {
  std::string x = dequantize(b, "X", "X_scale", "X_zero_point"), y = dequantize(b, "Y", "Y_scale", "Y_zero_point");
  quantize(b, "Z", b.make("Where (condition, " + x + ", " + y + ")"), "Z_scale", "Z_zero_point", "X");
}

void inferWhere(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 1, 0);
  std::vector<const ::onnx::TensorShapeProto *> shapes;
  for (size_t i : {0, 1, 4}) {
    if (!::onnx::hasInputShape(context, i))
      return;
    shapes.push_back(&::onnx::getInputShape(context, i));
  }
  ::onnx::multidirectionalBroadcastShapeInference(shapes, *::onnx::getOutputShape(context, 0));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// "MatMulInteger (lhs, rhs, …)" with the zero points that are there.
std::string integerProduct(Body &b, llvm::StringRef lhs, llvm::StringRef rhs, llvm::StringRef lhsZero, llvm::StringRef rhsZero) {
  std::string zeros;
  if (!rhsZero.empty())
    zeros = (", " + lhsZero + ", " + rhsZero).str();
  else if (!lhsZero.empty())
    zeros = (", " + lhsZero).str();
  return b.make("MatMulInteger (" + lhs + ", " + rhs + zeros + ")");
}

/// A product in integers times its scale, plus a bias that may be absent.
void scaled(Body &b, const std::string &product, const std::string &scale, llvm::StringRef bias, llvm::StringRef result) {
  std::string real = b.make("CastLike (" + product + ", " + scale + ")");
  if (!b.has(bias))
    return b.add(result + " = Mul (" + real + ", " + scale + ")");
  b.add(result + " = Add (" + b.make("Mul (" + real + ", " + scale + ")") + ", " + bias + ")");
}

void matMulIntegerToFloat(Body &b) {
  std::string product =
      integerProduct(b, "A", "B", b.has("a_zero_point") ? "a_zero_point" : "", b.has("b_zero_point") ? "b_zero_point" : "");
  scaled(b, product, b.make("Mul (a_scale, b_scale)"), "bias", "Y");
}

void dynamicQuantizeMatMul(Body &b) {
  std::string a = b.fresh(), scale = b.fresh(), zero = b.fresh();
  b.add(a + ", " + scale + ", " + zero + " = DynamicQuantizeLinear (A)");
  std::string product = integerProduct(b, a, "B", zero, b.has("b_zero_point") ? "b_zero_point" : "");
  scaled(b, product, b.make("Mul (" + scale + ", b_scale)"), "bias", "Y");
}

void inferFloatProduct(::onnx::InferenceContext &context) {
  ::onnx::updateOutputElemType(context, 0, ::onnx::TensorProto::FLOAT);
  ::onnx::defs::math::utils::MatMulShapeInference(context, 0, 1);
}

void qGemm(Body &b) {
  float alpha = b.real("alpha", 1);
  std::string lhs = b.integer("transA") ? b.transpose("A", {1, 0}) : "A",
              rhs = b.integer("transB") ? b.transpose("B", {1, 0}) : "B";
  std::string product = integerProduct(b, lhs, rhs, "a_zero_point", "b_zero_point");
  if (b.has("C"))
    product = b.make("Add (" + product + ", C)");
  std::string scale = b.make("Mul (a_scale, b_scale)");
  if (alpha != 1)
    scale = b.make("Mul (" + scale + ", " + b.scalar(alpha) + ")");
  std::string real = b.make("Mul (" + b.make("Cast <to = 1> (" + product + ")") + ", " + scale + ")");
  if (b.has("y_scale"))
    return quantize(b, "Y", real, "y_scale", "y_zero_point", "A");
  b.add("Y = Identity (" + real + ")");
}

void inferQGemm(::onnx::InferenceContext &context) {
  if (context.getNumInputs() > 7 && context.getInputType(7))
    ::onnx::propagateElemTypeFromInputToOutput(context, context.getNumInputs() > 8 && context.getInputType(8) ? 8 : 0, 0);
  else
    ::onnx::updateOutputElemType(context, 0, ::onnx::TensorProto::FLOAT);
  Dims lhs, rhs;
  if (!partialShape(context, 0, lhs) || !partialShape(context, 3, rhs))
    return;
  if (lhs.size() != 2 || rhs.size() != 2)
    fail("operands are not matrices");
  setShape(context, 0,
           {lhs[::onnx::getAttribute(context, "transA", 0) ? 1 : 0], rhs[::onnx::getAttribute(context, "transB", 0) ? 0 : 1]});
}

//===----------------------------------------------------------------------===//
// Forms of ai.onnx operators with more types
//===----------------------------------------------------------------------===//

void quantizeLinear(Body &b) {
  std::string axis =
      "axis = " + std::to_string(b.integer("axis", 1)) + ", block_size = " + std::to_string(b.integer("block_size"));
  std::string type = b.has("y_zero_point") ? "" : ", output_dtype = 2";
  b.add("y = QuantizeLinear <" + axis + type + "> (x, y_scale" + optional(b, "y_zero_point") + ")");
}

void dequantizeLinear(Body &b) {
  std::string axis =
      "axis = " + std::to_string(b.integer("axis", 1)) + ", block_size = " + std::to_string(b.integer("block_size"));
  b.add("y = DequantizeLinear <" + axis + "> (x, x_scale" + optional(b, "x_zero_point") + ")");
}

void inferQuantize(::onnx::InferenceContext &context) {
  if (context.getNumInputs() > 2 && context.getInputType(2))
    ::onnx::propagateElemTypeFromInputToOutput(context, 2, 0);
  else
    ::onnx::updateOutputElemType(context, 0, ::onnx::TensorProto::UINT8);
  if (::onnx::hasInputShape(context, 0))
    ::onnx::propagateShapeFromInputToOutput(context, 0, 0);
}

void inferDequantize(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 1, 0);
  if (::onnx::hasInputShape(context, 0))
    ::onnx::propagateShapeFromInputToOutput(context, 0, 0);
}

constexpr const char *unaryInputs = "X:Q X_scale:float X_zero_point?:Q Y_scale:float Y_zero_point?:Q";

} // namespace

void addQuantizedSchemas() {
  constexpr const char *pair =
      "A:Q A_scale:float A_zero_point?:Q B:Q B_scale:float B_zero_point?:Q C_scale:float C_zero_point?:Q";
  addSchema("QLinearAdd", pair, "C:Q", "", inferBinary, qLinearAdd);
  addSchema("QLinearMul", pair, "C:Q", "", inferBinary, qLinearMul);
  addSchema("QLinearLeakyRelu", unaryInputs, "Y:Q", "alpha:f=0.01", inferLikeFirst, qLinearLeakyRelu);
  addSchema("QLinearSigmoid", unaryInputs, "Y:Q", "", inferLikeFirst, qLinearSigmoid);
  addSchema("QLinearSoftmax", unaryInputs, "Y:Q", "axis:i=-1 opset:i=13", inferLikeFirst, qLinearSoftmax);
  addSchema("QLinearGlobalAveragePool", unaryInputs, "Y:Q", "channels_last:i=0", inferGlobalPool, qLinearGlobalAveragePool);
  addSchema("QLinearAveragePool", unaryInputs, "Y:Q",
            "auto_pad:s=NOTSET ceil_mode:i=0 count_include_pad:i=0 kernel_shape:is! strides:is pads:is channels_last:i=0",
            inferPool, qLinearAveragePool);
  addSchema("QLinearReduceMean", "data:Q data_scale:float data_zero_point?:Q reduced_scale:float reduced_zero_point?:Q",
            "reduced:Q", "axes:is keepdims:i=1", inferReduceMean, qLinearReduceMean);
  addSchema("QLinearConcat", "Y_scale:float Y_zero_point:Q inputs*:A", "Y:Q", "axis:i!", inferConcat, qLinearConcat);
  addSchema("QLinearWhere",
            "condition:bool X:Q X_scale:float X_zero_point?:Q Y:Q Y_scale:float Y_zero_point?:Q Z_scale:float Z_zero_point?:Q",
            "Z:Q", "", inferWhere, qLinearWhere);
  addSchema("MatMulIntegerToFloat", "A:Q B:Q1 a_scale:F b_scale:F a_zero_point?:Q b_zero_point?:Q1 bias?:F", "Y:F", "",
            inferFloatProduct, matMulIntegerToFloat);
  addSchema("DynamicQuantizeMatMul", "A:float B:Q1 b_scale:float b_zero_point?:Q1 bias?:float", "Y:float", "", inferFloatProduct,
            dynamicQuantizeMatMul);
  addSchema("QGemm",
            "A:Q a_scale:float a_zero_point:Q B:Q1 b_scale:float b_zero_point:Q1 C?:int32 y_scale?:float y_zero_point?:Q2", "Y:A",
            "transA:i=0 transB:i=0 alpha:f=1", inferQGemm, qGemm);
  addSchema("QuantizeLinear", "x:F y_scale:F y_zero_point?:Q", "y:Q", "axis:i=1 block_size:i=0", inferQuantize, quantizeLinear);
  addSchema("DequantizeLinear", "x:Q x_scale:F x_zero_point?:Q", "y:F", "axis:i=1 block_size:i=0", inferDequantize,
            dequantizeLinear);
}

} // namespace ogc::onnx::contributed
