//===- PlaceSlices.cpp - parts are read where the whole lies --------------===//
#include "compiler/analysis/StridedView.h"
#include "compiler/passes/plan/Hazards.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/ScratchBuffers.h"
#include "compiler/passes/plan/UnusedKernels.h"

#include "compiler/dialect/kern/Kern.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include <optional>

namespace ogc {

#define GEN_PASS_DEF_PLACESLICES
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// Parts of a buffer may begin here (docs/architecture.md, "Compiled kernels").
constexpr int64_t partAlignmentBytes = 16;

int64_t elementBytes(RankedTensorType type) { return (type.getElementTypeBitWidth() + 7) / 8; }

/// True when a view has its elements one behind the other.
bool isDense(const StridedView &view, ArrayRef<int64_t> shape) {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0; expected *= shape[d])
    if (shape[d] != 1 && view.strides[d] != expected)
      return false;
  return true;
}

/// What a kernel does that only copies a dense part of its one argument: where that begins, in bytes.
std::optional<int64_t> offsetOfCopy(kern::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  if (body.getNumArguments() != 1 || yield->getNumOperands() != 1 || kernel->hasAttr("ogc.result_extent"))
    return std::nullopt;
  StridedView view = resolveStridedView(yield->getOperand(0));
  auto type = cast<RankedTensorType>(yield->getOperand(0).getType());
  if (view.root != body.getArgument(0) || !isDense(view, type.getShape()))
    return std::nullopt;
  return view.offset * elementBytes(type);
}

class SlicePlacer {
public:
  SlicePlacer(std::vector<Operation *> graphNodes, plan::ScratchBuffers scratch, SymbolTable &symbols)
      : nodes(std::move(graphNodes)), buffers(std::move(scratch)), symbols(symbols) {
    for (Operation *node : nodes)
      for (cg::SliceAttr slice : cg::nodeSlices(node))
        if (slice.getSection() == cg::Section::Inputs && slice.getAccess() != cg::Access::Read)
          writtenInputs.push_back(slice);
  }

  void run() {
    for (size_t i = 0; i < nodes.size(); ++i)
      if (auto launch = dyn_cast<cg::KernelOp>(nodes[i]))
        if (auto kernel = symbols.lookup<kern::KernelOp>(launch.getKernel()))
          if (std::optional<int64_t> offset = offsetOfCopy(kernel))
            place(i, *offset);
  }

private:
  /// Lets all readers of the copy read the part itself.
  void place(size_t copy, int64_t offsetBytes) {
    SmallVector<cg::SliceAttr> slices = cg::nodeSlices(nodes[copy]);
    cg::SliceAttr source = slices.front(), target = slices.back();
    int64_t begin = source.getOffsetBytes() + offsetBytes;
    if (!plan::isScratch(target) || target.getSizeBytes() == 0 || begin % partAlignmentBytes ||
        offsetBytes + target.getSizeBytes() > source.getSizeBytes() || !isStable(source) || writersOf(target) != 1 ||
        !canRead(source, target, copy))
      return;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](cg::SliceAttr slice) -> std::optional<Attribute> {
      if (!plan::isScratch(slice) || !cg::overlap(slice, target))
        return slice;
      return cg::SliceAttr::get(slice.getContext(), source.getSection(), begin + slice.getOffsetBytes() - target.getOffsetBytes(),
                                slice.getSizeBytes(), slice.getAccess());
    });
    std::vector<size_t> readers = touching(target);
    llvm::erase(readers, copy);
    nodes[copy]->erase();
    nodes[copy] = nullptr;
    for (size_t reader : readers)
      if (nodes[reader])
        replacer.replaceElementsIn(nodes[reader]);
    if (plan::isScratch(source))
      llvm::append_range(touching(source), readers);
  }

  /// The nodes that touch the buffer around a range of scratch; some may have been erased.
  std::vector<size_t> &touching(cg::SliceAttr range) { return buffers.touching[*buffers.find(range.getOffsetBytes())]; }

  unsigned writersOf(cg::SliceAttr range) {
    unsigned writers = 0;
    for (size_t node : touching(range))
      for (cg::SliceAttr slice : nodes[node] ? cg::nodeSlices(nodes[node]) : SmallVector<cg::SliceAttr>())
        writers += slice.getAccess() != cg::Access::Read && slice.getSizeBytes() && cg::overlap(slice, range);
    return writers;
  }

  /// What is there when the copy is made stays. A state changes during the run, which the copy may be there to outlive.
  bool isStable(cg::SliceAttr source) {
    switch (source.getSection()) {
    case cg::Section::Scratch:
      return writersOf(source) == 1;
    case cg::Section::Inputs:
      return llvm::none_of(writtenInputs, [&](cg::SliceAttr slice) { return cg::overlap(slice, source); });
    default:
      return source.getSection() == cg::Section::Weights;
    }
  }

  /// The readers stay inside the copy, and a library node never reads an input: its buffer could then not be the caller's.
  bool canRead(cg::SliceAttr source, cg::SliceAttr target, size_t copy) {
    for (size_t node : touching(target)) {
      if (node == copy || !nodes[node])
        continue;
      for (cg::SliceAttr slice : cg::nodeSlices(nodes[node])) {
        if (slice.getSizeBytes() == 0 || !cg::overlap(slice, target))
          continue;
        bool isInside = slice.getOffsetBytes() >= target.getOffsetBytes() &&
                        slice.getOffsetBytes() + slice.getSizeBytes() <= target.getOffsetBytes() + target.getSizeBytes();
        if (!isInside || (source.getSection() == cg::Section::Inputs && isa<cg::GemmOp>(nodes[node])))
          return false;
      }
    }
    return true;
  }

  std::vector<Operation *> nodes; ///< null where a copy was
  plan::ScratchBuffers buffers;
  SymbolTable &symbols;
  SmallVector<cg::SliceAttr> writtenInputs;
};

class PlaceSlices : public impl::PlaceSlicesBase<PlaceSlices> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto graph : getOperation().getOps<cg::GraphOp>()) {
      std::vector<Operation *> nodes = plan::nodesOf(graph);
      FailureOr<plan::ScratchBuffers> buffers = plan::collectScratch(nodes);
      if (failed(buffers))
        return signalPassFailure();
      SlicePlacer(std::move(nodes), std::move(*buffers), symbols).run();
    }
    plan::eraseUnusedKernels(getOperation());
  }
};

} // namespace
} // namespace ogc
