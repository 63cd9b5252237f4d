//===- SpecializeShapes.cpp - one function a graph ID, static arguments ---===//
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/ShapeSpec.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_SPECIALIZESHAPES
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

std::string inputName(func::FuncOp function, unsigned i) {
  auto name = function.getArgAttrOfType<StringAttr>(i, "onnx.name");
  return name ? name.str() : "arg" + std::to_string(i);
}

StringRef symbolOf(func::FuncOp function, unsigned input, unsigned dim) {
  auto symbols = function.getArgAttrOfType<ArrayAttr>(input, "onnx.symbols");
  auto symbol = symbols && dim < symbols.size() ? dyn_cast<StringAttr>(symbols[dim]) : StringAttr();
  return symbol ? symbol.getValue() : StringRef();
}

/// "[batch, 3, ?]"
std::string describeShape(func::FuncOp function, unsigned input) {
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[input]);
  if (!type)
    return "of unknown rank";
  std::string text = "[";
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    StringRef symbol = symbolOf(function, input, dim);
    text += dim ? ", " : "";
    text += !ShapedType::isDynamic(size) ? std::to_string(size) : symbol.empty() ? "?" : symbol.str();
  }
  return text + "]";
}

std::string describeInputs(func::FuncOp function) {
  std::string text;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    text += (i ? ", '" : "'") + inputName(function, i) + "' " + describeShape(function, i);
  return text;
}

/// The named dimensions of the inputs, in order of appearance.
std::vector<std::string> modelSymbols(func::FuncOp function) {
  std::vector<std::string> symbols;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto names = function.getArgAttrOfType<ArrayAttr>(i, "onnx.symbols"))
      for (auto name : names.getAsRange<StringAttr>())
        if (!name.empty() && !llvm::is_contained(symbols, name.getValue()))
          symbols.push_back(name.str());
  return symbols;
}

/// "'batch', 'seq'"
std::string describeSymbols(func::FuncOp function) {
  std::string text;
  for (const std::string &symbol : modelSymbols(function))
    text += (text.empty() ? "'" : ", '") + symbol + "'";
  return text.empty() ? "none" : text;
}

/// More elements than this are taken for a mistake: the compiler counts them in 64 bits, with room for what is made of them.
constexpr int64_t maxElements = int64_t(1) << 40;

bool isTooLarge(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size > maxElements / std::max<int64_t>(elements, 1))
      return true;
    elements *= size;
  }
  return false;
}

/// Finds the static types of a function's arguments for one graph ID.
class ArgumentTypes {
public:
  ArgumentTypes(func::FuncOp function, const GraphShapes &graph)
      : function(function), graph(graph), types(function.getArgumentTypes()) {}

  /// Errors are emitted on the function, all of them.
  FailureOr<SmallVector<Type>> find() {
    for (const GraphShapes::Symbol &symbol : graph.symbols)
      apply(symbol);
    for (const GraphShapes::Input &input : graph.inputs)
      apply(input);
    if (!hasErrors)
      applySymbols();
    if (!hasErrors)
      requireStatic();
    if (hasErrors)
      return failure();
    return types;
  }

  /// The sizes of the model's symbols, in the order in which the model names them.
  std::vector<GraphShapes::Symbol> boundSymbols() const {
    std::vector<GraphShapes::Symbol> bound;
    for (const std::string &name : modelSymbols(function))
      if (auto it = symbols.find(name); it != symbols.end())
        bound.push_back({name, it->second.first});
    return bound;
  }

private:
  InFlightDiagnostic error() {
    hasErrors = true;
    InFlightDiagnostic diag = function.emitError();
    if (!graph.id.empty() && graph.id != "default")
      diag << "graph '" << graph.id << "': ";
    return diag;
  }

  void apply(const GraphShapes::Symbol &symbol) {
    if (!llvm::is_contained(modelSymbols(function), symbol.name))
      error() << "the model has no input and no symbol '" << symbol.name << "'; its inputs are " << describeInputs(function)
              << ", its symbols " << describeSymbols(function);
    symbols.try_emplace(symbol.name, std::make_pair(symbol.size, std::string("--shapes")));
  }

