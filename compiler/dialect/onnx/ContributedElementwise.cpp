//===- ContributedElementwise.cpp - GELU forms, fused products -----------===//
#include "compiler/dialect/onnx/ContributedWindow.h"

#include "llvm/ADT/STLExtras.h"

namespace ogc::onnx::contributed {
namespace {

void biasGelu(Body &b) { b.add("C = Gelu (" + b.make("Add (A, B)") + ")"); }

void fastGelu(Body &b) {
  std::string x = b.has("bias") ? b.make("Add (X, bias)") : "X";
  b.add("Y = Gelu <approximate = \"tanh\"> (" + x + ")");
}

void quickGelu(Body &b) { b.add("Y = Swish <alpha = " + literal(b.real("alpha")) + "> (X)"); }

void biasAdd(Body &b) { b.add("Y = Add (" + b.make("Add (X, bias)") + ", skip)"); }

void expandDims(Body &b) { b.add("Y = Unsqueeze (X, " + b.make("Cast <to = 7> (axis)") + ")"); }

/// The operand of FusedMatMul as MatMul takes it. With `batch` the row dimension comes first and the batch dimensions after it.
std::string fusedOperand(Body &b, llvm::StringRef name, bool transposed, bool batch) {
  int64_t rank = b.rank(name);
  if (rank < 2 || (!transposed && !batch))
    return name.str();
  Dims permutation;
  for (int64_t d = 0; d < rank; ++d)
    permutation.push_back(d);
  if (batch)
    std::rotate(permutation.begin(), permutation.begin() + 1, permutation.end() - 1);
  if (transposed)
    std::swap(permutation[rank - 2], permutation[rank - 1]);
  return b.transpose(name, permutation);
}

void fusedMatMul(Body &b) {
  std::string lhs = fusedOperand(b, "A", b.integer("transA"), b.integer("transBatchA")),
              rhs = fusedOperand(b, "B", b.integer("transB"), b.integer("transBatchB"));
  float alpha = b.real("alpha", 1.0f);
  if (alpha == 1.0f)
    return b.add("Y = MatMul (" + lhs + ", " + rhs + ")");
  std::string product = b.make("MatMul (" + lhs + ", " + rhs + ")");
  b.add("Y = Mul (" + product + ", " + b.scalar(alpha, "A") + ")");
}

Dims fusedShape(Dims shape, bool transposed, bool batch) {
  if (shape.size() < 2)
    return shape;
  if (batch)
    std::rotate(shape.begin(), shape.begin() + 1, shape.end() - 1);
  if (transposed)
    std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
  return shape;
}

void inferFusedMatMul(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  Dims lhs, rhs;
  if (!partialShape(context, 0, lhs) || !partialShape(context, 1, rhs))
    return;
  lhs = fusedShape(lhs, ::onnx::getAttribute(context, "transA", 0), ::onnx::getAttribute(context, "transBatchA", 0));
  rhs = fusedShape(rhs, ::onnx::getAttribute(context, "transB", 0), ::onnx::getAttribute(context, "transBatchB", 0));
  if (lhs.empty() || rhs.empty())
    fail("an operand is a scalar");
  int64_t left = lhs.back(), right = rhs.size() == 1 ? rhs[0] : rhs[rhs.size() - 2];
  if (left >= 0 && right >= 0 && left != right)
    fail("the operands have ", left, " columns and ", right, " rows, which must be the same");
  size_t batch = std::max(lhs.size(), rhs.size());
  batch = batch < 2 ? 0 : batch - 2;
  Dims shape;
  for (size_t i = 0; i < batch; ++i) {
    auto extent = [&](const Dims &dims) {
      size_t own = dims.size() < 2 ? 0 : dims.size() - 2;
      return own + i < batch ? int64_t(1) : dims[own + i - batch];
    };
    int64_t a = extent(lhs), c = extent(rhs);
    if (a > 1 && c > 1 && a != c)
      fail("batch dimensions ", a, " and ", c, " do not broadcast");
    shape.push_back(a == 1 ? c : c == 1 || c < 0 ? a : c);
  }
  if (lhs.size() > 1)
    shape.push_back(lhs[lhs.size() - 2]);
  if (rhs.size() > 1)
    shape.push_back(rhs.back());
  setShape(context, 0, shape);
}

void fusedGemm(Body &b) {
  std::string operands = b.has("C") ? "A, B, C" : "A, B";
  std::string product = b.make("Gemm <alpha = " + literal(b.real("alpha", 1)) + ", beta = " + literal(b.real("beta", 1)) +
                               ", transA = " + llvm::Twine(b.integer("transA")) +
                               ", transB = " + llvm::Twine(b.integer("transB")) + "> (" + operands + ")");
  std::string activation = b.text("activation");
  std::vector<float> parameters;
  float alpha = b.real("activation_alpha", std::numeric_limits<float>::quiet_NaN());
  if (alpha == alpha)
    parameters = {alpha, b.real("activation_beta", activation == "HardSigmoid" ? 0.5f : 0.0f)};
  b.add("Y = Identity (" + b.activate(product, activation, parameters) + ")");
}

void inferFusedGemm(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  Dims lhs, rhs;
  if (!partialShape(context, 0, lhs) || !partialShape(context, 1, rhs))
    return;
  if (lhs.size() != 2 || rhs.size() != 2)
    fail("operands are not matrices");
  setShape(context, 0,
           {lhs[::onnx::getAttribute(context, "transA", 0) ? 1 : 0], rhs[::onnx::getAttribute(context, "transB", 0) ? 0 : 1]});
}

/// The attributes of a convolution as text.
std::string windowAttributes(const Body &b) {
  std::string text = "group = " + std::to_string(b.integer("group", 1));
  std::string autoPad = b.text("auto_pad");
  if (!autoPad.empty() && autoPad != "NOTSET")
    text += ", auto_pad = \"" + autoPad + "\"";
  for (llvm::StringRef name : {"kernel_shape", "strides", "dilations", "pads"})
    if (Dims list = b.integers(name); !list.empty())
      text += (", " + name + " = " + listOf(list)).str();
  return text;
}

void fusedConv(Body &b) {
  std::string product = b.make("Conv <" + windowAttributes(b) + "> (X, W" + (b.has("B") ? ", B" : "") + ")");
  if (b.has("Z"))
    product = b.make("Add (" + product + ", Z)");
  b.add("Y = Identity (" + b.activate(product, b.text("activation"), b.reals("activation_params")) + ")");
}

/// Channels last: [N, H, W, C]; the filter is [F, C / group, kernel...] as in Conv.
void nhwcConv(Body &b) {
  int64_t rank = b.rank("X");
  Dims first{0, rank - 1}, last{0};
  for (int64_t d = 1; d + 1 < rank; ++d)
    first.push_back(d);
  for (int64_t d = 2; d < rank; ++d)
    last.push_back(d);
  last.push_back(1);
  std::string product =
      b.make("Conv <" + windowAttributes(b) + "> (" + b.transpose("X", first) + ", W" + (b.has("B") ? ", B" : "") + ")");
  b.add("Y = Transpose <perm = " + llvm::Twine(listOf(last)) + "> (" + product + ")");
}

void inferConv(::onnx::InferenceContext &context, bool channelsLast) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  Dims x, w;
  if (!partialShape(context, 0, x) || !partialShape(context, 1, w))
    return;
  if (x.size() < 3 || w.size() != x.size())
    fail("operands have ranks ", x.size(), " and ", w.size(), ", expected the same rank of 3 or more");
  SpatialWindow window(context, Dims(w.begin() + 2, w.end()));
  size_t first = channelsLast ? 1 : 2;
  Dims shape = x;
  shape[channelsLast ? x.size() - 1 : 1] = w[0];
  for (size_t d = 0; d < window.rank(); ++d)
    shape[first + d] = window.extent(d, x[first + d]);
  setShape(context, 0, shape);
}

void inferFusedConv(::onnx::InferenceContext &context) { inferConv(context, false); }
void inferNhwcConv(::onnx::InferenceContext &context) { inferConv(context, true); }

void inferExpandDims(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  const ::onnx::TensorProto *axis = context.getInputData(1);
  Dims shape;
  if (!axis || !partialShape(context, 0, shape))
    return;
  std::vector<int32_t> values = ::onnx::ParseData<int32_t>(axis);
  int64_t at = values.size() == 1 ? values[0] : 0, rank = static_cast<int64_t>(shape.size()) + 1;
  at = at < 0 ? at + rank : at;
  if (values.size() != 1 || at < 0 || at >= rank)
    fail("axis is out of range");
  shape.insert(shape.begin() + at, 1);
  setShape(context, 0, shape);
}

constexpr const char *convAttributes = "auto_pad:s=NOTSET kernel_shape:is dilations:is strides:is pads:is group:i=1 ";

} // namespace

