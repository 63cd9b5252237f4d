//===- Reductions.cpp - Reduce*, ArgMax, ArgMin, Hardmax ------------------===//
#include "compiler/passes/lower/Node.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::lower {
namespace {

/// How a Reduce operator computes: before (each element), combine, after (the sum).
struct Kind {
  Value (*before)(Scalar &, Value, bool isUnsigned) = nullptr;
  Value (*combine)(Scalar &, Value, Value, bool isUnsigned) = nullptr;
  Value (*start)(Scalar &, Type, bool isUnsigned) = nullptr;
  Value (*after)(Scalar &, Value, int64_t count) = nullptr;
};

Value keep(Scalar &, Value x, bool) { return x; }
Value magnitude(Scalar &s, Value x, bool isUnsigned) { return s.abs(x, isUnsigned); }
Value square(Scalar &s, Value x, bool) { return s.mul(x, x); }
Value plus(Scalar &s, Value x, Value y, bool) { return s.add(x, y); }
Value times(Scalar &s, Value x, Value y, bool) { return s.mul(x, y); }
Value larger(Scalar &s, Value x, Value y, bool isUnsigned) { return s.max(x, y, isUnsigned); }
Value smaller(Scalar &s, Value x, Value y, bool isUnsigned) { return s.min(x, y, isUnsigned); }
Value zero(Scalar &s, Type type, bool) { return s.icst(type, 0); }
Value one(Scalar &s, Type type, bool) { return s.icst(type, 1); }
Value lowest(Scalar &s, Type type, bool isUnsigned) { return s.lowest(type, isUnsigned); }
Value highest(Scalar &s, Type type, bool isUnsigned) { return s.highest(type, isUnsigned); }
Value average(Scalar &s, Value x, int64_t count) {
  if (isa<FloatType>(x.getType()))
    return s.mul(x, s.cst(x.getType(), 1.0 / static_cast<double>(count)));
  return s.div(x, s.icst(x.getType(), count), false);
}
Value root(Scalar &s, Value x, int64_t) {
  if (isa<FloatType>(x.getType()))
    return s.sqrt(x);
  // The integer part of the root, through f64 as numpy does.
  return s.cast(s.sqrt(s.cast(x, false, s.b.getF64Type(), false)), false, x.getType(), false);
}
Value logarithm(Scalar &s, Value x, int64_t) {
  if (isa<FloatType>(x.getType()))
    return math::LogOp::create(s.b, x);
  return s.cast(math::LogOp::create(s.b, s.cast(x, false, s.b.getF64Type(), false)), false, x.getType(), false);
}

constexpr Kind sumKind{keep, plus, zero, nullptr};
constexpr Kind meanKind{keep, plus, zero, average};
constexpr Kind prodKind{keep, times, one, nullptr};
constexpr Kind maxKind{keep, larger, lowest, nullptr};
constexpr Kind minKind{keep, smaller, highest, nullptr};
constexpr Kind l1Kind{magnitude, plus, zero, nullptr};
constexpr Kind l2Kind{square, plus, zero, root};
constexpr Kind sumSquareKind{square, plus, zero, nullptr};
constexpr Kind logSumKind{keep, plus, zero, logarithm};

/// The reduced axes, ascending; with noop_with_empty_axes possibly none. Fails when they are not constant or out of range.
FailureOr<Shape> reducedAxes(Node &n) {
  bool noop = n.op.getI64("noop_with_empty_axes") != 0;
  Shape axes;
  if (std::optional<Shape> given = n.constInts(1)) {
    axes = *given;
  } else if (n.has(1)) {
    return n.fail("axes are not constant");
  }
  for (int64_t &axis : axes) {
    int64_t wrapped = wrapAxis(axis, n.inRank(0));
    if (wrapped < 0 || wrapped >= n.inRank(0))
      return n.fail("axis " + Twine(axis) + " is out of range for rank " + Twine(n.inRank(0)));
    axis = wrapped;
  }
  if (axes.empty() && !noop)
    axes.append(llvm::seq<int64_t>(0, n.inRank(0)).begin(), llvm::seq<int64_t>(0, n.inRank(0)).end());
  llvm::sort(axes);
  axes.erase(llvm::unique(axes), axes.end());
  return axes;
}

LogicalResult reduceWith(Node &n, const Kind &kind) {
  n.op.ignore("keepdims"); // the result type says it
  FailureOr<Shape> axes = reducedAxes(n);
  if (failed(axes))
    return failure();
  bool isUnsigned = n.isUnsignedIn(0);
  RowDomain domain(n.b.getContext(), n.inShape(0), *axes);
  int64_t count = domain.innerSize();
  auto finish = [&](Scalar &s, Value x) { return kind.after ? kind.after(s, x, count) : x; };
  if (axes->empty()) {
    auto each = [&](Scalar &s, ValueRange x) { return finish(s, kind.before(s, x[0], isUnsigned)); };
    return n.result(elementwise(n.b, n.outShape(), n.outElement(), n.in(0), each));
  }
  Scalar s(n.b, n.op.getLoc());
  Value start = kind.start(s, computeType(n.inElement(0)), isUnsigned);
  Value sum = reduceRows(n.b, domain, {{n.in(0), domain.full}}, start, [&](Scalar &s, ValueRange x) {
    return kind.combine(s, x[1], kind.before(s, x[0], isUnsigned), isUnsigned);
  });
  if (kind.after || elementOf(sum) != n.outElement())
    sum = elementwise(n.b, domain.outer, n.outElement(), sum, [&](Scalar &s, ValueRange x) { return finish(s, x[0]); });
  return n.result(reshape(n.b, sum, n.outShape()));
}

template <const Kind &kind> LogicalResult reduce(Node &n) { return reduceWith(n, kind); }

/// log(sum(exp(x - max))) + max; a maximum that is not finite is left out of the shift.
LogicalResult reduceLogSumExp(Node &n) {
  n.op.ignore("keepdims");
  FailureOr<Shape> axes = reducedAxes(n);
  if (failed(axes))
    return failure();
  if (!isa<FloatType>(n.inElement(0)))
    return n.fail("operand 0 is not of a float type");
  if (axes->empty())
    return n.result(n.in(0));
  RowDomain domain(n.b.getContext(), n.inShape(0), *axes);
  Scalar s(n.b, n.op.getLoc());
  Type type = computeType(n.inElement(0));
  Operand x{n.in(0), domain.full};
  auto shift = [](Scalar &s, Value max) {
    Value zero = s.cst(max.getType(), 0.0);
    return s.select(s.cmp(Compare::Less, s.abs(max, false), s.highest(max.getType(), false), false), max, zero);
  };
  Value max = reduceRows(n.b, domain, x, s.lowest(type, false), [](Scalar &s, ValueRange v) { return s.max(v[1], v[0], false); });
  Value sum = reduceRows(n.b, domain, {x, {max, domain.outerMap}}, s.cst(type, 0.0),
                         [&](Scalar &s, ValueRange v) { return s.add(v[2], s.exp(s.sub(v[0], shift(s, v[1])))); });
  Value result = elementwise(n.b, domain.outer, n.outElement(), {sum, max},
                             [&](Scalar &s, ValueRange v) { return s.add(math::LogOp::create(s.b, v[0]), shift(s, v[1])); });
  return n.result(reshape(n.b, result, n.outShape()));
}

//===----------------------------------------------------------------------===//
// ArgMax, ArgMin
//===----------------------------------------------------------------------===//

/// Two reductions over the last dimension of the domain: the extreme value, then the first (or last) index that holds it; a NaN
/// is the extreme value.
Value extremeIndex(Node &n, const RowDomain &domain, bool isMax, bool last) {
  bool isUnsigned = n.isUnsignedIn(0);
  Scalar s(n.b, n.op.getLoc());
  Type type = computeType(n.inElement(0)), i64 = n.b.getI64Type();
  Operand x{n.in(0), domain.full};
  Value extreme =
      reduceRows(n.b, domain, x, isMax ? s.lowest(type, isUnsigned) : s.highest(type, isUnsigned),
                 [&](Scalar &s, ValueRange v) { return isMax ? s.max(v[1], v[0], isUnsigned) : s.min(v[1], v[0], isUnsigned); });
  Value start = s.icst(i64, last ? 0 : domain.innerSize() - 1);
  int64_t innerDim = n.inRank(0) - 1;
  return reduceRows(n.b, domain, {x, {extreme, domain.outerMap}}, start, [&](Scalar &s, ValueRange v) {
    Value holds = s.cmp(Compare::Equal, v[0], v[1], isUnsigned);
    if (isa<FloatType>(type))
      holds = s.add(holds, s.isNan(v[0]));
    Value i = arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, innerDim));
    // One operation joins what was found with this element, so that rows may be split among lanes.
    Value candidate = s.select(holds, i, s.icst(i64, last ? 0 : domain.innerSize() - 1));
    return last ? s.max(v[2], candidate, false) : s.min(v[2], candidate, false);
  });
}

