//===- Row.cpp - a warp or a block a row, reductions across its threads ---===//
//
// The elements of a row stay in registers from one stage to the next: the columns of a thread are unrolled, and ElementEmitter
// gives back what it has emitted for the same column before. Sums are combined in a fixed order, so results repeat bit by bit.
//
#include "compiler/codegen/cuda/Lanes.h"
#include "compiler/codegen/cuda/Schedules.h"
#include "compiler/codegen/scalar/RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

/// The numbers that are chosen, and what follows from them.
struct RowChoice : LaunchPolicy {
  unsigned lanes = 1;        ///< neighbouring elements of one access
  unsigned threadsARow = 32; ///< a multiple of 32
  unsigned rowsABlock = 1;   ///< more than one only with a warp a row
  unsigned columns = 0;      ///< groups of `lanes` elements of a thread
  bool unrolled = true;      ///< columns are straight-line code and stay in registers

  template <typename Visitor> void visit(Visitor &&visit) {
    visit("lanes", lanes), visit("threads", threadsARow), visit("rows", rowsABlock);
    visitPolicy(visit);
  }
};

} // namespace

static constexpr int64_t mostElementsALane = 32;

/// Fills what follows from the chosen numbers for rows of `width` elements.
static void completeRow(RowChoice &choice, int64_t width) {
  choice.columns = llvm::divideCeil(width / choice.lanes, choice.threadsARow);
  choice.unrolled = choice.columns * choice.lanes <= mostElementsALane;
  if (!choice.unrolled) { // loops take single elements
    choice.lanes = 1;
    choice.columns = llvm::divideCeil(width, choice.threadsARow);
  }
}

static RowChoice rowRule(int64_t rows, int64_t width, unsigned mostLanes) {
  RowChoice choice;
  choice.lanes = mostLanes;
  choice.trigger = Trigger::Start; // short kernels: the next one loads its weights meanwhile
  constexpr int64_t manyRows = 64, blocksThatFill = 132;
  if (width <= 256)
    while (choice.lanes > 1 && width / choice.lanes < 32)
      choice.lanes /= 2;
  int64_t units = width / choice.lanes;
  // A warp a row needs no shared memory and no barrier; a block a row has more loads in flight.
  bool isWarpARow =
      width <= 256 || (choice.lanes > 1 && rows >= manyRows && llvm::divideCeil(units, 32) * choice.lanes <= mostElementsALane);
  if (!isWarpARow) {
    int64_t elements = width <= 1024 ? 4 : 8;
    choice.threadsARow =
        std::min<int64_t>(1024, llvm::alignTo(llvm::divideCeil(units, std::max<int64_t>(1, elements / choice.lanes)), 32));
  } else {
    // Warps of several rows share a block once there are more rows than blocks that run at the same time.
    while (choice.rowsABlock < 8 && rows % (choice.rowsABlock * 2) == 0 && rows / (choice.rowsABlock * 2) >= blocksThatFill)
      choice.rowsABlock *= 2;
  }
  return choice;
}

static RowChoice chooseRow(int64_t rows, int64_t width, unsigned mostLanes, unsigned bytes, Tuning &tuning) {
  RowChoice rule = rowRule(rows, width, mostLanes);
  auto isLegal = [&](const RowChoice &c) {
    return c.lanes >= 1 && mostLanes % c.lanes == 0 && c.threadsARow >= 32 && c.threadsARow % 32 == 0 && c.rowsABlock >= 1 &&
           c.threadsARow * c.rowsABlock <= 1024 && rows % c.rowsABlock == 0 && (c.rowsABlock == 1 || c.threadsARow == 32) &&
           c.reservedBytes <= 48 * 1024;
  };
  auto candidates = [&] {
    std::vector<RowChoice> all;
    for (unsigned lanes = mostLanes; lanes >= 1; lanes /= 2)
      for (unsigned threads : {32u, 64u, 128u, 256u, 512u}) {
        RowChoice choice = rule;
        choice.lanes = lanes;
        choice.threadsARow = threads;
        for (choice.rowsABlock = 1; choice.rowsABlock <= 4; choice.rowsABlock *= 2)
          if (isLegal(choice) && width / lanes >= threads / 2 && width / threads <= mostElementsALane)
            all.push_back(choice);
      }
    return all;
  };
  std::string problem = ("row " + Twine(rows) + "x" + Twine(width) + "x" + Twine(bytes) + " v" + Twine(mostLanes)).str();
  RowChoice choice = choose(tuning, problem, rule, isLegal, candidates);
  completeRow(choice, width);
  return choice;
}

