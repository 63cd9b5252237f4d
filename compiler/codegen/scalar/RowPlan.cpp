//===- RowPlan.cpp - stages of a row kernel -------------------------------===//
#include "compiler/codegen/scalar/RowPlan.h"

#include "compiler/analysis/Combiner.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

/// Number of leading dimensions whose product is `rows`, when the rest is `width` elements.
static std::optional<unsigned> splitOf(ArrayRef<int64_t> shape, int64_t rows, int64_t width) {
  for (unsigned split = 0; split <= shape.size(); ++split)
    if (product(shape.take_front(split)) == rows && product(shape.drop_front(split)) == width)
      return split;
  return std::nullopt;
}

static bool isReduction(Operation *op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && structured.getNumReductionLoops() != 0;
}

/// Positions and extents of the parallel (`kind` parallel) or reduction loops.
static SmallVector<int64_t> extentsOf(linalg::LinalgOp op, utils::IteratorType kind) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), result;
  for (auto [range, iterator] : llvm::zip_equal(ranges, op.getIteratorTypesArray()))
    if (iterator == kind)
      result.push_back(range);
  return result;
}

static bool isCostly(Operation &op) {
  return isa_and_nonnull<math::MathDialect>(op.getDialect()) && !isa<math::AbsFOp, math::FmaOp, math::CopySignOp>(op);
}

/// True if `value` is the result of an element-wise operation whose body takes long.
static bool isCostly(Value value) {
  auto structured = value.getDefiningOp<linalg::LinalgOp>();
  return structured && structured.getNumReductionLoops() == 0 &&
         llvm::any_of(*structured.getBlock(), [](Operation &op) { return isCostly(op); });
}

namespace {

/// Finds for each tensor value the stages that pull it.
class StageFinder {
public:
  explicit StageFinder(Block &body) : body(body) {}

  /// The reductions by depth; failure when one cannot be split into rows.
  LogicalResult findStages(RowPlan &plan) {
    for (Operation &op : body) {
      unsigned level = 0;
      for (Value operand : operandsOf(op))
        level = std::max(level, levels.lookup(operand));
      if (isReduction(&op)) {
        RowReduction reduction{cast<linalg::LinalgOp>(op), {}};
        for (unsigned i = 0; i < op.getNumResults(); ++i) {
          Operation *combiner = findCombiner(reduction.op, i);
          if (!combiner)
            return failure();
          reduction.combiners.push_back(combiner);
        }
        if (plan.stages.size() <= level)
          plan.stages.resize(level + 1);
        plan.stages[level].push_back(reduction);
        ++level;
      }
      for (Value result : op.getResults())
        levels[result] = level;
    }
    return success();
  }

  /// Marks everything that `value` pulls, down to reductions, as used by `stage`.
  void pull(Value value, unsigned stage) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &body || !users[value].insert(stage) || isReduction(op))
      return;
    for (Value operand : operandsOf(*op))
      pull(operand, stage);
  }

  ArrayRef<unsigned> stagesOf(Value value) { return users[value].getArrayRef(); }

  /// Operands, with the tensors that a body reads by `tensor.extract`.
  static SmallVector<Value> operandsOf(Operation &op) {
    SmallVector<Value> result(op.getOperands());
    for (Region &region : op.getRegions())
      region.walk([&](Operation *nested) { result.append(nested->operand_begin(), nested->operand_end()); });
    return result;
  }

private:
  Block &body;
  DenseMap<Value, unsigned> levels;
  DenseMap<Value, llvm::SetVector<unsigned>> users;
};

} // namespace

