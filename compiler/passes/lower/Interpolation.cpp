//===- Interpolation.cpp --------------------------------------------------===//
#include "compiler/passes/lower/Interpolation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::lower {

Value clampPosition(Scalar &s, Value position, int64_t extent) {
  // Comparisons instead of min and max: they are false for NaN.
  Value first = s.cst(position.getType(), 0.0), last = s.icst(position.getType(), extent - 1);
  Value low = s.select(s.cmp(Compare::GreaterOrEqual, position, first, false), position, first);
  return s.select(s.cmp(Compare::LessOrEqual, low, last, false), low, last);
}

Value isInside(Scalar &s, Value position, int64_t extent) {
  Value above = s.cmp(Compare::GreaterOrEqual, position, s.cst(position.getType(), 0.0), false);
  Value below = s.cmp(Compare::LessOrEqual, position, s.icst(position.getType(), extent - 1), false);
  return arith::AndIOp::create(s.b, above, below);
}

Value indexOf(Scalar &s, Value position) { return s.toIndex(arith::FPToSIOp::create(s.b, s.b.getI64Type(), position), false); }

SmallVector<Tap> linearTaps(Scalar &s, Value position, int64_t extent) {
  Value one = s.cst(position.getType(), 1.0), base = math::FloorOp::create(s.b, position), next = s.add(base, one);
  Value above = s.sub(position, base);
  auto tap = [&](Value at, Value weight) {
    return Tap{indexOf(s, clampPosition(s, at, extent)), isInside(s, at, extent), weight};
  };
  return {tap(base, s.sub(one, above)), tap(next, above)};
}

/// `index` holds the positions of the dimensions so far, `valid` whether all of them are inside (null: yes).
static Value interpolateFrom(Scalar &s, Value data, SmallVectorImpl<Value> &index, Value valid, ArrayRef<SmallVector<Tap>> taps) {
  if (taps.empty()) {
    Value element = s.widen(tensor::ExtractOp::create(s.b, data, index));
    return valid ? s.select(valid, element, s.icst(element.getType(), 0)) : element;
  }
  Value sum;
  for (const Tap &tap : taps.front()) {
    Value inside = !tap.valid ? valid : valid ? arith::AndIOp::create(s.b, valid, tap.valid).getResult() : tap.valid;
    index.push_back(tap.index);
    Value term = interpolateFrom(s, data, index, inside, taps.drop_front());
    index.pop_back();
    if (tap.weight)
      term = s.mul(term, s.cast(tap.weight, false, term.getType(), false));
    sum = sum ? s.add(sum, term) : term;
  }
  return sum;
}

Value interpolate(Scalar &s, Value data, ValueRange leading, ArrayRef<SmallVector<Tap>> taps) {
  SmallVector<Value> index(leading);
  return interpolateFrom(s, data, index, {}, taps);
}

} // namespace ogc::lower
