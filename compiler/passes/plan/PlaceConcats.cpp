//===- PlaceConcats.cpp - parts are written where the whole lies ----------===//
#include "compiler/passes/plan/Hazards.h"
#include "compiler/passes/plan/NodeOrder.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/ScratchBuffers.h"
#include "compiler/passes/plan/UnusedKernels.h"

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace ogc {

#define GEN_PASS_DEF_PLACECONCATS
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// Where a value lies inside a larger one: `extent` elements along `axis` where the value itself has fewer.
struct Placement {
  int64_t offsetBytes; ///< of its first element, in scratch
  int64_t axis, extent;
};

/// A buffer that one kernel writes and kernels read, each as the tensor `type`.
struct Value {
  cg::KernelOp writer;
  SmallVector<std::pair<cg::KernelOp, unsigned>> readers; ///< and the number of their argument
  RankedTensorType type;
  bool isPlain = true; ///< nothing else touches it
};

int64_t elementBytes(RankedTensorType type) { return (type.getElementTypeBitWidth() + 7) / 8; }

int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

RankedTensorType withExtent(RankedTensorType type, int64_t axis, int64_t extent) {
  SmallVector<int64_t> shape(type.getShape());
  shape[static_cast<size_t>(axis)] = extent;
  return RankedTensorType::get(shape, type.getElementType());
}

/// The concatenation that is all a kernel does, or null.
tensor::ConcatOp concatOf(kern::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  auto concat = yield->getNumOperands() == 1 ? yield->getOperand(0).getDefiningOp<tensor::ConcatOp>() : nullptr;
  bool isAll = concat && concat.getInputs().size() == body.getNumArguments() &&
               llvm::equal(concat.getInputs(), body.getArguments(), [](mlir::Value a, mlir::Value b) { return a == b; });
  return isAll ? concat : nullptr;
}

/// Accesses of these kernels go element by element, through any strides.
bool writesAnywhere(kern::KernelOp kernel) {
  return kernel.getSchedule() == kern::Schedule::Pointwise || kernel.getSchedule() == kern::Schedule::Matmul ||
         kernel.getSchedule() == kern::Schedule::Conv || kernel.getSchedule() == kern::Schedule::DepthwiseConv ||
         kernel.getSchedule() == kern::Schedule::Attention;
}

class GraphPlacer {
public:
  GraphPlacer(cg::GraphOp graph, SymbolTable &symbols) : nodes(plan::nodesOf(graph)), symbols(symbols), order(nodes.size()) {}

  void run() {
    collect();
    for (Operation *node : llvm::reverse(nodes))
      if (auto kernel = dyn_cast<cg::KernelOp>(node))
        if (tensor::ConcatOp concat = kernelOf(kernel) ? concatOf(kernelOf(kernel)) : nullptr)
          dissolve(kernel, concat);
    for (auto &[offset, placement] : placements)
      move(values[offset], placement);
    for (auto &[node, changes] : variants)
      node.setKernelAttr(FlatSymbolRefAttr::get(variantOf(kernelOf(node), changes).getSymNameAttr()));
    for (cg::KernelOp node : dissolved)
      node.erase();
  }

private:
  /// Changes to the arguments of a kernel: number (results follow the inputs), axis, extent.
  using Changes = std::vector<std::array<int64_t, 3>>;

  kern::KernelOp kernelOf(cg::KernelOp node) { return symbols.lookup<kern::KernelOp>(node.getKernel()); }

  /// The tensor that argument `number` of a kernel is.
  static RankedTensorType typeOf(kern::KernelOp kernel, size_t number) {
    Block &body = kernel.getBody().front();
    mlir::Value value = number < body.getNumArguments() ? mlir::Value(body.getArgument(static_cast<unsigned>(number)))
                                                        : body.getTerminator()->getOperand(number - body.getNumArguments());
    return cast<RankedTensorType>(value.getType());
  }

  void collect() {
    std::vector<std::vector<size_t>> hazards = plan::hazardsOf(nodes);
    std::map<std::pair<int64_t, int64_t>, unsigned> ranges;
    for (size_t i = 0; i < nodes.size(); ++i) {
      position[nodes[i]] = i;
      for (size_t p : hazards[i])
        order.add(p, i);
      for (auto [number, slice] : llvm::enumerate(cg::nodeSlices(nodes[i])))
        if (plan::isScratch(slice)) {
          ranges[{slice.getOffsetBytes(), slice.getOffsetBytes() + slice.getSizeBytes()}]++;
          note(nodes[i], number, slice);
        }
    }
    // Ranges that overlap without being equal are parts of something: left alone.
    int64_t end = -1, owner = -1;
    for (auto &[range, count] : ranges) {
      if (range.first < end)
        values[range.first].isPlain = values[owner].isPlain = false;
      if (range.second > end) {
        end = range.second;
        owner = range.first;
      }
    }
  }

  void note(Operation *node, size_t number, cg::SliceAttr slice) {
    Value &value = values[slice.getOffsetBytes()];
    auto kernelNode = dyn_cast<cg::KernelOp>(node);
    kern::KernelOp kernel = kernelNode ? kernelOf(kernelNode) : nullptr;
    if (!kernel) {
      value.isPlain = false;
      return;
    }
    RankedTensorType type = typeOf(kernel, number);
    value.isPlain &= !value.type || value.type == type;
    value.type = type;
    if (slice.getAccess() == cg::Access::Read) {
      value.readers.push_back({kernelNode, static_cast<unsigned>(number)});
      return;
    }
    value.isPlain &= !value.writer && slice.getAccess() == cg::Access::Write;
    value.writer = kernelNode;
  }

  /// True when the buffer at `offset` can become a part: its writer and readers take any strides.
  bool canBePart(int64_t offset, cg::KernelOp concat, Type type) {
    auto found = values.find(offset);
    if (found == values.end() || placements.count(offset))
      return false;
    const Value &value = found->second;
    if (!value.isPlain || !value.writer || value.type != type)
      return false;
    kern::KernelOp writer = kernelOf(value.writer);
    if (writer.getBody().front().getTerminator()->getNumOperands() != 1 || !writesAnywhere(writer))
      return false;
    return llvm::all_of(value.readers, [&](auto &reader) {
      return reader.first == concat || kernelOf(reader.first).getSchedule() == kern::Schedule::Pointwise;
    });
  }

  /// Places the inputs of a concatenation in its result and drops the node, if all of them can be.
  void dissolve(cg::KernelOp node, tensor::ConcatOp concat) {
    SmallVector<cg::SliceAttr> slices = cg::nodeSlices(node);
    cg::SliceAttr whole = slices.back();
    auto type = cast<RankedTensorType>(concat.getType());
    int64_t axis = static_cast<int64_t>(concat.getDim());
    if (!plan::isScratch(whole) || !values[whole.getOffsetBytes()].isPlain)
      return;
    auto outer = placements.find(whole.getOffsetBytes());
    if (outer != placements.end() && outer->second.axis != axis)
      return;
    Placement place = outer != placements.end() ? outer->second : Placement{whole.getOffsetBytes(), axis, type.getDimSize(axis)};
    int64_t stepBytes = product(type.getShape().drop_front(static_cast<size_t>(axis) + 1)) * elementBytes(type);
    std::vector<std::pair<int64_t, Placement>> parts;
    Operation *previous = nullptr;
    for (auto [slice, input] : llvm::zip(slices, concat.getInputs())) {
      int64_t offset = slice.getOffsetBytes();
      bool isNew = llvm::none_of(parts, [&](auto &part) { return part.first == offset; });
      if (!plan::isScratch(slice) || !isNew || place.offsetBytes % 16 || !canBePart(offset, node, input.getType()))
        return;
      // Parts interleave in memory, and ranges of bytes cannot tell them apart: writers that run side by side stay apart.
      Operation *writer = values[offset].writer;
      if (previous && !order.precedes(position[previous], position[writer]) &&
          !order.precedes(position[writer], position[previous]))
        return;
      previous = writer;
      parts.push_back({offset, place});
      place.offsetBytes += cast<RankedTensorType>(input.getType()).getDimSize(axis) * stepBytes;
    }
    for (auto &[offset, placement] : parts)
      placements.insert({offset, placement});
    dissolved.push_back(node);
  }

  /// Gives every node that touches `value` its slice of the whole, and notes how its kernel has to see it.
  void move(const Value &value, const Placement &placement) {
    int64_t own = value.type.getDimSize(placement.axis);
    int64_t step = product(value.type.getShape().drop_front(static_cast<size_t>(placement.axis) + 1)) * elementBytes(value.type);
    int64_t rows = product(value.type.getShape().take_front(static_cast<size_t>(placement.axis)));
    int64_t bytes = (rows - 1) * placement.extent * step + own * step;
    auto change = [&](cg::KernelOp node, size_t number) {
      if (llvm::is_contained(dissolved, node))
        return;
      SmallVector<Attribute> args(node.getArgs().getValue());
      auto slice = cast<cg::SliceAttr>(args[number]);
      args[number] = cg::SliceAttr::get(slice.getContext(), slice.getSection(), placement.offsetBytes, bytes, slice.getAccess());
      node.setArgsAttr(ArrayAttr::get(slice.getContext(), args));
      if (own != placement.extent)
        variants[node].push_back({static_cast<int64_t>(number), placement.axis, placement.extent});
    };
    cg::KernelOp writer = value.writer;
    change(writer, writer.getArgs().size() - 1);
    for (auto [reader, number] : value.readers)
      change(reader, number);
  }

  /// The kernel with larger buffers for some arguments: an input is the first part of what is given, the result is written there.
  kern::KernelOp variantOf(kern::KernelOp kernel, Changes changes) {
    std::sort(changes.begin(), changes.end());
    std::string name = kernel.getSymName().str();
    unsigned inputs = kernel.getBody().getNumArguments();
    for (auto [number, axis, extent] : changes)
      name += (number < inputs ? "_in" + std::to_string(number) + "x" : "_out") + std::to_string(extent);
    if (auto known = symbols.lookup<kern::KernelOp>(name))
      return known;
    kern::KernelOp variant = kernel.clone();
    variant.setSymName(name);
    symbols.insert(variant, std::next(Block::iterator(kernel)));
    OpBuilder builder = OpBuilder::atBlockBegin(&variant.getBody().front());
    for (auto [number, axis, extent] : changes) {
      if (number >= inputs) {
        variant->setAttr("ogc.result_extent", builder.getDenseI64ArrayAttr({axis, extent}));
        continue;
      }
      BlockArgument argument = variant.getBody().getArgument(static_cast<unsigned>(number));
      auto type = cast<RankedTensorType>(argument.getType());
      argument.setType(withExtent(type, axis, extent));
      SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
          strides(type.getRank(), builder.getIndexAttr(1)), sizes;
      for (int64_t size : type.getShape())
        sizes.push_back(builder.getIndexAttr(size));
      auto slice = tensor::ExtractSliceOp::create(builder, argument.getLoc(), type, argument, offsets, sizes, strides);
      argument.replaceAllUsesExcept(slice.getResult(), slice);
    }
    return variant;
  }

  std::vector<Operation *> nodes;
  SymbolTable &symbols;
  plan::NodeOrder order;
  llvm::DenseMap<Operation *, size_t> position;
  std::map<int64_t, Value> values; ///< by offset
  std::map<int64_t, Placement> placements;
  llvm::MapVector<cg::KernelOp, Changes> variants;
  SmallVector<cg::KernelOp> dissolved;
};

class PlaceConcats : public impl::PlaceConcatsBase<PlaceConcats> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto graph : getOperation().getOps<cg::GraphOp>())
      GraphPlacer(graph, symbols).run();
    plan::eraseUnusedKernels(getOperation()); // those that concatenations launched
  }
};

} // namespace
} // namespace ogc
