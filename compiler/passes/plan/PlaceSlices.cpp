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
  SlicePlacer(cg::GraphOp graph, SymbolTable &symbols) : graph(graph), symbols(symbols) {}

  void run() {
    for (Operation *node : plan::nodesOf(graph))
      if (auto launch = dyn_cast<cg::KernelOp>(node))
        if (auto kernel = symbols.lookup<kern::KernelOp>(launch.getKernel()))
          if (std::optional<int64_t> offset = offsetOfCopy(kernel))
            place(launch, *offset);
  }

private:
  /// Lets all readers of the copy read the part itself.
  void place(cg::KernelOp copy, int64_t offsetBytes) {
    SmallVector<cg::SliceAttr> slices = cg::nodeSlices(copy);
    cg::SliceAttr source = slices.front(), target = slices.back();
    int64_t begin = source.getOffsetBytes() + offsetBytes;
    // A state changes during the run, which the copy may be there to outlive.
    bool isStable =
        plan::isScratch(source) || source.getSection() == cg::Section::Inputs || source.getSection() == cg::Section::Weights;
    if (!isStable || !plan::isScratch(target) || begin % partAlignmentBytes || target.getSizeBytes() == 0 ||
        offsetBytes + target.getSizeBytes() > source.getSizeBytes())
      return;
    if (!isWrittenOnce(source, nullptr) || !isWrittenOnce(target, copy) || !canRead(source, target, copy))
      return;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](cg::SliceAttr slice) -> std::optional<Attribute> {
      if (!plan::isScratch(slice) || !cg::overlap(slice, target))
        return slice;
      return cg::SliceAttr::get(slice.getContext(), source.getSection(), begin + slice.getOffsetBytes() - target.getOffsetBytes(),
                                slice.getSizeBytes(), slice.getAccess());
    });
    copy.erase();
    for (Operation *node : plan::nodesOf(graph))
      replacer.replaceElementsIn(node);
  }

  /// True when no node but `writer` writes to the range, or, without a writer, at most one does.
  bool isWrittenOnce(cg::SliceAttr range, Operation *writer) {
    unsigned writers = 0;
    for (Operation *node : plan::nodesOf(graph))
      for (cg::SliceAttr slice : cg::nodeSlices(node))
        if (slice.getAccess() != cg::Access::Read && slice.getSizeBytes() && cg::overlap(slice, range)) {
          if (writer && node != writer)
            return false;
          ++writers;
        }
    return writers <= 1;
  }

  /// The readers stay inside the copy, and a library node never reads an input: its buffer could then not be the caller's.
  bool canRead(cg::SliceAttr source, cg::SliceAttr target, Operation *copy) {
    for (Operation *node : plan::nodesOf(graph))
      for (cg::SliceAttr slice : cg::nodeSlices(node)) {
        if (node == copy || slice.getSizeBytes() == 0 || !cg::overlap(slice, target))
          continue;
        bool isInside = slice.getOffsetBytes() >= target.getOffsetBytes() &&
                        slice.getOffsetBytes() + slice.getSizeBytes() <= target.getOffsetBytes() + target.getSizeBytes();
        if (!isInside || (source.getSection() == cg::Section::Inputs && isa<cg::GemmOp>(node)))
          return false;
      }
    return true;
  }

  cg::GraphOp graph;
  SymbolTable &symbols;
};

class PlaceSlices : public impl::PlaceSlicesBase<PlaceSlices> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto graph : getOperation().getOps<cg::GraphOp>())
      SlicePlacer(graph, symbols).run();
    plan::eraseUnusedKernels(getOperation());
  }
};

} // namespace
} // namespace ogc