/// Elements that one access may take, and the widest element: the rows of all buffers must lie in their innermost dimension, as a
/// multiple of it.
static unsigned mostRowLanes(kern::KernelOp kernel, int64_t rows, int64_t width, unsigned &bytes) {
  bytes = 1;
  SmallVector<Value> tensors(kernel.getBody().getArguments());
  llvm::append_range(tensors, kernel.getBody().front().getTerminator()->getOperands());
  for (Value tensor : tensors) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
    if (shape.empty() || shape.back() == 1)
      continue;
    if (shape.back() != width) {
      if (ShapedType::getNumElements(shape) == rows) // one element a row
        continue;
      return 1;
    }
    bytes = std::max(bytes, cudaElementBytes(bufferType(tensor).getElementType()));
  }
  unsigned lanes = 16 / bytes;
  while (width % lanes != 0)
    lanes /= 2;
  return lanes;
}

namespace {

class RowPrinter {
public:
  RowPrinter(kern::KernelOp kernel, const RowPlan &plan, RowChoice choice)
      : plan(plan), choice(choice), loc(kernel.getLoc()), body(kernel), b(body.getBuilder()), emitter(body.getEmitter()) {}

  LogicalResult emit();
  KernelBody &getBody() { return body; }

private:
  /// Neighbouring columns of this thread: indices that are always in range, and whether they exist (null: always).
  struct Column {
    SmallVector<Value> lanes;
    Value inside;
  };
  using Accumulators = SmallVector<SmallVector<Value>>;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  void emitPosition();
  Column columnAt(Value number, bool mayPassEnd);
  LogicalResult accumulate(ArrayRef<RowReduction> stage, const Column &column, Accumulators &accumulators);
  LogicalResult emitStage(ArrayRef<RowReduction> stage);
  Value reduceAcross(const RowReduction &reduction, unsigned result, Value partial);
  Value shuffle(Value value, unsigned distance);
  LogicalResult emitOutputs();
  LogicalResult storeColumn(const Column &column);
  LogicalResult storeReduced();

  const RowPlan &plan;
  RowChoice choice;
  Location loc;
  KernelBody body;
  OpBuilder &b;
  ElementEmitter &emitter;
  Value row, thread;           ///< of the domain; within the row
  SmallVector<Column> columns; ///< when unrolled
};

} // namespace

void RowPrinter::emitPosition() {
  Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x), id = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  IndexMath &math = emitter.indices();
  if (choice.rowsABlock == 1) {
    row = block;
    thread = id;
  } else {
    row = math.add(loc, math.mul(loc, block, choice.rowsABlock), math.div(loc, id, choice.threadsARow));
    thread = math.rem(loc, id, choice.threadsARow);
  }
  if (choice.unrolled)
    for (unsigned i = 0; i < choice.columns; ++i)
      columns.push_back(columnAt(constant(i), int64_t(i + 1) * choice.threadsARow * choice.lanes > plan.width));
}

/// Past the end of a row a thread repeats the last elements and drops the result: no branch, so values stay visible to later
/// stages.
RowPrinter::Column RowPrinter::columnAt(Value number, bool mayPassEnd) {
  IndexMath &math = emitter.indices();
  Value first = math.mul(loc, math.add(loc, thread, math.mul(loc, number, choice.threadsARow)), choice.lanes);
  Column column;
  if (mayPassEnd) {
    column.inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, first, constant(plan.width));
    first = arith::MinUIOp::create(b, loc, first, constant(plan.width - choice.lanes));
  }
  for (unsigned lane = 0; lane < choice.lanes; ++lane)
    column.lanes.push_back(math.add(loc, first, lane));
  return column;
}

