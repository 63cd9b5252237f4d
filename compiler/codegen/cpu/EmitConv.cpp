//===- EmitConv.cpp - 2-D convolution, channels last ----------------------===//
#include "compiler/analysis/StridedView.h"
#include "compiler/codegen/cpu/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace ogc::codegen {

/// Stack memory of one kernel for padded input rows.
static constexpr int64_t scratchBytes = 256 * 1024;
/// Input rows of one unit that are read in place.
static constexpr int64_t rowBlockBytes = 1024 * 1024;
/// Work of one unit, about.
static constexpr int64_t unitFlops = 4'000'000;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

/// A unit computes a block of output rows for some panels of filters. With padding or 16-bit inputs it first copies the input
/// rows that it needs into scratch, as f32 and with the padding written out: then every tile is an inner one, and taps next to
/// each other are one walk.
class ConvEmitter {
public:
  ConvEmitter(KernelFunction &kernel, kern::ConvOp op) : kernel(kernel), op(op), loc(kernel.loc) {
    ArrayRef<int64_t> in = tensorType(op.getInput()).getShape(), out = tensorType(op.getResult()).getShape();
    height = in[1];
    width = in[2];
    channels = in[3];
    images = out[0];
    outHeight = out[1];
    outWidth = out[2];
    filters = out[3];
  }

  Emitted emit() {
    if (images * outHeight * outWidth * filters == 0)
      return Emitted::Yes;
    input = resolveStridedView(op.getInput());
    filter = resolveStridedView(op.getFilter());
    if (op.getScale())
      scale = resolveStridedView(op.getScale());
    if (channels == 0 || !isa<BlockArgument>(input.root) || !isa<BlockArgument>(filter.root) ||
        (op.getScale() && !isa<BlockArgument>(scale.root)))
      return Emitted::NotApplicable;
    if (!chooseShapes())
      return Emitted::NotApplicable;
    FailureOr<Epilogue> created = Epilogue::create(kernel, op, tile);
    if (failed(created))
      return Emitted::NotApplicable;
    epilogue = &*created;
    if (copies)
      scratch = kernel.scratch(kernel.builder.getF32Type(), scratchRows(rowsPerBlock()) * paddedWidth() * channels);
    kernel.effort = Effort::Plain;
    kernel.units = images * rowBlocks * panelGroups;
    return succeeded(kernel.loop(kernel.begin, kernel.end, 1, [&](Value unit) { return emitUnit(unit); })) ? Emitted::Yes
                                                                                                           : Emitted::Failed;
  }

private:
  int64_t stride(int axis) { return op.getStrides()[axis]; }
  int64_t dilation(int axis) { return op.getDilations()[axis]; }
  int64_t rowsPerBlock() { return (outHeight + rowBlocks - 1) / rowBlocks; }
  /// Input rows below `rows` output rows.
  int64_t scratchRows(int64_t rows) { return (rows - 1) * stride(0) + (op.getKernel()[0] - 1) * dilation(0) + 1; }
  int64_t paddedWidth() { return (outWidth - 1) * stride(1) + (op.getKernel()[1] - 1) * dilation(1) + 1; }

  bool chooseShapes() {
    panel = tensorType(op.getFilter()).getDimSize(2);
    panels = tensorType(op.getFilter()).getDimSize(0);
    bool padded = llvm::any_of(op.getPads(), [](int64_t pad) { return pad != 0; });
    copies = padded || op.getScale() || !tensorType(op.getInput()).getElementType().isF32() || input.strides[3] != 1;
    int64_t bytes = copies ? scratchBytes : rowBlockBytes;
    // The most output rows whose input rows fit.
    int64_t fitting = bytes / (paddedWidth() * channels * 4);
    int64_t rows = fitting < scratchRows(1) ? 1 : std::min(outHeight, (fitting - scratchRows(1)) / stride(0) + 1);
    if (copies && scratchRows(rows) * paddedWidth() * channels * 4 > 4 * scratchBytes)
      return false;
    rowBlocks = (outHeight + rows - 1) / rows;
    tile = MicroTile::choose(kernel.target, outHeight / rowBlocks * outWidth, panel);
    int64_t panelFlops = 2 * rowsPerBlock() * outWidth * op.getKernel()[0] * op.getKernel()[1] * channels * panel;
    int64_t panelsPerGroup = std::min(panels, std::max<int64_t>(1, unitFlops / std::max<int64_t>(1, panelFlops)));
    if (copies)
      panelsPerGroup = std::min(panels, std::max<int64_t>(panelsPerGroup, 64 / panel));
    panelGroups = (panels + panelsPerGroup - 1) / panelsPerGroup;
    return true;
  }

