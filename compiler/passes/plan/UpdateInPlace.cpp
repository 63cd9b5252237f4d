//===- UpdateInPlace.cpp - results that take the bytes of their input -----===//
#include "compiler/analysis/InPlace.h"
#include "compiler/passes/plan/Hazards.h"
#include "compiler/passes/plan/NodeOrder.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/ScratchBuffers.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

namespace ogc {

#define GEN_PASS_DEF_UPDATEINPLACE
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

bool isSamePlace(cg::SliceAttr a, cg::SliceAttr b) {
  return a.getSection() == b.getSection() && a.getOffsetBytes() == b.getOffsetBytes() && a.getSizeBytes() == b.getSizeBytes();
}

bool isInside(cg::SliceAttr slice, cg::SliceAttr range) {
  return slice.getSection() == range.getSection() && slice.getOffsetBytes() >= range.getOffsetBytes() &&
         slice.getOffsetBytes() + slice.getSizeBytes() <= range.getOffsetBytes() + range.getSizeBytes();
}

bool reads(cg::SliceAttr slice) { return slice.getAccess() != cg::Access::Write; }
bool writes(cg::SliceAttr slice) { return slice.getAccess() != cg::Access::Read; }

class GraphUpdater {
public:
  GraphUpdater(cg::GraphOp graph, llvm::DenseMap<StringAttr, kern::KernelOp> &kernels) : graph(graph), kernels(kernels) {}

  LogicalResult run() {
    if (failed(takeSnapshot()))
      return failure();
    for (Operation *node : now->nodes)
      if (auto kernel = dyn_cast<cg::KernelOp>(node))
        reuseDyingInput(kernel);
    SmallVector<cg::MemcpyOp> commits;
    for (auto copy : graph.getBody().front().getOps<cg::MemcpyOp>())
      if (copy.getTarget().getSection() == cg::Section::State)
        commits.push_back(copy);
    for (cg::MemcpyOp commit : commits)
      if (writeStateDirectly(commit) && failed(takeSnapshot()))
        return failure();
    return success();
  }

  /// Launches that overwrite an argument, with its number.
  llvm::MapVector<Operation *, unsigned> inPlace;

private:
  /// Every node as it is now: the order, and what touches what.
  struct Snapshot {
    Snapshot(std::vector<Operation *> all, plan::ScratchBuffers buffers)
        : nodes(std::move(all)), order(nodes.size()), scratch(std::move(buffers)) {
      std::vector<std::vector<size_t>> hazards = plan::hazardsOf(nodes);
      for (size_t i = 0; i < nodes.size(); ++i) {
        position[nodes[i]] = i;
        for (size_t p : hazards[i])
          order.add(p, i);
      }
    }
    std::vector<Operation *> nodes;
    llvm::DenseMap<Operation *, size_t> position;
    plan::NodeOrder order;
    plan::ScratchBuffers scratch;
  };

  LogicalResult takeSnapshot() {
    std::vector<Operation *> nodes = plan::nodesOf(graph);
    FailureOr<plan::ScratchBuffers> scratch = plan::collectScratch(nodes);
    if (failed(scratch))
      return failure();
    now.emplace(std::move(nodes), std::move(*scratch));
    return success();
  }

  /// The nodes that read or write bytes of `range`, in order.
  SmallVector<Operation *> touching(cg::SliceAttr range) const {
    SmallVector<Operation *> found;
    auto add = [&](Operation *node) {
      if (llvm::any_of(cg::nodeSlices(node),
                       [&](cg::SliceAttr slice) { return slice.getSizeBytes() && cg::overlap(slice, range); }))
        found.push_back(node);
    };
    if (plan::isScratch(range))
      for (size_t position : now->scratch.touching[*now->scratch.find(range.getOffsetBytes())])
        add(now->nodes[position]);
    else
      llvm::for_each(now->nodes, add);
    return found;
  }

  /// The number of the argument of `node` that the result at `target` may overwrite and that lies at `range`.
  std::optional<unsigned> argumentAt(cg::KernelOp node, cg::SliceAttr range) {
    auto known = possible.find(node.getKernelAttr().getAttr());
    if (known == possible.end()) {
      kern::KernelOp kernel = kernels.lookup(node.getKernelAttr().getAttr());
      known =
          possible.insert({node.getKernelAttr().getAttr(), kernel ? inPlaceArguments(kernel) : SmallVector<unsigned>()}).first;
    }
    SmallVector<cg::SliceAttr> slices = cg::nodeSlices(node);
    unsigned overlapping = llvm::count_if(slices, [&](cg::SliceAttr slice) { return cg::overlap(slice, range); });
    for (unsigned argument : known->second)
      if (argument + 1 < slices.size() && overlapping == 1 && isSamePlace(slices[argument], range))
        return argument;
    return std::nullopt;
  }

