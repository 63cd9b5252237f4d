//===- GroupAccesses.cpp - scalar accesses side by side become one --------===//
#include "compiler/codegen/cuda/CudaTypes.h"
#include "compiler/codegen/cuda/Lanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

/// Accesses of the lanes that agree in everything but the lane.
struct Group {
  SmallVector<Operation *> byLane;
};

/// What must agree: the kind of access, its block, buffer and all indices but the last.
using Key = std::vector<const void *>;

} // namespace

/// The group of an access and its lane; no lane when its last index is none of `lanes`.
static std::pair<Key, std::optional<size_t>> classify(Operation *op, Value buffer, ValueRange indices, ArrayRef<Value> lanes) {
  Key key{isa<memref::LoadOp>(op) ? op->getName().getAsOpaquePointer() : nullptr, op->getBlock(), buffer.getAsOpaquePointer()};
  if (indices.empty())
    return {key, std::nullopt};
  for (Value index : indices.drop_back())
    key.push_back(index.getAsOpaquePointer());
  const Value *lane = llvm::find(lanes, indices.back());
  if (lane == lanes.end())
    return {key, std::nullopt};
  return {key, lane - lanes.begin()};
}

static void joinLoads(ArrayRef<Operation *> loads, int64_t width) {
  for (size_t first = 0; first < loads.size(); first += width) {
    auto lead = cast<memref::LoadOp>(loads[first]);
    // The first of the group in the block's order: all of its operands are there already.
    Operation *earliest = *std::min_element(loads.begin() + first, loads.begin() + first + width,
                                            [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    if (Operation *index = lead.getIndices().back().getDefiningOp();
        index && index->getBlock() == earliest->getBlock() && earliest->isBeforeInBlock(index))
      index->moveBefore(earliest);
    OpBuilder b(earliest);
    Value vector =
        vector::LoadOp::create(b, lead.getLoc(), VectorType::get({width}, lead.getType()), lead.getMemRef(), lead.getIndices());
    for (int64_t i = 0; i < width; ++i)
      loads[first + i]->getResult(0).replaceAllUsesWith(vector::ExtractOp::create(b, lead.getLoc(), vector, i));
  }
  for (Operation *load : loads)
    load->erase();
}

static void joinStores(ArrayRef<Operation *> stores, int64_t width) {
  for (size_t first = 0; first < stores.size(); first += width) {
    auto lead = cast<memref::StoreOp>(stores[first]);
    SmallVector<Value> values;
    for (int64_t i = 0; i < width; ++i)
      values.push_back(cast<memref::StoreOp>(stores[first + i]).getValueToStore());
    Operation *latest = *std::max_element(stores.begin() + first, stores.begin() + first + width,
                                          [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    OpBuilder b(latest);
    Value vector = vector::FromElementsOp::create(b, lead.getLoc(), VectorType::get({width}, values.front().getType()), values);
    vector::StoreOp::create(b, lead.getLoc(), vector, lead.getMemRef(), lead.getIndices());
  }
  for (Operation *store : stores)
    store->erase();
}

void groupAccesses(Block &block, ArrayRef<Value> lanes) {
  // In the order of first appearance, so that the text does not depend on addresses.
  llvm::MapVector<Key, Group, std::map<Key, unsigned>> groups;
  block.walk([&](Operation *op) {
    std::pair<Key, std::optional<size_t>> place;
    if (auto load = dyn_cast<memref::LoadOp>(op))
      place = classify(op, load.getMemRef(), load.getIndices(), lanes);
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      place = classify(op, store.getMemRef(), store.getIndices(), lanes);
    else
      return;
    if (!place.second)
      return;
    Group &group = groups[place.first];
    group.byLane.resize(lanes.size());
    group.byLane[*place.second] = op;
  });
  for (auto &[key, group] : groups) {
    if (llvm::is_contained(group.byLane, nullptr))
      continue;
    Operation *lead = group.byLane.front();
    Type element = isa<memref::LoadOp>(lead) ? lead->getResult(0).getType() : lead->getOperand(0).getType();
    int64_t width = std::min<int64_t>(lanes.size(), 16 / std::max(1u, cudaElementBytes(element)));
    if (isa<memref::LoadOp>(lead))
      joinLoads(group.byLane, width);
    else
      joinStores(group.byLane, width);
  }
}

} // namespace ogc::codegen