LogicalResult RowPrinter::accumulate(ArrayRef<RowReduction> stage, const Column &column, Accumulators &accumulators) {
  for (auto [reduction, values] : llvm::zip_equal(stage, accumulators)) {
    SmallVector<Value> next = values;
    for (Value index : column.lanes) {
      next = RowPlan::accumulate(emitter, reduction, row, index, next);
      if (next.empty())
        return failure();
    }
    for (auto [value, old] : llvm::zip_equal(next, values))
      old = column.inside ? Value(arith::SelectOp::create(b, loc, column.inside, value, old)) : value;
  }
  return success();
}

LogicalResult RowPrinter::emitStage(ArrayRef<RowReduction> stage) {
  Accumulators accumulators;
  for (const RowReduction &reduction : stage)
    accumulators.push_back(RowPlan::neutral(b, reduction));
  if (choice.unrolled) {
    for (const Column &column : columns)
      if (failed(accumulate(stage, column, accumulators)))
        return failure();
  } else {
    SmallVector<Value> inits;
    for (ArrayRef<Value> values : accumulators)
      llvm::append_range(inits, values);
    auto loop = scf::ForOp::create(b, loc, constant(0), constant(choice.columns), constant(1), inits);
    loop->setAttr("ogc.unroll", b.getI64IntegerAttr(4));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto carried = loop.getRegionIterArgs().begin();
    for (SmallVector<Value> &values : accumulators)
      for (Value &value : values)
        value = *carried++;
    if (failed(accumulate(stage, columnAt(loop.getInductionVar(), plan.width % choice.threadsARow != 0), accumulators)))
      return failure();
    SmallVector<Value> yields;
    for (ArrayRef<Value> values : accumulators)
      llvm::append_range(yields, values);
    scf::YieldOp::create(b, loc, yields);
    auto results = loop.getResults().begin();
    for (SmallVector<Value> &values : accumulators)
      for (Value &value : values)
        value = *results++;
  }
  for (auto [reduction, values] : llvm::zip_equal(stage, accumulators))
    for (auto [result, value] : llvm::enumerate(values))
      value = reduceAcross(reduction, result, value);
  for (auto [reduction, values] : llvm::zip_equal(stage, accumulators))
    if (failed(RowPlan::finish(b, emitter, reduction, row, values)))
      return failure();
  return success();
}

/// The value of the lane whose number differs in one bit. Narrow types travel as i32.
Value RowPrinter::shuffle(Value value, unsigned distance) {
  Type type = value.getType(), i32 = b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits < 32) {
    Type integer = b.getIntegerType(bits);
    if (type != integer)
      value = arith::BitcastOp::create(b, loc, integer, value);
    value = arith::ExtUIOp::create(b, loc, i32, value);
  }
  auto i32Constant = [&](int64_t v) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(v)); };
  Value moved =
      gpu::ShuffleOp::create(b, loc, value, i32Constant(distance), i32Constant(32), gpu::ShuffleMode::XOR).getShuffleResult();
  if (bits < 32) {
    Type integer = b.getIntegerType(bits);
    moved = arith::TruncIOp::create(b, loc, integer, moved);
    if (type != integer)
      moved = arith::BitcastOp::create(b, loc, type, moved);
  }
  return moved;
}

/// Every thread of the row gets the whole: a butterfly in each warp, then the warps' parts in order.
Value RowPrinter::reduceAcross(const RowReduction &reduction, unsigned result, Value partial) {
  for (unsigned distance = 16; distance > 0; distance /= 2)
    partial = RowPlan::combine(b, reduction, result, partial, shuffle(partial, distance));
  int64_t warps = choice.threadsARow / 32;
  if (warps == 1)
    return partial;
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  Value parts = memref::AllocaOp::create(b, loc, MemRefType::get({warps}, partial.getType(), MemRefLayoutAttrInterface(), space));
  IndexMath &math = emitter.indices();
  Value lane = math.rem(loc, thread, 32), warp = math.div(loc, thread, 32);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, constant(0));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false).thenBlock());
    memref::StoreOp::create(b, loc, partial, parts, warp);
  }
  gpu::BarrierOp::create(b, loc);
  Value whole = memref::LoadOp::create(b, loc, parts, constant(0));
  for (int64_t i = 1; i < warps; ++i)
    whole = RowPlan::combine(b, reduction, result, whole, memref::LoadOp::create(b, loc, parts, constant(i)));
  return whole;
}

