//===- Pointwise.cpp - one thread an output element, or a few neighbours --===//
#include "compiler/codegen/cuda/Lanes.h"
#include "compiler/codegen/cuda/Schedules.h"
#include "compiler/codegen/scalar/ScatterElements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

struct PointwiseChoice : LaunchPolicy {
  unsigned threads = 256; ///< a block
  unsigned mostLanes = 1; ///< neighbouring elements a thread may take
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("threads", threads), visit("lanes", mostLanes);
    visitPolicy(visit);
  }
};

/// Results of one shape; they share the threads.
struct Group {
  SmallVector<unsigned> results;
  int64_t elements = 0;
  unsigned elementBytes = 1;           ///< the widest result
  tensor::ScatterOp scatter = nullptr; ///< set where the elements are those of its source, each written where it goes
};

} // namespace

/// Wide accesses pay once the machine is full; before, more threads hide more latency.
static PointwiseChoice choosePointwise(int64_t elements, unsigned bytes, Tuning &tuning) {
  PointwiseChoice rule;
  rule.mostLanes = std::max(1u, 16 / bytes);
  rule.trigger = Trigger::Start; // short kernels: the next one loads its weights meanwhile
  constexpr int64_t threadsThatFill = 132 * 256;
  while (rule.mostLanes > 1 && elements / rule.mostLanes < threadsThatFill)
    rule.mostLanes /= 2;
  if (elements < 132 * 256)
    rule.threads = 128;
  auto isLegal = [&](const PointwiseChoice &c) {
    return c.threads >= 32 && c.threads <= 1024 && c.threads % 32 == 0 && c.mostLanes >= 1 && c.mostLanes <= 16 &&
           llvm::isPowerOf2_32(c.mostLanes) && c.reservedBytes <= 48 * 1024;
  };
  auto candidates = [&] {
    std::vector<PointwiseChoice> all;
    for (unsigned lanes : {rule.mostLanes, rule.mostLanes * 2, rule.mostLanes / 2})
      for (unsigned threads : {64u, 128u, 256u})
        if (lanes >= 1 && lanes * bytes <= 16)
          all.push_back({{}, threads, lanes});
    return all;
  };
  std::string problem = "pointwise " + std::to_string(elements) + "x" + std::to_string(bytes);
  return choose(tuning, problem, rule, isLegal, candidates);
}

static SmallVector<Group> groupResults(kern::KernelOp kernel) {
  SmallVector<Group> groups;
  Operation *yield = kernel.getBody().front().getTerminator();
  if (tensor::ScatterOp scatter = inPlaceScatter(kernel)) {
    auto type = cast<RankedTensorType>(scatter.getSource().getType());
    groups.push_back({{0}, type.getNumElements(), cudaElementBytes(type.getElementType()), scatter});
    return groups;
  }
  for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
    auto type = cast<RankedTensorType>(value.getType());
    auto sameShape = [&](const Group &group) {
      return cast<RankedTensorType>(yield->getOperand(group.results.front()).getType()).getShape() == type.getShape();
    };
    Group *group = llvm::find_if(groups, sameShape);
    if (group == groups.end())
      group = &groups.emplace_back();
    group->results.push_back(number);
    group->elements = type.getNumElements();
    group->elementBytes = std::max(group->elementBytes, cudaElementBytes(type.getElementType()));
  }
  return groups;
}

/// The code of one element of the source of a scatter that is done in place.
static LogicalResult emitUpdate(kern::KernelOp kernel, KernelBody &body, tensor::ScatterOp scatter) {
  Location loc = kernel.getLoc();
  auto shape = cast<RankedTensorType>(scatter.getSource().getType()).getShape();
  SmallVector<Value> indices = body.getEmitter().indices().delinearize(loc, body.extra(0), shape);
  Value value = body.getEmitter().emit(scatter.getSource(), indices);
  ScatterTarget target = emitScatterTarget(body.getEmitter(), body.getBuilder(), scatter, indices);
  if (!value || target.indices.empty())
    return failure();
  auto guarded = scf::IfOp::create(body.getBuilder(), loc, target.isValid, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard restore(body.getBuilder());
    body.getBuilder().setInsertionPointToStart(guarded.thenBlock());
    memref::StoreOp::create(body.getBuilder(), loc, value, body.output(0), target.indices);
  }
  body.finish();
  return success();
}

