//===- BuildGraph.cpp - from functions of kernel launches to cg graphs ----===//
#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/UnusedKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"
#include <numeric>

namespace ogc {

#define GEN_PASS_DEF_BUILDGRAPH
#include "compiler/passes/plan/Passes.h.inc"

namespace {

using namespace mlir;

/// Bytes of a tensor in memory: elements narrower than a byte take one.
int64_t sizeInBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
}

/// The byte that all bytes of a constant in memory are, if there is one.
std::optional<uint8_t> repeatedByte(Attribute value) {
  auto splat = dyn_cast<SplatElementsAttr>(value);
  if (!splat)
    return std::nullopt;
  if (splat.getElementType().isInteger(1))
    return splat.getSplatValue<bool>();
  ArrayRef<char> bytes = splat.getRawData();
  if (splat.getElementType().getIntOrFloatBitWidth() % 8 != 0 || !llvm::all_equal(bytes))
    return std::nullopt;
  return static_cast<uint8_t>(bytes.front());
}

/// A range of a section.
struct Place {
  cg::Section section;
  int64_t offsetBytes;
  int64_t sizeBytes;
};

/// Hands out ranges of one section, one after the other.
class SectionAllocator {
public:
  explicit SectionAllocator(cg::Section section) : section(section) {}
  Place allocate(int64_t sizeBytes) {
    Place place{section, end, sizeBytes};
    end += cg::alignBuffer(sizeBytes);
    return place;
  }
  int64_t sizeBytes() const { return end; }

private:
  cg::Section section;
  int64_t end = 0;
};

/// The constants of all graphs: equal contents share one place, and of one initializer the beginning of a content lies in the
/// whole (position embeddings cut to the lengths of the graphs).
class WeightTable {
public:
  explicit WeightTable(ModuleOp module) : module(module), context(module.getContext()) { findWholes(); }

  Place place(arith::ConstantOp constant) {
    auto value = cast<ElementsAttr>(constant.getValue());
    auto known = places.find(value);
    if (known != places.end())
      return known->second;
    Place result;
    if (arith::ConstantOp whole = wholes.lookup(value)) {
      result = place(whole);
      result.sizeBytes = sizeInBytes(value.getType());
    } else {
      result = placeContent(constant, value);
    }
    return places[value] = result;
  }

private:
  struct Entry {
    ElementsAttr value;
    Place place;
  };

  /// Contents that begin a larger one of the same name, by the name's contents from the largest to the smallest.
  void findWholes() {
    llvm::MapVector<StringRef, SmallVector<std::pair<arith::ConstantOp, size_t>>> byName;
    llvm::StringSet<> names; // keeps them
    llvm::DenseSet<Attribute> seen;
    for (auto func : module.getOps<func::FuncOp>())
      func.walk([&](arith::ConstantOp constant) {
        auto value = dyn_cast<ElementsAttr>(constant.getValue());
        if (value && seen.insert(value).second && canBePart(value))
          byName[names.insert(nameOf(constant)).first->getKey()].push_back({constant, seen.size()});
      });
    auto contentOf = [](arith::ConstantOp constant) { return bytesOf(cast<ElementsAttr>(constant.getValue())); };
    for (auto &[name, constants] : byName) {
      llvm::sort(constants, [&](auto &a, auto &b) {
        return std::pair(contentOf(b.first).size(), a.second) < std::pair(contentOf(a.first).size(), b.second);
      });
      SmallVector<arith::ConstantOp> candidates;
      for (auto &[constant, number] : constants) {
        ArrayRef<char> part = contentOf(constant);
        auto whole = llvm::find_if(candidates, [&, element = elementOf(constant)](arith::ConstantOp candidate) {
          ArrayRef<char> all = contentOf(candidate);
          return part.size() < all.size() && element == elementOf(candidate) && all.take_front(part.size()) == part;
        });
        if (whole == candidates.end())
          candidates.push_back(constant);
        else
          wholes[constant.getValue()] = *whole;
      }
    }
  }

  static Type elementOf(arith::ConstantOp constant) { return cast<ElementsAttr>(constant.getValue()).getElementType(); }

