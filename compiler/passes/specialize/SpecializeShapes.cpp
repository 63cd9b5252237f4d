//===- SpecializeShapes.cpp - one function a graph ID, static arguments ---===//
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/ShapeSpec.h"
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

/// Finds the static types of a function's arguments for one graph ID.
class ArgumentTypes {
public:
  ArgumentTypes(func::FuncOp function, const GraphShapes &graph)
      : function(function), graph(graph), types(function.getArgumentTypes()) {}

  /// Errors are emitted on the function, all of them.
  FailureOr<SmallVector<Type>> find() {
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

private:
  InFlightDiagnostic error() {
    hasErrors = true;
    InFlightDiagnostic diag = function.emitError();
    if (graph.id != "default")
      diag << "graph '" << graph.id << "': ";
    return diag;
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
    auto [it, isNew] = symbols.try_emplace(symbol, std::make_pair(size, inputName(function, input)));
    if (!isNew && it->second.first != size)
      error() << "dimension '" << symbol << "' is " << it->second.first << " in input '" << it->second.second << "', but " << size
              << " in input '" << inputName(function, input) << "'";
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

  void requireStatic() {
    for (auto [i, type] : llvm::enumerate(types)) {
      auto ranked = dyn_cast<RankedTensorType>(type);
      if (!ranked || !ranked.hasStaticShape())
        error() << "input '" << inputName(function, i) << "' has shape " << describeShape(function, i)
                << ": give the sizes with --shapes '" << inputName(function, i) << "=…'";
    }
  }

  func::FuncOp function;
  const GraphShapes &graph;
  SmallVector<Type> types;
  llvm::StringMap<std::pair<int64_t, std::string>> symbols;
  bool hasErrors = false;
};

struct SpecializeShapesPass : impl::SpecializeShapesBase<SpecializeShapesPass> {
  using SpecializeShapesBase::SpecializeShapesBase;

  void runOnOperation() override {
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1) {
      getOperation().emitError() << "has " << functions.size() << " functions, expected one";
      return signalPassFailure();
    }
    std::string reason;
    std::vector<GraphShapes> graphs = parseShapes(shapes, reason);
    if (graphs.empty()) {
      getOperation().emitError() << "shapes: " << reason;
      return signalPassFailure();
    }
    func::FuncOp generic = functions.front();
    for (const GraphShapes &graph : graphs) {
      FailureOr<SmallVector<Type>> types = ArgumentTypes(generic, graph).find();
      if (failed(types))
        signalPassFailure();
      else
        makeFunction(generic, graph, *types, graphs.size() == 1);
    }
    generic.erase();
  }

  void makeFunction(func::FuncOp generic, const GraphShapes &graph, ArrayRef<Type> types, bool isOnly) {
    OpBuilder builder(generic);
    func::FuncOp function = generic.clone();
    builder.insert(function);
    if (!isOnly)
      function.setName((generic.getName() + "_" + graph.id).str());
    function->setAttr("ogc.graph_id", builder.getStringAttr(graph.id));
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
