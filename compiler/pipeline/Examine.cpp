//===- Examine.cpp - what a model is like, without its code ---------------===//
#include "compiler/bundle/ManifestBuilder.h"
#include "compiler/import/Importer.h"
#include "compiler/pipeline/Compiler.h"
#include "compiler/pipeline/Padding.h"
#include "compiler/pipeline/PhaseRunner.h"
#include "compiler/pipeline/Pipelines.h"
#include "compiler/pipeline/ShapeFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime_lib/format/FileHeader.h"

namespace ogc {

using namespace mlir;

namespace {

OwningOpRef<ModuleOp> import(MLIRContext &context, const CompileOptions &options) {
  ImportOptions import;
  import.values = options.values;
  return importModel(context, options.modelPath, import);
}

void addMemory(ModuleOp module, ModelFacts &facts) {
  bundle::SectionSizes sizes = bundle::sectionSizes(module);
  facts.weightsBytes = static_cast<int64_t>(sizes.of(cg::Section::Weights));
  facts.contextBytes = 0;
  for (cg::Section section : {cg::Section::State, cg::Section::Inputs, cg::Section::Outputs, cg::Section::Scratch})
    facts.contextBytes += static_cast<int64_t>(format::alignUp(sizes.of(section)));
}

} // namespace

FailureOr<ModelFacts> examine(MLIRContext &context, const CompileOptions &given, bool withMemory) {
  CompileOptions options = given;
  llvm::Expected<std::vector<std::string>> shapes = readShapeFiles(options.shapes);
  if (!shapes)
    return emitError(UnknownLoc::get(&context)) << llvm::toString(shapes.takeError());
  options.shapes = std::move(*shapes);
  OwningOpRef<ModuleOp> module = import(context, options);
  if (!module)
    return failure();
  PhaseRunner runner(options);
  auto run = [&](Phase phase) {
    return runner.runPasses(phase, *module, [&](OpPassManager &manager) { addPhasePasses(phase, options, manager); });
  };
  if (failed(run(Phase::Normalize)))
    return failure();
  OwningOpRef<ModuleOp> generic(module->clone());
  if (failed(run(Phase::Specialize)))
    return failure();
  ModelFacts facts;
  facts.padding = provePadding(*generic, *module, options);
  for (auto function : module->getOps<func::FuncOp>())
    if (auto id = function->getAttrOfType<StringAttr>("ogc.graph_id"))
      facts.graphs.push_back(id.str());
  if (!withMemory)
    return facts;
  generic = {};
  for (Phase phase : {Phase::Lower, Phase::Fuse, Phase::Plan})
    if (failed(run(phase)))
      return failure();
  addMemory(*module, facts);
  return facts;
}

FailureOr<std::vector<std::string>> readSymbols(MLIRContext &context, const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = import(context, options);
  if (!module)
    return failure();
  std::vector<std::string> names;
  for (auto function : module->getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto symbols = function.getArgAttrOfType<ArrayAttr>(i, "onnx.symbols"))
        for (auto symbol : symbols.getAsRange<StringAttr>())
          if (!symbol.empty() && !llvm::is_contained(names, symbol.getValue()))
            names.push_back(symbol.str());
  return names;
}

} // namespace ogc
