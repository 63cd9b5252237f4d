//===- DeclareState.cpp - inputs and outputs that are one state -----------===//
#include "compiler/passes/specialize/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_DECLARESTATE
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

/// One `--state INPUT=OUTPUT`.
struct StateNames {
  StringRef input, output;
};

StringRef nameOf(Attribute attribute) {
  auto name = dyn_cast_or_null<StringAttr>(attribute);
  return name ? name.getValue() : StringRef();
}

/// Positions by name, and the names as a list for messages.
struct Names {
  llvm::StringMap<unsigned> positions;
  std::string list;
  void add(StringRef name, unsigned position) {
    positions.try_emplace(name, position);
    list += (list.empty() ? "'" : ", '") + name.str() + "'";
  }
};

struct DeclareStatePass : impl::DeclareStateBase<DeclareStatePass> {
  using DeclareStateBase::DeclareStateBase;

  void runOnOperation() override {
    SmallVector<StateNames> states;
    parse(states);
    if (hasErrors) // wrong names would be reported once a graph
      return signalPassFailure();
    bool isFirst = true;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || !llvm::hasSingleElement(function.getBody()))
        continue;
      apply(function, states, isFirst);
      isFirst = false;
    }
    if (hasErrors)
      signalPassFailure();
  }

  InFlightDiagnostic error() {
    hasErrors = true;
    return getOperation().emitError();
  }

  void parse(SmallVector<StateNames> &parsed) {
    SmallVector<StringRef> texts;
    StringRef(states).split(texts, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    llvm::StringSet<> inputs, outputs;
    for (StringRef text : texts) {
      auto [input, output] = text.split('=');
      if (input.empty() || output.empty()) {
        error() << "--state '" << text << "': expected INPUT=OUTPUT";
        continue;
      }
      if (!inputs.insert(input).second)
        error() << "--state: input '" << input << "' is used twice";
      if (!outputs.insert(output).second)
        error() << "--state: output '" << output << "' is used twice";
      parsed.push_back({input, output});
    }
  }

  void apply(func::FuncOp function, ArrayRef<StateNames> parsed, bool isFirst) {
    Names inputs, outputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      inputs.add(nameOf(function.getArgAttr(i, "onnx.name")), i);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      outputs.add(nameOf(function.getResultAttr(i, "onnx.name")), i);
    Operation *terminator = function.getBody().front().getTerminator();
    for (const StateNames &state : parsed) {
      auto input = inputs.positions.find(state.input), output = outputs.positions.find(state.output);
      if (input == inputs.positions.end() && isFirst)
        error() << "--state: the model has no input '" << state.input << "'; its inputs are " << inputs.list;
      if (output == outputs.positions.end() && isFirst)
        error() << "--state: the model has no output '" << state.output << "'; its outputs are " << outputs.list;
      if (input == inputs.positions.end() || output == outputs.positions.end())
        continue;
      Type before = function.getArgument(input->second).getType(), after = terminator->getOperand(output->second).getType();
      if (before != after) {
        error() << "--state: input '" << state.input << "' has type " << before << ", but output '" << state.output
                << "' has type " << after << "; a state has one shape and type";
        continue;
      }
      auto [known, isNew] = types.try_emplace(state.input, before);
      if (!isNew && known->second != before) {
        error() << "--state: input '" << state.input << "' has type " << known->second << " in one graph and " << before
                << " in graph '" << nameOf(function->getAttr("ogc.graph_id")) << "'; graphs share their states";
        continue;
      }
      function.setArgAttr(input->second, "ogc.state", StringAttr::get(&getContext(), state.output));
      function.setResultAttr(output->second, "ogc.state", StringAttr::get(&getContext(), state.input));
    }
  }

  llvm::StringMap<Type> types;
  bool hasErrors = false;
};

} // namespace
} // namespace ogc::specialize
