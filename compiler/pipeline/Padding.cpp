//===- Padding.cpp - which named dimensions may be padded -----------------===//
#include "compiler/pipeline/Padding.h"

#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/ShapeSpec.h"
#include "compiler/pipeline/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace ogc {

using namespace mlir;

namespace {

/// Finds out about one symbol.
class Prover {
public:
  Prover(ModuleOp generic, func::FuncOp graph, const CompileOptions &options, StringRef symbol)
      : generic(generic), graph(graph), options(options), symbol(symbol),
        size(std::max<int64_t>(specialize::sizeOfSymbol(graph, symbol).value_or(2), 2)) {}

  DictionaryAttr prove(bool isForm) {
    // A table may end at the size asked for, so the smaller neighbour is tried too. Sizes that happen to be those of other
    // dimensions let the compiler merge what belongs apart for others: primes are tried last. What is whole for a size is so for
    // smaller ones (a slice up to 100), not for larger ones: small sizes will do only where a graph of the same form was proved
    // for its own.
    int64_t prime = nextPrime(std::max<int64_t>(size, 11));
    SmallVector<std::pair<int64_t, int64_t>> pairs = {{size, size + 1}, {size - 1, size}, {prime, nextPrime(prime + 1)}};
    if (!isForm)
      pairs.append({{2, 3}, {3, 5}});
    DictionaryAttr first;
    for (auto [small, large] : pairs) {
      DictionaryAttr answer = small < 2 ? DictionaryAttr() : compare(small, large);
      if (answer && answer.getAs<BoolAttr>("safe").getValue())
        return checkOne(answer);
      first = first ? first : answer;
    }
    return first ? first : refuse("the model does not compile for its neighbours: " + firstError);
  }

  DictionaryAttr refuse(const Twine &reason, StringRef operatorType = "", StringRef node = "") {
    Builder builder(graph.getContext());
    return builder.getDictionaryAttr({
        builder.getNamedAttr("symbol", builder.getStringAttr(symbol)),
        builder.getNamedAttr("safe", builder.getBoolAttr(false)),
        builder.getNamedAttr("cuts", builder.getArrayAttr({})),
        builder.getNamedAttr("operator", builder.getStringAttr(operatorType)),
        builder.getNamedAttr("node", builder.getStringAttr(node)),
        builder.getNamedAttr("reason", builder.getStringAttr(reason)),
    });
  }

private:
  static int64_t nextPrime(int64_t from) {
    auto isPrime = [](int64_t n) {
      for (int64_t factor = 2; factor * factor <= n; ++factor)
        if (n % factor == 0)
          return false;
      return true;
    };
    while (!isPrime(from))
      ++from;
    return from;
  }

  /// The sizes of the graph, but `n` for the symbol.
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
    auto answer = module ? module->getOperation()->getAttrOfType<DictionaryAttr>("ogc.padding") : DictionaryAttr();
    return answer && answer.getAs<BoolAttr>("safe").getValue() ? checkSteps(answer, small, large) : answer;
  }