  /// Every element is stored, in whole bytes.
  static bool canBePart(ElementsAttr value) {
    return !bytesOf(value).empty() && static_cast<int64_t>(bytesOf(value).size()) == sizeInBytes(value.getType()) &&
           value.getElementType().getIntOrFloatBitWidth() % 8 == 0;
  }

  Place placeContent(arith::ConstantOp constant, ElementsAttr value) {
    std::pair<uint64_t, uint64_t> key = contentKey(value);
    for (const Entry &entry : entries[key])
      if (sameContent(entry.value, value))
        return entry.place;
    Place place = allocator.allocate(sizeInBytes(value.getType()));
    entries[key].push_back({value, place});
    OpBuilder builder(context);
    builder.setInsertionPointToStart(module.getBody());
    if (last)
      builder.setInsertionPointAfter(last);
    last = cg::WeightOp::create(builder, constant.getLoc(), nameOf(constant), value, place.offsetBytes);
    return place;
  }

  static ArrayRef<char> bytesOf(ElementsAttr value) {
    if (auto dense = dyn_cast<DenseElementsAttr>(value))
      return dense.getRawData();
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
        return blob->getData();
    return {};
  }
  static std::pair<uint64_t, uint64_t> contentKey(ElementsAttr value) {
    ArrayRef<char> bytes = bytesOf(value);
    return {llvm::xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size())),
            static_cast<uint64_t>(sizeInBytes(value.getType()))};
  }
  static bool sameContent(ElementsAttr a, ElementsAttr b) {
    if (a == b)
      return true;
    // A dense splat stores one element only: compare it with splats of the same element type alone.
    auto denseA = dyn_cast<DenseElementsAttr>(a), denseB = dyn_cast<DenseElementsAttr>(b);
    bool splatA = denseA && denseA.isSplat(), splatB = denseB && denseB.isSplat();
    return splatA == splatB && a.getElementType() == b.getElementType() && bytesOf(a) == bytesOf(b);
  }
  static std::string nameOf(arith::ConstantOp constant) {
    if (auto name = constant->getAttrOfType<StringAttr>("onnx.name"))
      return name.str();
    if (auto loc = constant.getLoc()->findInstanceOf<NameLoc>())
      return loc.getName().str();
    return "";
  }

  ModuleOp module;
  MLIRContext *context;
  SectionAllocator allocator{cg::Section::Weights};
  std::map<std::pair<uint64_t, uint64_t>, SmallVector<Entry, 1>> entries;
  llvm::DenseMap<Attribute, arith::ConstantOp> wholes; // by the content that is their beginning
  llvm::DenseMap<Attribute, Place> places;             // graphs share constants: their contents are hashed once
  Operation *last = nullptr;
};

/// Builds the graph of one function.
class GraphBuilder {
public:
  GraphBuilder(func::FuncOp func, WeightTable &weights, OpBuilder &builder) : func(func), weights(weights), builder(builder) {}

