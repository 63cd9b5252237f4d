//===- Contraction.cpp - the register tile of matmul and convolution ------===//
#include "compiler/codegen/cpu/Contraction.h"

#include "compiler/dialect/kern/RowNorm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ogc::codegen {

MicroTile MicroTile::choose(const CpuTarget &target, int64_t rows, int64_t columns) {
  MicroTile tile;
  tile.lanes = target.lanes;
  tile.sums = rows <= 1 ? 4 : rows == 2 ? 2 : 1; // a tile of few vectors would wait for each of its additions
  int64_t widest = target.registers >= 32 ? 4 : 2;
  tile.vectors = std::max<int64_t>(1, std::min(widest, columns / target.lanes));
  while (columns % tile.columns() != 0)
    --tile.vectors;
  // The panel's vectors and one broadcast need registers of their own.
  int64_t most = std::min<int64_t>((target.registers - tile.vectors - 1) / tile.vectors, 14);
  tile.rows = std::min(most, rows);
  auto computed = [&](int64_t size) { return (rows + size - 1) / size * size; };
  for (int64_t size = tile.rows; size > most / 2 && size > 0; --size)
    if (computed(size) < computed(tile.rows))
      tile.rows = size;
  return tile;
}

static VectorType vectorType(KernelFunction &kernel, const MicroTile &tile, Type element) {
  return VectorType::get({tile.lanes}, element);
}

SmallVector<Value> zeroTile(KernelFunction &kernel, const MicroTile &tile) {
  VectorType type = vectorType(kernel, tile, kernel.builder.getF32Type());
  Value zero = arith::ConstantOp::create(kernel.builder, kernel.loc, kernel.builder.getZeroAttr(type));
  return SmallVector<Value>(tile.rows * tile.vectors, zero);
}

/// One step of K.
static void emitStep(KernelFunction &kernel, const MicroTile &tile, MutableArrayRef<Value> accumulators, const RowSource &rows,
                     const PanelSource &panel, Value step, int64_t offset) {
  OpBuilder &builder = kernel.builder;
  Location loc = kernel.loc;
  VectorType type = vectorType(kernel, tile, builder.getF32Type());
  Type stored = cast<MemRefType>(panel.buffer.getType()).getElementType();
  Value k = kernel.math().add(loc, step, offset);
  Value line = kernel.math().add(loc, panel.base, kernel.math().mul(loc, k, panel.stepStride));
  SmallVector<Value> columns;
  for (int64_t v = 0; v < tile.vectors; ++v) {
    Value at = kernel.math().add(loc, line, v * tile.lanes);
    Value loaded = vector::LoadOp::create(builder, loc, vectorType(kernel, tile, stored), panel.buffer, at);
    columns.push_back(stored.isF32() ? loaded : Value(arith::ExtFOp::create(builder, loc, type, loaded)));
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    Value element = memref::LoadOp::create(builder, loc, rows.buffer, kernel.math().add(loc, rows.bases[row], k));
    Value wide = vector::BroadcastOp::create(builder, loc, type, element);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value &accumulator = accumulators[row * tile.vectors + v];
      accumulator = vector::FMAOp::create(builder, loc, wide, columns[v], accumulator);
    }
  }
}

