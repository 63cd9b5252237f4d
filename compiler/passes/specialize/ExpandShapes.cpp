//===- ExpandShapes.cpp - requests to the sizes of each graph ID ----------===//
#include "compiler/passes/specialize/ShapeSpec.h"

#include "llvm/ADT/STLExtras.h"

namespace ogc::specialize {
namespace {

/// One graph of a request: `choice` has the index of a value for each assignment.
GraphShapes makeGraph(const ShapeRequest &request, llvm::ArrayRef<size_t> choice, llvm::ArrayRef<std::string> inputs) {
  GraphShapes graph;
  std::string varying;
  for (auto [assignment, index] : llvm::zip_equal(request.assignments, choice)) {
    const Shape &value = assignment.values[index];
    std::string text = shapeText(value);
    graph.label += (graph.label.empty() ? "" : " ") + assignment.name + "=" + text;
    if (assignment.values.size() > 1)
      varying += "_" + toValidID(assignment.name) + text;
    // A shape can only be meant for an input, also where there is none of this name.
    if (value.size() != 1 || llvm::is_contained(inputs, assignment.name))
      graph.inputs.push_back({assignment.name, value});
    else
      graph.symbols.push_back({assignment.name, value.front()});
  }
  if (!request.id.empty())
    graph.id = request.id + varying;
  return graph;
}

} // namespace

std::optional<std::vector<GraphShapes>> expandShapes(llvm::ArrayRef<ShapeRequest> requests, llvm::ArrayRef<std::string> inputs,
                                                     std::string &reason) {
  std::vector<GraphShapes> graphs;
  for (const ShapeRequest &request : requests) {
    llvm::SmallVector<size_t> choice(request.assignments.size(), 0);
    for (bool isMore = true; isMore;) {
      if (graphs.size() == maxGraphs) {
        reason = "these are more than " + std::to_string(maxGraphs) + " graphs";
        return std::nullopt;
      }
      graphs.push_back(makeGraph(request, choice, inputs));
      isMore = false;
      for (size_t i = choice.size(); i-- > 0 && !isMore;) {
        isMore = ++choice[i] < request.assignments[i].values.size();
        if (!isMore)
          choice[i] = 0;
      }
    }
  }
  if (graphs.empty())
    graphs.emplace_back();
  return graphs;
}

} // namespace ogc::specialize
