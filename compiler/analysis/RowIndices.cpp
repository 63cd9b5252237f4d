//===- RowIndices.cpp - computed indices that stay in their row -----------===//
#include "compiler/analysis/RowIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::rows {

/// Iterations that are tried one by one.
static constexpr int64_t maxIterations = int64_t(1) << 20;

std::optional<SmallVector<int64_t>> constantInts(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return std::nullopt;
  if (auto scalar = dyn_cast<IntegerAttr>(constant.getValue()))
    return SmallVector<int64_t>{scalar.getValue().getSExtValue()};
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isIntOrIndex())
    return std::nullopt;
  SmallVector<int64_t> values;
  if (auto dense = dyn_cast<DenseIntElementsAttr>(constant.getValue())) {
    for (const APInt &element : dense.getValues<APInt>())
      values.push_back(element.getBitWidth() == 1 ? element.getZExtValue() : element.getSExtValue());
    return values;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  unsigned width = type.getElementTypeBitWidth();
  if (!blob || (width != 64 && width != 32) ||
      static_cast<int64_t>(blob->getData().size()) != type.getNumElements() * static_cast<int64_t>(width / 8))
    return std::nullopt;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t wide = 0;
    int32_t narrow = 0;
    std::memcpy(width == 64 ? static_cast<void *>(&wide) : &narrow, blob->getData().data() + i * (width / 8), width / 8);
    values.push_back(width == 64 ? wide : narrow);
  }
  return values;
}

namespace {

/// Evaluates integers of a loop body at one iteration after the other.
class BodyEvaluator {
public:
  explicit BodyEvaluator(linalg::LinalgOp op) : op(op), maps(op.getIndexingMapsArray()) {}

  /// The loops that the value depends on; nothing where it depends on data.
  bool collectLoops(Value value, llvm::SmallDenseSet<unsigned> &loops) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      OpOperand *operand = op.getMatchingOpOperand(argument);
      if (argument.getOwner() != op.getBlock() || !operand)
        return false;
      auto [entry, isNew] = tensors.try_emplace(value);
      if (isNew)
        if (auto ints = constantInts(operand->get()))
          entry->second = {maps[operand->getOperandNumber()], SmallVector<int64_t>(shapeOf(operand->get())), *ints};
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
        if (maps[operand->getOperandNumber()].isFunctionOfDim(loop))
          loops.insert(loop);
      return !entry->second.values.empty();
    }
    Operation *producer = value.getDefiningOp();
    if (auto index = dyn_cast<linalg::IndexOp>(producer)) {
      loops.insert(index.getDim());
      return true;
    }
    if (!isa<arith::ConstantOp, arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp, arith::AddIOp, arith::SubIOp, arith::MulIOp,
             arith::MaxSIOp, arith::MinSIOp, arith::CmpIOp, arith::SelectOp>(producer))
      return false;
    return llvm::all_of(producer->getOperands(), [&](Value operand) { return collectLoops(operand, loops); });
  }

  int64_t evaluate(Value value, ArrayRef<int64_t> iteration) {
    if (isa<BlockArgument>(value))
      return load(tensors[value], iteration);
    Operation *producer = value.getDefiningOp();
    auto at = [&](unsigned i) { return evaluate(producer->getOperand(i), iteration); };
    // Wraps like the code does; sizes and positions are far from that.
    auto add = [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a + b); };
    return llvm::TypeSwitch<Operation *, int64_t>(producer)
        .Case([&](linalg::IndexOp index) { return iteration[index.getDim()]; })
        .Case([&](arith::ConstantOp) { return constantInts(value).value_or(SmallVector<int64_t>{0}).front(); })
        .Case([&](arith::AddIOp) { return add(at(0), at(1)); })
        .Case([&](arith::SubIOp) { return add(at(0), -static_cast<uint64_t>(at(1))); })
        .Case([&](arith::MulIOp) { return static_cast<int64_t>(static_cast<uint64_t>(at(0)) * static_cast<uint64_t>(at(1))); })
        .Case([&](arith::MaxSIOp) { return std::max(at(0), at(1)); })
        .Case([&](arith::MinSIOp) { return std::min(at(0), at(1)); })
        .Case([&](arith::SelectOp) { return at(0) ? at(1) : at(2); })
        .Case([&](arith::CmpIOp compare) {
          int64_t a = at(0), b = at(1);
          return static_cast<int64_t>(arith::applyCmpPredicate(compare.getPredicate(), APInt(64, a, true), APInt(64, b, true)));
        })
        .Default([&](Operation *) { return at(0); });
  }

private:
  struct Table {
    AffineMap map;
    SmallVector<int64_t> shape;
    SmallVector<int64_t> values;
  };

  static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

  static int64_t load(const Table &table, ArrayRef<int64_t> iteration) {
    SmallVector<int64_t> position = table.map.compose(iteration);
    int64_t index = 0;
    for (auto [at, size] : llvm::zip_equal(position, table.shape))
      index = index * size + at;
    return index >= 0 && index < static_cast<int64_t>(table.values.size()) ? table.values[index] : -1;
  }

  linalg::LinalgOp op;
  SmallVector<AffineMap> maps;
  llvm::DenseMap<Value, Table> tensors;
};

} // namespace

int findIndexLoop(linalg::LinalgOp op, Value index, ArrayRef<unsigned> candidates) {
  BodyEvaluator evaluator(op);
  llvm::SmallDenseSet<unsigned> loops;
  if (!evaluator.collectLoops(index, loops))
    return -1;
  // Only loops that the index depends on have to be run through.
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), iteration(ranges.size(), 0);
  int64_t iterations = 1;
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    if (!loops.contains(loop))
      ranges[loop] = 1;
    if (ranges[loop] <= 0 || iterations > maxIterations / ranges[loop])
      return -1;
    iterations *= ranges[loop];
  }
  SmallVector<unsigned> fitting(candidates.begin(), candidates.end());
  llvm::erase_if(fitting, [&](unsigned loop) { return !loops.contains(loop); });
  for (int64_t i = 0; i < iterations && !fitting.empty(); ++i) {
    int64_t rest = i;
    for (unsigned loop = ranges.size(); loop-- > 0;) {
      iteration[loop] = rest % ranges[loop];
      rest /= ranges[loop];
    }
    int64_t value = evaluator.evaluate(index, iteration);
    llvm::erase_if(fitting, [&](unsigned loop) { return iteration[loop] != value; });
  }
  return fitting.size() == 1 ? static_cast<int>(fitting.front()) : -1;
}

} // namespace ogc::rows