  LogicalResult emitUnit(Value unit) {
    IndexMath &math = kernel.math();
    SmallVector<Value> at = math.delinearize(loc, unit, {images, rowBlocks, panelGroups});
    image = at[0];
    rowBegin = splitBegin(kernel, at[1], outHeight, rowBlocks);
    rowEnd = splitBegin(kernel, math.add(loc, at[1], 1), outHeight, rowBlocks);
    Value panelBegin = splitBegin(kernel, at[2], panels, panelGroups);
    Value panelEnd = splitBegin(kernel, math.add(loc, at[2], 1), panels, panelGroups);
    if (copies && failed(copyRows()))
      return failure();
    Value pixelBegin = math.mul(loc, rowBegin, outWidth), pixelEnd = math.mul(loc, rowEnd, outWidth);
    return kernel.loop(panelBegin, panelEnd, 1, [&](Value panelIndex) {
      // A panel wider than the tile (few vector registers) is walked in strips.
      Value width = stripEnd(kernel, panelIndex, panel, tile.columns(), filters);
      return kernel.loop(kernel.constant(0), width, tile.columns(), [&](Value strip) {
        Value base = math.add(loc, math.mul(loc, panelIndex, filter.strides[0]), math.add(loc, strip, filter.offset));
        Value column = math.add(loc, math.mul(loc, panelIndex, panel), strip);
        return forEachTile(kernel, pixelBegin, pixelEnd, tile.rows, [&](Value pixel) { return emitTile(pixel, column, base); });
      });
    });
  }