LogicalResult RowPrinter::storeColumn(const Column &column) {
  struct Store {
    Value value, buffer;
    SmallVector<Value> indices;
  };
  SmallVector<Store> stores;
  for (const RowOutput &output : plan.outputs) {
    if (output.reduced)
      continue;
    for (Value index : column.lanes) {
      Store store{Value(), body.output(output.number),
                  RowPlan::indicesAt(emitter.indices(), output.value, plan.rows, row, index)};
      store.value = emitter.emit(output.value, store.indices);
      if (!store.value)
        return failure();
      stores.push_back(store);
    }
  }
  OpBuilder::InsertionGuard guard(b);
  if (column.inside && !stores.empty())
    b.setInsertionPointToStart(scf::IfOp::create(b, loc, column.inside, /*withElseRegion=*/false).thenBlock());
  for (const Store &store : stores)
    memref::StoreOp::create(b, loc, store.value, store.buffer, store.indices);
  return success();
}

LogicalResult RowPrinter::storeReduced() {
  SmallVector<std::pair<Value, const RowOutput *>> values;
  SmallVector<SmallVector<Value>> positions;
  for (const RowOutput &output : plan.outputs) {
    if (!output.reduced)
      continue;
    positions.push_back(RowPlan::indicesAt(emitter.indices(), output.value, plan.rows, row, Value()));
    values.push_back({emitter.emit(output.value, positions.back()), &output});
    if (!values.back().first)
      return failure();
  }
  if (values.empty())
    return success();
  OpBuilder::InsertionGuard guard(b);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, constant(0));
  b.setInsertionPointToStart(scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false).thenBlock());
  for (auto [entry, indices] : llvm::zip_equal(values, positions))
    memref::StoreOp::create(b, loc, entry.first, body.output(entry.second->number), indices);
  return success();
}

LogicalResult RowPrinter::emitOutputs() {
  if (failed(storeReduced()))
    return failure();
  if (llvm::all_of(plan.outputs, [](const RowOutput &output) { return output.reduced; }))
    return success();
  if (choice.unrolled) {
    for (const Column &column : columns)
      if (failed(storeColumn(column)))
        return failure();
    return success();
  }
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(choice.columns), constant(1));
  loop->setAttr("ogc.unroll", b.getI64IntegerAttr(4));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  return storeColumn(columnAt(loop.getInductionVar(), plan.width % choice.threadsARow != 0));
}

LogicalResult RowPrinter::emit() {
  emitPosition();
  for (const auto &stage : plan.stages)
    if (failed(emitStage(stage)))
      return failure();
  if (failed(emitOutputs()))
    return failure();
  if (choice.lanes > 1) {
    body.removeCommonCode(); // so that lanes agree in what they have in common, e.g. the row of a table
    for (const Column &column : columns)
      groupAccesses(body.getBlock(), column.lanes);
  }
  body.finish();
  return success();
}

FailureOr<KernelText> printRow(kern::KernelOp kernel, CudaArch arch, Tuning &tuning, bool &fits) {
  FailureOr<RowPlan> plan = RowPlan::analyze(kernel.getBody().front());
  fits = succeeded(plan) && plan->rows > 0 && plan->width > 0 && plan->rows <= (int64_t(1) << 30);
  if (!fits)
    return failure();
  unsigned bytes = 1, mostLanes = mostRowLanes(kernel, plan->rows, plan->width, bytes);
  RowChoice choice = chooseRow(plan->rows, plan->width, mostLanes, bytes, tuning);
  RowPrinter printer(kernel, *plan, choice);
  if (failed(printer.emit()))
    return failure();
  LaunchShape launch{uint32_t(plan->rows / choice.rowsABlock), choice.threadsARow * choice.rowsABlock, 1,
                     uint32_t(choice.reservedBytes)};
  FailureOr<KernelText> text = printEntry(kernel, printer.getBody(), launch, choice.trigger);
  if (succeeded(text))
    text->cost = 2;
  return text;
}

} // namespace ogc::codegen
