//===- Importer.cpp - ONNX file → onnx dialect -----------------------------===//
#include "compiler/import/Importer.h"

#include "compiler/import/GraphImporter.h"
#include "compiler/import/InputValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace ogc {
namespace {

/// onnx.name, and onnx.symbols where a dimension is named.
DictionaryAttr interfaceAttributes(Builder &builder, const ::onnx::ValueInfoProto &info) {
  NamedAttrList attributes;
  attributes.set("onnx.name", builder.getStringAttr(info.name()));
  SmallVector<Attribute> symbols;
  bool isNamed = false;
  for (const auto &dim : info.type().tensor_type().shape().dim()) {
    // Some exporters write a question mark for a dimension without a name: two of them need not be equal.
    StringRef symbol = dim.dim_param() == "?" ? "" : StringRef(dim.dim_param());
    symbols.push_back(builder.getStringAttr(symbol));
    isNamed |= !symbol.empty();
  }
  if (isNamed)
    attributes.set("onnx.symbols", builder.getArrayAttr(symbols));
  return attributes.getDictionary(builder.getContext());
}

/// Binds the inputs whose values the options give to constants.
void importGivenValues(OpBuilder &builder, const ::onnx::GraphProto &graph, ArrayRef<std::string> values, Scope &scope,
                       Problems &problems) {
  for (const std::string &entry : values) {
    // Names may hold '=', values do not; file names may.
    auto [name, value] = StringRef(entry).contains("=@") ? StringRef(entry).split("=@") : StringRef(entry).rsplit('=');
    std::string text = (StringRef(entry).contains("=@") ? "@" : "") + value.str(), reason;
    auto input = llvm::find_if(graph.input(), [&](const auto &info) { return info.name() == name; });
    if (input == graph.input().end()) {
      std::string names =
          llvm::join(llvm::map_range(graph.input(), [](const auto &info) { return "'" + info.name() + "'"; }), ", ");
      problems.add("value '" + entry + "': the model has no input '" + name + "'; its inputs are " + names);
      continue;
    }
    FailureOr<TensorType> type = onnx::importType(builder.getContext(), input->type(), reason);
    FailureOr<ElementsAttr> given = succeeded(type) ? parseInputValue(*type, text, reason) : FailureOr<ElementsAttr>();
    Value constant;
    if (succeeded(given))
      constant = onnx::createConstant(builder, NameLoc::get(builder.getStringAttr(name)), *given, name);
    else
      problems.add("value of input '" + name + "' " + reason);
    if (!scope.bind(name, constant))
      problems.add("input '" + name + "' has two values");
  }
}

/// Adds an argument for each model input. Initializers that are listed as inputs too, and inputs with a given value (bound
/// already), are constants.
void importInputs(func::FuncOp function, const ::onnx::GraphProto &graph, Scope &scope, Problems &problems) {
  Builder builder(function.getContext());
  llvm::StringSet<> constants;
  for (const auto &tensor : graph.initializer())
    constants.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    constants.insert(tensor.values().name());
  for (const ::onnx::ValueInfoProto &input : graph.input())
    if (scope.has(input.name()))
      constants.insert(input.name());
  for (auto [number, input] : llvm::enumerate(graph.input())) {
    if (constants.contains(input.name()))
      continue;
    if (input.name().empty()) {
      problems.add("input " + Twine(number) + " has no name");
      continue;
    }
    std::string reason;
    FailureOr<TensorType> type = onnx::importType(function.getContext(), input.type(), reason);
    Value argument;
    if (succeeded(type)) {
      if (failed(function.insertArgument(function.getNumArguments(), *type, interfaceAttributes(builder, input),
                                         NameLoc::get(builder.getStringAttr(input.name())))))
        reason = "cannot be an argument";
      else
        argument = function.getArguments().back();
    }
    if (!argument)
      problems.add("input '" + input.name() + "' " + reason);
    if (!scope.bind(input.name(), argument))
      problems.add("input '" + input.name() + "' is defined twice");
  }
}

/// Ends the function with the graph's outputs.
void importOutputs(func::FuncOp function, const ::onnx::GraphProto &graph, ArrayRef<Value> values) {
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  SmallVector<Type> types;
  for (Value value : values)
    types.push_back(value.getType());
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [i, output] : llvm::enumerate(graph.output()))
    function.setResultAttrs(i, interfaceAttributes(builder, output));
  func::ReturnOp::create(builder, function.getLoc(), values);
}

void dropUnusedConstants(func::FuncOp function) {
  SmallVector<Operation *> unused;
  function.walk([&](Operation *op) {
    if (isa<onnx::ConstantOp, onnx::AbsentOp>(op) && op->use_empty())
      unused.push_back(op);
  });
  for (Operation *op : unused)
    op->erase();
}

void importGraph(func::FuncOp function, std::shared_ptr<const ::onnx::ModelProto> model, StringRef folder,
                 const ImportOptions &options, Problems &problems) {
  const ::onnx::GraphProto &graph = model->graph();
  ExternalData external(folder, options.outputs);
  GraphImporter importer(model, external, problems);
  Scope scope;
  OpBuilder builder = OpBuilder::atBlockEnd(function.addEntryBlock());
  importGivenValues(builder, graph, options.values, scope, problems);
  const llvm::StringSet<> given = scope.names();
  importInputs(function, graph, scope, problems);
  importer.importInitializers(builder, graph, scope, given);
  importer.importNodes(builder, graph.node(), scope, importer.modelFrame());
  SmallVector<Value> values = importer.outputsOf(graph, scope, "the graph");
  for (auto [value, output] : llvm::zip(values, graph.output()))
    if (value && onnx::isAbsent(value))
      problems.add("output '" + output.name() + "' has no value");
  llvm::StringSet<> names;
  for (auto [number, output] : llvm::enumerate(graph.output()))
    if (output.name().empty())
      problems.add("output " + Twine(number) + " has no name");
    else if (!names.insert(output.name()).second)
      problems.add("output '" + output.name() + "' is listed twice");
  if (values.empty())
    problems.add("the graph has no outputs");
  if (!problems.empty())
    return;
  importOutputs(function, graph, values);
  dropUnusedConstants(function);
}

} // namespace

OwningOpRef<ModuleOp> importModel(MLIRContext &context, StringRef path, const ImportOptions &options) {
  context.loadDialect<func::FuncDialect, onnx::OnnxDialect>();
  Location loc = NameLoc::get(StringAttr::get(&context, path));
  std::string reason;
  std::shared_ptr<const ::onnx::ModelProto> model = readModelFile(path, reason);
  if (!model) {
    mlir::emitError(loc) << "cannot read '" << path << "': " << reason;
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto function = func::FuncOp::create(builder, loc, options.functionName, builder.getFunctionType({}, {}));
  Problems problems;
  std::string folder = options.dataFolder.empty() ? llvm::sys::path::parent_path(path).str() : options.dataFolder;
  importGraph(function, std::move(model), folder, options, problems);
  for (const std::string &problem : problems.list())
    mlir::emitError(loc) << problem;
  if (!problems.empty())
    return nullptr;
  return module;
}

} // namespace ogc
