//===- BuildRegions.cpp - groups become kern.region -----------------------===//
#include "compiler/passes/fuse/Grouping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include <queue>

using namespace mlir;

namespace ogc::fuse {

namespace {

/// Appends the locations that `loc` is made of, without unknown ones and repetitions.
void collectLocations(Location loc, llvm::SetVector<Attribute> &leaves) {
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectLocations(part, leaves);
    return;
  }
  if (!isa<UnknownLoc>(loc))
    leaves.insert(loc);
}

/// The body of one region under construction.
struct Body {
  std::unique_ptr<Block> block = std::make_unique<Block>();
  IRMapping mapping;             ///< from values of the function to values of the body
  llvm::SetVector<Value> inputs; ///< values of the function, in the order of the block arguments
  llvm::SetVector<Value> yields; ///< results of members that are read outside, in block order
  llvm::SetVector<Attribute> locations;
};

class RegionBuilder {
public:
  explicit RegionBuilder(Grouping &grouping) : grouping(grouping), builder(grouping.getBlock().getParentOp()->getContext()) {}

  LogicalResult run() {
    bodies.resize(grouping.getGroups().size());
    for (size_t id = 0; id < bodies.size(); ++id)
      fillBody(id);
    for (Body &body : bodies)
      for (Value input : body.inputs)
        requestFromMember(input);
    // All results of a program are buffers, read by others or not.
    for (size_t id = 0; id < bodies.size(); ++id)
      if (auto program = dyn_cast<kern::ProgramOp>(grouping.group(static_cast<int>(id)).ops.front()))
        bodies[id].yields.insert(program.getOutputs().begin(), program.getOutputs().end());
    Operation *terminator = grouping.getBlock().getTerminator();
    for (Value result : terminator->getOperands())
      requestFromMember(result);

    FailureOr<std::vector<int>> order = topologicalOrder();
    if (failed(order))
      return failure();
    builder.setInsertionPoint(terminator);
    for (int id : *order)
      createRegion(id);
    for (OpOperand &operand : terminator->getOpOperands())
      operand.set(outside(operand.get()));
    eraseOldOps();
    return success();
  }

private:
  int groupOf(Operation *op) { return op ? grouping.info(op).group : -1; }

  void fillBody(int id) {
    std::vector<Operation *> members(grouping.group(id).ops.begin(), grouping.group(id).ops.end());
    llvm::sort(members, [&](Operation *a, Operation *b) { return grouping.info(a).index < grouping.info(b).index; });
    for (Operation *member : members)
      cloneInto(id, member);
  }

  void cloneInto(int id, Operation *op) {
    Body &body = bodies[id];
    bool isAnchor = kern::isAnchor(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (const StridedView *view = grouping.absorbedView(operand))
        cloneView(id, *view);
      else if (isAnchor && groupOf(stripReshapes(operand.get()).getDefiningOp()) != id) // as it is, constants too
        addInput(id, operand.get());
      else
        inside(id, operand.get());
    }
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      inside(id, value);
    builder.setInsertionPointToEnd(body.block.get());
    builder.clone(*op, body.mapping);
    // Shared by equal operations of other nodes, so their location is not that of the work done here.
    if (!isa<tensor::EmptyOp, arith::ConstantOp, linalg::FillOp>(op))
      collectLocations(op->getLoc(), body.locations);
  }

  void cloneView(int id, const StridedView &view) {
    inside(id, view.root);
    Body &body = bodies[id];
    for (Operation *op : view.chain) {
      if (body.mapping.contains(op->getResult(0)))
        continue;
      if (auto structured = dyn_cast<linalg::LinalgOp>(op)) // a transpose, or a conversion of what is read
        inside(id, structured.getDpsInits()[0]);
      builder.setInsertionPointToEnd(body.block.get());
      builder.clone(*op, body.mapping);
      collectLocations(op->getLoc(), body.locations);
    }
  }

  /// Makes `value` available in the body: computed there when it belongs there, else as an argument.
  void inside(int id, Value value) {
    Body &body = bodies[id];
    if (body.mapping.contains(value))
      return;
    Operation *def = value.getDefiningOp();
    Operation *source = stripReshapes(value).getDefiningOp();
    bool belongs = def && (grouping.isCheapConstant(value) || grouping.info(source).isInlined || groupOf(source) == id);
    if (belongs)
      cloneInto(id, def);
    else
      addInput(id, value);
  }