SmallVector<Value> emitSteps(KernelFunction &kernel, const MicroTile &tile, ArrayRef<Value> accumulators, const RowSource &rows,
                             const PanelSource &panel, int64_t steps) {
  int64_t unroll = steps % 4 == 0 ? 4 : steps % 2 == 0 ? 2 : 1;
  if (tile.rows * tile.vectors >= 20)
    unroll = std::min<int64_t>(unroll, 2);
  int64_t sets = std::min(unroll, tile.sums);
  size_t size = accumulators.size();
  SmallVector<Value> sums(accumulators);
  for (int64_t set = 1; set < sets; ++set)
    llvm::append_range(sums, zeroTile(kernel, tile));
  auto loop =
      scf::ForOp::create(kernel.builder, kernel.loc, kernel.constant(0), kernel.constant(steps), kernel.constant(unroll), sums);
  OpBuilder::InsertionGuard guard(kernel.builder);
  kernel.builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> current(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
  for (int64_t offset = 0; offset < unroll; ++offset)
    emitStep(kernel, tile, MutableArrayRef(current).slice(offset % sets * size, size), rows, panel, loop.getInductionVar(),
             offset);
  scf::YieldOp::create(kernel.builder, kernel.loc, current);
  kernel.builder.setInsertionPointAfter(loop);
  SmallVector<Value> results(loop->result_begin(), loop->result_begin() + size);
  for (size_t i = size; i < loop->getNumResults(); ++i)
    results[i % size] = arith::AddFOp::create(kernel.builder, kernel.loc, results[i % size], loop->getResult(i));
  return results;
}

FailureOr<Epilogue> Epilogue::create(KernelFunction &kernel, Operation *anchor, const MicroTile &tile) {
  Epilogue epilogue(kernel, anchor, tile);
  auto type = cast<RankedTensorType>(anchor->getResult(0).getType());
  epilogue.columns = type.getShape().back();
  epilogue.rows = epilogue.columns == 0 ? 0 : type.getNumElements() / epilogue.columns;
  epilogue.split = interleavedParts(anchor->getResult(0));
  for (auto [number, result] : llvm::enumerate(kernel.results())) {
    if (!kern::dependsOn(result, anchor) || result.getDefiningOp<kern::RowStatisticsOp>())
      continue;
    if (cast<RankedTensorType>(result.getType()).getNumElements() * epilogue.split.count != type.getNumElements())
      return failure();
    epilogue.results.push_back(static_cast<unsigned>(number));
  }
  if (tile.columns() % epilogue.split.count != 0)
    return failure();
  for (auto op : kernel.body().getOps<kern::RowStatisticsOp>()) {
    std::optional<StoredStatistics> stored = epilogue.storedStatistics(op);
    auto matmul = dyn_cast<kern::MatmulOp>(anchor);
    if (!stored || !matmul || !kern::canStoreStatistics(matmul))
      return failure();
    epilogue.statistics.push_back(*stored);
  }
  epilogue.buffer = kernel.scratch(kernel.builder.getF32Type(), tile.rows * tile.columns());
  return epilogue;
}

std::optional<Epilogue::StoredStatistics> Epilogue::storedStatistics(kern::RowStatisticsOp op) {
  auto withoutReshapes = [](Value value) {
    while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    return value;
  };
  ValueRange yields = kernel.results();
  auto rows = llvm::find_if(yields, [&](Value v) { return withoutReshapes(v) == withoutReshapes(op.getInput()); });
  auto means = llvm::find(yields, op.getMeans()), squares = llvm::find(yields, op.getSquares());
  if (llvm::is_contained({rows, means, squares}, yields.end()) ||
      cast<RankedTensorType>(op.getInput().getType()).getShape().back() != columns)
    return std::nullopt;
  auto position = [&](auto it) { return static_cast<unsigned>(std::distance(yields.begin(), it)); };
  return StoredStatistics{position(rows), position(means), position(squares)};
}

LogicalResult Epilogue::emitStatistics(Value firstRow, Value endRow, Value part) {
  constexpr int64_t width = kern::RowStatisticsOp::width;
  Location loc = kernel.loc;
  OpBuilder &builder = kernel.builder;
  IndexMath &math = kernel.math();
  VectorType type = vectorType(kernel, tile, builder.getF32Type());
  auto constant = [&](float x) -> Value { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(x)); };
  for (const StoredStatistics &stored : statistics) {
    Value buffer = kernel.output(stored.rows);
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    LogicalResult done = kernel.loop(firstRow, endRow, 1, [&](Value row) {
      Value from = math.add(loc, math.mul(loc, row, columns), math.mul(loc, part, width));
      SmallVector<Value> x;
      for (int64_t at = 0; at < width; at += tile.lanes) {
        Value loaded = vector::LoadOp::create(builder, loc, vectorType(kernel, tile, element), buffer, math.add(loc, from, at));
        x.push_back(element.isF32() ? loaded : arith::ExtFOp::create(builder, loc, type, loaded).getResult());
      }
      auto sum = [&](auto &&term) -> Value {
        Value total = term(x[0]);
        for (Value more : ArrayRef(x).drop_front())
          total = arith::AddFOp::create(builder, loc, total, term(more));
        return vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, total);
      };
      Value mean = arith::MulFOp::create(builder, loc, sum([](Value v) { return v; }), constant(1.f / width));
      Value center = vector::BroadcastOp::create(builder, loc, type, mean);
      Value squares = sum([&](Value v) -> Value {
        Value distance = arith::SubFOp::create(builder, loc, v, center);
        return arith::MulFOp::create(builder, loc, distance, distance);
      });
      Value to = math.add(loc, math.mul(loc, row, columns / width), part);
      memref::StoreOp::create(builder, loc, mean, kernel.output(stored.means), to);
      memref::StoreOp::create(builder, loc, squares, kernel.output(stored.squares), to);
      return success();
    });
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult Epilogue::bindRow(ArrayRef<Value> row) {
  for (auto generic : kernel.body().getOps<linalg::GenericOp>())
    for (Value input : generic.getDpsInputs()) {
      auto type = dyn_cast<RankedTensorType>(input.getType());
      Value source = input;
      while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(source.getDefiningOp()))
        source = source.getDefiningOp()->getOperand(0);
      if (!type || type.getRank() != static_cast<int64_t>(row.size()) || !kern::isMergeOfStatistics(source.getDefiningOp()))
        continue;
      Value element = kernel.emitter.emit(input, row);
      if (!element)
        return failure();
      kernel.emitter.bindElement(input, row, element);
    }
  return success();
}

