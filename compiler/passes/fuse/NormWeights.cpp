//===- NormWeights.cpp - what is constant of a norm, in the weight behind it =//
#include "compiler/passes/fuse/NormWeights.h"

#include "compiler/passes/fuse/F32Generic.h"
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Reshape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ogc::fuse {

namespace {

/// Operations on a weight in panels [panels, K, columns of a panel].
class PanelBuilder {
public:
  PanelBuilder(OpBuilder &builder, Location loc, RankedTensorType panels) : builder(builder), loc(loc), panels(panels) {}

  /// weight * gamma, which may be null.
  Value scaled(Value weight, Value gamma, bool isCentered) {
    SmallVector<Value> inputs{weight};
    SmallVector<AffineMap> maps{map({0, 1, 2})};
    if (gamma) {
      inputs.push_back(vectorOfK(gamma));
      maps.push_back(map({1}));
    }
    if (isCentered) {
      inputs.push_back(sumOverK(weight, gamma));
      maps.push_back(map({0, 2}));
    }
    Value share = constant(1.f / float(panels.getDimSize(1)));
    return createF32Elementwise(builder, loc, inputs, maps, panels, [&](OpBuilder &b, ValueRange x) -> Value {
      Value result = gamma ? arith::MulFOp::create(b, loc, x[0], x[1]).getResult() : x[0];
      if (!isCentered)
        return result;
      Value mean = arith::MulFOp::create(b, loc, x.back(), share);
      return arith::SubFOp::create(b, loc, result, mean);
    });
  }

  /// What rounding has left of the sum of each column is taken off its element of least magnitude, which can hold it almost
  /// exactly: rows whose mean is far larger than their deviation would multiply it.
  Value withoutColumnSums(Value weight) {
    auto magnitude = [&](OpBuilder &b, Value x) -> Value { return math::AbsFOp::create(b, loc, x); };
    auto isLeast = [&](OpBuilder &b, Value x, Value least) -> Value {
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, magnitude(b, x), least);
    };
    Value zero = constant(0), one = constant(1);
    Value sums = sumOverK(weight, {});
    Value least = foldOverK(weight, {}, std::numeric_limits<float>::max(), [&](OpBuilder &b, ValueRange x) -> Value {
      return arith::MinimumFOp::create(b, loc, x[1], magnitude(b, x[0]));
    });
    Value count = foldOverK(weight, least, 0, [&](OpBuilder &b, ValueRange x) -> Value {
      Value more = arith::SelectOp::create(b, loc, isLeast(b, x[0], x[1]), one, zero);
      return arith::AddFOp::create(b, loc, x[2], more);
    });
    AffineMap all = map({0, 1, 2}), column = map({0, 2});
    return createF32Elementwise(builder, loc, {weight, sums, least, count}, {all, column, column, column}, panels,
                                [&](OpBuilder &b, ValueRange x) -> Value {
                                  Value share = arith::DivFOp::create(b, loc, x[1], x[3]);
                                  return arith::SelectOp::create(b, loc, isLeast(b, x[0], x[2]),
                                                                 arith::SubFOp::create(b, loc, x[0], share), x[0]);
                                });
  }

  /// For each column of each panel the sum over k of weight * vector (which may be null).
  Value sumOverK(Value weight, Value vector) {
    return foldOverK(weight, vector ? vectorOfK(vector) : vector, 0, [&](OpBuilder &b, ValueRange x) -> Value {
      Value term = vector ? arith::MulFOp::create(b, loc, x[0], x[1]).getResult() : x[0];
      return arith::AddFOp::create(b, loc, x.back(), term);
    });
  }

private:
  /// For each column of each panel the fold over k of what `term` makes of the weight and of `more` (one value for each k, or for
  /// each column).
  Value foldOverK(Value weight, Value more, float start, F32Body term) {
    SmallVector<Value> inputs{weight};
    SmallVector<AffineMap> maps{map({0, 2, 1})};
    if (more) {
      inputs.push_back(more);
      maps.push_back(typeOf(more).getRank() == 1 ? map({2}) : map({0, 1}));
    }
    return createF32Fold(builder, loc, inputs, maps, {panels.getDimSize(0), panels.getDimSize(2)}, start, term);
  }

  AffineMap map(ArrayRef<unsigned> dims) const { return AffineMap::getMultiDimMapWithTargets(3, dims, builder.getContext()); }
  Value constant(float value) { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value)); }
  Value vectorOfK(Value value) { return createReshape(builder, loc, value, {panels.getDimSize(1)}); }

  OpBuilder &builder;
  Location loc;
  RankedTensorType panels;
};

} // namespace

Value createNormWeight(OpBuilder &builder, Location loc, Value weight, const MatchedNorm &norm) {
  if (!norm.gamma && !norm.isCentered())
    return weight;
  PanelBuilder panels(builder, loc, typeOf(weight));
  Value scaled = panels.scaled(weight, norm.gamma, norm.isCentered());
  return norm.isCentered() ? panels.withoutColumnSums(scaled) : scaled;
}

Value createNormOffsets(OpBuilder &builder, Location loc, Value weight, const MatchedNorm &norm, Type element) {
  if (!norm.beta)
    return {};
  Value sums = PanelBuilder(builder, loc, typeOf(weight)).sumOverK(weight, norm.beta);
  if (element == typeOf(sums).getElementType())
    return sums;
  return createF32Elementwise(builder, loc, {sums}, {builder.getMultiDimIdentityMap(2)}, typeOf(sums).clone(element),
                              [](OpBuilder &, ValueRange x) { return x[0]; });
}

} // namespace ogc::fuse
