//===- EmitMatmul.cpp - batched matrix products ---------------------------===//
#include "compiler/analysis/StridedView.h"
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/dialect/kern/RowNorm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ogc::codegen {

/// Stack memory of one kernel for converted rows and for a packed panel.
static constexpr int64_t rowScratchBytes = 256 * 1024, panelScratchBytes = 256 * 1024;
/// Rows of one unit take at most so much memory, so that they stay in the second level cache.
static constexpr int64_t rowBlockBytes = 1024 * 1024;
/// Work of one unit, about.
static constexpr int64_t unitFlops = 4'000'000;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

class MatmulEmitter {
public:
  MatmulEmitter(KernelFunction &kernel, kern::MatmulOp op) : kernel(kernel), op(op), norm(kern::rowNormOf(op)), loc(kernel.loc) {
    ArrayRef<int64_t> lhs = tensorType(op.getLhs()).getShape();
    batches = lhs[0];
    m = lhs[1];
    k = lhs[2];
    n = tensorType(op.getResult()).getDimSize(2);
  }

  Emitted emit() {
    if (batches * m * n == 0)
      return Emitted::Yes;
    lhs = resolveStridedView(op.getLhs());
    rhs = resolveStridedView(op.getRhs());
    if (k == 0 || !isa<BlockArgument>(lhs.root) || !isa<BlockArgument>(rhs.root))
      return Emitted::NotApplicable;
    chooseShapes();
    FailureOr<Epilogue> created = Epilogue::create(kernel, op, tile);
    if (failed(created))
      return Emitted::NotApplicable;
    epilogue = &*created;
    if (copiesRows)
      rowScratch = kernel.scratch(kernel.builder.getF32Type(), (m + rowBlocks - 1) / rowBlocks * k);
    if (packsPanel)
      panelScratch = kernel.scratch(kernel.builder.getF32Type(), k * tile.columns());
    kernel.effort = Effort::Plain;
    kernel.units = batches * rowBlocks * panelGroups;
    return succeeded(kernel.loop(kernel.begin, kernel.end, 1, [&](Value unit) { return emitUnit(unit); })) ? Emitted::Yes
                                                                                                           : Emitted::Failed;
  }

private:
  void chooseShapes() {
    // Columns: a packed weight fixes the panel; else the widest that fits the scratch.
    panel = op.getPacked() ? tensorType(op.getRhs()).getDimSize(2) : 64;
    if (!op.getPacked()) {
      int64_t stride = op.getTransposeRhs() ? rhs.strides[1] : rhs.strides[2];
      while (panel > kernel.target.lanes && (panel / 2 >= n || k * panel * 4 > panelScratchBytes))
        panel /= 2;
      panel = std::max(panel, kernel.target.lanes);
      packsPanel = stride != 1 || n % panel != 0;
      if (packsPanel)
        panel = std::min<int64_t>(panel, kernel.target.lanes * (kernel.target.registers >= 32 ? 4 : 2));
    }
    copiesRows = lhs.strides[2] != 1 || !tensorType(op.getLhs()).getElementType().isF32() || norm;
    tile = MicroTile::choose(kernel.target, m, panel);
    panels = (n + panel - 1) / panel;
    int64_t bytes = copiesRows ? rowScratchBytes : rowBlockBytes;
    int64_t rowsPerBlock = std::max<int64_t>(tile.rows, bytes / (4 * k));
    rowBlocks = (m + rowsPerBlock - 1) / rowsPerBlock;
    while (rowBlocks > 1 && m / rowBlocks < tile.rows)
      --rowBlocks;
    int64_t blockRows = (m + rowBlocks - 1) / rowBlocks;
    int64_t panelsPerGroup = std::max<int64_t>(1, unitFlops / (2 * blockRows * k * panel));
    if (copiesRows) // each group converts the rows again
      panelsPerGroup = std::max<int64_t>(panelsPerGroup, (256 + panel - 1) / panel);
    panelsPerGroup = std::min(panelsPerGroup, panels);
    panelGroups = (panels + panelsPerGroup - 1) / panelsPerGroup;
  }

  LogicalResult emitUnit(Value unit) {
    IndexMath &math = kernel.math();
    SmallVector<Value> at = math.delinearize(loc, unit, {batches, rowBlocks, panelGroups});
    Value batch = at[0];
    Value rowBegin = splitBegin(kernel, at[1], m, rowBlocks);
    Value rowEnd = splitBegin(kernel, math.add(loc, at[1], 1), m, rowBlocks);
    Value panelBegin = splitBegin(kernel, at[2], panels, panelGroups);
    Value panelEnd = splitBegin(kernel, math.add(loc, at[2], 1), panels, panelGroups);
    Value rowsBase = math.add(loc, math.mul(loc, batch, lhs.strides[0]), lhs.offset);
    if (copiesRows && failed(copyRows(rowsBase, rowBegin, rowEnd)))
      return failure();
    if (norm && failed(normalizeRows(rowBegin, rowEnd)))
      return failure();
    return kernel.loop(panelBegin, panelEnd, 1, [&](Value panelIndex) {
      // A panel wider than the tile (few vector registers) is walked in strips.
      Value width = stripEnd(kernel, panelIndex, panel, tile.columns(), n);
      LogicalResult done = kernel.loop(kernel.constant(0), width, tile.columns(), [&](Value strip) -> LogicalResult {
        Value column = math.add(loc, math.mul(loc, panelIndex, panel), strip);
        FailureOr<PanelSource> source = panelSource(batch, panelIndex, strip, column);
        if (failed(source))
          return failure();
        return forEachTile(kernel, rowBegin, rowEnd, tile.rows,
                           [&](Value row) { return emitTile(batch, rowsBase, rowBegin, row, column, *source); });
      });
      Value before = math.mul(loc, batch, m);
      return failed(done) ? failure()
                          : epilogue->emitStatistics(math.add(loc, before, rowBegin), math.add(loc, before, rowEnd), panelIndex);
    });
  }

  LogicalResult emitTile(Value batch, Value rowsBase, Value rowBegin, Value row, Value column, const PanelSource &source) {
    IndexMath &math = kernel.math();
    RowSource rows;
    rows.buffer = copiesRows ? rowScratch : kernel.input(lhs.root);
    for (int64_t i = 0; i < tile.rows; ++i) {
      Value at = math.add(loc, row, i);
      rows.bases.push_back(copiesRows ? math.mul(loc, math.sub(loc, at, rowBegin), k)
                                      : math.add(loc, rowsBase, math.mul(loc, at, lhs.strides[1])));
    }
    SmallVector<Value> accumulators = emitSteps(kernel, tile, zeroTile(kernel, tile), rows, source, k);
    return epilogue->emit(accumulators, math.add(loc, math.mul(loc, batch, m), row), column);
  }

  Value toF32(Value element) {
    return element.getType().isF32() ? element
                                     : Value(arith::ExtFOp::create(kernel.builder, loc, kernel.builder.getF32Type(), element));
  }

  /// Rows [rowBegin, rowEnd) as dense f32 rows in the scratch.
  LogicalResult copyRows(Value rowsBase, Value rowBegin, Value rowEnd) {
    IndexMath &math = kernel.math();
    return kernel.loop(rowBegin, rowEnd, 1, [&](Value row) {
      Value from = math.add(loc, rowsBase, math.mul(loc, row, lhs.strides[1])),
            to = math.mul(loc, math.sub(loc, row, rowBegin), k);
      return kernel.loop(kernel.constant(0), kernel.constant(k), 1, [&](Value step) {
        Value position = math.add(loc, from, math.mul(loc, step, lhs.strides[2]));
        Value element = memref::LoadOp::create(kernel.builder, loc, kernel.input(lhs.root), position);
        memref::StoreOp::create(kernel.builder, loc, toF32(element), rowScratch, math.add(loc, to, step));
        return success();
      });
    });
  }

  /// Divides the rows in the scratch by their spread.
  LogicalResult normalizeRows(Value rowBegin, Value rowEnd) {
    IndexMath &math = kernel.math();
    OpBuilder &builder = kernel.builder;
    return kernel.loop(rowBegin, rowEnd, 1, [&](Value row) {
      Value from = math.mul(loc, math.sub(loc, row, rowBegin), k);
      Value mean;
      if (norm->kind == kern::RowNorm::StandardDeviation)
        mean = meanOf(from, [](Value x) { return x; });
      Value squares = meanOf(from, [&](Value x) -> Value {
        Value distance = mean ? arith::SubFOp::create(builder, loc, x, asType(mean, x.getType())).getResult() : x;
        return arith::MulFOp::create(builder, loc, distance, distance);
      });
      Value epsilon = arith::ConstantOp::create(builder, loc, norm->epsilon);
      Value root = math::SqrtOp::create(builder, loc, arith::AddFOp::create(builder, loc, squares, epsilon));
      Value factor = arith::DivFOp::create(builder, loc, constantF32(1), root);
      forEachPart(from, {}, [&](Value x, Value at, ValueRange) -> SmallVector<Value> {
        Value scaled = arith::MulFOp::create(builder, loc, x, asType(factor, x.getType()));
        if (isa<VectorType>(x.getType()))
          vector::StoreOp::create(builder, loc, scaled, rowScratch, at);
        else
          memref::StoreOp::create(builder, loc, scaled, rowScratch, at);
        return {};
      });
      return success();
    });
  }

  Value constantF32(float value) { return arith::ConstantOp::create(kernel.builder, loc, kernel.builder.getF32FloatAttr(value)); }
  /// A scalar as a value of `type`: itself, or a vector of it.
  Value asType(Value scalar, Type type) {
    return isa<VectorType>(type) ? vector::BroadcastOp::create(kernel.builder, loc, type, scalar).getResult() : scalar;
  }

  /// The mean of `term` over the row of the scratch that begins at `from`.
  Value meanOf(Value from, function_ref<Value(Value)> term) {
    OpBuilder &builder = kernel.builder;
    SmallVector<Value> sum = forEachPart(from, {constantF32(0)}, [&](Value x, Value, ValueRange carried) -> SmallVector<Value> {
      return {arith::AddFOp::create(builder, loc, carried[0], term(x))};
    });
    return arith::MulFOp::create(builder, loc, sum[0], constantF32(1.f / float(k)));
  }

  /// Calls body(elements, position, carried) for the elements of a row in the scratch, several vectors at a time, then one by
  /// one. What is carried is summed over the lanes in between.
  SmallVector<Value> forEachPart(Value from, ArrayRef<Value> inits,
                                 function_ref<SmallVector<Value>(Value, Value, ValueRange)> body) {
    OpBuilder &builder = kernel.builder;
    int64_t lanes = kernel.target.lanes, step = 4 * lanes,
            whole = k / step * step; // sums of four vectors do not wait for each other
    VectorType type = VectorType::get({lanes}, builder.getF32Type());
    auto run = [&](int64_t begin, int64_t end, int64_t step, ValueRange carried, auto &&emit) {
      auto loop = scf::ForOp::create(builder, loc, kernel.constant(begin), kernel.constant(end), kernel.constant(step), carried);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> next = emit(kernel.math().add(loc, from, loop.getInductionVar()), loop.getRegionIterArgs());
      if (!carried.empty())
        scf::YieldOp::create(builder, loc, next);
      return SmallVector<Value>(loop.getResults());
    };
    SmallVector<Value> sums(inits);
    if (whole > 0) {
      SmallVector<Value> zeros(4 * inits.size(), arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
      SmallVector<Value> wide = run(0, whole, step, zeros, [&](Value at, ValueRange carried) {
        SmallVector<Value> next;
        for (int64_t part = 0; part < 4; ++part) {
          Value position = kernel.math().add(loc, at, part * lanes);
          Value x = vector::LoadOp::create(builder, loc, type, rowScratch, position);
          llvm::append_range(next, body(x, position, carried.slice(part * inits.size(), inits.size())));
        }
        return next;
      });
      for (auto [i, value] : llvm::enumerate(wide)) {
        Value sum = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, value);
        sums[i % inits.size()] = arith::AddFOp::create(builder, loc, sums[i % inits.size()], sum);
      }
    }
    if (whole == k)
      return sums;
    return run(whole, k, 1, sums, [&](Value at, ValueRange carried) {
      return body(memref::LoadOp::create(builder, loc, rowScratch, at), at, carried);
    });
  }

  FailureOr<PanelSource> panelSource(Value batch, Value panelIndex, Value strip, Value column) {
    IndexMath &math = kernel.math();
    Value buffer = kernel.input(rhs.root);
    if (op.getPacked()) {
      Value base = math.add(loc, math.mul(loc, panelIndex, rhs.strides[0]), math.add(loc, strip, rhs.offset));
      return PanelSource{buffer, base, rhs.strides[1]};
    }
    Value base = kernel.constant(rhs.offset);
    if (tensorType(op.getRhs()).getDimSize(0) != 1)
      base = math.add(loc, math.mul(loc, batch, rhs.strides[0]), base);
    int64_t columnStride = op.getTransposeRhs() ? rhs.strides[1] : rhs.strides[2];
    int64_t stepStride = op.getTransposeRhs() ? rhs.strides[2] : rhs.strides[1];
    base = math.add(loc, base, math.mul(loc, column, columnStride));
    if (!packsPanel)
      return PanelSource{buffer, base, stepStride};
    if (failed(packPanel(buffer, base, stepStride, columnStride, column)))
      return failure();
    return PanelSource{panelScratch, kernel.constant(0), tile.columns()};
  }

  /// Copies the columns from `base` on into the scratch, with zeros past column N.
  LogicalResult packPanel(Value buffer, Value base, int64_t stepStride, int64_t columnStride, Value column) {
    IndexMath &math = kernel.math();
    OpBuilder &builder = kernel.builder;
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    Value left = math.sub(loc, kernel.constant(n), column);
    Value width = n % tile.columns() == 0 ? kernel.constant(tile.columns())
                                          : Value(arith::MinSIOp::create(builder, loc, left, kernel.constant(tile.columns())));
    auto copy = [&](Value step, Value j) {
      Value from = math.add(loc, math.add(loc, base, math.mul(loc, step, stepStride)), math.mul(loc, j, columnStride));
      Value to = math.add(loc, math.mul(loc, step, tile.columns()), j);
      memref::StoreOp::create(builder, loc, toF32(memref::LoadOp::create(builder, loc, buffer, from)), panelScratch, to);
      return success();
    };
    if (n % tile.columns() != 0 && failed(kernel.loop(kernel.constant(0), kernel.constant(k), 1, [&](Value step) {
          return kernel.loop(width, kernel.constant(tile.columns()), 1, [&](Value j) {
            memref::StoreOp::create(builder, loc, zero, panelScratch, math.add(loc, math.mul(loc, step, tile.columns()), j));
            return success();
          });
        })))
      return failure();
    Value none = kernel.constant(0), steps = kernel.constant(k);
    if (stepStride == 1) // read along the rows of a transposed matrix
      return kernel.loop(none, width, 1,
                         [&](Value j) { return kernel.loop(none, steps, 1, [&](Value step) { return copy(step, j); }); });
    return kernel.loop(none, steps, 1,
                       [&](Value step) { return kernel.loop(none, width, 1, [&](Value j) { return copy(step, j); }); });
  }

  KernelFunction &kernel;
  kern::MatmulOp op;
  std::optional<kern::RowNorm> norm;
  Location loc;
  Epilogue *epilogue = nullptr;
  StridedView lhs, rhs;
  MicroTile tile{};
  int64_t batches, m, k, n, panel = 0, panels = 0, rowBlocks = 1, panelGroups = 1;
  bool copiesRows = false, packsPanel = false;
  Value rowScratch, panelScratch;
};

} // namespace

Emitted emitMatmul(KernelFunction &kernel) {
  auto op = dyn_cast_or_null<kern::MatmulOp>(kern::findAnchor(kernel.body()));
  return op ? MatmulEmitter(kernel, op).emit() : Emitted::NotApplicable;
}

} // namespace ogc::codegen