void addElementwiseSchemas() {
  addSchema("Gelu", "X:F", "Y:F", "", inferLikeFirst, [](Body &b) { b.add("Y = Gelu (X)"); });
  addSchema("BiasGelu", "A:F B:F", "C:F", "", inferLikeFirst, biasGelu);
  addSchema("FastGelu", "X:F bias?:F", "Y:F", "", inferLikeFirst, fastGelu);
  addSchema("QuickGelu", "X:F", "Y:F", "alpha:f=1.702", inferLikeFirst, quickGelu);
  addSchema("BiasAdd", "X:F bias:F skip:F", "Y:F", "", inferLikeFirst, biasAdd);
  addSchema("Trilu", "X:A k?:int64", "Y:A", "upper:i=1", inferLikeFirst, [](Body &b) {
    b.add("Y = Trilu <upper = " + llvm::Twine(b.integer("upper", 1)) + "> (X" + (b.has("k") ? ", k" : "") + ")");
  });
  addSchema("ExpandDims", "X:A axis:int32", "Y:A", "", inferExpandDims, expandDims);
  addSchema("FusedMatMul", "A:F B:F", "Y:F", "alpha:f=1 transA:i=0 transB:i=0 transBatchA:i=0 transBatchB:i=0", inferFusedMatMul,
            fusedMatMul);
  addSchema("FusedGemm", "A:F B:F C?:F", "Y:F",
            "alpha:f=1 beta:f=1 transA:i=0 transB:i=0 activation:s activation_alpha:f activation_beta:f activation_gamma:f",
            inferFusedGemm, fusedGemm);
  addSchema("FusedConv", "X:F W:F B?:F Z?:F", "Y:F", std::string(convAttributes) + "activation:s activation_params:fs",
            inferFusedConv, fusedConv);
  addSchema("NhwcConv", "X:F W:F B?:F", "Y:F", convAttributes, inferNhwcConv, nhwcConv);
}

} // namespace ogc::onnx::contributed