  /// Gives the result of `node` the bytes of an input that nothing reads later, where that orders nothing that is not ordered
  /// yet.
  void reuseDyingInput(cg::KernelOp node) {
    SmallVector<cg::SliceAttr> slices = cg::nodeSlices(node);
    cg::SliceAttr result = slices.back();
    if (!plan::isScratch(result) || inPlace.contains(node))
      return;
    if (!isWholeBuffer(result))
      return;
    size_t here = now->position[node];
    for (cg::SliceAttr input : slices) {
      if (!plan::isScratch(input) || input.getAccess() != cg::Access::Read || !argumentAt(node, input) || !isWholeBuffer(input))
        continue;
      bool isLast = llvm::all_of(
          touching(input), [&](Operation *other) { return other == node || now->order.precedes(now->position[other], here); });
      if (!isLast)
        continue;
      inPlace[node] = *argumentAt(node, input);
      replace(result, input, node);
      // Whoever touches the result follows this node, and whoever touches the input precedes it: the order stays as it is.
      std::vector<size_t> &moved = now->scratch.touching[*now->scratch.find(result.getOffsetBytes())];
      std::vector<size_t> &users = now->scratch.touching[*now->scratch.find(input.getOffsetBytes())];
      users.insert(users.end(), moved.begin() + 1, moved.end()); // the first one is this node, the last user of the input
      moved.clear();
      return;
    }
  }

  /// True when the whole buffer around `slice` is `slice`, written at once by one node.
  bool isWholeBuffer(cg::SliceAttr slice) const {
    unsigned writers = 0;
    for (Operation *node : touching(slice))
      for (cg::SliceAttr other : cg::nodeSlices(node)) {
        if (other.getSizeBytes() == 0 || !cg::overlap(other, slice))
          continue;
        if (!isInside(other, slice) || (other.getAccess() == cg::Access::Write && !isSamePlace(other, slice)))
          return false;
        writers += other.getAccess() == cg::Access::Write;
      }
    return writers == 1;
  }

  /// Moves everything that lies in `from` to `to`; what `updater` wrote there it updates now.
  void replace(cg::SliceAttr from, cg::SliceAttr to, Operation *updater) {
    for (Operation *node : touching(from)) {
      AttrTypeReplacer replacer;
      replacer.addReplacement([&](cg::SliceAttr slice) -> std::optional<Attribute> {
        if (slice.getSizeBytes() == 0 || !isInside(slice, from))
          return std::nullopt;
        return cg::SliceAttr::get(slice.getContext(), to.getSection(),
                                  to.getOffsetBytes() + slice.getOffsetBytes() - from.getOffsetBytes(), slice.getSizeBytes(),
                                  node == updater && writes(slice) ? cg::Access::ReadWrite : slice.getAccess());
      });
      replacer.replaceElementsIn(node);
    }
  }

  /// Lets the node that computes the new value of a state write it where the state is, instead of copying it there. True if the
  /// graph has changed.
  bool writeStateDirectly(cg::MemcpyOp commit) {
    cg::SliceAttr value = commit.getSource(), state = commit.getTarget();
    if (!plan::isScratch(value) || !isWholeBuffer(value))
      return false;
    Operation *writer = nullptr;
    SmallVector<Operation *> readers; // of the old value, but for the writer
    for (Operation *node : touching(value))
      for (cg::SliceAttr slice : cg::nodeSlices(node))
        if (slice.getAccess() == cg::Access::Write && isSamePlace(slice, value))
          writer = node;
    for (Operation *node : touching(state))
      if (node != writer && node != commit)
        readers.push_back(node);
    bool readsOld = llvm::any_of(cg::nodeSlices(writer), [&](cg::SliceAttr slice) { return cg::overlap(slice, state); });
    auto kernel = dyn_cast<cg::KernelOp>(writer);
    std::optional<unsigned> argument = readsOld && kernel ? argumentAt(kernel, state) : std::nullopt;
    if ((readsOld && !argument) || inPlace.contains(writer))
      return false;
    // Another state that is committed from this value, or reads of the state by its own commit, keep their copies.
    if (llvm::any_of(readers, [](Operation *reader) { return isa<cg::MemcpyOp>(reader) && writesState(reader); }))
      return false;
    keepOldValue(writer, readers, state);
    if (argument)
      inPlace[writer] = *argument;
    replace(value,
            cg::SliceAttr::get(state.getContext(), state.getSection(), state.getOffsetBytes(), state.getSizeBytes(),
                               cg::Access::ReadWrite),
            argument ? writer : nullptr);
    commit.erase();
    return true;
  }

  static bool writesState(Operation *copy) { return cast<cg::MemcpyOp>(copy).getTarget().getSection() == cg::Section::State; }