/// The code of one element: `body.extra(0)` is its row-major position.
static LogicalResult emitElement(kern::KernelOp kernel, KernelBody &body, const Group &group) {
  if (group.scatter)
    return emitUpdate(kernel, body, group.scatter);
  Operation *yield = kernel.getBody().front().getTerminator();
  Location loc = kernel.getLoc();
  auto shape = cast<RankedTensorType>(yield->getOperand(group.results.front()).getType()).getShape();
  SmallVector<Value> indices = body.getEmitter().indices().delinearize(loc, body.extra(0), shape);
  bool ok = true;
  SmallVector<Value> values;
  for (unsigned number : group.results) {
    values.push_back(body.getEmitter().emit(yield->getOperand(number), indices));
    ok &= values.back() != nullptr;
  }
  if (!ok)
    return failure();
  // All loads come before the first store.
  for (auto [number, value] : llvm::zip_equal(group.results, values))
    memref::StoreOp::create(body.getBuilder(), loc, value, body.output(number), indices);
  body.finish();
  return success();
}

/// The most lanes, at most `most`, with which every access is a vector access or the same for all lanes.
static int64_t findLanes(KernelBody &element, int64_t elements, int64_t most) {
  for (int64_t lanes = most; lanes > 1; lanes /= 2)
    if (elements % lanes == 0 && LaneAnalysis(element.getBlock(), element.extra(0), {}, lanes).canWiden(element.getBlock(), true))
      return lanes;
  return 1;
}

/// Clones the element code for the thread's elements of one group. `thread` counts from the first thread of the group.
static void emitGroup(KernelBody &body, KernelBody &element, const Group &group, int64_t lanes, Value thread, bool guard) {
  OpBuilder &b = body.getBuilder();
  Location loc = body.getFunction().getLoc();
  OpBuilder::InsertionGuard restore(b);
  if (guard) {
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, thread,
                                         arith::ConstantIndexOp::create(b, loc, group.elements / lanes));
    b.setInsertionPointToStart(scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).thenBlock());
  }
  Value first = lanes == 1 ? thread : Value(arith::MulIOp::create(b, loc, thread, arith::ConstantIndexOp::create(b, loc, lanes)));
  SmallVector<IRMapping> mappings(lanes);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    mappings[lane].map(element.buffers(), body.buffers());
    Value at = lane == 0 ? first : Value(arith::AddIOp::create(b, loc, first, arith::ConstantIndexOp::create(b, loc, lane)));
    mappings[lane].map(element.extra(0), at);
  }
  LaneAnalysis analysis(element.getBlock(), element.extra(0), {}, lanes);
  cloneLanes(b, element.getBlock(), analysis, mappings);
}

FailureOr<KernelText> printPointwise(kern::KernelOp kernel, CudaArch arch, Tuning &tuning) {
  Location loc = kernel.getLoc();
  SmallVector<Group> groups = groupResults(kernel);
  int64_t total = 0;
  unsigned bytes = 1;
  for (const Group &group : groups) {
    total += group.elements;
    bytes = std::max(bytes, group.elementBytes);
  }
  for (Value input : kernel.getBody().getArguments())
    bytes = std::max(bytes, cudaElementBytes(bufferType(input).getElementType()));
  PointwiseChoice choice = choosePointwise(total, bytes, tuning);

  KernelBody body(kernel);
  OpBuilder &b = body.getBuilder();
  Value block = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x), lane = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  Value threads = arith::ConstantIndexOp::create(b, loc, choice.threads);
  int64_t blocks = 0;
  bool ok = true;
  for (auto [i, group] : llvm::enumerate(groups)) {
    KernelBody element(kernel, b.getIndexType());
    if (failed(emitElement(kernel, element, group))) {
      ok = false;
      continue;
    }
    int64_t lanes = group.scatter ? 1 : findLanes(element, group.elements, choice.mostLanes);
    int64_t wanted = group.elements / lanes, size = std::max<int64_t>(1, llvm::divideCeil(wanted, choice.threads));
    OpBuilder::InsertionGuard restore(b);
    Value position = block;
    if (groups.size() > 1) { // blocks [blocks, blocks + size) are this group's; all threads of a block take the same branch
      Value from = arith::ConstantIndexOp::create(b, loc, blocks), to = arith::ConstantIndexOp::create(b, loc, blocks + size);
      Value mine = arith::AndIOp::create(b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, block, from),
                                         arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, block, to));
      position = arith::SubIOp::create(b, loc, block, from);
      b.setInsertionPointToStart(scf::IfOp::create(b, loc, mine, /*withElseRegion=*/false).thenBlock());
    }
    Value thread = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, position, threads), lane);
    emitGroup(body, element, group, lanes, thread, wanted != size * choice.threads);
    blocks += size;
  }
  if (!ok)
    return failure();
  body.finish();
  return printEntry(kernel, body, LaunchShape{uint32_t(blocks), choice.threads, 1, uint32_t(choice.reservedBytes)},
                    choice.trigger);
}

} // namespace ogc::codegen
