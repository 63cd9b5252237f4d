//===- ContributedAttention.cpp - Attention, MultiHeadAttention -----------===//
//
// Both become ai.onnx Attention. Masks of com.microsoft hide a key by adding mask_filter_value (finite), not minus infinity: so
// do the bodies.
//
//===----------------------------------------------------------------------===//
#include "compiler/dialect/onnx/ContributedSchema.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace ogc::onnx::contributed {
namespace {

/// An additive mask from a boolean one: 0 where `visible`, the filter value elsewhere.
std::string filtered(Body &b, const std::string &visible, llvm::StringRef like) {
  std::string zero = b.scalar(0, like), hidden = b.scalar(b.real("mask_filter_value", -10000.0f), like);
  return b.make("Where (" + visible + ", " + zero + ", " + hidden + ")");
}

/// Positions 0 … n - 1 as int32.
std::string positions(Body &b, int64_t n) {
  std::string from = b.make("Constant <value_int = 0> ()"), to = b.make("Constant <value_int = " + llvm::Twine(n) + "> ()"),
              step = b.make("Constant <value_int = 1> ()");
  return b.make("Cast <to = 6> (" + b.make("Range (" + from + ", " + to + ", " + step + ")") + ")");
}

/// True (as bool) where a mask of numbers is not zero, in the given shape.
std::string nonzero(Body &b, llvm::StringRef mask, llvm::ArrayRef<int64_t> shape) {
  return b.reshape(b.make("Cast <to = 9> (" + mask + ")"), shape);
}

/// A mask operand in any of the forms that onnxruntime takes, as an additive [B, 1, S or 1, T]; "" when the operand is absent.
std::string paddingMask(Body &b, llvm::StringRef mask, int64_t batch, int64_t queries, int64_t keys, llvm::StringRef like) {
  if (!b.has(mask))
    return "";
  Dims shape = b.shape(mask);
  if (shape == Dims{batch, keys})
    return filtered(b, nonzero(b, mask, {batch, 1, 1, keys}), like);
  if (shape == Dims{batch, queries, keys})
    return filtered(b, nonzero(b, mask, {batch, 1, queries, keys}), like);
  if (shape.size() == 4 && shape[0] == batch && shape[1] == 1 && shape[2] >= keys && shape[3] >= keys) {
    // The rows of the last queries.
    std::string rows = b.slice(b.slice(mask, 2, keys - queries, keys), 3, 0, keys);
    return filtered(b, nonzero(b, rows, {batch, 1, queries, keys}), like);
  }
  if (shape == Dims{batch} || shape == Dims{2 * batch}) {
    // Ends of the keys that count, then their begins.
    std::string key = b.reshape(positions(b, keys), {1, 1, 1, keys});
    std::string end = b.reshape(b.slice(mask, 0, 0, batch), {batch, 1, 1, 1});
    std::string visible = b.make("Less (" + key + ", " + end + ")");
    if (shape[0] == 2 * batch && shape[0] != batch) {
      std::string begin = b.reshape(b.slice(mask, 0, batch, 2 * batch), {batch, 1, 1, 1});
      visible = b.make("And (" + visible + ", " + b.make("GreaterOrEqual (" + key + ", " + begin + ")") + ")");
    }
    return filtered(b, visible, like);
  }
  b.refuse(mask + " has shape " + listOf(shape) + ", which is not supported with " + llvm::Twine(queries) + " queries and " +
           llvm::Twine(keys) + " keys");
}

/// Two additive masks as one; either may be "".
std::string joinMasks(Body &b, const std::string &one, const std::string &other) {
  if (one.empty() || other.empty())
    return one + other;
  return b.make("Add (" + one + ", " + other + ")");
}

/// Operands of ai.onnx Attention; names are "" where absent.
struct Operands {
  std::string query, key, value, mask, pastKey, pastValue;
  int64_t queries = 0; ///< rows of `query`
};

/// Attention on operands with three dimensions.
void writeAttention(Body &b, const Operands &in, int64_t heads, llvm::StringRef result, llvm::StringRef presentKey,
                    llvm::StringRef presentValue) {
  std::string attributes = "q_num_heads = " + std::to_string(heads) + ", kv_num_heads = " + std::to_string(heads);
  if (float scale = b.real("scale"); scale != 0)
    attributes += ", scale = " + literal(scale);
  // A single query is the last one: it sees keys of another length, too, to their end, as in onnxruntime.
  if (b.integer("unidirectional") && in.queries > 1)
    attributes += ", is_causal = 1";
  std::string results = result.str(), operands = in.query + ", " + in.key + ", " + in.value;
  if (!presentKey.empty())
    results += (", " + presentKey + ", " + presentValue).str();
  if (!in.mask.empty() || !in.pastKey.empty())
    operands += ", " + (in.mask.empty() ? "" : in.mask);
  if (!in.pastKey.empty())
    operands += ", " + in.pastKey + ", " + in.pastValue;
  b.add(results + " = Attention <" + attributes + "> (" + operands + ")");
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Widths of query, key and value in the weights.
Dims qkvWidths(int64_t total, Dims given) { return given.empty() ? Dims{total / 3, total / 3, total / 3} : given; }

void inferAttention(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  if (context.getNumOutputs() > 1)
    ::onnx::propagateElemTypeFromInputToOutput(context, 0, 1);
  Dims input, bias, past;
  if (!partialShape(context, 0, input) || !partialShape(context, 1, bias))
    return;
  Dims given;
  ::onnx::getRepeatedAttribute(context, "qkv_hidden_sizes", given);
  if (input.size() != 3 || bias.size() != 2 || (given.size() != 3 && !given.empty()))
    fail("input has rank ", input.size(), " and weights rank ", bias.size(), ", expected 3 and 2");
  Dims widths = bias[1] < 0 && given.empty() ? Dims{-1, -1, -1} : qkvWidths(bias[1], given);
  setShape(context, 0, {input[0], input[1], widths[2]});
  int64_t heads = ::onnx::getAttribute(context, "num_heads", 0);
  if (context.getNumOutputs() < 2 || heads < 1 || input[1] < 0 || widths[1] < 0)
    return;
  bool hasPast = context.getNumInputs() > 4 && context.getInputType(4) && context.getInputType(4)->tensor_type().has_shape();
  if (hasPast && (!partialShape(context, 4, past) || past.size() != 5))
    fail("past is not of rank 5");
  int64_t length = !hasPast ? 0 : past[3];
  setShape(context, 1, {2, input[0], heads, length < 0 ? -1 : length + input[1], widths[1] / heads});
}

/// Query, key and value from one product, then attention; also the tail of QAttention.
void attentionOfProduct(Body &b, const std::string &product, Dims widths, llvm::StringRef mask, llvm::StringRef extraMask,
                        llvm::StringRef output) {
  int64_t heads = b.integer("num_heads"), batch = b.shape("input")[0], queries = b.shape("input")[1];
  if (heads < 1 || widths.size() != 3 || widths[0] != widths[1] || widths[0] % heads || widths[2] % heads)
    b.refuse("num_heads " + llvm::Twine(heads) + " does not fit the widths " + listOf(widths));
  if (b.integer("do_rotary"))
    b.refuse("do_rotary is 1, which is not supported");
  if (b.integer("past_present_share_buffer"))
    b.refuse("past_present_share_buffer is 1, which is not supported");
  Operands in{b.fresh("q"), b.fresh("k"), b.fresh("v"), "", "", ""};
  b.add(in.query + ", " + in.key + ", " + in.value + " = Split <axis = 2> (" + product + ", " + b.ints(widths) + ")");
  in.queries = queries;
  int64_t keys = queries;
  if (b.has("past")) {
    // [2, B, H, P, D]
    Dims past = b.shape("past");
    keys += past[3];
    Dims half{past[1], past[2], past[3], past[4]};
    in.pastKey = b.reshape(b.slice("past", 0, 0, 1), half);
    in.pastValue = b.reshape(b.slice("past", 0, 1, 2), half);
  }
  in.mask = paddingMask(b, mask, batch, queries, keys, in.query);
  if (!extraMask.empty() && b.has(extraMask))
    in.mask = joinMasks(b, in.mask, extraMask.str());
  if (!b.hasOutput("present"))
    return writeAttention(b, in, heads, output, "", "");
  writeAttention(b, in, heads, output, "present_key", "present_value");
  std::string axis = b.ints(0), key = b.make("Unsqueeze (present_key, " + axis + ")"),
              value = b.make("Unsqueeze (present_value, " + axis + ")");
  b.add("present = Concat <axis = 0> (" + key + ", " + value + ")");
}

void attention(Body &b) {
  if (b.has("past_sequence_length"))
    b.refuse("past_sequence_length is given, which is not supported");
  std::string product = b.make("MatMul (input, weights)");
  if (b.has("bias"))
    product = b.make("Add (" + product + ", bias)");
  attentionOfProduct(b, product, qkvWidths(b.shape("weights")[1], b.integers("qkv_hidden_sizes")), "mask_index", "attention_bias",
                     "output");
}

void inferQAttention(::onnx::InferenceContext &context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 3, 0);
  if (context.getNumOutputs() > 1)
    ::onnx::propagateElemTypeFromInputToOutput(context, 3, 1);
  Dims input, weight, past;
  if (!partialShape(context, 0, input) || !partialShape(context, 1, weight))
    return;
  if (input.size() != 3 || weight.size() != 2)
    fail("input has rank ", input.size(), " and weight rank ", weight.size(), ", expected 3 and 2");
  setShape(context, 0, {input[0], input[1], weight[1] < 0 ? -1 : weight[1] / 3});
  int64_t heads = ::onnx::getAttribute(context, "num_heads", 0);
  if (context.getNumOutputs() < 2 || heads < 1 || weight[1] < 0 || input[1] < 0)
    return;
  bool hasPast = partialShape(context, 8, past) && past.size() == 5;
  int64_t length = hasPast ? past[3] : 0;
  setShape(context, 1, {2, input[0], heads, length < 0 ? -1 : length + input[1], weight[1] / 3 / heads});
}

void qAttention(Body &b) {
  std::string zeroPoints = std::string(b.has("input_zero_point")    ? ", input_zero_point"
                                       : b.has("weight_zero_point") ? ", "
                                                                    : "") +
                           (b.has("weight_zero_point") ? ", weight_zero_point" : "");
  std::string product = b.make("MatMulInteger (input, weight" + zeroPoints + ")");
  product = b.make("CastLike (" + product + ", input_scale)");
  product = b.make("Mul (" + product + ", " + b.make("Mul (input_scale, weight_scale)") + ")");
  product = b.make("Add (" + product + ", bias)");
  attentionOfProduct(b, product, qkvWidths(b.shape("weight")[1], {}), "mask_index", "", "output");
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

void inferMultiHead(::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumOutputs(); ++i)
    ::onnx::propagateElemTypeFromInputToOutput(context, 0, i);
  Dims query, key, value, past;
  int64_t heads = ::onnx::getAttribute(context, "num_heads", 0);
  if (!partialShape(context, 0, query) || heads < 1)
    return;
  bool hasKey = partialShape(context, 1, key), hasValue = partialShape(context, 2, value);
  int64_t width = query.size() == 5   ? (query[2] < 0 || query[4] < 0 ? -1 : query[2] * query[4])
                  : query.size() == 3 ? query[2]
                                      : -1;
  int64_t valueWidth = hasValue && value.size() == 3 ? value[2] : hasValue && value.size() == 4 ? value[1] * value[3] : width;
  int64_t length = hasKey ? (key.size() == 4 ? key[2] : key[1]) : query[1];
  if (query.size() != 3 && query.size() != 5)
    fail("query has rank ", query.size(), ", expected 3 or 5");
  setShape(context, 0, {query[0], query[1], valueWidth});
  if (partialShape(context, 6, past) && past.size() == 4)
    length = past[2] < 0 || length < 0 ? -1 : past[2] + length;
  setShape(context, 1, {query[0], heads, length, width < 0 ? -1 : width / heads});
  setShape(context, 2, {query[0], heads, length, valueWidth < 0 ? -1 : valueWidth / heads});
}

/// A part of a packed tensor [B, S, H, parts, D] as [B, S, H * D].
std::string unpack(Body &b, llvm::StringRef packed, int64_t part) {
  Dims shape = b.shape(packed);
  return b.reshape(b.slice(packed, 3, part, part + 1), {shape[0], shape[1], shape[2] * shape[4]});
}

/// `value` with the bias of columns [begin, begin + width).
std::string addBias(Body &b, const std::string &value, int64_t begin, int64_t width) {
  return b.has("bias") ? b.make("Add (" + value + ", " + b.slice("bias", 0, begin, begin + width) + ")") : value;
}

/// [B, H, T, D] as [B, T, H * D].
std::string mergeHeads(Body &b, llvm::StringRef value) {
  Dims shape = b.shape(value);
  return b.reshape(b.transpose(value, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

void checkMultiHead(const Body &b) {
  for (llvm::StringRef input : {"past_sequence_length", "cache_indirection"})
    if (b.has(input))
      b.refuse("input " + input + " is given, which is not supported");
  if (b.hasOutput("qk"))
    b.refuse("output qk is used, which is not supported");
}

void multiHead(Body &b) {
  checkMultiHead(b);
  int64_t heads = b.integer("num_heads");
  Dims query = b.shape("query");
  int64_t batch = query[0], queries = query[1], keys = queries, width = query.size() == 5 ? query[2] * query[4] : query[2];
  int64_t valueWidth = width;
  Operands in;
  if (query.size() == 5) {
    in = {unpack(b, "query", 0), unpack(b, "query", 1), unpack(b, "query", 2), "", "", ""};
  } else if (!b.has("value")) {
    keys = b.shape("key")[1];
    in = {"query", unpack(b, "key", 0), unpack(b, "key", 1), "", "", ""};
  } else {
    Dims key = b.shape("key"), value = b.shape("value");
    keys = key.size() == 4 ? key[2] : key[1];
    valueWidth = value.size() == 4 ? value[1] * value[3] : value[2];
    in = {"query", key.size() == 4 ? mergeHeads(b, "key") : "key", value.size() == 4 ? mergeHeads(b, "value") : "value", "", "",
          ""};
  }
  in.query = addBias(b, in.query, 0, width);
  // Keys and values of four dimensions come from another attention and have their bias.
  if (!b.has("key") || b.rank("key") != 4) {
    in.key = addBias(b, in.key, width, width);
    in.value = addBias(b, in.value, 2 * width, valueWidth);
  }
  if (b.integer("unidirectional") && queries > 1 && keys > queries)
    b.refuse("unidirectional is 1 with " + llvm::Twine(queries) + " queries and " + llvm::Twine(keys) +
             " keys, expected as many: providers of onnxruntime disagree on which keys the queries see");
  in.queries = queries;
  if (b.has("past_key") && b.has("past_value")) {
    in.pastKey = "past_key";
    in.pastValue = "past_value";
    keys += b.shape("past_key")[2];
  }
  in.mask = paddingMask(b, "key_padding_mask", batch, queries, keys, in.query);
  if (b.has("attention_bias"))
    in.mask = joinMasks(b, in.mask, "attention_bias");
  bool hasPresent = b.hasOutput("present_key");
  writeAttention(b, in, heads, "output", hasPresent ? "present_key" : "", hasPresent ? "present_value" : "");
}

} // namespace

void addAttentionSchemas() {
  addSchema(
      "Attention", "input:F weights:F bias?:F mask_index?:int32 past?:F attention_bias?:F past_sequence_length?:int32",
      "output:F present?:F",
      "num_heads:i! unidirectional:i=0 qkv_hidden_sizes:is mask_filter_value:f scale:f do_rotary:i=0 rotary_embedding_dim:i "
      "past_present_share_buffer:i",
      inferAttention, attention);
  addSchema(
      "QAttention",
      "input:Q weight:Q1 bias:F input_scale:F weight_scale:F mask_index?:int32 input_zero_point?:Q weight_zero_point?:Q1 past?:F",
      "output:F present?:F",
      "num_heads:i! unidirectional:i=0 mask_filter_value:f scale:f do_rotary:i=0 past_present_share_buffer:i", inferQAttention,
      qAttention);
  addSchema("MultiHeadAttention",
            "query:F key?:F value?:F bias?:F key_padding_mask?:int32 attention_bias?:F past_key?:F past_value?:F "
            "past_sequence_length?:int32 cache_indirection?:int32",
            "output:F present_key?:F present_value?:F qk?:F", "num_heads:i! mask_filter_value:f scale:f unidirectional:i=0",
            inferMultiHead, multiHead);
}

} // namespace ogc::onnx::contributed