  LogicalResult emitTile(Value pixel, Value column, Value filterBase) {
    IndexMath &math = kernel.math();
    int64_t tapRows = op.getKernel()[0], tapColumns = op.getKernel()[1];
    int64_t rowStride = copies ? paddedWidth() * channels : input.strides[1], columnStride = copies ? channels : input.strides[2];
    SmallVector<Value> corners;
    for (int64_t i = 0; i < tile.rows; ++i) {
      SmallVector<Value> at = math.delinearize(loc, math.add(loc, pixel, i), {outHeight, outWidth});
      Value row = math.mul(loc, copies ? math.sub(loc, at[0], rowBegin) : at[0], stride(0) * rowStride);
      Value corner = math.add(loc, row, math.mul(loc, at[1], stride(1) * columnStride));
      if (!copies)
        corner = math.add(loc, corner, math.add(loc, math.mul(loc, image, input.strides[0]), input.offset));
      corners.push_back(corner);
    }
    // Taps of one filter row that follow each other in memory are one loop.
    bool joined = dilation(1) == 1 && columnStride == channels;
    int64_t outer = joined ? tapRows : tapRows * tapColumns, inner = joined ? tapColumns * channels : channels;
    auto loop = scf::ForOp::create(kernel.builder, loc, kernel.constant(0), kernel.constant(outer), kernel.constant(1),
                                   zeroTile(kernel, tile));
    {
      OpBuilder::InsertionGuard guard(kernel.builder);
      kernel.builder.setInsertionPointToStart(loop.getBody());
      Value tap = loop.getInductionVar();
      SmallVector<Value> tapAt = math.delinearize(loc, tap, {tapRows, joined ? 1 : tapColumns});
      Value shift =
          math.add(loc, math.mul(loc, tapAt[0], dilation(0) * rowStride), math.mul(loc, tapAt[1], dilation(1) * columnStride));
      RowSource rows{copies ? scratch : kernel.input(input.root), {}};
      for (Value corner : corners)
        rows.bases.push_back(math.add(loc, corner, shift));
      PanelSource source{kernel.input(filter.root), math.add(loc, filterBase, math.mul(loc, tap, inner * filter.strides[1])),
                         filter.strides[1]};
      SmallVector<Value> carried(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
      scf::YieldOp::create(kernel.builder, loc, emitSteps(kernel, tile, carried, rows, source, inner));
    }
    SmallVector<Value> accumulators(loop->result_begin(), loop->result_end());
    Value row = math.add(loc, math.mul(loc, image, outHeight * outWidth), pixel);
    return epilogue->emit(accumulators, row, column);
  }

  /// The input rows below output rows [rowBegin, rowEnd), padding included, as f32.
  LogicalResult copyRows() {
    IndexMath &math = kernel.math();
    OpBuilder &builder = kernel.builder;
    Value zero = kernel.constant(0), imageBase = math.add(loc, math.mul(loc, image, input.strides[0]), input.offset);
    Value count = math.sub(loc, rowEnd, rowBegin);
    Value rows = math.add(loc, math.mul(loc, math.sub(loc, count, 1), stride(0)), (op.getKernel()[0] - 1) * dilation(0) + 1);
    Value firstRow = math.mul(loc, rowBegin, stride(0));
    // Columns [left, right) of a scratch row come from the input.
    int64_t left = std::min(op.getPads()[1], paddedWidth()),
            right = std::max(left, std::min(paddedWidth(), op.getPads()[1] + width));
    auto fill = [&](Value row, int64_t from, int64_t to) -> LogicalResult {
      if (from >= to)
        return success();
      Value base = math.mul(loc, row, paddedWidth() * channels);
      return kernel.loop(kernel.constant(from * channels), kernel.constant(to * channels), 1, [&](Value position) {
        Value none = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
        memref::StoreOp::create(builder, loc, none, scratch, math.add(loc, base, position));
        return success();
      });
    };
    return kernel.loop(zero, rows, 1, [&](Value row) -> LogicalResult {
      Value inputRow = math.sub(loc, math.add(loc, firstRow, row), op.getPads()[0]);
      Value inside = math.lessThan(loc, inputRow, height);
      auto choice = scf::IfOp::create(builder, loc, inside, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(choice.elseBlock());
      if (failed(fill(row, 0, paddedWidth())))
        return failure();
      builder.setInsertionPointToStart(choice.thenBlock());
      if (failed(fill(row, 0, left)) || failed(fill(row, right, paddedWidth())))
        return failure();
      Value from = math.add(loc, imageBase, math.mul(loc, inputRow, input.strides[1]));
      Value to = math.mul(loc, row, paddedWidth() * channels);
      return copyRow(from, to, left, right);
    });
  }

  LogicalResult copyRow(Value from, Value to, int64_t left, int64_t right) {
    IndexMath &math = kernel.math();
    OpBuilder &builder = kernel.builder;
    auto move = [&](Value position, Value source, Value channel) {
      Value element = memref::LoadOp::create(builder, loc, kernel.input(input.root), source);
      if (op.getScale()) {
        Value at = math.add(loc, math.mul(loc, image, scale.strides[0]), math.mul(loc, channel, scale.strides[3]));
        Value factor = memref::LoadOp::create(builder, loc, kernel.input(scale.root), math.add(loc, at, scale.offset));
        element = multiplyRounded(builder, loc, element, factor);
      }
      if (!element.getType().isF32())
        element = arith::ExtFOp::create(builder, loc, builder.getF32Type(), element);
      memref::StoreOp::create(builder, loc, element, scratch, math.add(loc, to, position));
      return success();
    };
    Value begin = math.sub(loc, from, op.getPads()[1] * input.strides[2]);
    if (input.strides[3] == 1 && input.strides[2] == channels && !op.getScale())
      return kernel.loop(kernel.constant(left * channels), kernel.constant(right * channels), 1,
                         [&](Value position) { return move(position, math.add(loc, begin, position), Value()); });
    return kernel.loop(kernel.constant(left), kernel.constant(right), 1, [&](Value column) {
      return kernel.loop(kernel.constant(0), kernel.constant(channels), 1, [&](Value channel) {
        Value source = math.add(loc, math.add(loc, begin, math.mul(loc, column, input.strides[2])),
                                math.mul(loc, channel, input.strides[3]));
        return move(math.add(loc, math.mul(loc, column, channels), channel), source, channel);
      });
    });
  }

  KernelFunction &kernel;
  kern::ConvOp op;
  Location loc;
  Epilogue *epilogue = nullptr;
  StridedView input, filter, scale;
  MicroTile tile{};
  int64_t images, height, width, channels, outHeight, outWidth, filters, panel = 0, panels = 0, rowBlocks = 1, panelGroups = 1;
  bool copies = false;
  Value scratch, image, rowBegin, rowEnd;
};

} // namespace

Emitted emitConv(KernelFunction &kernel) {
  auto op = dyn_cast_or_null<kern::ConvOp>(kern::findAnchor(kernel.body()));
  return op ? ConvEmitter(kernel, op).emit() : Emitted::NotApplicable;
}

} // namespace ogc::codegen
