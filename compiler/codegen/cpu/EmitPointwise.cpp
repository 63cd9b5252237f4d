//===- EmitPointwise.cpp - one element at a time, in vectorizable loops ---===//
#include "compiler/codegen/cpu/KernelFunction.h"

#include "compiler/codegen/scalar/ScatterElements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace ogc::codegen {

/// Elements that one unit computes, about.
static constexpr int64_t unitElements = 16 * 1024;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

namespace {

/// Results of equal shape share their loops.
struct Group {
  SmallVector<int64_t> shape;
  SmallVector<unsigned> numbers;
  /// Set where the elements are those of its source, each written where it goes.
  tensor::ScatterOp scatter = nullptr;
  /// Leading dimensions of the outer loop; the rest is one flat inner loop.
  unsigned split = 0;
  int64_t rows = 1, width = 1, rowsPerUnit = 1, columnsPerUnit = 1;

  /// Elements that a unit should have: fewer where each takes a loop of its own.
  int64_t elementsPerUnit = unitElements;

  void setSplit(unsigned dim) {
    split = dim;
    rows = product(ArrayRef(shape).take_front(dim));
    width = product(ArrayRef(shape).drop_front(dim));
    rowsPerUnit = std::max<int64_t>(1, elementsPerUnit / std::max<int64_t>(1, width));
    columnsPerUnit = width <= 2 * elementsPerUnit ? width : elementsPerUnit;
  }
  int64_t columnUnits() const { return (width + columnsPerUnit - 1) / std::max<int64_t>(1, columnsPerUnit); }
  int64_t units() const { return (rows + rowsPerUnit - 1) / rowsPerUnit * columnUnits(); }
};

} // namespace

static LogicalResult emitElements(KernelFunction &kernel, const Group &group, Value row, Value column) {
  ArrayRef<int64_t> shape = group.shape;
  SmallVector<Value> indices = kernel.math().delinearize(kernel.loc, row, shape.take_front(group.split));
  indices.append(kernel.math().delinearize(kernel.loc, column, shape.drop_front(group.split)));
  if (tensor::ScatterOp scatter = group.scatter) {
    Value element = kernel.emitter.emit(scatter.getSource(), indices);
    ScatterTarget target = emitScatterTarget(kernel.emitter, kernel.builder, scatter, indices);
    if (!element || target.indices.empty())
      return failure();
    auto guarded = scf::IfOp::create(kernel.builder, kernel.loc, target.isValid, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(kernel.builder);
    kernel.builder.setInsertionPointToStart(guarded.thenBlock());
    kernel.store(0, element, target.indices);
    return success();
  }
  for (unsigned number : group.numbers) {
    Value element = kernel.emitter.emit(kernel.results()[number], indices);
    if (!element)
      return failure();
    kernel.store(number, element, indices);
  }
  return success();
}

/// Digits of an index that nothing asked for do not count.
static void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        eraseDeadOps(nested);
    if (isOpTriviallyDead(&op))
      op.erase();
  }
}

/// Divisions that the inner loop would do at this split, found by emitting its body into a function that is thrown away; -1 on
/// failure.
static int64_t countDivisions(kern::KernelOp op, const CpuTarget &target, func::FuncOp model, const Group &group) {
  OwningOpRef<func::FuncOp> trial(cast<func::FuncOp>(model->cloneWithoutRegions()));
  trial->addEntryBlock();
  KernelFunction kernel(op, target, *trial);
  Block *inner = nullptr;
  LogicalResult result = kernel.loop(kernel.begin, kernel.end, 1, [&](Value row) {
    // Whatever only the row needs is computed in front of the inner loop.
    kernel.math().delinearize(kernel.loc, row, ArrayRef(group.shape).take_front(group.split));
    return kernel.loop(kernel.begin, kernel.end, 1, [&](Value column) {
      inner = column.getParentBlock();
      return emitElements(kernel, group, row, column);
    });
  });
  if (failed(result))
    return -1;
  eraseDeadOps(*inner);
  int64_t divisions = 0;
  inner->walk([&](Operation *nested) { divisions += isa<arith::DivUIOp, arith::RemUIOp>(nested); });
  return divisions;
}