  /// Readers of the old value that do not depend on `writer` are scheduled before it; the others read a copy.
  void keepOldValue(Operation *writer, ArrayRef<Operation *> readers, cg::SliceAttr state) {
    size_t at = now->position.lookup(writer);
    SmallVector<Operation *> late;
    size_t last = at;
    for (Operation *reader : readers) {
      size_t position = now->position.lookup(reader);
      if (now->order.precedes(at, position))
        late.push_back(reader);
      else
        last = std::max(last, position);
    }
    // What depends on the writer goes behind the last reader that does not; the order is kept otherwise.
    Operation *point = now->nodes[last];
    for (size_t i = at; i < last; ++i)
      if (i == at || now->order.precedes(at, i)) {
        now->nodes[i]->moveAfter(point);
        point = now->nodes[i];
      }
    if (late.empty())
      return;
    OpBuilder builder(writer);
    cg::SliceAttr copy =
        cg::SliceAttr::get(state.getContext(), cg::Section::Scratch, endOfScratch(), state.getSizeBytes(), cg::Access::Write);
    cg::MemcpyOp::create(builder, writer->getLoc(), builder.getType<cg::NodeType>(),
                         cg::SliceAttr::get(state.getContext(), state.getSection(), state.getOffsetBytes(), state.getSizeBytes(),
                                            cg::Access::Read),
                         copy, ValueRange(), DenseI32ArrayAttr());
    for (Operation *reader : late) {
      AttrTypeReplacer replacer;
      replacer.addReplacement([&](cg::SliceAttr slice) -> std::optional<Attribute> {
        if (!isInside(slice, state) || !reads(slice))
          return std::nullopt;
        return cg::SliceAttr::get(slice.getContext(), copy.getSection(),
                                  copy.getOffsetBytes() + slice.getOffsetBytes() - state.getOffsetBytes(), slice.getSizeBytes(),
                                  cg::Access::Read);
      });
      replacer.replaceElementsIn(reader);
    }
  }

  int64_t endOfScratch() {
    int64_t end = 0;
    for (Operation *node : plan::nodesOf(graph))
      for (cg::SliceAttr slice : cg::nodeSlices(node))
        if (slice.getSection() == cg::Section::Scratch)
          end = std::max(end, slice.getOffsetBytes() + slice.getSizeBytes());
    return cg::alignBuffer(end);
  }

  cg::GraphOp graph;
  llvm::DenseMap<StringAttr, kern::KernelOp> &kernels;
  llvm::DenseMap<StringAttr, SmallVector<unsigned>> possible;
  std::optional<Snapshot> now;
};

class UpdateInPlace : public impl::UpdateInPlaceBase<UpdateInPlace> {
  void runOnOperation() override {
    llvm::DenseMap<StringAttr, kern::KernelOp> kernels;
    for (auto kernel : getOperation().getOps<kern::KernelOp>())
      kernels[kernel.getSymNameAttr()] = kernel;
    llvm::MapVector<Operation *, unsigned> inPlace;
    for (auto graph : getOperation().getOps<cg::GraphOp>()) {
      GraphUpdater updater(graph, kernels);
      if (failed(updater.run()))
        return signalPassFailure();
      for (auto [node, argument] : updater.inPlace)
        inPlace[node] = argument;
    }
    giveVariants(kernels, inPlace);
  }

  /// Each way to run a kernel is a kernel of its own: the first way found keeps the name.
  void giveVariants(const llvm::DenseMap<StringAttr, kern::KernelOp> &kernels,
                    const llvm::MapVector<Operation *, unsigned> &inPlace) {
    llvm::MapVector<StringAttr, llvm::MapVector<int64_t, SmallVector<cg::KernelOp>>> ways;
    getOperation().walk([&](Operation *node) {
      if (auto launch = dyn_cast<cg::KernelOp>(node)) {
        auto found = inPlace.find(node);
        ways[launch.getKernelAttr().getAttr()][found == inPlace.end() ? -1 : static_cast<int64_t>(found->second)].push_back(
            launch);
      } else if (auto gemm = dyn_cast<cg::GemmOp>(node)) {
        ways[gemm.getFallbackAttr().getAttr()][-1];
      }
    });
    SymbolTable symbols(getOperation());
    for (auto &[name, launches] : ways) {
      kern::KernelOp kernel = kernels.lookup(name);
      if (!kernel)
        continue;
      bool isShared = launches.size() > 1;
      for (auto &[argument, nodes] : launches) {
        if (argument < 0)
          continue;
        kern::KernelOp variant = kernel;
        if (isShared) {
          variant = kernel.clone();
          variant.setSymName((name.getValue() + "_in_place" + (argument ? std::to_string(argument) : "")).str());
          symbols.insert(variant, std::next(Block::iterator(kernel)));
        }
        variant->setAttr("ogc.in_place", OpBuilder(variant).getI64IntegerAttr(argument));
        for (cg::KernelOp node : nodes)
          node.setKernelAttr(FlatSymbolRefAttr::get(variant.getSymNameAttr()));
      }
    }
  }
};

} // namespace
} // namespace ogc
