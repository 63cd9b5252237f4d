//===- Recurrent.cpp - LSTM, GRU, RNN -------------------------------------===//
//
// The products with the input of all time steps and directions are one matrix product. The recurrence is one program, a group for
// each direction and sequence of the batch: in every step its threads compute the product with the previous state, one column and
// part of the sum each, then the gates, one hidden unit each.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/lower/Contraction.h"
#include "compiler/passes/lower/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// An activation function with its parameters.
struct Activation {
  StringRef name;
  double alpha = 0, beta = 0;

  Value apply(Scalar &s, Value x) const {
    Type type = x.getType();
    auto c = [&](double v) { return s.cst(type, v); };
    Value zero = c(0);
    auto positive = [&] { return s.cmp(Compare::GreaterOrEqual, x, zero, false); };
    if (name == "sigmoid")
      return s.sigmoid(x);
    if (name == "tanh")
      return s.tanh(x);
    if (name == "relu")
      return s.max(x, zero, false);
    if (name == "affine")
      return s.add(s.mul(x, c(alpha)), c(beta));
    if (name == "leakyrelu")
      return s.select(positive(), x, s.mul(x, c(alpha)));
    if (name == "thresholdedrelu")
      return s.select(s.cmp(Compare::Greater, x, c(alpha), false), x, zero);
    if (name == "scaledtanh")
      return s.mul(s.tanh(s.mul(x, c(beta))), c(alpha));
    if (name == "hardsigmoid")
      return s.min(s.max(s.add(s.mul(x, c(alpha)), c(beta)), zero, false), c(1), false);
    if (name == "elu")
      return s.select(positive(), x, s.mul(s.sub(s.exp(x), c(1)), c(alpha)));
    if (name == "softsign")
      return s.div(x, s.add(s.abs(x, false), c(1)), false);
    return s.softplus(x);
  }
};

struct KnownActivation {
  StringRef name;
  bool hasAlpha, hasBeta;
  double alpha, beta;
};
constexpr KnownActivation knownActivations[] = {
    {"sigmoid", false, false, 0, 0},  {"tanh", false, false, 0, 0},          {"relu", false, false, 0, 0},
    {"affine", true, true, 1, 0},     {"leakyrelu", true, false, 0.01, 0},   {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1}, {"hardsigmoid", true, true, 0.2, 0.5}, {"elu", true, false, 1, 0},
    {"softsign", false, false, 0, 0}, {"softplus", false, false, 0, 0},
};

enum class Kind { Rnn, Gru, Lstm };

/// All that is common to the three operators. `in` of the operator: X, W, R, B, sequence_lens, initial_h, initial_c, P.
struct Layer {
  Kind kind = Kind::Rnn;
  int64_t gates = 1, steps = 0, batch = 0, inputSize = 0, hidden = 0, directions = 1;
  bool batchFirst = false, isReverse = false, linearBeforeReset = false, coupled = false;
  std::optional<float> clip;
  SmallVector<SmallVector<Activation>> activations; ///< for each direction
  Type type;                                        ///< in which it computes

  int64_t columns() const { return gates * hidden; }
};

/// Reads `activations` with their parameters, which are handed out in order to those that take one.
LogicalResult readActivations(Node &n, Layer &layer, ArrayRef<StringRef> defaults) {
  SmallVector<std::string> names;
  for (StringRef name : n.op.getStrs("activations"))
    names.push_back(name.lower());
  if (names.empty())
    for (int64_t d = 0; d < layer.directions; ++d)
      for (StringRef name : defaults)
        names.push_back(name.str());
  size_t expected = layer.directions * defaults.size();
  if (names.size() < expected)
    return n.fail("has " + Twine(names.size()) + " activations, expected " + Twine(expected));
  names.resize(expected); // the default of RNN names those of two directions
  SmallVector<float> alphas = n.op.getF32s("activation_alpha"), betas = n.op.getF32s("activation_beta");
  size_t nextAlpha = 0, nextBeta = 0;
  layer.activations.resize(layer.directions);
  for (auto [i, name] : llvm::enumerate(names)) {
    const KnownActivation *known = llvm::find_if(knownActivations, [&](const KnownActivation &k) { return k.name == name; });
    if (known == std::end(knownActivations))
      return n.fail("activation '" + Twine(name) + "' is not known");
    Activation activation{known->name, known->alpha, known->beta};
    if (known->hasAlpha && nextAlpha < alphas.size())
      activation.alpha = alphas[nextAlpha++];
    if (known->hasBeta && nextBeta < betas.size())
      activation.beta = betas[nextBeta++];
    layer.activations[i / defaults.size()].push_back(activation);
  }
  return success();
}