/// The longest inner loop without divisions; without such a one the innermost dimension that is not 1.
static LogicalResult chooseSplit(KernelFunction &kernel, Group &group) {
  unsigned rank = group.shape.size(), last = 0;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (group.shape[dim] != 1)
      last = dim;
  for (unsigned split = 0; split < last; ++split) {
    if (split > 0 && group.shape[split - 1] == 1)
      continue; // the same loops as before
    group.setSplit(split);
    int64_t divisions = countDivisions(kernel.kernel, kernel.target, kernel.function, group);
    if (divisions < 0)
      return failure();
    if (divisions == 0)
      return success();
  }
  group.setSplit(last);
  return success();
}

static LogicalResult emitUnit(KernelFunction &kernel, const Group &group, Value unit) {
  Location loc = kernel.loc;
  IndexMath &math = kernel.math();
  int64_t columnUnits = group.columnUnits();
  Value rowUnit = math.div(loc, unit, columnUnits), columnUnit = math.rem(loc, unit, columnUnits);
  auto bound = [&](Value lower, int64_t size, int64_t end) -> Value {
    Value upper = math.add(loc, lower, size);
    return end % size == 0 ? upper : Value(arith::MinUIOp::create(kernel.builder, loc, upper, kernel.constant(end)));
  };
  Value firstRow = math.mul(loc, rowUnit, group.rowsPerUnit), lastRow = bound(firstRow, group.rowsPerUnit, group.rows);
  Value firstColumn = math.mul(loc, columnUnit, group.columnsPerUnit);
  Value lastColumn = bound(firstColumn, group.columnsPerUnit, group.width);
  return kernel.loop(firstRow, lastRow, 1, [&](Value row) {
    return kernel.loop(firstColumn, lastColumn, 1, [&](Value column) { return emitElements(kernel, group, row, column); });
  });
}

/// Steps of the sequential loops below one element, at most: the product over nested reductions is not known, their largest is.
static int64_t reductionSteps(Block &body) {
  int64_t most = 1;
  for (Operation &op : body)
    if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      int64_t steps = 1;
      for (auto [range, kind] : llvm::zip_equal(structured.getStaticLoopRanges(), structured.getIteratorTypesArray()))
        steps *= kind == utils::IteratorType::reduction ? std::max<int64_t>(range, 1) : 1;
      most = std::max(most, steps);
    } else if (kern::isAnchor(&op)) {
      most = std::max<int64_t>(most, 256);
    }
  return most;
}

Emitted emitPointwise(KernelFunction &kernel) {
  int64_t elementsPerUnit = std::max<int64_t>(64, unitElements / reductionSteps(kernel.body()));
  SmallVector<Group> groups;
  if (tensor::ScatterOp scatter = inPlaceScatter(kernel.kernel)) {
    Group &group = groups.emplace_back(Group{llvm::to_vector(tensorType(scatter.getSource()).getShape()), {}});
    group.scatter = scatter;
  }
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    if (!groups.empty() && groups.front().scatter)
      break;
    ArrayRef<int64_t> shape = tensorType(result).getShape();
    if (product(shape) == 0)
      continue;
    auto known = llvm::find_if(groups, [&](const Group &group) { return ArrayRef(group.shape) == shape; });
    if (known == groups.end())
      known = groups.insert(groups.end(), Group{llvm::to_vector(shape), {}});
    known->numbers.push_back(number);
  }
  // Units of the groups follow each other.
  for (Group &group : groups) {
    group.elementsPerUnit = elementsPerUnit;
    if (failed(chooseSplit(kernel, group)))
      return Emitted::Failed;
    Value first = kernel.constant(kernel.units);
    kernel.units += group.units();
    Value lower = kernel.begin, upper = kernel.end;
    if (groups.size() > 1) {
      lower = arith::MaxSIOp::create(kernel.builder, kernel.loc, lower, first);
      upper = arith::MinSIOp::create(kernel.builder, kernel.loc, upper, kernel.constant(kernel.units));
    }
    if (failed(kernel.loop(lower, upper, 1,
                           [&](Value unit) { return emitUnit(kernel, group, kernel.math().sub(kernel.loc, unit, first)); })))
      return Emitted::Failed;
  }
  return Emitted::Yes;
}

} // namespace ogc::codegen
