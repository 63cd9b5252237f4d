//===- ContributedNormalization.cpp - layer normalizations with a sum ----===//
#include "compiler/dialect/onnx/ContributedSchema.h"

namespace ogc::onnx::contributed {
namespace {

/// [..., 1] in f32 for the statistics.
void inferStatistics(::onnx::InferenceContext &context, size_t firstOutput, size_t count) {
  Dims shape;
  bool isKnown = partialShape(context, 0, shape) && !shape.empty();
  for (size_t i = firstOutput; i < firstOutput + count && i < context.getNumOutputs(); ++i) {
    ::onnx::updateOutputElemType(context, i, ::onnx::TensorProto::FLOAT);
    if (!isKnown)
      continue;
    Dims statistics = shape;
    statistics.back() = 1;
    setShape(context, i, statistics);
  }
}

void inferSkip(::onnx::InferenceContext &context) {
  inferLikeFirst(context);
  inferStatistics(context, 1, 2);
  if (context.getNumOutputs() > 3) {
    ::onnx::propagateElemTypeFromInputToOutput(context, 0, 3);
    if (::onnx::hasInputShape(context, 0))
      ::onnx::propagateShapeFromInputToOutput(context, 0, 3);
  }
}

void inferSimplified(::onnx::InferenceContext &context) {
  inferLikeFirst(context);
  inferStatistics(context, 1, 1);
}

/// input + skip + bias; the skip may leave out the batch dimension.
std::string skipSum(Body &b) {
  std::string sum = b.make("Add (input, skip)");
  if (b.has("bias"))
    sum = b.make("Add (" + sum + ", bias)");
  if (b.hasOutput("input_skip_bias_sum"))
    b.add("input_skip_bias_sum = Identity (" + sum + ")");
  return sum;
}

void skipLayerNormalization(Body &b) {
  std::string sum = skipSum(b), beta = b.has("beta") ? ", beta" : "";
  std::string results = b.hasOutput("mean") ? "output, mean, inv_std_var" : "output";
  b.add(results + " = LayerNormalization <axis = -1, epsilon = " + literal(b.real("epsilon")) + "> (" + sum + ", gamma" + beta +
        ")");
}

/// 1 / sqrt(mean of squares + epsilon) of the last dimension, in f32.
void inverseRoot(Body &b, const std::string &x, const std::string &result, int64_t axis) {
  std::string wide = b.make("Cast <to = 1> (" + x + ")"), axes = b.ints(axis), epsilon = b.scalar(b.real("epsilon"));
  std::string square = b.make("Mul (" + wide + ", " + wide + ")"), mean = b.make("ReduceMean (" + square + ", " + axes + ")");
  std::string shifted = b.make("Add (" + mean + ", " + epsilon + ")"), root = b.make("Sqrt (" + shifted + ")");
  b.add(result + " = Reciprocal (" + root + ")");
}

void skipSimplifiedLayerNormalization(Body &b) {
  std::string sum = skipSum(b);
  b.add("output = RMSNormalization <axis = -1, epsilon = " + literal(b.real("epsilon")) + "> (" + sum + ", gamma)");
  if (b.hasOutput("mean"))
    b.add("mean = Identity (" + b.make("ReduceMean (" + b.make("Cast <to = 1> (" + sum + ")") + ", " + b.ints(-1) + ")") + ")");
  if (b.hasOutput("inv_std_var"))
    inverseRoot(b, sum, "inv_std_var", -1);
}

void simplifiedLayerNormalization(Body &b) {
  int64_t axis = b.integer("axis", -1);
  b.add("Y = RMSNormalization <axis = " + llvm::Twine(axis) + ", epsilon = " + literal(b.real("epsilon")) + "> (X, scale)");
  if (!b.hasOutput("inv_std_var"))
    return;
  if (axis != -1 && axis != b.rank("X") - 1)
    b.refuse("output inv_std_var is used and axis is " + llvm::Twine(axis) + ", expected the last");
  inverseRoot(b, "X", "inv_std_var", -1);
}

void inferEmbed(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 2, 0);
  if (context.getNumOutputs() > 1)
    ::onnx::updateOutputElemType(context, 1, ::onnx::TensorProto::INT32);
  if (context.getNumOutputs() > 2)
    ::onnx::propagateElemTypeFromInputToOutput(context, 2, 2);
  Dims ids, table;
  if (!partialShape(context, 0, ids) || !partialShape(context, 2, table))
    return;
  if (ids.size() != 2 || table.size() != 2)
    fail("input_ids and word_embedding are not of rank 2");
  setShape(context, 0, {ids[0], ids[1], table[1]});
  setShape(context, 1, {ids[0]});
  setShape(context, 2, {ids[0], ids[1], table[1]});
}

void embedLayerNormalization(Body &b) {
  Dims ids = b.shape("input_ids");
  std::string sum = b.make("Gather (word_embedding, input_ids)"), positions;
  if (b.has("position_ids"))
    positions = b.make("Gather (position_embedding, position_ids)");
  else
    positions = b.slice("position_embedding", 0, 0, ids[1]);
  sum = b.make("Add (" + sum + ", " + positions + ")");
  if (b.has("segment_ids") && b.has("segment_embedding"))
    sum = b.make("Add (" + sum + ", " + b.make("Gather (segment_embedding, segment_ids)") + ")");
  b.add("output = LayerNormalization <axis = -1, epsilon = " + literal(b.real("epsilon")) + "> (" + sum + ", gamma, beta)");
  if (b.hasOutput("mask_index")) {
    // The number of positions that count.
    std::string counts = b.has("mask") ? b.make("ReduceSum <keepdims = 0> (mask, " + b.ints(1) + ")")
                                       : b.make("Expand (" + b.make("Constant <value_int = 0> ()") + ", " + b.ints(ids[0]) + ")");
    b.add("mask_index = Cast <to = 6> (" + counts + ")");
  }
  if (b.hasOutput("embedding_sum"))
    b.add("embedding_sum = Identity (" + sum + ")");
}

} // namespace

void addNormalizationSchemas() {
  constexpr const char *outputs = "output:F mean?:float inv_std_var?:float input_skip_bias_sum?:F";
  addSchema("SkipLayerNormalization", "input:F skip:F gamma:F beta?:F bias?:F", outputs, "epsilon:f=1e-12", inferSkip,
            skipLayerNormalization);
  addSchema("SkipSimplifiedLayerNormalization", "input:F skip:F gamma:F bias?:F", outputs, "epsilon:f=1e-12", inferSkip,
            skipSimplifiedLayerNormalization);
  // onnxruntime writes these into ai.onnx, whatever the opset.
  addSchema("SimplifiedLayerNormalization", "X:F scale:F1", "Y:F1 inv_std_var?:float", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1",
            inferSimplified, simplifiedLayerNormalization, "");
  addSchema("LayerNormalization", "X:F Scale:F B?:F", "Y:F Mean?:float InvStdDev?:float",
            "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", inferLikeFirst, nullptr, "");
  addSchema(
      "EmbedLayerNormalization",
      "input_ids:int32 segment_ids?:int32 word_embedding:F position_embedding:F segment_embedding?:F gamma:F beta:F mask?:int32 "
      "position_ids?:int32",
      "output:F mask_index?:int32 embedding_sum?:F", "epsilon:f=1e-12 mask_index_type:i=0", inferEmbed, embedLayerNormalization);
}

} // namespace ogc::onnx::contributed
