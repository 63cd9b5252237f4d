//===- Importer.h - ONNX file → onnx dialect -------------------------------===//
#ifndef OGC_IMPORT_IMPORTER_H
#define OGC_IMPORT_IMPORTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ogc {

struct ImportOptions {
  /// The folder that external data must lie in; empty: the model's own folder.
  std::string dataFolder;
  /// Symbol of the function made of the model's graph.
  std::string functionName = "main";
  /// Values of inputs, "NAME=VALUE" as `parseInputValue` reads them. Such an input is a constant: the function has no argument
  /// for it, and an initializer of its name does not count.
  std::vector<std::string> values;
  /// Files that are going to be written: a model that has its data there is refused.
  std::vector<std::string> outputs;
};

/// Reads a model file into a module of the onnx dialect with one function: an argument for each model input, the newest form of
/// every operator, model-local functions inlined, types inferred. Large tensors refer to the mapped data file or to the parsed
/// model, which live as long as the context. All problems are emitted as errors on the module's location (operator, node name,
/// reason); null then. Needs the onnx and func dialects in the context's registry.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, llvm::StringRef path,
                                              const ImportOptions &options = {});

} // namespace ogc

#endif