FailureOr<RowPlan> RowPlan::analyze(Block &body) {
  RowPlan plan;
  StageFinder finder(body);
  if (failed(finder.findStages(plan)) || plan.stages.empty())
    return failure();
  linalg::LinalgOp first = plan.stages.front().front().op;
  plan.rows = product(extentsOf(first, utils::IteratorType::parallel));
  plan.width = product(extentsOf(first, utils::IteratorType::reduction));
  for (auto &stage : plan.stages)
    for (RowReduction &reduction : stage)
      if (product(extentsOf(reduction.op, utils::IteratorType::parallel)) != plan.rows ||
          product(extentsOf(reduction.op, utils::IteratorType::reduction)) != plan.width)
        return failure();
  for (auto [number, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    ArrayRef<int64_t> shape = tensorType(value).getShape();
    bool full = splitOf(shape, plan.rows, plan.width).has_value();
    if (!full && product(shape) != plan.rows)
      return failure();
    plan.outputs.push_back({value, unsigned(number), !full || (plan.width == 1)});
  }
  for (auto [stage, reductions] : llvm::enumerate(plan.stages))
    for (RowReduction &reduction : reductions)
      for (Value operand : StageFinder::operandsOf(*reduction.op.getOperation()))
        finder.pull(operand, stage);
  for (const RowOutput &output : plan.outputs)
    finder.pull(output.value, plan.stages.size());
  for (Operation &op : body)
    for (Value result : op.getResults()) {
      ArrayRef<unsigned> stages = finder.stagesOf(result);
      if (stages.size() > 1 && isCostly(result) && splitOf(tensorType(result).getShape(), plan.rows, plan.width))
        plan.kept.push_back({result, *llvm::min_element(stages)});
    }
  return plan;
}

SmallVector<Value> RowPlan::indicesAt(IndexMath &math, Value tensor, int64_t rows, Value row, Value column) {
  Location loc = tensor.getLoc();
  ArrayRef<int64_t> shape = tensorType(tensor).getShape();
  unsigned split = shape.size();
  if (column)
    split = splitOf(shape, rows, rows == 0 ? 0 : product(shape) / rows).value_or(shape.size());
  SmallVector<Value> indices = math.delinearize(loc, row, shape.take_front(split));
  if (split < shape.size())
    indices.append(math.delinearize(loc, column, shape.drop_front(split)));
  return indices;
}

SmallVector<Value> RowPlan::neutral(OpBuilder &builder, const RowReduction &reduction) {
  SmallVector<Value> result;
  for (Operation *combiner : reduction.combiners)
    result.push_back(arith::ConstantOp::create(builder, combiner->getLoc(), *arith::getNeutralElement(combiner)));
  return result;
}

/// The loops of a reduction at a row and column; with a null column only the parallel ones.
static SmallVector<Value> loopsAt(IndexMath &math, linalg::LinalgOp op, Value row, Value column) {
  SmallVector<Value> loops(op.getNumLoops());
  auto fill = [&](Value position, utils::IteratorType kind) {
    SmallVector<Value> indices = math.delinearize(op.getLoc(), position, extentsOf(op, kind));
    unsigned next = 0;
    for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      if (iterator == kind)
        loops[dim] = indices[next++];
  };
  fill(row, utils::IteratorType::parallel);
  if (column)
    fill(column, utils::IteratorType::reduction);
  return loops;
}

SmallVector<Value> RowPlan::accumulate(ElementEmitter &emitter, const RowReduction &reduction, Value row, Value column,
                                       ArrayRef<Value> accumulators) {
  linalg::LinalgOp op = reduction.op;
  SmallVector<Value> loops = loopsAt(emitter.indices(), op, row, column), inputs;
  for (OpOperand *input : op.getDpsInputOperands()) {
    bool used = !op.getMatchingBlockArgument(input).use_empty();
    inputs.push_back(used ? emitter.emitOperand(op, *input, loops) : Value());
    if (used && !inputs.back())
      return {};
  }
  return emitter.emitBody(op, loops, inputs, accumulators);
}

Value RowPlan::combine(OpBuilder &builder, const RowReduction &reduction, unsigned result, Value lhs, Value rhs) {
  Operation *combiner = reduction.combiners[result];
  return builder
      .create(combiner->getLoc(), combiner->getName().getIdentifier(), ValueRange{lhs, rhs}, combiner->getResultTypes(),
              combiner->getAttrs())
      ->getResult(0);
}

LogicalResult RowPlan::finish(OpBuilder &builder, ElementEmitter &emitter, const RowReduction &reduction, Value row,
                              ArrayRef<Value> accumulators) {
  linalg::LinalgOp op = reduction.op;
  SmallVector<Value> loops = loopsAt(emitter.indices(), op, row, nullptr);
  for (unsigned result = 0; result < accumulators.size(); ++result) {
    OpOperand *init = op.getDpsInitOperand(result);
    Value start = emitter.emitOperand(op, *init, loops);
    if (!start)
      return failure();
    // A start that is the neutral element, as usual, adds nothing.
    Attribute constant;
    bool isNeutral =
        matchPattern(start, m_Constant(&constant)) && constant == *arith::getNeutralElement(reduction.combiners[result]);
    Value total = isNeutral ? accumulators[result] : combine(builder, reduction, result, start, accumulators[result]);
    SmallVector<Value> indices;
    for (AffineExpr expr : op.getMatchingIndexingMap(init).getResults())
      indices.push_back(emitter.indices().apply(op.getLoc(), expr, loops));
    emitter.bindElement(op->getResult(result), indices, total);
  }
  return success();
}

} // namespace ogc::codegen
