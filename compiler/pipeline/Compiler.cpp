//===- Compiler.cpp - from an ONNX file to a bundle -----------------------===//
#include "compiler/pipeline/Compiler.h"

#include "compiler/codegen/cpu/CompileKernels.h"
#include "compiler/dialect/cg/Cg.h"
#include "compiler/dialect/kern/Kern.h"
#include "compiler/dialect/onnx/OnnxDialect.h"
#include "compiler/import/Importer.h"
#include "compiler/pipeline/CodeGeneration.h"
#include "compiler/pipeline/Padding.h"
#include "compiler/pipeline/PhaseRunner.h"
#include "compiler/pipeline/Pipelines.h"
#include "compiler/pipeline/Refit.h"
#include "compiler/pipeline/ShapeFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

namespace ogc {

using namespace mlir;

namespace {

/// Writes nothing yet: fails now, rather than after minutes of work, when the output cannot be created.
LogicalResult checkOutput(MLIRContext &context, llvm::StringRef path, llvm::StringRef modelPath) {
  llvm::SmallString<128> folder(path);
  llvm::sys::path::remove_filename(folder);
  if (folder.empty())
    folder = ".";
  if (!llvm::sys::fs::is_directory(folder))
    return emitError(UnknownLoc::get(&context)) << "cannot write '" << path << "': '" << folder.str() << "' is not a folder";
  // The finished file takes the place of an old bundle, and of nothing else.
  if (llvm::sys::fs::is_directory(path))
    return emitError(UnknownLoc::get(&context)) << "cannot write '" << path << "': it is a folder";
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path))
    return emitError(UnknownLoc::get(&context)) << "cannot write '" << path << "': it is no regular file";
  if (llvm::sys::fs::exists(path) && llvm::sys::fs::access(path, llvm::sys::fs::AccessMode::Write))
    return emitError(UnknownLoc::get(&context)) << "cannot write '" << path << "': it is read-only";
  if (llvm::sys::fs::equivalent(path, modelPath))
    return emitError(UnknownLoc::get(&context)) << "cannot write '" << path << "': it is the model";
  if (std::error_code error = llvm::sys::fs::access(folder, llvm::sys::fs::AccessMode::Write))
    return emitError(UnknownLoc::get(&context)) << "cannot write '" << path << "': " << error.message();
  return success();
}

/// The files that a compilation writes, but for dumps.
std::vector<std::string> outputsOf(const CompileOptions &options) {
  std::vector<std::string> files;
  if (!options.outputPath.empty())
    files.push_back(options.outputPath);
  if (options.weights == "external" && !options.stopAfter)
    files.push_back(options.outputPath + ".weights");
  return files;
}

/// One line a graph: what a person wants to know of a finished compilation.
void printSummary(ModuleOp module, llvm::StringRef path) {
  uint64_t fileBytes = 0;
  if (llvm::sys::fs::file_size(path, fileBytes))
    return; // gone already: somebody else's doing, and nothing to report
  llvm::outs() << llvm::formatv("{0}: {1:f1} MB\n", path, fileBytes / 1e6);
  for (auto graph : module.getOps<cg::GraphOp>()) {
    size_t nodes = 0, edges = 0;
    for (Operation &node : graph.getBody().front()) {
      ++nodes;
      edges += node.getNumOperands();
    }
    llvm::outs() << llvm::formatv("graph {0}: {1} nodes, {2} edges, scratch {3:f2} MB (bound {4:f2} MB)\n", graph.getSymName(),
                                  nodes, edges, graph.getScratchBytes() / 1e6, graph.getScratchBoundBytes() / 1e6);
  }
}

/// Runs the phases that rewrite IR, up to and with `last`.
LogicalResult runIrPhases(ModuleOp module, const CompileOptions &options, PhaseRunner &runner, Phase last, bool wantsPadding) {
  for (Phase phase : phases) {
    if (phase > last || phase >= Phase::Codegen)
      break;
    // The proof wants the model with its symbols, and weights that no fold has released yet.
    OwningOpRef<ModuleOp> generic;
    if (phase == Phase::Specialize && wantsPadding)
      generic = module.clone();
    if (failed(runner.runPasses(phase, module, [&](OpPassManager &manager) { addPhasePasses(phase, options, manager); })))
      return failure();
    if (generic && failed(runner.runStep(phase, [&] {
          if (ArrayAttr padding = provePadding(*generic, module, options); !padding.empty())
            module->setAttr("ogc.padding", padding);
          return success();
        })))
      return failure();
  }
  return success();
}

} // namespace

void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<onnx::OnnxDialect, kern::KernDialect, cg::CgDialect, func::FuncDialect, arith::ArithDialect,
                  linalg::LinalgDialect, math::MathDialect, tensor::TensorDialect>();
  codegen::registerCpuCodegenDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

/// Runs all phases that the options ask for.
static LogicalResult runPhases(MLIRContext &context, const CompileOptions &options, PhaseRunner &runner) {
  OwningOpRef<ModuleOp> module;
  if (failed(runner.runStep(Phase::Import, [&] {
        ImportOptions import;
        import.values = options.values;
        import.outputs = outputsOf(options);
        module = importModel(context, options.modelPath, import);
        return success(static_cast<bool>(module));
      })))
    return failure();
  std::vector<bundle::Parameter> parameters = collectParameters(*module);
  if (options.refit && failed(checkParameters(*module, parameters, *options.refit)))
    return failure();

  Phase last = options.stopAfter.value_or(Phase::Bundle);
  if (failed(runIrPhases(*module, options, runner, last, last >= Phase::Plan)))
    return failure();
  if (last < Phase::Codegen)
    return PhaseRunner::writeIr(*module, options.outputPath.empty() ? "-" : options.outputPath);

  bundle::BundleParts parts;
  parts.parameters = std::move(parameters);
  if (failed(runner.runStep(Phase::Codegen, [&] { return generateCode(*module, options, parts); })))
    return failure();
  if (last == Phase::Codegen)
    return PhaseRunner::writeIr(*module, options.outputPath.empty() ? "-" : options.outputPath);
  if (failed(runner.runStep(Phase::Bundle, [&] { return bundle::writeBundle(*module, parts, options.outputPath); })))
    return failure();
  if (options.summary)
    printSummary(*module, options.outputPath);
  return success();
}

LogicalResult compile(MLIRContext &context, const CompileOptions &given) {
  CompileOptions options = given;
  if (options.stopAfter == Phase::Bundle)
    options.stopAfter.reset();
  if (options.outputPath.empty() && !options.stopAfter) {
    llvm::SmallString<128> path(llvm::sys::path::filename(options.modelPath));
    llvm::sys::path::replace_extension(path, ".ogc");
    options.outputPath = path.str();
  }
  if (failed(checkTargets(context, options)) || failed(checkTuning(context, options)))
    return failure();
  for (const std::string &output : outputsOf(options))
    if (failed(checkOutput(context, output, options.modelPath)))
      return failure();

  llvm::Expected<std::vector<std::string>> shapes = readShapeFiles(options.shapes);
  if (!shapes)
    return emitError(UnknownLoc::get(&context)) << llvm::toString(shapes.takeError());
  options.shapes = std::move(*shapes);

  PhaseRunner runner(options);
  LogicalResult result = runPhases(context, options, runner);
  if (options.timing)
    runner.printTimes();
  return result;
}

} // namespace ogc
