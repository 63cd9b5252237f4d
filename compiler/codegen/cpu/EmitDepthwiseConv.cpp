//===- EmitDepthwiseConv.cpp - depthwise convolution, channels last -------===//
#include "compiler/analysis/StridedView.h"
#include "compiler/codegen/cpu/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ogc::codegen {

/// Work of one unit, about.
static constexpr int64_t unitFlops = 1'000'000;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

/// One output pixel at a time, vectors of channels in registers. Taps outside of the image are cut from the loops over the
/// filter.
class DepthwiseEmitter {
public:
  DepthwiseEmitter(KernelFunction &kernel, kern::DepthwiseConvOp op) : kernel(kernel), op(op), loc(kernel.loc) {}

  Emitted emit() {
    ArrayRef<int64_t> out = tensorType(op.getResult()).getShape();
    if (tensorType(op.getResult()).getNumElements() == 0)
      return Emitted::Yes;
    input = resolveStridedView(op.getInput());
    filter = resolveStridedView(op.getFilter());
    channels = out[3];
    if (!isa<BlockArgument>(input.root) || !isa<BlockArgument>(filter.root) || input.strides[3] != 1 || filter.strides[2] != 1 ||
        channels < kernel.target.lanes)
      return Emitted::NotApplicable;
    tile = {1, std::min<int64_t>(4, channels / kernel.target.lanes), kernel.target.lanes};
    FailureOr<Epilogue> created = Epilogue::create(kernel, op, tile);
    if (failed(created))
      return Emitted::NotApplicable;
    epilogue = &*created;
    epilogue->tilesAreFull = true;
    ArrayRef<int64_t> taps = tensorType(op.getFilter()).getShape();
    int64_t rowFlops = 2 * out[2] * channels * taps[0] * taps[1], rows = out[0] * out[1];
    int64_t rowsPerUnit = std::max<int64_t>(1, unitFlops / std::max<int64_t>(1, rowFlops));
    kernel.effort = Effort::Plain;
    kernel.units = (rows + rowsPerUnit - 1) / rowsPerUnit;
    Value first = splitBegin(kernel, kernel.begin, rows, kernel.units), last = splitBegin(kernel, kernel.end, rows, kernel.units);
    return succeeded(kernel.loop(first, last, 1, [&](Value row) { return emitRow(row); })) ? Emitted::Yes : Emitted::Failed;
  }

private:
  /// The taps [first, last) along `axis` that meet the input at output position `at`, and where tap 0 would.
  struct Window {
    Value first, last, origin;
  };

  Window window(int axis, Value at) {
    OpBuilder &builder = kernel.builder;
    IndexMath &math = kernel.math();
    int64_t taps = tensorType(op.getFilter()).getDimSize(axis), extent = tensorType(op.getInput()).getDimSize(1 + axis);
    int64_t dilation = op.getDilations()[axis], pad = op.getPads()[axis];
    Value origin = math.sub(loc, math.mul(loc, at, op.getStrides()[axis]), pad), zero = kernel.constant(0),
          all = kernel.constant(taps);
    if (pad == 0 && op.getPads()[2 + axis] == 0)
      return {zero, all, origin};
    // origin + tap * dilation >= 0 and < extent
    auto firstAtLeast = [&](Value distance) -> Value { // smallest tap with tap * dilation >= distance
      Value up = arith::MaxSIOp::create(builder, loc, distance, zero);
      return math.div(loc, math.add(loc, up, dilation - 1), dilation);
    };
    Value first = arith::MinSIOp::create(builder, loc, firstAtLeast(math.sub(loc, zero, origin)), all);
    Value last = arith::MinSIOp::create(builder, loc, firstAtLeast(math.sub(loc, kernel.constant(extent), origin)), all);
    return {first, last, origin};
  }

  LogicalResult emitRow(Value row) {
    IndexMath &math = kernel.math();
    ArrayRef<int64_t> out = tensorType(op.getResult()).getShape();
    SmallVector<Value> at = math.delinearize(loc, row, {out[0], out[1]});
    Window rows = window(0, at[1]);
    Value base = math.add(loc, math.mul(loc, at[0], input.strides[0]), input.offset);
    base = math.add(loc, base, math.mul(loc, rows.origin, input.strides[1]));
    return kernel.loop(kernel.constant(0), kernel.constant(out[2]), 1, [&](Value column) {
      Window columns = window(1, column);
      Value corner = math.add(loc, base, math.mul(loc, columns.origin, input.strides[2]));
      Value pixel = math.add(loc, math.mul(loc, row, out[2]), column);
      return forEachTile(kernel, kernel.constant(0), kernel.constant(channels), tile.columns(), [&](Value channel) {
        return epilogue->emit(emitTaps(rows, columns, math.add(loc, corner, channel), channel), pixel, channel);
      });
    });
  }

  Value load(const StridedView &view, Value at) {
    OpBuilder &builder = kernel.builder;
    Type element = tensorType(view.root).getElementType();
    Value loaded = vector::LoadOp::create(builder, loc, VectorType::get({tile.lanes}, element), kernel.input(view.root), at);
    if (element.isF32())
      return loaded;
    return arith::ExtFOp::create(builder, loc, VectorType::get({tile.lanes}, builder.getF32Type()), loaded);
  }

  /// Sums over the taps for the channels of one tile.
  SmallVector<Value> emitTaps(const Window &rows, const Window &columns, Value corner, Value channel) {
    OpBuilder &builder = kernel.builder;
    IndexMath &math = kernel.math();
    Value one = kernel.constant(1);
    auto outer = scf::ForOp::create(builder, loc, rows.first, rows.last, one, zeroTile(kernel, tile));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(outer.getBody());
    auto inner = scf::ForOp::create(builder, loc, columns.first, columns.last, one, outer.getRegionIterArgs());
    {
      OpBuilder::InsertionGuard innerGuard(builder);
      builder.setInsertionPointToStart(inner.getBody());
      Value tapRow = outer.getInductionVar(), tapColumn = inner.getInductionVar();
      Value from = math.add(loc, corner, math.mul(loc, tapRow, op.getDilations()[0] * input.strides[1]));
      from = math.add(loc, from, math.mul(loc, tapColumn, op.getDilations()[1] * input.strides[2]));
      Value weight = math.add(loc, math.mul(loc, tapRow, filter.strides[0]), math.mul(loc, tapColumn, filter.strides[1]));
      weight = math.add(loc, math.add(loc, weight, channel), filter.offset);
      SmallVector<Value> sums;
      for (int64_t v = 0; v < tile.vectors; ++v) {
        Value value = load(input, math.add(loc, from, v * tile.lanes)),
              factor = load(filter, math.add(loc, weight, v * tile.lanes));
        sums.push_back(vector::FMAOp::create(builder, loc, value, factor, inner.getRegionIterArgs()[v]));
      }
      scf::YieldOp::create(builder, loc, sums);
    }
    scf::YieldOp::create(builder, loc, inner.getResults());
    return SmallVector<Value>(outer->result_begin(), outer->result_end());
  }

  KernelFunction &kernel;
  kern::DepthwiseConvOp op;
  Location loc;
  Epilogue *epilogue = nullptr;
  StridedView input, filter;
  MicroTile tile{};
  int64_t channels = 0;
};

} // namespace

Emitted emitDepthwiseConv(KernelFunction &kernel) {
  auto op = dyn_cast_or_null<kern::DepthwiseConvOp>(kern::findAnchor(kernel.body()));
  return op ? DepthwiseEmitter(kernel, op).emit() : Emitted::NotApplicable;
}

} // namespace ogc::codegen