FailureOr<Layer> readLayer(Node &n, Kind kind, ArrayRef<StringRef> defaults) {
  Layer layer;
  layer.kind = kind;
  layer.gates = kind == Kind::Rnn ? 1 : kind == Kind::Gru ? 3 : 4;
  StringRef direction = n.op.getStr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.fail("direction is '" + direction + "', expected forward, reverse or bidirectional");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.isReverse = direction == "reverse";
  layer.batchFirst = n.op.getI64("layout", 0) != 0;
  layer.linearBeforeReset = kind == Kind::Gru && n.op.getI64("linear_before_reset", 0) != 0;
  layer.coupled = kind == Kind::Lstm && n.op.getI64("input_forget", 0) != 0;
  layer.clip = n.op.findF32("clip");
  if (n.inRank(0) != 3 || n.inRank(1) != 3 || n.inRank(2) != 3)
    return n.fail("X, W and R do not have rank 3");
  layer.steps = n.inShape(0)[layer.batchFirst ? 1 : 0];
  layer.batch = n.inShape(0)[layer.batchFirst ? 0 : 1];
  layer.inputSize = n.inShape(0)[2];
  layer.hidden = n.inShape(2)[2];
  layer.type = computeType(n.inElement(0));
  if (int64_t size = n.op.getI64("hidden_size", layer.hidden); size != layer.hidden)
    return n.fail("hidden_size is " + Twine(size) + ", but R has " + Twine(layer.hidden) + " columns");
  auto check = [&](int i, StringRef name, Shape expected) {
    return !n.has(i) || n.inShape(i) == ArrayRef(expected) ? success() : n.fail(name + " does not have the expected shape");
  };
  int64_t d = layer.directions, h = layer.hidden;
  Shape state = layer.batchFirst ? Shape{layer.batch, d, h} : Shape{d, layer.batch, h};
  if (failed(check(1, "W", {d, layer.columns(), layer.inputSize})) || failed(check(2, "R", {d, layer.columns(), h})) ||
      failed(check(3, "B", {d, 2 * layer.columns()})) || failed(check(4, "sequence_lens", {layer.batch})) ||
      failed(check(5, "initial_h", state)))
    return failure();
  if (kind == Kind::Lstm && (failed(check(6, "initial_c", state)) || failed(check(7, "P", {d, 3 * h}))))
    return failure();
  if (failed(readActivations(n, layer, defaults)))
    return failure();
  return layer;
}

/// The bias that is added before the recurrence: both halves of B, but for the recurrent half of the hidden gate where the reset
/// gate applies after the product.
Value inputBias(Node &n, const Layer &layer) {
  int64_t d = layer.directions, columns = layer.columns();
  Value first = slice(n.b, n.in(3), {0, 0}, {d, columns}), second = slice(n.b, n.in(3), {0, columns}, {d, columns});
  return elementwise(n.b, {d, columns}, layer.type, {first, second}, [&](Scalar &s, ValueRange x) {
    Value sum = s.add(x[0], x[1]);
    if (!layer.linearBeforeReset)
      return sum;
    Value column = linalg::IndexOp::create(s.b, 1);
    return s.select(s.cmp(Compare::Less, column, s.icst(s.b.getIndexType(), 2 * layer.hidden), false), sum, x[0]);
  });
}

/// X times W for all steps, sequences and directions, with bias: [steps * batch (or batch * steps), directions * columns].
Value inputProduct(Node &n, const Layer &layer) {
  int64_t rows = layer.steps * layer.batch, columns = layer.directions * layer.columns();
  Value x = reshape(n.b, n.in(0), {rows, layer.inputSize});
  Value w = reshape(n.b, n.in(1), {columns, layer.inputSize});
  Value result = matrixProduct(n, x, transpose(n.b, w, {1, 0}), n.isConstantIn(1), {}, layer.type);
  if (!n.has(3))
    return result;
  Value bias = reshape(n.b, inputBias(n, layer), {columns});
  return elementwise(n.b, {rows, columns}, layer.type, {result, bias}, [](Scalar &s, ValueRange v) { return s.add(v[0], v[1]); });
}

/// Emits the recurrence of one direction and sequence.
class Recurrence {
public:
  /// Numbers of the inputs of the program, -1 when absent.
  struct Inputs {
    int product = 0, weights = 1, bias = -1, lengths = -1, h = -1, c = -1, peepholes = -1;
  };

