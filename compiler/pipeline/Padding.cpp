//===- Padding.cpp - which named dimensions may be padded -----------------===//
#include "compiler/pipeline/Padding.h"

#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/ShapeSpec.h"
#include "compiler/pipeline/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

namespace ogc {

using namespace mlir;

namespace {

/// Finds out about one symbol.
class Prover {
public:
  Prover(ModuleOp generic, func::FuncOp graph, const CompileOptions &options, StringRef symbol, int64_t size)
      : generic(generic), graph(graph), options(options), symbol(symbol), size(std::max<int64_t>(size, 2)) {}

  DictionaryAttr prove() {
    // A table may end at the size asked for, so the smaller neighbour is tried too. Sizes that happen to be those of other
    // dimensions let the compiler merge what belongs apart for others: primes are tried last.
    DictionaryAttr first;
    for (auto [small, large] : {std::pair(size, size + 1), std::pair(size - 1, size), std::pair<int64_t, int64_t>(11, 13)}) {
      DictionaryAttr answer = small < 2 ? DictionaryAttr() : compare(small, large);
      if (answer && answer.getAs<BoolAttr>("safe").getValue())
        return checkOne(answer);
      first = first ? first : answer;
    }
    return first ? first : refuse("the model does not compile for its neighbours: " + firstError);
  }

private:
  DictionaryAttr refuse(const Twine &reason) {
    Builder builder(graph.getContext());
    return builder.getDictionaryAttr({
        builder.getNamedAttr("symbol", builder.getStringAttr(symbol)),
        builder.getNamedAttr("safe", builder.getBoolAttr(false)),
        builder.getNamedAttr("cuts", builder.getArrayAttr({})),
        builder.getNamedAttr("operator", builder.getStringAttr("")),
        builder.getNamedAttr("node", builder.getStringAttr("")),
        builder.getNamedAttr("reason", builder.getStringAttr(reason)),
    });
  }

  /// The sizes of the first graph, but `n` for the symbol.
  std::string shapesFor(int64_t n) {
    std::string text = "n" + std::to_string(n) + ": ";
    for (unsigned i = 0; i < graph.getNumArguments(); ++i) {
      auto type = dyn_cast<RankedTensorType>(graph.getArgumentTypes()[i]);
      auto name = graph.getArgAttrOfType<StringAttr>(i, "onnx.name");
      auto symbols = graph.getArgAttrOfType<ArrayAttr>(i, "onnx.symbols");
      if (!type || !name)
        continue;
      SmallVector<int64_t> shape(type.getShape());
      for (size_t dim = 0; symbols && dim < std::min(shape.size(), symbols.size()); ++dim)
        if (auto other = dyn_cast<StringAttr>(symbols[dim]); other && other.getValue() == symbol)
          shape[dim] = n;
      text += (text.ends_with(": ") ? "" : ",") + name.str() + "=" + (shape.empty() ? "" : specialize::shapeText(shape));
    }
    return text;
  }

  /// The generic module, compiled for some sizes up to a phase. Null, with `firstError`, where that fails: no error of the
  /// user's.
  OwningOpRef<ModuleOp> compileFor(ArrayRef<int64_t> sizes, ArrayRef<Phase> phases, function_ref<void(OpPassManager &)> finish) {
    OwningOpRef<ModuleOp> module(generic.clone());
    CompileOptions probe = options;
    probe.shapes.clear();
    for (int64_t n : sizes)
      probe.shapes.push_back(shapesFor(n));
    ScopedDiagnosticHandler quiet(generic.getContext(), [&](Diagnostic &diagnostic) {
      if (firstError.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
        firstError = diagnostic.str();
      return success();
    });
    PassManager manager(generic.getContext());
    for (Phase phase : phases)
      addPhasePasses(phase, probe, manager);
    if (finish)
      finish(manager);
    if (failed(manager.run(*module)))
      return {};
    return module;
  }

  DictionaryAttr compare(int64_t small, int64_t large) {
    OwningOpRef<ModuleOp> module = compileFor({small, large}, {Phase::Specialize, Phase::Lower}, [&](OpPassManager &manager) {
      specialize::ProvePaddingOptions prove;
      prove.symbol = symbol.str();
      manager.addPass(specialize::createProvePadding(prove));
    });
    return module ? module->getOperation()->getAttrOfType<DictionaryAttr>("ogc.padding") : DictionaryAttr();
  }

  /// Size 1 is special: it broadcasts, and it can be squeezed away. The outputs must have the same form there.
  DictionaryAttr checkOne(DictionaryAttr answer) {
    OwningOpRef<ModuleOp> one = compileFor({1}, {Phase::Specialize}, {}), two = compileFor({2}, {Phase::Specialize}, {});
    if (!one || !two)
      return refuse("the model does not compile for size " + Twine(one ? 2 : 1) + ": " + firstError);
    TypeRange small = (*one->getOps<func::FuncOp>().begin()).getResultTypes(),
              large = (*two->getOps<func::FuncOp>().begin()).getResultTypes();
    for (auto [i, types] : llvm::enumerate(llvm::zip_equal(small, large))) {
      auto a = dyn_cast<RankedTensorType>(std::get<0>(types)), b = dyn_cast<RankedTensorType>(std::get<1>(types));
      bool isSame = a && b && a.getRank() == b.getRank();
      for (int64_t dim = 0; isSame && dim < a.getRank(); ++dim) {
        bool isCut = llvm::any_of(answer.getAs<ArrayAttr>("cuts").getAsRange<DenseI64ArrayAttr>(),
                                  [&](DenseI64ArrayAttr cut) { return cut[0] == static_cast<int64_t>(i) && cut[1] == dim; });
        isSame = a.getDimSize(dim) * (isCut ? 2 : 1) == b.getDimSize(dim);
      }
      if (!isSame)
        return refuse("output " + Twine(i) + " has another form for size 1");
    }
    return answer;
  }

  ModuleOp generic;
  func::FuncOp graph;
  const CompileOptions &options;
  StringRef symbol;
  int64_t size;
  std::string firstError;
};

} // namespace

ArrayAttr provePadding(ModuleOp generic, ModuleOp specialized, const CompileOptions &options) {
  SmallVector<Attribute> answers;
  auto graphs = specialized.getOps<func::FuncOp>();
  if (!graphs.empty()) {
    func::FuncOp graph = *graphs.begin();
    auto sizes = graph->getAttrOfType<DictionaryAttr>("ogc.symbols");
    for (unsigned i = 0; sizes && i < graph.getNumArguments(); ++i)
      if (auto symbols = graph.getArgAttrOfType<ArrayAttr>(i, "onnx.symbols"))
        for (auto symbol : symbols.getAsRange<StringAttr>()) {
          auto size = dyn_cast_or_null<IntegerAttr>(sizes.get(symbol.getValue()));
          bool isKnown = llvm::any_of(answers, [&](Attribute answer) {
            return cast<DictionaryAttr>(answer).getAs<StringAttr>("symbol").getValue() == symbol.getValue();
          });
          if (size && !isKnown)
            answers.push_back(Prover(generic, graph, options, symbol.getValue(), size.getInt()).prove());
        }
  }
  return ArrayAttr::get(specialized.getContext(), answers);
}

} // namespace ogc