  void apply(const GraphShapes::Input &input) {
    unsigned i = 0;
    while (i < function.getNumArguments() && inputName(function, i) != input.name)
      ++i;
    if (i == function.getNumArguments()) {
      error() << "the model has no input '" << input.name << "'; its inputs are " << describeInputs(function);
      return;
    }
    auto type = dyn_cast<TensorType>(types[i]);
    if (!type) {
      error() << "input '" << input.name << "' has type " << types[i] << ", expected a tensor";
      return;
    }
    if (type.hasRank() && type.getRank() != static_cast<int64_t>(input.shape.size())) {
      error() << "input '" << input.name << "' has rank " << type.getRank() << ", got a shape of rank " << input.shape.size()
              << "; its shape is " << describeShape(function, i);
      return;
    }
    for (auto [dim, size] : llvm::enumerate(input.shape)) {
      if (type.hasRank() && !type.isDynamicDim(dim) && type.getDimSize(dim) != size)
        error() << "input '" << input.name << "' has size " << type.getDimSize(dim) << " in dimension " << dim << ", got " << size
                << "; its shape is " << describeShape(function, i);
      bindSymbol(i, dim, size);
    }
    types[i] = RankedTensorType::get(input.shape, type.getElementType());
  }

  void bindSymbol(unsigned input, unsigned dim, int64_t size) {
    StringRef symbol = symbolOf(function, input, dim);
    if (symbol.empty())
      return;
    std::string where = "input '" + inputName(function, input) + "'";
    auto [it, isNew] = symbols.try_emplace(symbol, std::make_pair(size, where));
    if (!isNew && it->second.first != size)
      error() << "dimension '" << symbol << "' is " << it->second.first << " in " << it->second.second << ", but " << size
              << " in " << where;
  }

  void applySymbols() {
    for (auto [i, type] : llvm::enumerate(types)) {
      auto ranked = dyn_cast<RankedTensorType>(type);
      if (!ranked)
        continue;
      SmallVector<int64_t> shape(ranked.getShape());
      for (auto [dim, size] : llvm::enumerate(shape))
        if (auto it = symbols.find(symbolOf(function, i, dim)); ShapedType::isDynamic(size) && it != symbols.end())
          size = it->second.first;
      type = RankedTensorType::get(shape, ranked.getElementType());
    }
  }

  /// " or 'batch=… seq=…'" where all sizes that are missing have a name.
  std::string orNamedSizes(unsigned input, RankedTensorType type) const {
    SmallVector<std::string> missing;
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        continue;
      StringRef symbol = symbolOf(function, input, dim);
      if (symbol.empty())
        return "";
      if (std::string size = symbol.str() + "=…"; !llvm::is_contained(missing, size))
        missing.push_back(size);
    }
    return missing.empty() ? "" : " or '" + llvm::join(missing, " ") + "'";
  }

  void requireStatic() {
    for (auto [i, type] : llvm::enumerate(types)) {
      auto ranked = dyn_cast<RankedTensorType>(type);
      if (!ranked || !ranked.hasStaticShape())
        error() << "input '" << inputName(function, i) << "' has shape " << describeShape(function, i)
                << ": give the sizes with --shapes '" << inputName(function, i) << "=…'" << orNamedSizes(i, ranked);
      else if (isTooLarge(ranked.getShape()))
        error() << "input '" << inputName(function, i) << "' of shape " << shapeText(ranked.getShape())
                << " is too large: it has more than 2^40 elements";
    }
  }

  func::FuncOp function;
  const GraphShapes &graph;
  SmallVector<Type> types;
  llvm::StringMap<std::pair<int64_t, std::string>> symbols; // size, and who said so
  bool hasErrors = false;
};

