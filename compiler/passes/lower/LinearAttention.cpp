//===- LinearAttention.cpp - attention with a recurrent state -------------===//
//
// The columns of the state [key size, value size] do not depend on each other: one thread takes one column of one head through
// all steps.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/Program.h"

#include <cmath>

using namespace mlir;

namespace ogc::lower {
namespace {

/// Extents and variants of the operator.
struct Recurrence {
  int64_t batch, steps, heads, keyHeads, keySize, valueSize;
  bool decays, corrects, decaysByKey, betaByHead;
  float scale;
  std::optional<unsigned> past, decay, beta; ///< numbers of the inputs of the program
};

/// One column of the state in its buffer (output 2).
struct Column {
  ProgramBody &p;
  const Recurrence &r;
  Value batch, head, number;

  Value at(Value d) const {
    Value row = p.plus(p.times(p.plus(p.times(batch, r.keyHeads), head), r.keySize), d);
    return p.plus(p.times(row, r.valueSize), number);
  }
  Value get(Value d) const { return p.load(p.output(2), at(d)); }
  void set(Value d, Value v) const { p.store(p.output(2), at(d), v); }
  Value row(Value step) const { return p.plus(p.times(batch, r.steps), step); }
  /// Element d of this head in [B, T, heads * size].
  Value element(unsigned input, Value step, Value headNumber, int64_t numHeads, int64_t size, Value d) const {
    return p.load(p.input(input), p.plus(p.times(p.plus(p.times(row(step), numHeads), headNumber), size), d));
  }
};

/// The state decays; returns what it holds for the key of this step.
Value decayAndRetrieve(const Column &c, Value step) {
  ProgramBody &p = c.p;
  const Recurrence &r = c.r;
  Type f32 = p.b.getF32Type();
  auto each = [&](Value d, ValueRange sum) -> SmallVector<Value> {
    Value state = c.get(d);
    if (r.decays) {
      Value decay = r.decaysByKey ? c.element(*r.decay, step, c.head, r.keyHeads, r.keySize, d)
                                  : c.element(*r.decay, step, c.head, r.keyHeads, 1, p.index(0));
      state = p.mul(state, p.exp(decay));
      c.set(d, state);
    }
    return {p.add(sum[0], p.mul(state, c.element(1, step, c.head, r.keyHeads, r.keySize, d)))};
  };
  return p.loop(p.index(0), p.index(r.keySize), p.cst(f32, 0.0), each)[0];
}

void oneStep(const Column &c, Value step) {
  ProgramBody &p = c.p;
  const Recurrence &r = c.r;
  Value value = c.element(2, step, c.head, r.keyHeads, r.valueSize, c.number);
  if (r.decays || r.corrects) {
    Value retrieved = decayAndRetrieve(c, step);
    if (r.corrects) {
      Value beta =
          r.betaByHead ? c.element(*r.beta, step, c.head, r.keyHeads, 1, p.index(0)) : p.load(p.input(*r.beta), c.row(step));
      value = p.mul(beta, p.sub(value, retrieved));
    }
  }
  int64_t shared = r.heads / r.keyHeads; // query heads that read one state
  Value first = p.times(c.head, shared);
  SmallVector<Value> zeros(shared, p.cst(p.b.getF32Type(), 0.0));
  SmallVector<Value> sums = p.loop(p.index(0), p.index(r.keySize), zeros, [&](Value d, ValueRange carried) {
    Value state = p.add(c.get(d), p.mul(c.element(1, step, c.head, r.keyHeads, r.keySize, d), value));
    c.set(d, state);
    SmallVector<Value> next;
    for (auto [j, sum] : llvm::enumerate(carried)) {
      Value query = c.element(0, step, p.plus(first, static_cast<int64_t>(j)), r.heads, r.keySize, d);
      next.push_back(p.add(sum, p.mul(query, state)));
    }
    return next;
  });
  for (auto [j, sum] : llvm::enumerate(sums)) {
    Value head = p.plus(p.times(c.row(step), r.heads), p.plus(first, static_cast<int64_t>(j)));
    p.store(p.output(0), p.plus(p.times(head, r.valueSize), c.number), p.mul(sum, p.cst(sum.getType(), r.scale)));
  }
}

void emit(ProgramBody &p, const Recurrence &r) {
  SmallVector<Value> at = p.split(p.group(), {r.batch, r.keyHeads, r.valueSize});
  Column c{p, r, at[0], at[1], at[2]};
  Value size = p.index(r.keySize);
  p.loop(p.index(0), size, [&](Value d) {
    Value past = r.past ? p.load(p.input(*r.past), c.at(d)) : p.cst(p.b.getF32Type(), 0.0);
    c.set(d, past);
  });
  p.loop(p.index(0), p.index(r.steps), [&](Value step) { oneStep(c, step); });
  p.loop(p.index(0), size, [&](Value d) { p.store(p.output(1), c.at(d), c.get(d)); });
}

FailureOr<Recurrence> readRecurrence(Node &n) {
  n.op.ignore("chunk_size"); // a hint
  StringRef rule = n.op.getStr("update_rule", "gated_delta");
  if (!llvm::is_contained({"linear", "gated", "delta", "gated_delta"}, rule))
    return n.fail("update_rule is '" + rule + "', expected linear, gated, delta or gated_delta");
  Recurrence r{};
  r.heads = n.op.getI64("q_num_heads");
  r.keyHeads = n.op.getI64("kv_num_heads");
  r.decays = rule.starts_with("gated");
  r.corrects = rule.ends_with("delta");
  if (n.has(4) != r.decays || n.has(5) != r.corrects)
    return n.fail("update_rule is '" + rule + "', which does not go with the given decay and beta");
  for (int i : {0, 1, 2, 4, 5})
    if (n.has(i) && n.inRank(i) != 3)
      return n.fail("operand " + Twine(i) + " has rank " + Twine(n.inRank(i)) + ", expected 3");
  if (r.heads < 1 || r.keyHeads < 1 || r.heads % r.keyHeads || n.inShape(0)[2] % r.heads || n.inShape(2)[2] % r.keyHeads)
    return n.fail("q_num_heads is " + Twine(r.heads) + " and kv_num_heads " + Twine(r.keyHeads) +
                  ", which do not fit the operands");
  r.batch = n.inShape(0)[0];
  r.steps = n.inShape(0)[1];
  r.keySize = n.inShape(0)[2] / r.heads;
  r.valueSize = n.inShape(2)[2] / r.keyHeads;
  r.decaysByKey = r.decays && n.inShape(4)[2] != r.keyHeads;
  r.betaByHead = r.corrects && n.inShape(5)[2] != 1;
  bool fits = n.inShape(1)[2] == r.keyHeads * r.keySize && (!r.decaysByKey || n.inShape(4)[2] == r.keyHeads * r.keySize) &&
              (!r.betaByHead || n.inShape(5)[2] == r.keyHeads);
  if (!fits || (n.has(3) && numElements(n.inShape(3)) != r.batch * r.keyHeads * r.keySize * r.valueSize))
    return n.fail("key, decay, beta or past_state do not fit " + Twine(r.keyHeads) + " heads of size " + Twine(r.keySize));
  r.scale = n.op.findF32("scale").value_or(0.0f);
  if (r.scale == 0.0f)
    r.scale = 1.0f / std::sqrt(static_cast<float>(r.keySize));
  return r;
}

LogicalResult linearAttention(Node &n) {
  FailureOr<Recurrence> r = readRecurrence(n);
  if (failed(r))
    return failure();
  Type f32 = n.b.getF32Type();
  SmallVector<Value> inputs;
  auto add = [&](int i) -> std::optional<unsigned> {
    if (!n.has(i))
      return std::nullopt;
    inputs.push_back(convertFloat(n.b, n.in(i), f32));
    return static_cast<unsigned>(inputs.size() - 1);
  };
  for (int i : {0, 1, 2})
    add(i);
  r->past = add(3);
  r->decay = add(4);
  r->beta = add(5);
  auto state = RankedTensorType::get({r->batch, r->keyHeads, r->keySize, r->valueSize}, f32);
  SmallVector<RankedTensorType> types{n.outType(), n.op.output(1) ? n.outType(1) : state, state};
  if (numElements(n.outShape()) == 0 || numElements(state.getShape()) == 0)
    return n.fail("has no elements");
  SmallVector<Value> results =
      program(n.b, inputs, types, r->batch * r->keyHeads * r->valueSize, [&](ProgramBody &p) { emit(p, *r); });
  if (failed(n.result(results[0])))
    return failure();
  return n.op.output(1) ? n.result(results[1]) : success();
}

} // namespace

void registerLinearAttention(Table &t) { t.add("LinearAttention", linearAttention); }

} // namespace ogc::lower
