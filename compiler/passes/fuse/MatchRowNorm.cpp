//===- MatchRowNorm.cpp - normalizations of rows as structured operations -===//
#include "compiler/passes/fuse/MatchRowNorm.h"

#include "compiler/passes/fuse/Grouping.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ogc::fuse {

static Value withoutCasts(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

static std::optional<double> numberOf(Value value) {
  FloatAttr attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  return attribute.getValueAsDouble();
}

/// The operands of `value`, an Op, with the one that `isSecond` accepts behind the other.
template <typename Op> static std::pair<Value, Value> operandsOf(Value value, function_ref<bool(Value)> isSecond) {
  auto op = value.getDefiningOp<Op>();
  if (!op)
    return {};
  for (auto [first, second] : {std::pair{op->getOperand(0), op->getOperand(1)}, {op->getOperand(1), op->getOperand(0)}})
    if (isSecond(second))
      return {first, second};
  return {};
}

static bool isNumber(Value value) { return numberOf(value).has_value(); }

namespace {

/// Matches the operations of one norm, from the last one on.
class Matcher {
public:
  std::optional<MatchedNorm> match(Value value) {
    last = value.getDefiningOp<linalg::GenericOp>();
    if (!last || last->getNumResults() != 1 || !isElementwise(last) || typeOf(value).getRank() == 0 ||
        !mapOf(last.getDpsInitsMutable()[0]).isIdentity())
      return std::nullopt;
    rank = typeOf(value).getRank();
    length = typeOf(value).getShape().back();
    norm.ops.push_back(last);
    Value scaled = withoutCasts(last.getBlock()->getTerminator()->getOperand(0));
    if (auto [rest, beta] = operandsOf<arith::AddFOp>(scaled, [&](Value v) { return isRowVector(v, norm.beta); }); rest)
      scaled = rest;
    if (auto [rest, gamma] = operandsOf<arith::MulFOp>(scaled, [&](Value v) { return isRowVector(v, norm.gamma); }); rest)
      scaled = rest;
    auto [numerator, inverse] = operandsOf<arith::MulFOp>(scaled, [&](Value v) { return isInverseSpread(v); });
    if (!numerator || !isNumerator(numerator) || norm.rows.getType() != value.getType() || !areStatistics() ||
        !serveNothingElse())
      return std::nullopt;
    return norm;
  }

private:
  /// The operand of the last operation that `value` is, without casts.
  OpOperand *operandOf(Value value) {
    auto argument = dyn_cast<BlockArgument>(withoutCasts(value));
    if (!argument || argument.getOwner() != last.getBlock() || argument.getArgNumber() >= last.getNumDpsInputs())
      return nullptr;
    return last.getDpsInputOperand(argument.getArgNumber());
  }

  /// One value for each element of a row, the same in all rows.
  bool isRowVector(Value value, Value &vector) {
    OpOperand *operand = operandOf(value);
    AffineMap map = operand ? mapOf(*operand) : AffineMap();
    if (!operand || typeOf(operand->get()).getNumElements() != length || !map.isFunctionOfDim(rank - 1))
      return false;
    for (AffineExpr result : map.getResults())
      if (result != getAffineDimExpr(rank - 1, map.getContext()) && !isa<AffineConstantExpr>(result))
        return false;
    vector = operand->get();
    return true;
  }

  AffineMap outerMap() { return AffineMap::getMultiDimIdentityMap(rank, last.getContext()).dropResult(rank - 1); }

  /// One value a row.
  Value statisticOf(Value value) {
    OpOperand *operand = operandOf(value);
    return operand && mapOf(*operand) == outerMap() ? operand->get() : Value();
  }

  /// statistic / length
  bool isMean(Value value, Value &statistic) {
    auto [sum, scale] = operandsOf<arith::MulFOp>(value, isNumber);
    if (!sum || float(*numberOf(scale)) != float(1.0 / double(length)))
      return false;
    statistic = statisticOf(sum);
    return statistic != nullptr;
  }

  /// 1 / sqrt(squares / length + epsilon)
  bool isInverseSpread(Value value) {
    Value root;
    if (auto inverse = value.getDefiningOp<math::RsqrtOp>())
      root = inverse.getOperand();
    else if (auto quotient = value.getDefiningOp<arith::DivFOp>(); quotient && numberOf(quotient.getLhs()) == 1.0)
      if (auto sqrt = quotient.getRhs().getDefiningOp<math::SqrtOp>())
        root = sqrt.getOperand();
    if (!root || !root.getType().isF32())
      return false;
    auto [mean, epsilon] = operandsOf<arith::AddFOp>(root, isNumber);
    if (!mean || !isMean(mean, squares))
      return false;
    norm.norm.epsilon = FloatAttr::get(root.getType(), *numberOf(epsilon));
    return true;
  }

  /// x, or x - mean(x)
  bool isNumerator(Value value) {
    auto difference = value.getDefiningOp<arith::SubFOp>();
    if (difference && !isMean(difference.getRhs(), sum))
      return false;
    norm.norm.kind = difference ? kern::RowNorm::StandardDeviation : kern::RowNorm::RootMeanSquare;
    OpOperand *rows = operandOf(difference ? difference.getLhs() : value);
    if (!rows || !mapOf(*rows).isIdentity())
      return false;
    norm.rows = rows->get();
    return true;
  }

  /// The sum over the rows of x of what `isTerm` accepts.
  bool isRowSum(Value value, unsigned inputs, function_ref<bool(linalg::GenericOp, Value)> isTerm) {
    auto op = value.getDefiningOp<linalg::GenericOp>();
    if (!op || op->getNumResults() != 1 || op.getNumDpsInputs() != inputs || op.getNumLoops() != rank ||
        op.getNumReductionLoops() != 1 || op.getIteratorTypesArray().back() != utils::IteratorType::reduction ||
        op.getDpsInputs()[0] != norm.rows || !mapOf(*op.getDpsInputOperand(0)).isIdentity() ||
        mapOf(op.getDpsInitsMutable()[0]) != outerMap() || (inputs == 2 && mapOf(*op.getDpsInputOperand(1)) != outerMap()))
      return false;
    auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
    Value carried = op.getBlock()->getArguments().back();
    auto [term, out] =
        operandsOf<arith::AddFOp>(op.getBlock()->getTerminator()->getOperand(0), [&](Value v) { return v == carried; });
    if (!fill || numberOf(fill.getInputs()[0]) != 0.0 || !term || !isTerm(op, term))
      return false;
    norm.ops.push_back(op);
    return true;
  }

  bool areStatistics() {
    auto isElement = [](linalg::GenericOp op, Value value) { return withoutCasts(value) == op.getBlock()->getArgument(0); };
    auto isDistance = [&](linalg::GenericOp op, Value value) {
      auto difference = value.getDefiningOp<arith::SubFOp>();
      if (!difference || !isElement(op, difference.getLhs()))
        return false;
      auto [sumOfRow, scale] = operandsOf<arith::MulFOp>(difference.getRhs(), isNumber);
      return sumOfRow == op.getBlock()->getArgument(1) && float(*numberOf(scale)) == float(1.0 / double(length));
    };
    bool isLayer = norm.isCentered();
    auto isSquare = [&](linalg::GenericOp op, Value value) {
      auto product = value.getDefiningOp<arith::MulFOp>();
      return product && product.getLhs() == product.getRhs() &&
             (isLayer ? isDistance(op, product.getLhs()) : isElement(op, product.getLhs()));
    };
    if (!isRowSum(squares, isLayer ? 2 : 1, isSquare))
      return false;
    return !isLayer || (squares.getDefiningOp<linalg::GenericOp>().getDpsInputs()[1] == sum && isRowSum(sum, 1, isElement));
  }

  bool serveNothingElse() {
    return llvm::all_of(ArrayRef(norm.ops).drop_front(), [&](Operation *op) {
      return llvm::all_of(op->getUsers(), [&](Operation *user) { return llvm::is_contained(norm.ops, user); });
    });
  }

  linalg::GenericOp last;
  unsigned rank = 0;
  int64_t length = 0;
  Value squares, sum;
  MatchedNorm norm;
};

} // namespace

std::optional<MatchedNorm> matchRowNorm(Value value) { return Matcher().match(value); }

} // namespace ogc::fuse