  LogicalResult build() {
    placeInputs();
    placeOutputs();
    cg::GraphOp graph = createGraph();
    builder.setInsertionPointToEnd(&graph.getBody().front());
    for (Operation &op : func.getBody().front())
      if (failed(buildNode(op)))
        return failure();
    copyOutputs();
    graph.setScratchBytesAttr(builder.getI64IntegerAttr(scratch.sizeBytes()));
    graph.setScratchBoundBytesAttr(builder.getI64IntegerAttr(scratch.sizeBytes()));
    builder.setInsertionPointAfter(graph);
    return success();
  }

private:
  /// The value whose buffer a value lives in: reshapes are views.
  static Value rootOf(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  /// The input that an output is one state with, or null.
  BlockArgument stateOf(unsigned output) {
    auto input = func.getResultAttrOfType<StringAttr>(output, "ogc.state");
    for (BlockArgument argument : func.getArguments())
      if (input && func.getArgAttr(argument.getArgNumber(), "onnx.name") == input)
        return argument;
    return nullptr;
  }

  void placeInputs() {
    for (BlockArgument argument : func.getArguments())
      places[argument] =
          (func.getArgAttr(argument.getArgNumber(), "ogc.state") ? state : inputs).allocate(sizeInBytes(argument.getType()));
  }

  /// A launch result that is returned is written where the output lies; anything else is copied there at the end.
  void placeOutputs() {
    for (auto [i, returned] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
      Value root = rootOf(returned);
      if (BlockArgument input = stateOf(i)) {
        outputPlaces.push_back({places[input], root, /*direct=*/root == input});
        continue;
      }
      Place place = outputs.allocate(sizeInBytes(returned.getType()));
      bool direct = isa_and_nonnull<kern::LaunchOp>(root.getDefiningOp()) && !places.count(root);
      if (direct)
        places[root] = place;
      outputPlaces.push_back({place, root, direct});
    }
  }

  ArrayAttr bindings(bool forInputs, ArrayRef<Place> bindingPlaces, TypeRange types) {
    SmallVector<Attribute> result;
    for (auto [i, place] : llvm::enumerate(bindingPlaces)) {
      auto get = [&](StringRef key) { return forInputs ? func.getArgAttr(i, key) : func.getResultAttr(i, key); };
      if (get("ogc.hidden"))
        continue; // an extent, which the output that has it names
      auto type = cast<RankedTensorType>(types[i]);
      // Signedness was dropped at lowering; the function remembers it.
      if (auto onnxType = dyn_cast_or_null<TypeAttr>(get("onnx.type")))
        if (auto tensor = dyn_cast<RankedTensorType>(onnxType.getValue()))
          type = RankedTensorType::get(type.getShape(), tensor.getElementType());
      auto name = dyn_cast_or_null<StringAttr>(get("onnx.name"));
      auto symbols = dyn_cast_or_null<ArrayAttr>(get("onnx.symbols"));
      if (!name)
        name = builder.getStringAttr((forInputs ? "input" : "output") + std::to_string(i));
      if (!symbols)
        symbols = builder.getStrArrayAttr(SmallVector<StringRef>(type.getRank(), ""));
      DenseI64ArrayAttr extent; // [dimension, result that holds it]
      if (auto runTime = dyn_cast_or_null<DenseI64ArrayAttr>(get("ogc.extent")))
        extent = builder.getDenseI64ArrayAttr({runTime[0], bindingPlaces[runTime[1]].offsetBytes});
      result.push_back(cg::BindingAttr::get(builder.getContext(), name, type, symbols, place.section, place.offsetBytes,
                                            place.sizeBytes, extent));
    }
    return builder.getArrayAttr(result);
  }

  cg::GraphOp createGraph() {
    auto id = func->getAttrOfType<StringAttr>("ogc.graph_id");
    SmallVector<Place> in, out;
    for (BlockArgument argument : func.getArguments())
      in.push_back(places[argument]);
    for (const Output &output : outputPlaces)
      out.push_back(output.place);
    auto graph =
        cg::GraphOp::create(builder, func.getLoc(), id ? id.getValue() : func.getName(),
                            bindings(true, in, func.getArgumentTypes()), bindings(false, out, func.getResultTypes()), 0, 0,
                            /*topology=*/IntegerAttr());
    graph.getBody().emplaceBlock();
    return graph;
  }

  /// The place of a value that a launch reads.
  FailureOr<Place> placeOf(Value value, Operation *user) {
    Value root = rootOf(value);
    auto it = places.find(root);
    if (it != places.end())
      return it->second;
    auto constant = root.getDefiningOp<arith::ConstantOp>();
    if (!constant || !isa<ElementsAttr>(constant.getValue()))
      return user->emitOpError() << "reads a value that is neither an input, a constant nor the result of a launch: " << root;
    return places[root] = weights.place(constant);
  }

  cg::SliceAttr slice(const Place &place, cg::Access access) {
    return cg::SliceAttr::get(builder.getContext(), place.section, place.offsetBytes, place.sizeBytes, access);
  }

  LogicalResult buildNode(Operation &op) {
    if (isa<arith::ConstantOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, func::ReturnOp>(op))
      return success();
    auto launch = dyn_cast<kern::LaunchOp>(op);
    if (!launch)
      return op.emitOpError("is no kernel launch: every computation must be in a kernel before a graph is built");
    if (llvm::all_of(launch.getOutputs(), [](Value v) { return sizeInBytes(v.getType()) == 0; })) {
      for (Value output : launch.getOutputs())
        if (!places.count(output))
          places[output] = scratch.allocate(0);
      return success();
    }
    SmallVector<Attribute> args;
    for (Value input : launch.getInputs()) {
      FailureOr<Place> place = placeOf(input, launch);
      if (failed(place))
        return failure();
      args.push_back(slice(*place, cg::Access::Read));
    }
    for (Value output : launch.getOutputs()) {
      if (!places.count(output))
        places[output] = scratch.allocate(sizeInBytes(output.getType()));
      args.push_back(slice(places[output], cg::Access::Write));
    }
    cg::KernelOp::create(builder, launch.getLoc(), builder.getType<cg::NodeType>(), launch.getKernelAttr(),
                         builder.getArrayAttr(args), ValueRange(), DenseI32ArrayAttr());
    return success();
  }

  void copy(Location loc, const Place &source, const Place &target) {
    cg::MemcpyOp::create(builder, loc, builder.getType<cg::NodeType>(), slice(source, cg::Access::Read),
                         slice(target, cg::Access::Write), ValueRange(), DenseI32ArrayAttr());
  }

  /// Fills an output that is one byte again and again: a tensor made from a shape may be larger than any file should be. Small
  /// ones are copied from the weights like any other constant.
  bool fillOutput(Value root, const Place &target) {
    constexpr int64_t mostStored = int64_t(1) << 20;
    auto constant = root.getDefiningOp<arith::ConstantOp>();
    std::optional<uint8_t> byte = constant ? repeatedByte(constant.getValue()) : std::nullopt;
    if (!byte || places.count(root) || target.sizeBytes <= mostStored)
      return false;
    cg::MemsetOp::create(builder, root.getLoc(), builder.getType<cg::NodeType>(), slice(target, cg::Access::Write),
                         builder.getI32IntegerAttr(*byte), ValueRange(), DenseI32ArrayAttr());
    return true;
  }

  /// Outputs first, then states, since an output may be the old value of a state; a state that takes the old value of another one
  /// takes it from a copy.
  void copyOutputs() {
    SmallVector<std::pair<Place, const Output *>> commits;
    for (const Output &output : outputPlaces) {
      if (output.direct || output.place.sizeBytes == 0)
        continue;
      bool isState = output.place.section == cg::Section::State;
      if (!isState && fillOutput(output.root, output.place))
        continue;
      FailureOr<Place> source = placeOf(output.root, func);
      if (failed(source))
        continue;
      if (isState)
        commits.push_back({*source, &output});
      else
        copy(output.root.getLoc(), *source, output.place);
    }
    for (auto &[source, output] : commits)
      if (source.section == cg::Section::State) {
        Place old = scratch.allocate(source.sizeBytes);
        copy(output->root.getLoc(), source, old);
        source = old;
      }
    for (auto &[source, output] : commits)
      copy(output->root.getLoc(), source, output->place);
  }

  struct Output {
    Place place;
    Value root;
    bool direct;
  };

  func::FuncOp func;
  WeightTable &weights;
  OpBuilder &builder;
  SectionAllocator inputs{cg::Section::Inputs}, outputs{cg::Section::Outputs}, scratch{cg::Section::Scratch},
      state{cg::Section::State};
  llvm::DenseMap<Value, Place> places;
  SmallVector<Output> outputPlaces;
};

class BuildGraph : public impl::BuildGraphBase<BuildGraph> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    WeightTable weights(module);
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    OpBuilder builder(module.getBodyRegion());
    builder.setInsertionPointToEnd(module.getBody());
    for (func::FuncOp func : functions) {
      if (!llvm::hasSingleElement(func.getBody())) {
        func.emitError("expected one block");
        return signalPassFailure();
      }
      if (failed(GraphBuilder(func, weights, builder).build()))
        return signalPassFailure();
      builder.setInsertionPointToEnd(module.getBody());
    }
    for (func::FuncOp func : functions)
      func.erase();
    plan::eraseUnusedKernels(module); // those that only produced empty tensors
  }
};

} // namespace
} // namespace ogc