  Recurrence(ProgramBody &p, const Layer &layer, const Inputs &inputs, int64_t parts)
      : p(p), layer(layer), inputs(inputs), parts(parts) {
    direction = p.over(p.group(), layer.batch);
    sequence = p.rest(p.group(), layer.batch);
    own = p.times(p.group(), layer.hidden);
    ownPart = p.times(p.group(), parts * layer.columns());
  }

  void run() {
    Value steps = p.index(layer.steps), length = steps;
    if (inputs.lengths >= 0) {
      Value given = p.toIndex(p.loadRaw(p.input(inputs.lengths), sequence), false);
      length = p.max(p.min(given, steps, false), p.index(0), false);
    }
    p.parallel(layer.hidden, [&](Value j) {
      p.store(hidden(), p.plus(own, j), initial(inputs.h, j));
      if (isLstm())
        p.store(cell(), p.plus(own, j), initial(inputs.c, j));
    });
    p.loop(p.index(0), length, [&](Value t) {
      Value time = t;
      if (layer.isReverse || layer.directions == 2) {
        Value mirrored = p.minus(p.minus(length, p.index(1)), t);
        Value backwards = p.cmp(Compare::Equal, direction, p.index(layer.isReverse ? 0 : 1), false);
        time = p.select(backwards, mirrored, t);
      }
      step(time);
    });
    if (inputs.lengths >= 0)
      p.parallel(p.times(p.minus(steps, length), layer.hidden), layer.hidden, [&](Value i) {
        Value time = p.plus(length, p.over(i, layer.hidden));
        p.store(p.output(0), p.plus(outputAt(time), p.rest(i, layer.hidden)), p.cst(layer.type, 0));
      });
    p.parallel(layer.hidden, [&](Value j) {
      p.store(p.output(1), p.plus(stateAt(), j), p.load(hidden(), p.plus(own, j)));
      if (isLstm())
        p.store(p.output(2), p.plus(stateAt(), j), p.load(cell(), p.plus(own, j)));
    });
  }

private:
  bool isLstm() const { return layer.kind == Kind::Lstm; }
  // Results: Y, Y_h, (Y_c); then scratch.
  Value hidden() { return p.output(isLstm() ? 3 : 2); }
  Value partial() { return p.output(isLstm() ? 4 : 3); }
  Value cell() { return p.output(5); }       // LSTM
  Value update() { return p.output(4); }     // GRU: the update gate while the hidden gate is computed
  Value resetState() { return p.output(5); } // GRU: reset gate times state

  Value initial(int input, Value j) { return input < 0 ? p.cst(layer.type, 0) : p.load(p.input(input), p.plus(stateAt(), j)); }
  /// Where the state of the group begins in Y_h, Y_c and the initial states.
  Value stateAt() {
    Value row = layer.batchFirst ? p.plus(p.times(sequence, layer.directions), direction) : p.group();
    return p.times(row, layer.hidden);
  }
  Value outputAt(Value time) {
    Value row = layer.batchFirst ? p.plus(p.times(p.plus(p.times(sequence, layer.steps), time), layer.directions), direction)
                                 : p.plus(p.times(p.plus(p.times(time, layer.directions), direction), layer.batch), sequence);
    return p.times(row, layer.hidden);
  }
  Value productAt(Value time) {
    Value row = layer.batchFirst ? p.plus(p.times(sequence, layer.steps), time) : p.plus(p.times(time, layer.batch), sequence);
    return p.plus(p.times(row, layer.directions * layer.columns()), p.times(direction, layer.columns()));
  }