  /// Two sizes may agree where others do not: a condition, a quotient, a limit.
  DictionaryAttr checkSteps(DictionaryAttr answer, int64_t small, int64_t large) {
    OwningOpRef<ModuleOp> module = compileFor({small, large}, {}, [&](OpPassManager &manager) {
      specialize::SpecializeShapesOptions specialize;
      specialize.shapes = shapesFor(small) + ";" + shapesFor(large);
      manager.addPass(specialize::createSpecializeShapes(specialize));
      specialize::TraceSizesOptions trace;
      trace.symbol = symbol.str();
      trace.largest = large;
      manager.addPass(specialize::createTraceSizes(trace));
    });
    if (!module)
      return DictionaryAttr();
    auto step = module->getOperation()->getAttrOfType<DictionaryAttr>("ogc.size_step");
    return step ? refuse("computes with its size", step.getAs<StringAttr>("operator").getValue(),
                         step.getAs<StringAttr>("node").getValue())
                : answer;
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

/// The operators of a graph that compute with its inputs: sizes choose branches, unroll loops and take away what does nothing.
/// What is computed from constants alone is left out: it mixes nothing, and how much of it is folded depends on its size.
std::vector<StringRef> operatorsOf(func::FuncOp graph) {
  std::vector<StringRef> names;
  llvm::DenseSet<Value> varying(graph.getArguments().begin(), graph.getArguments().end());
  for (Operation &op : graph.getBody().front()) {
    if (op.getNumRegions() == 0 && llvm::none_of(op.getOperands(), [&](Value value) { return varying.contains(value); }))
      continue;
    op.walk<WalkOrder::PreOrder>([&](Operation *inner) { names.push_back(inner->getName().getStringRef()); });
    varying.insert(op.getResults().begin(), op.getResults().end());
  }
  return names;
}

/// A graph to prove a symbol for.
struct Candidate {
  func::FuncOp graph;
  bool isForm; ///< the largest of those that have the same operators and the same other symbols of size 1, which broadcast and
               ///< merge
};

/// The largest graph for each combination of operators and sizes of the other symbols. These sizes do not only broadcast where
/// they are 1: axes and indices may be computed from them, and pieces of a fixed length hold one position of the symbol for some
/// and several for others.
SmallVector<Candidate> chooseGraphs(ArrayRef<func::FuncOp> graphs, StringRef symbol) {
  using Key = std::pair<std::vector<int64_t>, std::vector<StringRef>>;
  std::map<Key, func::FuncOp> forms, combinations;
  auto keepLargest = [&](std::map<Key, func::FuncOp> &known, const Key &key, func::FuncOp graph) {
    func::FuncOp &largest = known.try_emplace(key, graph).first->second;
    if (specialize::sizeOfSymbol(graph, symbol) > specialize::sizeOfSymbol(largest, symbol))
      largest = graph;
  };
  for (func::FuncOp graph : graphs) {
    std::vector<int64_t> sizes, isOne;
    for (NamedAttribute other : graph->getAttrOfType<DictionaryAttr>("ogc.symbols").getValue())
      if (other.getName() != symbol) {
        sizes.push_back(cast<IntegerAttr>(other.getValue()).getInt());
        isOne.push_back(sizes.back() == 1);
      }
    std::vector<StringRef> operators = operatorsOf(graph);
    keepLargest(forms, {isOne, operators}, graph);
    keepLargest(combinations, {sizes, operators}, graph);
  }
  SmallVector<Candidate> chosen;
  llvm::DenseSet<Operation *> known;
  for (auto &[key, graph] : forms)
    if (known.insert(graph).second)
      chosen.push_back({graph, true});
  for (auto &[key, graph] : combinations)
    if (known.insert(graph).second)
      chosen.push_back({graph, false});
  return chosen;
}

/// True where every cut holds in `graph` too: how many elements belong to a position may depend on other symbols (batch and
/// sequence in one dimension).
bool holdsCuts(func::FuncOp graph, StringRef symbol, DictionaryAttr answer) {
  std::optional<int64_t> size = specialize::sizeOfSymbol(graph, symbol);
  return size && llvm::all_of(answer.getAs<ArrayAttr>("cuts").getAsRange<DenseI64ArrayAttr>(), [&](DenseI64ArrayAttr cut) {
           auto type = dyn_cast<RankedTensorType>(graph.getResultTypes()[cut[0]]);
           return type && cut[1] < type.getRank() && type.getDimSize(cut[1]) == *size * cut[2];
         });
}

/// The first refusal; safe where all graphs agree on what the outputs look like.
DictionaryAttr proveSymbol(ModuleOp generic, ArrayRef<func::FuncOp> graphs, const CompileOptions &options, StringRef symbol) {
  SmallVector<DictionaryAttr> answers;
  for (Candidate candidate : chooseGraphs(graphs, symbol)) {
    answers.push_back(Prover(generic, candidate.graph, options, symbol).prove(candidate.isForm));
    if (!answers.back().getAs<BoolAttr>("safe").getValue())
      return answers.back();
  }
  if (!llvm::all_equal(answers) ||
      !llvm::all_of(graphs, [&](func::FuncOp graph) { return holdsCuts(graph, symbol, answers[0]); }))
    return Prover(generic, graphs[0], options, symbol).refuse("the outputs hold its positions in other places in other graphs");
  return answers[0];
}

} // namespace

ArrayAttr provePadding(ModuleOp generic, ModuleOp specialized, const CompileOptions &options) {
  SmallVector<Attribute> answers;
  SmallVector<func::FuncOp> graphs;
  for (auto graph : specialized.getOps<func::FuncOp>())
    if (graph->hasAttrOfType<DictionaryAttr>("ogc.symbols"))
      graphs.push_back(graph);
  llvm::SmallSetVector<StringAttr, 4> names;
  for (unsigned i = 0; !graphs.empty() && i < graphs.front().getNumArguments(); ++i)
    if (auto symbols = graphs.front().getArgAttrOfType<ArrayAttr>(i, "onnx.symbols"))
      for (auto symbol : symbols.getAsRange<StringAttr>())
        if (specialize::sizeOfSymbol(graphs.front(), symbol.getValue()))
          names.insert(symbol);
  for (StringAttr name : names)
    answers.push_back(proveSymbol(generic, graphs, options, name.getValue()));
  return ArrayAttr::get(specialized.getContext(), answers);
}

} // namespace ogc
