//===- ContributedCache.cpp - RotaryEmbedding, GroupQueryAttention --------===//
#include "compiler/dialect/onnx/ContributedSchema.h"

#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <limits>

namespace ogc::onnx::contributed {
namespace {

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

/// Positions first + 0, first + 1, … of n tokens for each batch: [B, n] int64; `first` is [B, 1] or [1, 1].
std::string positionsFrom(Body &b, const std::string &first, int64_t batch, int64_t n) {
  std::string zero = b.make("Constant <value_int = 0> ()"), end = b.make("Constant <value_int = " + llvm::Twine(n) + "> ()"),
              one = b.make("Constant <value_int = 1> ()");
  std::string steps = b.make("Range (" + zero + ", " + end + ", " + one + ")");
  std::string sum = b.make("Add (" + first + ", " + steps + ")");
  return b.make("Expand (" + sum + ", " + b.ints({batch, n}) + ")");
}

std::string rotaryAttributes(const Body &b, int64_t interleaved, int64_t heads, int64_t dim) {
  std::string text = "interleaved = " + std::to_string(interleaved);
  if (heads)
    text += ", num_heads = " + std::to_string(heads);
  if (dim)
    text += ", rotary_embedding_dim = " + std::to_string(dim);
  return text;
}

void rotaryEmbedding(Body &b) {
  if (b.real("scale", 1) != 1)
    b.refuse("scale is " + literal(b.real("scale")) + ", expected 1");
  if (b.integer("is_packed_batching"))
    b.refuse("is_packed_batching is 1, which is not supported");
  Dims shape = b.shape("input"), ids = b.shape("position_ids");
  int64_t heads = b.integer("num_heads"), dim = b.integer("rotary_embedding_dim"), size = 2 * b.shape("cos_cache")[1];
  int64_t length = shape.size() == 4 ? shape[2] : shape[1];
  if (shape.size() == 3) {
    if (!heads && !dim)
      heads = shape[2] / size;
    if (!heads || shape[2] % heads)
      b.refuse("num_heads is " + llvm::Twine(heads) + ", expected a divisor of " + llvm::Twine(shape[2]));
    size = shape[2] / heads;
  } else {
    heads = 0;
    size = shape[3];
  }
  if (dim == 0 && 2 * b.shape("cos_cache")[1] != size)
    dim = 2 * b.shape("cos_cache")[1];
  std::string positions = "position_ids";
  if (ids != Dims{shape[0], length})
    positions = positionsFrom(b, b.reshape("position_ids", {1, 1}), shape[0], length);
  b.add("output = RotaryEmbedding <" + rotaryAttributes(b, b.integer("interleaved"), heads, dim) +
        "> (input, cos_cache, sin_cache, " + positions + ")");
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

/// What is known of the extents. `capacity` is that of the present; -1 where unknown.
struct Extents {
  int64_t batch, queries, heads, keyHeads, size, capacity;
};

/// The present has room for the whole sequence, and at least the extent of the past. Where the length of the sequence is no
/// constant, past and present are one buffer of fixed capacity.
int64_t presentLength(int64_t past, int64_t queries, int64_t total) {
  if (past < 0 || queries < 0)
    return -1;
  if (total >= 0)
    return std::max(past, total);
  return past ? past : queries;
}

void inferGroupQuery(::onnx::InferenceContext &context) {
  for (size_t i = 0; i < context.getNumOutputs(); ++i)
    ::onnx::propagateElemTypeFromInputToOutput(context, 0, i);
  Dims query, past;
  int64_t heads = ::onnx::getAttribute(context, "num_heads", 0), keyHeads = ::onnx::getAttribute(context, "kv_num_heads", 0);
  if (heads < 1 || keyHeads < 1 || heads % keyHeads)
    fail("num_heads is ", heads, ", expected a multiple of kv_num_heads ", keyHeads);
  if (!partialShape(context, 0, query))
    return;
  if (query.size() != 3)
    fail("query has rank ", query.size(), ", expected 3");
  bool isPacked = context.getNumInputs() < 2 || !context.getInputType(1);
  int64_t size = query[2] < 0 ? -1 : query[2] / (isPacked ? heads + 2 * keyHeads : heads);
  setShape(context, 0, {query[0], query[1], size < 0 ? -1 : size * heads});
  bool hasPast = partialShape(context, 3, past);
  if (hasPast && past.size() != 4)
    fail("past_key has rank ", past.size(), ", expected 4");
  const ::onnx::TensorProto *total = context.getInputData(6);
  std::vector<int32_t> values = total ? ::onnx::ParseData<int32_t>(total) : std::vector<int32_t>();
  int64_t length = presentLength(hasPast ? past[2] : 0, query[1], values.size() == 1 ? values[0] : -1);
  // Before shapes are known, no extent may be settled that later turns out otherwise.
  if (!total && hasPast)
    length = past[2] > 0 ? past[2] : past[2] == 0 ? query[1] : -1;
  for (size_t i : {1, 2})
    setShape(context, i, {query[0], keyHeads, length, size});
}

/// The cache with the new rows at each batch's position: past [B, HK, P, D] and rows [B, HK, S, D] give [B, HK, C, D].
std::string updateCache(Body &b, llvm::StringRef past, const std::string &rows, const std::string &first, const Extents &e) {
  Dims shape = b.has(past) ? b.shape(past) : Dims{e.batch, e.keyHeads, 0, e.size};
  if (shape[2] == 0 && e.capacity == e.queries)
    return rows;
  std::string cache = past.str();
  if (shape[2] < e.capacity) {
    std::string zero = b.scalar(0, "query"), room = b.ints({e.batch, e.keyHeads, e.capacity - shape[2], e.size});
    std::string rest = b.make("Expand (" + zero + ", " + room + ")");
    cache = shape[2] == 0 ? rest : b.make("Concat <axis = 2> (" + past + ", " + rest + ")");
  }
  return b.make("TensorScatter <axis = -2> (" + cache + ", " + rows + ", " + first + ")");
}

/// The cache with zeros in the rows from `length` [B] on. Nobody wrote those; a NaN in them would pass through the attention,
/// which multiplies what is masked out by zero.
std::string clearUnused(Body &b, const std::string &cache, const std::string &length, const Extents &e) {
  std::string row = b.reshape(positionsFrom(b, b.ints({0}), 1, e.capacity), {1, 1, e.capacity, 1});
  std::string isUsed = b.make("Less (" + row + ", " + b.reshape(length, {e.batch, 1, 1, 1}) + ")");
  return b.make("Where (" + isUsed + ", " + cache + ", " + b.scalar(0, "query") + ")");
}

/// True where a query sees a key, [B, 1, S, C]: `position` is [B, S].
std::string visibleKeys(Body &b, const std::string &position, const Extents &e) {
  std::string key = b.reshape(positionsFrom(b, b.ints({0}), 1, e.capacity), {1, 1, 1, e.capacity});
  std::string query = b.reshape(position, {e.batch, 1, e.queries, 1});
  std::string visible = b.make("LessOrEqual (" + key + ", " + query + ")");
  if (int64_t window = b.integer("local_window_size", -1); window > 0) {
    // The query itself and the keys right before it, `window` in all.
    std::string oldest = b.make("Sub (" + query + ", " + b.ints({window}) + ")");
    visible = b.make("And (" + visible + ", " + b.make("Greater (" + key + ", " + oldest + ")") + ")");
  }
  return visible;
}

/// A key that is always seen, with score 0 or that of head_sink and no value: takes its share of the softmax.
void appendSink(Body &b, std::string &key, std::string &value, std::string &mask, Extents &e) {
  std::string zero = b.scalar(0, "query");
  std::string row = b.make("Expand (" + zero + ", " + b.ints({e.batch, e.keyHeads, 1, e.size}) + ")");
  key = b.make("Concat <axis = 2> (" + key + ", " + row + ")");
  value = b.make("Concat <axis = 2> (" + value + ", " + row + ")");
  std::string sink = b.has("head_sink") ? b.reshape("head_sink", {1, e.heads, 1, 1}) : b.reshape(zero, {1, 1, 1, 1});
  std::string column = b.make("Expand (" + sink + ", " + b.ints({e.batch, e.heads, e.queries, 1}) + ")");
  std::string wide = b.make("Expand (" + mask + ", " + b.ints({e.batch, e.heads, e.queries, e.capacity}) + ")");
  mask = b.make("Concat <axis = 3> (" + wide + ", " + column + ")");
}

Extents readExtents(Body &b) {
  Dims query = b.shape("query");
  Extents e{query[0], query[1], b.integer("num_heads"), b.integer("kv_num_heads"), 0, 0};
  e.size = query[2] / (b.has("key") ? e.heads : e.heads + 2 * e.keyHeads);
  return e;
}

void checkGroupQuery(Body &b) {
  if (b.integer("qk_output"))
    b.refuse("qk_output is " + llvm::Twine(b.integer("qk_output")) + ", expected 0");
  for (llvm::StringRef name : {"k_quant_type", "v_quant_type"})
    if (std::string type = b.text(name); !type.empty() && type != "NONE")
      b.refuse(name + " is '" + type + "', expected NONE");
  if (b.has("past_key") != b.has("past_value"))
    b.refuse("only one of past_key and past_value is given");
}

/// Query, key and value as [B, heads, S, D], rotated where asked for.
void splitHeads(Body &b, const Extents &e, const std::string &position, std::string &query, std::string &key,
                std::string &value) {
  query = "query", key = "key", value = "value";
  if (!b.has("key")) {
    query = b.fresh("q"), key = b.fresh("k"), value = b.fresh("v");
    std::string widths = b.ints({e.heads * e.size, e.keyHeads * e.size, e.keyHeads * e.size});
    b.add(query + ", " + key + ", " + value + " = Split <axis = 2> (query, " + widths + ")");
  }
  auto outside = [&](const std::string &x, int64_t heads) {
    return b.transpose(b.reshape(x, {e.batch, e.queries, heads, e.size}), {0, 2, 1, 3});
  };
  query = outside(query, e.heads), key = outside(key, e.keyHeads), value = outside(value, e.keyHeads);
  if (!b.integer("do_rotary"))
    return;
  if (!b.has("cos_cache") || !b.has("sin_cache"))
    b.refuse("do_rotary is 1, but cos_cache or sin_cache is missing");
  int64_t dim = 2 * b.shape("cos_cache")[1];
  std::string attributes = rotaryAttributes(b, b.integer("rotary_interleaved"), 0, dim == e.size ? 0 : dim);
  std::string ids = b.has("position_ids") ? "position_ids" : position;
  for (std::string *x : {&query, &key})
    *x = b.make("RotaryEmbedding <" + attributes + "> (" + *x + ", cos_cache, sin_cache, " + ids + ")");
}

void groupQuery(Body &b) {
  checkGroupQuery(b);
  Extents e = readExtents(b);
  Dims past = b.has("past_key") ? b.shape("past_key") : Dims{e.batch, e.keyHeads, 0, e.size};
  if (past.size() != 4 || past[0] != e.batch || past[1] != e.keyHeads || past[3] != e.size)
    b.refuse("past_key has shape " + listOf(past) + ", expected " + listOf({e.batch, e.keyHeads, -1, e.size}));
  e.capacity = presentLength(past[2], e.queries, b.constantInteger("total_sequence_length", -1));
  // seqlens_k is the number of keys less one. Before the new rows lie that many less the new ones; a prompt, also one padded at
  // its end, begins at 0.
  std::string last = b.reshape(b.make("Cast <to = 7> (seqlens_k)"), {e.batch});
  std::string before = b.make("Sub (" + last + ", " + b.ints({e.queries - 1}) + ")");
  std::string first = b.make("Max (" + before + ", " + b.ints({0}) + ")");
  std::string position = positionsFrom(b, b.reshape(first, {e.batch, 1}), e.batch, e.queries);
  std::string query, key, value;
  splitHeads(b, e, position, query, key, value);
  key = updateCache(b, "past_key", key, first, e);
  value = updateCache(b, "past_value", value, first, e);
  if (b.hasOutput("present_key"))
    b.add("present_key = Identity (" + key + ")");
  if (b.hasOutput("present_value"))
    b.add("present_value = Identity (" + value + ")");
  bool isFull = e.batch == 1 && e.capacity == b.constantInteger("total_sequence_length", e.queries) && (past[2] < e.capacity);
  if (!isFull) {
    std::string length = b.make("Add (" + last + ", " + b.ints({1}) + ")");
    key = clearUnused(b, key, length, e);
    value = clearUnused(b, value, length, e);
  }
  std::string mask = visibleKeys(b, position, e);
  bool hasSink = b.integer("smooth_softmax") > 0 || b.has("head_sink");
  if (b.has("attention_bias") || hasSink) {
    std::string zero = b.scalar(0, "query"), hidden = b.scalar(-std::numeric_limits<double>::infinity(), "query");
    std::string extra = b.has("attention_bias") ? "attention_bias" : zero;
    mask = b.make("Where (" + mask + ", " + extra + ", " + hidden + ")");
  }
  if (hasSink)
    appendSink(b, key, value, mask, e);
  std::string attributes = "scale = " + literal(b.real("scale") != 0 ? b.real("scale") : 1.0 / std::sqrt(double(e.size)));
  if (float cap = b.real("softcap"); cap > 0)
    attributes += ", softcap = " + literal(cap);
  std::string heads = b.make("Attention <" + attributes + "> (" + query + ", " + key + ", " + value + ", " + mask + ")");
  b.add("output = Reshape (" + b.transpose(heads, {0, 2, 1, 3}) + ", " + b.ints({e.batch, e.queries, e.heads * e.size}) + ")");
}

} // namespace

void addCacheSchemas() {
  addSchema("RotaryEmbedding", "input:F position_ids:int64 cos_cache:F sin_cache:F", "output:F",
            "interleaved:i=0 num_heads:i=0 rotary_embedding_dim:i=0 scale:f=1 is_packed_batching:i=0", inferLikeFirst,
            rotaryEmbedding);
  addSchema(
      "GroupQueryAttention",
      "query:F key?:F value?:F past_key?:F past_value?:F seqlens_k:int32 total_sequence_length:int32 cos_cache?:F sin_cache?:F "
      "position_ids?:int64 attention_bias?:F head_sink?:F k_scale?:float v_scale?:float",
      "output:F present_key?:F present_value?:F output_qk?:F",
      "num_heads:i! kv_num_heads:i! scale:f softcap:f=0 local_window_size:i=-1 do_rotary:i=0 rotary_interleaved:i=0 "
      "smooth_softmax:i=-1 qk_output:i=0 kv_cache_bit_width:i k_quant_type:s v_quant_type:s",
      inferGroupQuery, groupQuery);
}

} // namespace ogc::onnx::contributed