  /// Columns [first, first + count) of `state` times the recurrent weights, in parts.
  void multiply(Value state, int64_t first, int64_t count) {
    int64_t length = (layer.hidden + parts - 1) / parts;
    Value weights = p.plus(p.times(direction, layer.hidden * layer.columns()), first);
    p.parallel(parts * count, [&](Value i) {
      Value part = p.over(i, count), column = p.rest(i, count);
      Value from = p.times(part, length), to = p.smaller(p.plus(from, length), p.index(layer.hidden));
      Value sum = p.loop(from, to, p.cst(layer.type, 0), [&](Value k, ValueRange v) -> SmallVector<Value> {
        Value weight = p.load(p.input(inputs.weights), p.plus(p.plus(weights, p.times(k, layer.columns())), column));
        return {p.add(v[0], p.mul(p.load(state, p.plus(own, k)), weight))};
      })[0];
      p.store(partial(), p.plus(ownPart, p.plus(p.times(part, count), column)), sum);
    });
  }
  /// The product that `multiply` left for one of its `count` columns.
  Value summed(Value column, int64_t count) {
    Value sum = p.load(partial(), p.plus(ownPart, column));
    for (int64_t part = 1; part < parts; ++part)
      sum = p.add(sum, p.load(partial(), p.plus(ownPart, p.plus(column, part * count))));
    return sum;
  }
  Value clipped(Value x) {
    if (!layer.clip)
      return x;
    return p.max(p.min(x, p.cst(layer.type, *layer.clip), false), p.cst(layer.type, -*layer.clip), false);
  }
  /// Activation number `which` of the direction.
  Value activate(unsigned which, Value x) {
    x = clipped(x);
    Value forward = layer.activations[0][which].apply(p, x);
    if (layer.directions == 1)
      return forward;
    const Activation &other = layer.activations[1][which], &mine = layer.activations[0][which];
    if (other.name == mine.name && other.alpha == mine.alpha && other.beta == mine.beta)
      return forward;
    return p.select(p.cmp(Compare::Equal, direction, p.index(0), false), forward, other.apply(p, x));
  }
  Value gateInput(Value time, Value j, int64_t gate) {
    return p.load(p.input(inputs.product), p.plus(productAt(time), p.plus(j, gate * layer.hidden)));
  }
  Value gateSum(Value time, Value j, int64_t gate) {
    return p.add(gateInput(time, j, gate), summed(p.plus(j, gate * layer.hidden), layer.columns()));
  }
  void setHidden(Value time, Value j, Value value) {
    p.store(hidden(), p.plus(own, j), value);
    p.store(p.output(0), p.plus(outputAt(time), j), value);
  }

  void step(Value time) {
    if (layer.kind == Kind::Gru && !layer.linearBeforeReset)
      return stepGru(time);
    multiply(hidden(), 0, layer.columns());
    p.parallel(layer.hidden, [&](Value j) {
      switch (layer.kind) {
      case Kind::Rnn:
        return setHidden(time, j, activate(0, gateSum(time, j, 0)));
      case Kind::Gru:
        return finishGruLinear(time, j);
      case Kind::Lstm:
        return finishLstm(time, j);
      }
    });
  }

  /// Gates i, o, f, c.
  void finishLstm(Value time, Value j) {
    auto peep = [&](Value sum, int64_t gate, Value state) {
      if (inputs.peepholes < 0)
        return sum;
      Value at = p.plus(p.times(direction, 3 * layer.hidden), p.plus(j, gate * layer.hidden));
      return p.add(sum, p.mul(p.load(p.input(inputs.peepholes), at), state));
    };
    Value before = p.load(cell(), p.plus(own, j)), one = p.cst(layer.type, 1);
    Value i = activate(0, peep(gateSum(time, j, 0), 0, before));
    Value f = layer.coupled ? p.sub(one, i) : activate(0, peep(gateSum(time, j, 2), 2, before));
    Value candidate = activate(1, gateSum(time, j, 3));
    Value after = p.add(p.mul(f, before), p.mul(i, candidate));
    Value o = activate(0, peep(gateSum(time, j, 1), 1, after));
    p.store(cell(), p.plus(own, j), after);
    setHidden(time, j, p.mul(o, squash(after)));
  }
  /// Activation h of the LSTM: the clip is for the gates only.
  Value squash(Value state) {
    Value forward = layer.activations[0][2].apply(p, state);
    if (layer.directions == 1)
      return forward;
    return p.select(p.cmp(Compare::Equal, direction, p.index(0), false), forward, layer.activations[1][2].apply(p, state));
  }

  /// Gates z, r, h; the reset gate applies to the product.
  void finishGruLinear(Value time, Value j) {
    Value z = activate(0, gateSum(time, j, 0)), r = activate(0, gateSum(time, j, 1));
    Value inner = summed(p.plus(j, 2 * layer.hidden), layer.columns());
    if (inputs.bias >= 0)
      inner = p.add(inner, p.load(p.input(inputs.bias), p.plus(p.times(direction, layer.hidden), j)));
    Value candidate = activate(1, p.add(gateInput(time, j, 2), p.mul(r, inner)));
    setHidden(time, j, mix(z, candidate, j));
  }
  Value mix(Value z, Value candidate, Value j) {
    Value before = p.load(hidden(), p.plus(own, j));
    return p.add(p.mul(p.sub(p.cst(layer.type, 1), z), candidate), p.mul(z, before));
  }

