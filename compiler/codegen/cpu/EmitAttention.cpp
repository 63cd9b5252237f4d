//===- EmitAttention.cpp - scaled dot product attention -------------------===//
#include "compiler/analysis/StridedView.h"
#include "compiler/codegen/cpu/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ogc::codegen {

/// Stack memory for the scores of a block of queries, and for a packed panel.
static constexpr int64_t scoreBytes = 256 * 1024;
/// With fewer queries in a block, keys are not worth packing.
static constexpr int64_t fewQueries = 4;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

/// A unit is one head and a block of queries: scores of the block against all keys, softmax in place, then the product with the
/// values; the division by the sums comes last.
class AttentionEmitter {
public:
  AttentionEmitter(KernelFunction &kernel, kern::AttentionOp op)
      : kernel(kernel), op(op), builder(kernel.builder), math(kernel.math()), loc(kernel.loc), f32(builder.getF32Type()) {
    ArrayRef<int64_t> q = tensorType(op.getQuery()).getShape(), v = tensorType(op.getValue()).getShape();
    batches = q[0];
    queries = q[1];
    heads = q[2];
    depth = q[3];
    keys = v[1];
    keyHeads = v[2];
    valueDepth = v[3];
  }

  Emitted emit() {
    if (tensorType(op.getResult()).getNumElements() == 0)
      return Emitted::Yes;
    query = resolveStridedView(op.getQuery());
    key = resolveStoredView(op.getKey());
    value = resolveStoredView(op.getValue());
    if (keys == 0 || depth == 0 || !isa<BlockArgument>(key.root) || !isa<BlockArgument>(value.root))
      return Emitted::NotApplicable;
    if (!chooseShapes())
      return Emitted::NotApplicable;
    FailureOr<Epilogue> created = Epilogue::create(kernel, op, valueTile);
    if (failed(created))
      return Emitted::NotApplicable;
    epilogue = &*created;
    epilogue->rowStep = heads;
    int64_t blockRows = (queries + blocks - 1) / blocks;
    scores = kernel.scratch(f32, blockRows * scoreStride);
    factors = kernel.scratch(f32, blockRows);
    if (copiesQueries)
      queryRows = kernel.scratch(f32, blockRows * depth);
    if (usesDots && (key.strides[3] != 1 || isConverted(op.getKey(), key)))
      keyRow = kernel.scratch(f32, depth);
    if (!usesDots)
      keyPanel = kernel.scratch(f32, depth * scoreTile.columns());
    if (packsValues)
      valuePanel = kernel.scratch(f32, keys * valueTile.columns());
    if (op.getNewKey()) {
      newRows = tensorType(op.getNewKey()).getDimSize(1);
      newKeys = kernel.scratch(f32, newRows * depth);
      newValues = kernel.scratch(f32, newRows * valueDepth);
    }
    kernel.effort = Effort::Plain;
    kernel.units = batches * heads * blocks;
    LogicalResult emitted = kernel.loop(kernel.begin, kernel.end, 1, [&](Value unit) { return emitUnit(unit); });
    return succeeded(emitted) && succeeded(emitOtherResults()) ? Emitted::Yes : Emitted::Failed;
  }

private:
  /// Results that are no part of the attention (new rows of the cache): the first unit does them.
  LogicalResult emitOtherResults() {
    for (auto [index, result] : llvm::enumerate(kernel.results())) {
      if (kern::dependsOn(result, op))
        continue;
      unsigned number = static_cast<unsigned>(index);
      Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, kernel.begin, kernel.constant(0));
      Value isSome = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, kernel.begin, kernel.end);
      Value isMine = arith::AndIOp::create(builder, loc, isFirst, isSome);
      auto guarded = scf::IfOp::create(builder, loc, isMine, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(guarded.thenBlock());
      RankedTensorType type = tensorType(result);
      Value yielded = result;
      LogicalResult stored =
          kernel.loop(kernel.constant(0), kernel.constant(type.getNumElements()), 1, [&](Value i) -> LogicalResult {
            SmallVector<Value> at = math.delinearize(loc, i, type.getShape());
            Value element = kernel.emitter.emit(yielded, at);
            if (!element)
              return failure();
            kernel.store(number, element, at);
            return success();
          });
      if (failed(stored))
        return failure();
    }
    return success();
  }

  bool isF32(Value tensor) { return tensorType(tensor).getElementType().isF32(); }

  bool chooseShapes() {
    int64_t lanes = kernel.target.lanes, widest = lanes * (kernel.target.registers >= 32 ? 4 : 2);
    int64_t keyColumns = widest;
    while (keyColumns > lanes && keyColumns / 2 >= keys)
      keyColumns /= 2;
    scoreStride = (keys + keyColumns - 1) / keyColumns * keyColumns;
    if (scoreStride * 4 > 4 * scoreBytes)
      return false;
    int64_t rows = std::max<int64_t>(1, std::min(queries, scoreBytes / (4 * scoreStride)));
    blocks = (queries + rows - 1) / rows;
    int64_t fewest = queries / blocks;
    usesDots = fewest < fewQueries;
    copiesQueries = !isF32(op.getQuery()) || query.strides[3] != 1 || !isa<BlockArgument>(query.root);
    scoreTile = MicroTile::choose(kernel.target, fewest, keyColumns);
    int64_t valueColumns = lanes;
    while (valueColumns < widest && valueDepth % (2 * valueColumns) == 0)
      valueColumns *= 2;
    packsValues =
        value.strides[3] != 1 || valueDepth % valueColumns != 0 || op.getNewValue() || isConverted(op.getValue(), value);
    while (packsValues && valueColumns > lanes && keys * valueColumns * 4 > 4 * scoreBytes)
      valueColumns /= 2;
    if (packsValues && keys * valueColumns * 4 > 4 * scoreBytes)
      return false;
    valueTile = MicroTile::choose(kernel.target, fewest, valueColumns);
    return true;
  }

  /// True where the elements of `tensor` are stored in another type.
  bool isConverted(Value tensor, const StridedView &view) {
    return tensorType(view.root).getElementType() != tensorType(tensor).getElementType();
  }

  /// An element of a cache, rounded to the type that it is read as.
  Value loadStored(Value tensor, const StridedView &view, Value at) {
    Value element = load(kernel.input(view.root), at);
    Type type = tensorType(tensor).getElementType();
    if (element.getType() == type)
      return toF32(element);
    bool narrows = type.getIntOrFloatBitWidth() < element.getType().getIntOrFloatBitWidth();
    element = narrows ? arith::TruncFOp::create(builder, loc, type, element).getResult()
                      : arith::ExtFOp::create(builder, loc, type, element).getResult();
    return toF32(element);
  }

  /// Reads the new rows of this unit, and where they go: to keys [newBegin, newEnd).
  LogicalResult readNewRows() {
    if (!op.getNewKey())
      return success();
    position = kernel.emitter.emitPosition(op, batch);
    if (!position)
      return failure();
    auto clamp = [&](Value at) -> Value {
      at = arith::MaxSIOp::create(builder, loc, at, kernel.constant(0));
      return arith::MinSIOp::create(builder, loc, at, kernel.constant(keys));
    };
    newBegin = clamp(position);
    newEnd = clamp(arith::AddIOp::create(builder, loc, position, kernel.constant(newRows)));
    for (auto [rows, size, buffer] :
         {std::tuple(op.getNewKey(), depth, newKeys), std::tuple(op.getNewValue(), valueDepth, newValues)}) {
      Value tensor = rows, target = buffer;
      int64_t width = size;
      LogicalResult read = kernel.loop(kernel.constant(0), kernel.constant(newRows), 1, [&](Value r) {
        return kernel.loop(kernel.constant(0), kernel.constant(width), 1, [&](Value d) -> LogicalResult {
          Value element = kernel.emitter.emit(tensor, {batch, r, keyHead, d});
          if (!element)
            return failure();
          store(toF32(element), target, math.add(loc, math.mul(loc, r, width), d));
          return success();
        });
      });
      if (failed(read))
        return failure();
    }
    return success();
  }

  /// The number of the new row that key `t` is; only inside of [newBegin, newEnd).
  Value newRow(Value t) { return arith::SubIOp::create(builder, loc, t, position); }

  Value toF32(Value element) {
    return element.getType().isF32() ? element : Value(arith::ExtFOp::create(builder, loc, f32, element));
  }
  Value load(Value buffer, Value at) { return memref::LoadOp::create(builder, loc, buffer, at); }
  void store(Value element, Value buffer, Value at) { memref::StoreOp::create(builder, loc, element, buffer, at); }
  Value constantF32(float number) { return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(number)); }

  /// Position of (batch, 0, head, 0) in a view.
  Value origin(const StridedView &view, Value atHead) {
    Value base = math.add(loc, math.mul(loc, batch, view.strides[0]), view.offset);
    return math.add(loc, base, math.mul(loc, atHead, view.strides[2]));
  }

  LogicalResult emitUnit(Value unit) {
    SmallVector<Value> at = math.delinearize(loc, unit, {batches, heads, blocks});
    batch = at[0];
    head = at[1];
    rowBegin = splitBegin(kernel, at[2], queries, blocks);
    rowEnd = splitBegin(kernel, math.add(loc, at[2], 1), queries, blocks);
    keyHead = math.div(loc, head, heads / keyHeads);
    if (failed(readNewRows()) || (copiesQueries && failed(copyQueries())))
      return failure();
    if (failed(usesDots ? emitScoresByDots() : emitScores()))
      return failure();
    if (failed(kernel.loop(rowBegin, rowEnd, 1, [&](Value row) { return emitSoftmax(row); })))
      return failure();
    return emitProducts();
  }

  Value localRow(Value row) { return math.sub(loc, row, rowBegin); }

  Value queryBase(Value row) {
    return copiesQueries ? math.mul(loc, localRow(row), depth)
                         : math.add(loc, origin(query, head), math.mul(loc, row, query.strides[1]));
  }

  LogicalResult copyQueries() {
    return kernel.loop(rowBegin, rowEnd, 1, [&](Value row) {
      Value to = math.mul(loc, localRow(row), depth);
      return kernel.loop(kernel.constant(0), kernel.constant(depth), 1, [&](Value d) -> LogicalResult {
        Value element = kernel.emitter.emit(op.getQuery(), {batch, row, head, d});
        if (!element)
          return failure();
        store(toF32(element), queryRows, math.add(loc, to, d));
        return success();
      });
    });
  }

  /// Scores by the register tile, one packed panel of keys after the other.
  LogicalResult emitScores() {
    return kernel.loop(kernel.constant(0), kernel.constant(scoreStride), scoreTile.columns(), [&](Value column) -> LogicalResult {
      if (failed(packKeys(column)))
        return failure();
      return forEachTile(kernel, rowBegin, rowEnd, scoreTile.rows, [&](Value row) {
        RowSource rows{copiesQueries ? queryRows : kernel.input(query.root), {}};
        for (int64_t i = 0; i < scoreTile.rows; ++i)
          rows.bases.push_back(queryBase(math.add(loc, row, i)));
        PanelSource panel{keyPanel, kernel.constant(0), scoreTile.columns()};
        SmallVector<Value> tile = emitSteps(kernel, scoreTile, zeroTile(kernel, scoreTile), rows, panel, depth);
        Value first = math.add(loc, math.mul(loc, localRow(row), scoreStride), column);
        for (auto [number, accumulator] : llvm::enumerate(tile)) {
          int64_t offset = number / scoreTile.vectors * scoreStride + number % scoreTile.vectors * scoreTile.lanes;
          vector::StoreOp::create(builder, loc, accumulator, scores, math.add(loc, first, offset));
        }
        return success();
      });
    });
  }

  /// Keys from `column` on, transposed; columns past the last key repeat it and are never read.
  LogicalResult packKeys(Value column) {
    Value base = origin(key, keyHead);
    LogicalResult packed = kernel.loop(kernel.constant(0), kernel.constant(scoreTile.columns()), 1, [&](Value j) {
      Value t = math.add(loc, column, j);
      if (scoreStride != keys)
        t = arith::MinUIOp::create(builder, loc, t, kernel.constant(keys - 1));
      Value from = math.add(loc, base, math.mul(loc, t, key.strides[1]));
      return kernel.loop(kernel.constant(0), kernel.constant(depth), 1, [&](Value d) {
        Value element = loadStored(op.getKey(), key, math.add(loc, from, math.mul(loc, d, key.strides[3])));
        store(element, keyPanel, math.add(loc, math.mul(loc, d, scoreTile.columns()), j));
        return success();
      });
    });
    if (failed(packed) || !op.getNewKey())
      return packed;
    Value begin = arith::MaxSIOp::create(builder, loc, newBegin, column);
    Value end = arith::MinSIOp::create(builder, loc, newEnd, math.add(loc, column, scoreTile.columns()));
    return kernel.loop(begin, end, 1, [&](Value t) {
      Value from = math.mul(loc, newRow(t), depth), j = math.sub(loc, t, column);
      return kernel.loop(kernel.constant(0), kernel.constant(depth), 1, [&](Value d) {
        store(load(newKeys, math.add(loc, from, d)), keyPanel, math.add(loc, math.mul(loc, d, scoreTile.columns()), j));
        return success();
      });
    });
  }

  LogicalResult emitScoresByDots() {
    Value base = origin(key, keyHead);
    return kernel.loop(rowBegin, rowEnd, 1, [&](Value row) {
      Value from = queryBase(row), to = math.mul(loc, localRow(row), scoreStride);
      Value rows = copiesQueries ? queryRows : kernel.input(query.root);
      LogicalResult scored = kernel.loop(kernel.constant(0), kernel.constant(keys), 1, [&](Value t) {
        Value keyBase = math.add(loc, base, math.mul(loc, t, key.strides[1]));
        if (!keyRow) {
          store(emitDot(rows, from, kernel.input(key.root), keyBase), scores, math.add(loc, to, t));
          return success();
        }
        LogicalResult copied = kernel.loop(kernel.constant(0), kernel.constant(depth), 1, [&](Value d) {
          Value element = loadStored(op.getKey(), key, math.add(loc, keyBase, math.mul(loc, d, key.strides[3])));
          store(element, keyRow, d);
          return success();
        });
        store(emitDot(rows, from, keyRow, kernel.constant(0)), scores, math.add(loc, to, t));
        return copied;
      });
      if (failed(scored) || !op.getNewKey())
        return scored;
      return kernel.loop(newBegin, newEnd, 1, [&](Value t) {
        store(emitDot(rows, from, newKeys, math.mul(loc, newRow(t), depth)), scores, math.add(loc, to, t));
        return success();
      });
    });
  }

  /// The product of two dense rows of `depth` elements. The order of the additions is written out, since the vectorizer's would
  /// depend on the layout of the keys: a value must not.
  Value emitDot(Value left, Value leftBase, Value right, Value rightBase) {
    int64_t lanes = kernel.target.lanes, whole = depth / lanes * lanes;
    Value sum = constantF32(0);
    if (whole) {
      auto wide = VectorType::get({lanes}, f32), narrow = wide.clone(cast<MemRefType>(right.getType()).getElementType());
      Value zeros = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(wide, 0.0f));
      Value partial = reduce(0, whole, lanes, zeros, [&](Value d, Value partial) -> Value {
        Value a = vector::LoadOp::create(builder, loc, wide, left, math.add(loc, leftBase, d));
        Value b = vector::LoadOp::create(builder, loc, narrow, right, math.add(loc, rightBase, d));
        if (narrow != wide)
          b = arith::ExtFOp::create(builder, loc, wide, b);
        return vector::FMAOp::create(builder, loc, a, b, partial);
      });
      sum = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, partial, arith::FastMathFlags::reassoc);
    }
    return reduce(whole, depth, 1, sum, [&](Value d, Value partial) -> Value {
      Value a = load(left, math.add(loc, leftBase, d)), b = toF32(load(right, math.add(loc, rightBase, d)));
      return math::FmaOp::create(builder, loc, a, b, partial);
    });
  }

  /// A sequential reduction over constant bounds.
  Value reduce(int64_t lower, int64_t upper, int64_t step, Value init, function_ref<Value(Value, Value)> body) {
    return reduce(kernel.constant(lower), kernel.constant(upper), kernel.constant(step), init, body);
  }

  /// A sequential reduction over [0, count).
  Value reduce(Value count, Value init, function_ref<Value(Value, Value)> body) {
    return reduce(kernel.constant(0), count, kernel.constant(1), init, body);
  }

  Value reduce(Value lower, Value upper, Value step, Value init, function_ref<Value(Value, Value)> body) {
    auto loop = scf::ForOp::create(builder, loc, lower, upper, step, init);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value next = body(loop.getInductionVar(), loop.getRegionIterArgs()[0]);
    if (!next)
      return {};
    scf::YieldOp::create(builder, loc, next);
    return loop.getResult(0);
  }

  /// Keys that query `row` may see.
  Value visibleKeys(Value row) {
    if (!op.getCausal())
      return kernel.constant(keys);
    Value count = math.add(loc, row, 1 + keys - queries);
    count = arith::MaxSIOp::create(builder, loc, count, kernel.constant(0));
    return arith::MinSIOp::create(builder, loc, count, kernel.constant(keys));
  }

  /// Null after an error.
  Value biasAt(Value row, Value t) {
    SmallVector<Value> at{batch, head, row, t};
    for (int dim = 0; dim < 3; ++dim)
      if (tensorType(op.getBias()).getDimSize(dim) == 1)
        at[dim] = kernel.constant(0);
    Value element = kernel.emitter.emit(op.getBias(), at);
    return element ? toF32(element) : Value();
  }

  /// Scores of one query become weights, not yet divided by their sum; keys out of sight get zero.
  LogicalResult emitSoftmax(Value row) {
    Value base = math.mul(loc, localRow(row), scoreStride), count = visibleKeys(row);
    Value lowest = constantF32(-std::numeric_limits<float>::infinity()), zero = constantF32(0),
          scale = constantF32(op.getScale().convertToFloat());
    Value top = reduce(count, lowest, [&](Value t, Value most) -> Value {
      Value at = math.add(loc, base, t);
      Value score = arith::MulFOp::create(builder, loc, load(scores, at), scale);
      if (op.getBias()) {
        Value bias = biasAt(row, t);
        if (!bias)
          return {};
        score = arith::AddFOp::create(builder, loc, score, bias);
      }
      store(score, scores, at);
      return arith::MaximumFOp::create(builder, loc, most, score, arith::FastMathFlags::reassoc);
    });
    if (!top)
      return failure();
    Value masked = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, top, lowest);
    Value shift = arith::SelectOp::create(builder, loc, masked, zero, top);
    Value sum = reduce(count, zero, [&](Value t, Value partial) -> Value {
      Value at = math.add(loc, base, t);
      Value weight = math::ExpOp::create(builder, loc, arith::SubFOp::create(builder, loc, load(scores, at), shift));
      store(weight, scores, at);
      return arith::AddFOp::create(builder, loc, partial, weight, arith::FastMathFlags::reassoc);
    });
    Value inverse = arith::DivFOp::create(builder, loc, constantF32(1), sum);
    store(arith::SelectOp::create(builder, loc, masked, zero, inverse), factors, localRow(row));
    if (!op.getCausal())
      return success();
    return kernel.loop(count, kernel.constant(keys), 1, [&](Value t) {
      store(zero, scores, math.add(loc, base, t));
      return success();
    });
  }

  LogicalResult emitProducts() {
    return kernel.loop(kernel.constant(0), kernel.constant(valueDepth), valueTile.columns(), [&](Value column) -> LogicalResult {
      Value base = math.add(loc, origin(value, keyHead), math.mul(loc, column, value.strides[3]));
      PanelSource panel{kernel.input(value.root), base, value.strides[1]};
      if (packsValues) {
        if (failed(packValues(base, column)))
          return failure();
        panel = {valuePanel, kernel.constant(0), valueTile.columns()};
      }
      return forEachTile(kernel, rowBegin, rowEnd, valueTile.rows,
                         [&](Value row) { return emitProductTile(row, column, panel); });
    });
  }

  LogicalResult packValues(Value base, Value column) {
    Value left = math.sub(loc, kernel.constant(valueDepth), column);
    Value width = arith::MinSIOp::create(builder, loc, left, kernel.constant(valueTile.columns()));
    LogicalResult packed = kernel.loop(kernel.constant(0), kernel.constant(keys), 1, [&](Value t) -> LogicalResult {
      Value from = math.add(loc, base, math.mul(loc, t, value.strides[1])), to = math.mul(loc, t, valueTile.columns());
      if (failed(kernel.loop(kernel.constant(0), width, 1, [&](Value d) {
            Value element = loadStored(op.getValue(), value, math.add(loc, from, math.mul(loc, d, value.strides[3])));
            store(element, valuePanel, math.add(loc, to, d));
            return success();
          })))
        return failure();
      return kernel.loop(width, kernel.constant(valueTile.columns()), 1, [&](Value d) {
        store(constantF32(0), valuePanel, math.add(loc, to, d));
        return success();
      });
    });
    if (failed(packed) || !op.getNewValue())
      return packed;
    return kernel.loop(newBegin, newEnd, 1, [&](Value t) {
      Value from = math.add(loc, math.mul(loc, newRow(t), valueDepth), column), to = math.mul(loc, t, valueTile.columns());
      return kernel.loop(kernel.constant(0), width, 1, [&](Value d) {
        store(load(newValues, math.add(loc, from, d)), valuePanel, math.add(loc, to, d));
        return success();
      });
    });
  }

  LogicalResult emitProductTile(Value row, Value column, const PanelSource &panel) {
    RowSource rows{scores, {}};
    for (int64_t i = 0; i < valueTile.rows; ++i)
      rows.bases.push_back(math.mul(loc, localRow(math.add(loc, row, i)), scoreStride));
    SmallVector<Value> tile = emitSteps(kernel, valueTile, zeroTile(kernel, valueTile), rows, panel, keys);
    for (int64_t i = 0; i < valueTile.rows; ++i) {
      Value factor = vector::BroadcastOp::create(builder, loc, VectorType::get({valueTile.lanes}, f32),
                                                 load(factors, localRow(math.add(loc, row, i))));
      for (int64_t v = 0; v < valueTile.vectors; ++v)
        tile[i * valueTile.vectors + v] = arith::MulFOp::create(builder, loc, tile[i * valueTile.vectors + v], factor);
    }
    // Rows of the result are numbered by (batch, query, head).
    Value first = math.add(loc, math.mul(loc, math.add(loc, math.mul(loc, batch, queries), row), heads), head);
    return epilogue->emit(tile, first, column);
  }

  KernelFunction &kernel;
  kern::AttentionOp op;
  OpBuilder &builder;
  IndexMath &math;
  Location loc;
  Type f32;
  Epilogue *epilogue = nullptr;
  StridedView query, key, value;
  MicroTile scoreTile{}, valueTile{};
  int64_t batches, queries, heads, depth, keys, keyHeads, valueDepth, scoreStride = 0, blocks = 1;
  bool usesDots = false, copiesQueries = false, packsValues = false;
  int64_t newRows = 0;
  Value scores, factors, queryRows, keyPanel, keyRow, valuePanel, newKeys, newValues;
  Value position, newBegin, newEnd;
  Value batch, head, keyHead, rowBegin, rowEnd;
};

} // namespace

Emitted emitAttention(KernelFunction &kernel) {
  auto op = dyn_cast_or_null<kern::AttentionOp>(kern::findAnchor(kernel.body()));
  return op ? AttentionEmitter(kernel, op).emit() : Emitted::NotApplicable;
}

} // namespace ogc::codegen