/// The axis of an operator over lines, or a failure.
FailureOr<int64_t> lineAxis(Node &n, int64_t orElse) {
  int64_t axis = wrapAxis(n.op.getI64("axis", orElse), n.inRank(0));
  if (axis < 0 || axis >= n.inRank(0))
    return n.fail("axis is out of range for rank " + Twine(n.inRank(0)));
  return axis;
}

template <bool isMax> LogicalResult argExtreme(Node &n) {
  n.op.ignore("keepdims");
  bool last = n.op.getI64("select_last_index") != 0;
  FailureOr<int64_t> axis = lineAxis(n, 0);
  if (failed(axis))
    return failure();
  if (numElements(n.outShape()) == 0)
    return n.result(empty(n.b, n.outShape(), n.outElement()));
  if (n.inShape(0)[*axis] == 0)
    return n.fail("looks for an element along an axis without elements");
  RowDomain domain(n.b.getContext(), n.inShape(0), {*axis});
  return n.result(reshape(n.b, extremeIndex(n, domain, isMax, last), n.outShape()));
}

/// One at the first largest element of each line, zero elsewhere.
LogicalResult hardmax(Node &n) {
  FailureOr<int64_t> axis = lineAxis(n, -1);
  if (failed(axis))
    return failure();
  if (numElements(n.outShape()) == 0)
    return n.result(n.in(0));
  RowDomain domain(n.b.getContext(), n.inShape(0), {*axis});
  Value index = extremeIndex(n, domain, /*isMax=*/true, /*last=*/false);
  return n.result(mapRows(n.b, domain, {{index, domain.outerMap}}, n.outElement(), [&](Scalar &s, ValueRange v) {
    Type type = computeType(n.outElement());
    Value here = arith::IndexCastOp::create(s.b, s.b.getI64Type(), linalg::IndexOp::create(s.b, n.inRank(0) - 1));
    return s.select(s.cmp(Compare::Equal, v[0], here, false), s.icst(type, 1), s.icst(type, 0));
  }));
}

} // namespace

void registerReductions(Table &t) {
  t.add("ReduceSum", reduce<sumKind>);
  t.add("ReduceMean", reduce<meanKind>);
  t.add("ReduceProd", reduce<prodKind>);
  t.add("ReduceMax", reduce<maxKind>);
  t.add("ReduceMin", reduce<minKind>);
  t.add("ReduceL1", reduce<l1Kind>);
  t.add("ReduceL2", reduce<l2Kind>);
  t.add("ReduceSumSquare", reduce<sumSquareKind>);
  t.add("ReduceLogSum", reduce<logSumKind>);
  t.add("ReduceLogSumExp", reduceLogSumExp);
  t.add("ArgMax", argExtreme<true>);
  t.add("ArgMin", argExtreme<false>);
  t.add("Hardmax", hardmax);
}

} // namespace ogc::lower