  /// The reset gate applies to the state: two products.
  void stepGru(Value time) {
    int64_t size = layer.hidden;
    multiply(hidden(), 0, 2 * size);
    p.parallel(size, [&](Value j) {
      Value z = activate(0, p.add(gateInput(time, j, 0), summed(j, 2 * size)));
      Value r = activate(0, p.add(gateInput(time, j, 1), summed(p.plus(j, size), 2 * size)));
      p.store(update(), p.plus(own, j), z);
      p.store(resetState(), p.plus(own, j), p.mul(r, p.load(hidden(), p.plus(own, j))));
    });
    multiply(resetState(), 2 * size, size);
    p.parallel(size, [&](Value j) {
      Value candidate = activate(1, p.add(gateInput(time, j, 2), summed(j, size)));
      setHidden(time, j, mix(p.load(update(), p.plus(own, j)), candidate, j));
    });
  }

  ProgramBody &p;
  const Layer &layer;
  const Inputs &inputs;
  int64_t parts;
  Value direction, sequence, own, ownPart;
};

LogicalResult lowerLayer(Node &n, Kind kind, ArrayRef<StringRef> defaults) {
  FailureOr<Layer> read = readLayer(n, kind, defaults);
  if (failed(read))
    return failure();
  const Layer &layer = *read;
  int64_t d = layer.directions, h = layer.hidden;
  if (layer.batch == 0 || layer.steps == 0 || h == 0)
    return n.fail("has no elements in batch, time or state");
  Recurrence::Inputs numbers;
  SmallVector<Value> inputs{inputProduct(n, layer), transpose(n.b, n.in(2), {0, 2, 1})};
  auto add = [&](int &number, Value v) {
    number = static_cast<int>(inputs.size());
    inputs.push_back(v);
  };
  if (layer.linearBeforeReset && n.has(3))
    add(numbers.bias, slice(n.b, n.in(3), {0, 5 * h}, {d, h}));
  if (n.has(4))
    add(numbers.lengths, n.in(4));
  if (n.has(5))
    add(numbers.h, n.in(5));
  if (kind == Kind::Lstm && n.has(6))
    add(numbers.c, n.in(6));
  if (kind == Kind::Lstm && n.has(7))
    add(numbers.peepholes, n.in(7));
  // About 4096 threads multiply, each at least 32 elements.
  int64_t parts = 1;
  while (parts < 8 && 2 * parts * layer.columns() <= 4096 && h / (2 * parts) >= 32)
    parts *= 2;
  Type element = n.inElement(0);
  auto tensor = [&](Shape shape, Type type) { return RankedTensorType::get(shape, type); };
  Shape states{d * layer.batch, h},
      yShape = layer.batchFirst ? Shape{layer.batch, layer.steps, d, h} : Shape{layer.steps, d, layer.batch, h},
      finalShape = layer.batchFirst ? Shape{layer.batch, d, h} : Shape{d, layer.batch, h};
  SmallVector<RankedTensorType> results{tensor(yShape, element), tensor(finalShape, element)};
  if (kind == Kind::Lstm)
    results.push_back(tensor(finalShape, element));
  results.push_back(tensor(states, layer.type));
  results.push_back(tensor({d * layer.batch, parts * layer.columns()}, layer.type));
  if (kind != Kind::Rnn)
    results.push_back(tensor(states, layer.type));
  if (kind == Kind::Gru)
    results.push_back(tensor(states, layer.type));
  SmallVector<Value> values =
      program(n.b, inputs, results, d * layer.batch, [&](ProgramBody &p) { Recurrence(p, layer, numbers, parts).run(); });
  for (int i = 0; i < n.op.numOutputs(); ++i)
    if (failed(n.result(values[i])))
      return failure();
  return success();
}

LogicalResult rnn(Node &n) { return lowerLayer(n, Kind::Rnn, {"tanh"}); }
LogicalResult gru(Node &n) { return lowerLayer(n, Kind::Gru, {"sigmoid", "tanh"}); }
LogicalResult lstm(Node &n) { return lowerLayer(n, Kind::Lstm, {"sigmoid", "tanh", "tanh"}); }

} // namespace

void registerRecurrent(Table &t) {
  t.add("RNN", rnn);
  t.add("GRU", gru);
  t.add("LSTM", lstm);
}

} // namespace ogc::lower