LogicalResult Epilogue::emit(ArrayRef<Value> accumulators, Value firstRow, Value firstColumn) {
  OpBuilder &builder = kernel.builder;
  for (auto [number, accumulator] : llvm::enumerate(accumulators))
    vector::StoreOp::create(builder, kernel.loc, accumulator, buffer, kernel.constant(number * tile.lanes));
  Value full = kernel.constant(tile.columns());
  if (tilesAreFull || columns % tile.columns() == 0)
    return emitColumns(firstRow, firstColumn, full);
  // The loop over whole tiles keeps its constant extent; only the last one of a row is shorter.
  Value last = kernel.constant(columns / tile.columns() * tile.columns());
  Value isFull = arith::CmpIOp::create(builder, kernel.loc, arith::CmpIPredicate::ult, firstColumn, last);
  auto choice = scf::IfOp::create(builder, kernel.loc, isFull, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(choice.thenBlock());
  if (failed(emitColumns(firstRow, firstColumn, full)))
    return failure();
  builder.setInsertionPointToStart(choice.elseBlock());
  return emitColumns(firstRow, firstColumn, kernel.constant(columns % tile.columns()));
}

LogicalResult Epilogue::emitColumns(Value firstRow, Value firstColumn, Value count) {
  Location loc = kernel.loc;
  IndexMath &math = kernel.math();
  // Elements of the result, or of a part of it.
  SmallVector<int64_t> domain(cast<RankedTensorType>(anchor->getResult(0).getType()).getShape());
  domain.back() /= split.count;
  Value zero = kernel.constant(0), first = math.div(loc, firstColumn, split.count);
  return kernel.loop(zero, kernel.constant(tile.rows), 1, [&](Value row) -> LogicalResult {
    SmallVector<Value> outer =
        math.delinearize(loc, math.add(loc, firstRow, math.mul(loc, row, rowStep)), ArrayRef(domain).drop_back());
    if (failed(bindRow(outer)))
      return failure();
    return kernel.loop(zero, math.div(loc, count, split.count), 1, [&](Value column) -> LogicalResult {
      Value place = math.add(loc, math.mul(loc, row, tile.columns()), math.mul(loc, column, split.count));
      auto accumulator = [&](int64_t number) {
        return memref::LoadOp::create(kernel.builder, loc, buffer, math.add(loc, place, number));
      };
      if (split.count == 1)
        kernel.emitter.bindScalar(anchor->getResult(0), accumulator(0));
      for (const InterleavedParts::Part &part : split.parts)
        kernel.emitter.bindScalar(part.value, accumulator(part.number));
      SmallVector<Value> indices(outer);
      indices.push_back(math.add(loc, first, column));
      for (unsigned number : results) {
        Value result = kernel.results()[number];
        auto shape = cast<RankedTensorType>(result.getType()).getShape();
        SmallVector<Value> at =
            shape == ArrayRef(domain) ? indices : math.delinearize(loc, math.linearize(loc, indices, domain), shape);
        Value element = kernel.emitter.emit(result, at);
        if (!element)
          return failure();
        kernel.store(number, element, at);
      }
      return success();
    });
  });
}

Value splitBegin(KernelFunction &kernel, Value index, int64_t count, int64_t parts) {
  return kernel.math().div(kernel.loc, kernel.math().mul(kernel.loc, index, count), parts);
}

Value stripEnd(KernelFunction &kernel, Value panelIndex, int64_t panel, int64_t strip, int64_t columns) {
  if (strip == panel || columns % panel == 0)
    return kernel.constant(panel);
  IndexMath &math = kernel.math();
  Value left = math.sub(kernel.loc, kernel.constant(columns), math.mul(kernel.loc, panelIndex, panel));
  return arith::MinSIOp::create(kernel.builder, kernel.loc, left, kernel.constant(panel));
}

LogicalResult forEachTile(KernelFunction &kernel, Value begin, Value end, int64_t size, function_ref<LogicalResult(Value)> body) {
  Value last = kernel.math().sub(kernel.loc, end, size);
  return kernel.loop(begin, end, size,
                     [&](Value start) { return body(arith::MinSIOp::create(kernel.builder, kernel.loc, start, last)); });
}

} // namespace ogc::codegen