/// "batch4_seq128", then the inputs with sizes that have no name: "x_1x8". A lone graph is the default one.
std::string deriveID(func::FuncOp function, const GraphShapes &graph, ArrayRef<GraphShapes::Symbol> bound, bool isOnly) {
  if (!graph.id.empty() || isOnly)
    return graph.id.empty() ? "default" : graph.id;
  std::string id;
  auto append = [&](const std::string &part) { id += (id.empty() ? "" : "_") + part; };
  for (const GraphShapes::Symbol &symbol : bound)
    append(toValidID(symbol.name) + std::to_string(symbol.size));
  for (const GraphShapes::Input &input : graph.inputs)
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
      bool hasNameless = !type;
      for (int64_t dim = 0; type && dim < type.getRank(); ++dim)
        hasNameless |= type.isDynamicDim(dim) && symbolOf(function, i, dim).empty();
      if (inputName(function, i) == input.name && hasNameless)
        append(toValidID(input.name) + "_" + shapeText(input.shape));
    }
  return id.empty() ? "default" : id;
}

struct SpecializeShapesPass : impl::SpecializeShapesBase<SpecializeShapesPass> {
  using SpecializeShapesBase::SpecializeShapesBase;

  void runOnOperation() override {
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1) {
      getOperation().emitError() << "has " << functions.size() << " functions, expected one";
      return signalPassFailure();
    }
    func::FuncOp generic = functions.front();
    std::vector<std::string> inputs;
    for (unsigned i = 0; i < generic.getNumArguments(); ++i)
      inputs.push_back(inputName(generic, i));
    std::string reason;
    std::optional<std::vector<ShapeRequest>> requests = parseShapes(shapes, reason);
    std::optional<std::vector<GraphShapes>> graphs;
    if (requests)
      graphs = expandShapes(*requests, inputs, reason);
    if (!graphs) {
      getOperation().emitError() << "shapes: " << reason;
      return signalPassFailure();
    }
    llvm::StringMap<std::string> labels;
    for (const GraphShapes &graph : *graphs)
      specialize(generic, graph, graphs->size() == 1, labels);
    generic.erase();
  }

  /// Makes the function of one graph ID. `labels` holds what was asked for, by the IDs so far.
  void specialize(func::FuncOp generic, const GraphShapes &graph, bool isOnly, llvm::StringMap<std::string> &labels) {
    ArgumentTypes arguments(generic, graph);
    FailureOr<SmallVector<Type>> types = arguments.find();
    if (failed(types))
      return signalPassFailure();
    std::vector<GraphShapes::Symbol> bound = arguments.boundSymbols();
    std::string id = deriveID(generic, graph, bound, isOnly);
    auto [other, isNew] = labels.try_emplace(id, graph.label);
    if (!isNew) {
      generic.emitError() << "shapes: graph ID '" << id << "' is given twice: for '" << other->second << "' and '" << graph.label
                          << "'";
      return signalPassFailure();
    }
    makeFunction(generic, id, bound, *types, isOnly);
  }

  void makeFunction(func::FuncOp generic, const std::string &id, ArrayRef<GraphShapes::Symbol> bound, ArrayRef<Type> types,
                    bool isOnly) {
    OpBuilder builder(generic);
    func::FuncOp function = generic.clone();
    builder.insert(function);
    if (!isOnly)
      function.setName((generic.getName() + "_" + id).str());
    function->setAttr("ogc.graph_id", builder.getStringAttr(id));
    NamedAttrList sizes;
    for (const GraphShapes::Symbol &symbol : bound)
      sizes.set(symbol.name, builder.getI64IntegerAttr(symbol.size));
    if (!bound.empty())
      function->setAttr("ogc.symbols", sizes.getDictionary(builder.getContext()));
    function.setFunctionType(builder.getFunctionType(types, function.getResultTypes()));
    if (function.isExternal())
      return;
    for (auto [argument, type] : llvm::zip(function.getArguments(), types))
      argument.setType(type);
    // An argument may be returned as it is.
    function.setFunctionType(builder.getFunctionType(types, function.front().getTerminator()->getOperandTypes()));
  }
};

} // namespace
} // namespace ogc::specialize
