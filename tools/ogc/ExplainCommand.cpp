//===- ExplainCommand.cpp - ogc explain -----------------------------------===//
#include "compiler/pipeline/Compiler.h"
#include "runtime_lib/format/Dump.h"
#include "tools/ogc/CompileCommand.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace ogc::tools {

namespace {

struct ExplainOptions {
  CompileOptions compile;
  std::string symbol;
};

/// A named dimension and a sentence about it.
using Lines = std::vector<std::pair<std::string, std::string>>;

bool readBundle(const std::string &path, Lines &lines) {
  Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(path);
  if (!bundle.ok()) {
    llvm::errs() << "error: " << bundle.status().message() << "\n";
    return false;
  }
  const auto *symbols = bundle.value()->manifest().symbols();
  for (unsigned i = 0; symbols && i < symbols->size(); ++i)
    lines.push_back({symbols->Get(i)->name()->str(), format::symbolText(*symbols->Get(i))});
  return true;
}

/// Sizes for every named dimension, where the user gives none.
bool chooseShapes(mlir::MLIRContext &context, CompileOptions &options) {
  if (!options.shapes.empty())
    return true;
  mlir::FailureOr<std::vector<std::string>> symbols = readSymbols(context, options);
  if (mlir::failed(symbols))
    return false;
  // Different primes: equal sizes would be merged where the model keeps them apart.
  constexpr int sizes[] = {7, 11, 13, 17, 19, 23, 29, 31};
  std::string text;
  for (size_t i = 0; i < symbols->size(); ++i)
    text += (text.empty() ? "" : " ") + (*symbols)[i] + "=" + std::to_string(sizes[i % std::size(sizes)]);
  if (!text.empty())
    options.shapes.push_back(text);
  return true;
}

bool readModel(ExplainOptions &options, Lines &lines) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  printDiagnostics(context);
  loadDialects(context);
  if (!chooseShapes(context, options.compile))
    return false;
  mlir::FailureOr<ModelFacts> facts = examine(context, options.compile, /*withMemory=*/false);
  if (mlir::failed(facts))
    return false;
  for (auto answer : facts->padding.getAsRange<mlir::DictionaryAttr>()) {
    auto text = [&](llvm::StringRef key) { return answer.getAs<mlir::StringAttr>(key).str(); };
    std::string name = text("symbol");
    lines.push_back({name, format::symbolText(name, answer.getAs<mlir::BoolAttr>("safe").getValue(), text("operator"),
                                              text("node"), text("reason"))});
  }
  return true;
}

int explain(ExplainOptions options) {
  Lines lines;
  bool isBundle = llvm::StringRef(options.compile.modelPath).ends_with(".ogc");
  if (!(isBundle ? readBundle(options.compile.modelPath, lines) : readModel(options, lines)))
    return 1;
  bool found = options.symbol.empty();
  for (const auto &[name, text] : lines)
    if (options.symbol.empty() || name == options.symbol) {
      llvm::outs() << text << "\n";
      found = true;
    }
  if (lines.empty() && found)
    llvm::outs() << "the inputs have no named dimensions\n";
  if (found)
    return 0;
  llvm::errs() << "error: there is no symbol '" << options.symbol << "'";
  for (const auto &[name, text] : lines)
    llvm::errs() << (name == lines.front().first ? ", expected '" : ", '") << name << "'";
  llvm::errs() << (lines.empty() ? ", the inputs have no named dimensions\n" : "\n");
  return 1;
}

} // namespace

void addExplainCommand(CLI::App &app, int &exitCode) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App *command = app.add_subcommand("explain", "says which named dimensions may be padded, and what forbids it");
  command->add_option("model", options->compile.modelPath, "an ONNX file or a bundle")->required();
  command->add_option("--symbol", options->symbol, "one dimension; default: all");
  command->add_option("--shapes", options->compile.shapes, "sizes to look at; default: a small prime for every named dimension");
  command->add_option("--value", options->compile.values, "value of an input, as for 'compile'");
  command->callback([options, &exitCode] { exitCode = explain(*options); });
}

} // namespace ogc::tools