  void addInput(int id, Value value) {
    Body &body = bodies[id];
    if (!body.inputs.insert(value))
      return;
    body.mapping.map(value, body.block->addArgument(value.getType(), builder.getUnknownLoc()));
  }

  void requestFromMember(Value value) {
    Value source = stripReshapes(value);
    int id = groupOf(source.getDefiningOp());
    if (id >= 0)
      bodies[id].yields.insert(source);
  }

  /// Groups in an order in which each comes after those that it reads; among the ready ones that with the earliest operation
  /// first.
  FailureOr<std::vector<int>> topologicalOrder() {
    std::vector<SmallVector<int>> readers(bodies.size());
    std::vector<int> missing(bodies.size(), 0);
    for (size_t id = 0; id < bodies.size(); ++id) {
      llvm::SmallSetVector<int, 8> sources;
      for (Value input : bodies[id].inputs)
        if (int source = groupOf(stripReshapes(input).getDefiningOp()); source >= 0)
          sources.insert(source);
      missing[id] = sources.size();
      for (int source : sources)
        readers[source].push_back(id);
    }
    using Entry = std::pair<unsigned, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t id = 0; id < bodies.size(); ++id)
      if (missing[id] == 0)
        ready.push({grouping.group(id).maxIndex, id});
    std::vector<int> order;
    while (!ready.empty()) {
      int id = ready.top().second;
      ready.pop();
      order.push_back(id);
      for (int reader : readers[id])
        if (--missing[reader] == 0)
          ready.push({grouping.group(reader).maxIndex, reader});
    }
    if (order.size() != bodies.size())
      return grouping.getBlock().getParentOp()->emitError("regions depend on each other in a circle");
    return order;
  }

  void createRegion(int id) {
    Body &body = bodies[id];
    std::vector<Value> yields(body.yields.begin(), body.yields.end());
    llvm::sort(yields, [&](Value a, Value b) {
      auto key = [&](Value v) { return std::pair(grouping.info(v.getDefiningOp()).index, cast<OpResult>(v).getResultNumber()); };
      return key(a) < key(b);
    });
    SmallVector<Value> inputs, yielded;
    for (Value input : body.inputs)
      inputs.push_back(outside(input));
    SmallVector<Type> types;
    for (Value value : yields) {
      yielded.push_back(body.mapping.lookup(value));
      types.push_back(value.getType());
    }
    Location loc = locationOf(body);
    auto region = kern::RegionOp::create(builder, loc, types, inputs, kern::ScheduleAttr{});
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(body.block.get());
      kern::YieldOp::create(builder, loc, yielded);
    }
    region.getBody().push_back(body.block.release());
    for (auto [value, result] : llvm::zip_equal(yields, region.getOutputs()))
      outer[value] = result;
  }

  Location locationOf(Body &body) {
    SmallVector<Location> parts;
    for (Attribute leaf : body.locations)
      parts.push_back(cast<LocationAttr>(leaf));
    return parts.empty() ? builder.getUnknownLoc() : builder.getFusedLoc(parts);
  }

  /// The value of the new function that stands for `value`; made just before the return where it is a reshape or a constant.
  Value outside(Value value) {
    if (auto it = outer.find(value); it != outer.end())
      return it->second;
    Operation *def = value.getDefiningOp();
    if (!def || isa<arith::ConstantOp>(def))
      return value;
    IRMapping mapping;
    Operation *clone = nullptr;
    if (isReshapeOp(def)) {
      mapping.map(def->getOperand(0), outside(def->getOperand(0)));
      clone = builder.clone(*def, mapping);
    } else {
      clone = arith::ConstantOp::create(builder, def->getLoc(), splatOf(value));
    }
    return outer[value] = clone->getResult(0);
  }

  /// The contents of a fill or an empty tensor (zeros) as an attribute.
  DenseElementsAttr splatOf(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    Attribute scalar = builder.getZeroAttr(type.getElementType());
    if (auto fill = value.getDefiningOp<linalg::FillOp>())
      matchPattern(fill.getInputs()[0], m_Constant(&scalar));
    return DenseElementsAttr::get(type, scalar);
  }

  void eraseOldOps() {
    for (Operation *op : llvm::reverse(grouping.getOps()))
      if (isOpTriviallyDead(op))
        op->erase();
  }

  Grouping &grouping;
  OpBuilder builder;
  std::vector<Body> bodies;
  llvm::DenseMap<Value, Value> outer;
};

} // namespace

LogicalResult buildRegions(Grouping &grouping) { return RegionBuilder(grouping).run(); }

} // namespace ogc::fuse
