//===- ShapeSpec.cpp - the shapes a user asks for -------------------------===//
#include "compiler/passes/specialize/ShapeSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace ogc::specialize {
namespace {

/// "1x3x224"; empty is a scalar.
bool parseDims(llvm::StringRef text, llvm::SmallVectorImpl<int64_t> &shape, std::string &reason) {
  llvm::SmallVector<llvm::StringRef> parts;
  if (!text.empty())
    text.split(parts, 'x');
  for (llvm::StringRef part : parts) {
    int64_t size;
    if (part.getAsInteger(10, size) || size < 0) {
      reason = ("'" + part + "' in shape '" + text + "' is not a size").str();
      return false;
    }
    shape.push_back(size);
  }
  return true;
}

bool isValidID(llvm::StringRef id) {
  return !id.empty() && llvm::all_of(id, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; });
}

bool parseGraph(llvm::StringRef text, GraphShapes &graph, std::string &reason) {
  // Input names may hold colons ("input:0"), so that an ID ends in colon and space.
  size_t colon = text.find(": ");
  if (text.ends_with(":"))
    colon = text.size() - 1;
  if (colon != llvm::StringRef::npos) {
    graph.id = text.take_front(colon).trim().str();
    if (!isValidID(graph.id)) {
      reason = "'" + graph.id + "' is not a graph ID: letters, digits, '_', '-' and '.' are";
      return false;
    }
    text = text.drop_front(colon + 1);
  }
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    part = part.trim();
    if (part.empty())
      continue;
    // Names may hold '=', sizes may not.
    auto [name, dims] = part.rsplit('=');
    if (name.size() == part.size() || name.empty()) {
      reason = ("'" + part + "' is not of the form name=AxBxC").str();
      return false;
    }
    GraphShapes::Input input{name.str(), {}};
    if (!parseDims(dims, input.shape, reason))
      return false;
    if (llvm::any_of(graph.inputs, [&](const auto &other) { return other.name == input.name; })) {
      reason = "input '" + input.name + "' is given two shapes";
      return false;
    }
    graph.inputs.push_back(std::move(input));
  }
  return true;
}

} // namespace

std::vector<GraphShapes> parseShapes(llvm::StringRef text, std::string &reason) {
  std::vector<GraphShapes> graphs;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ';', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    if (part.trim().empty())
      continue;
    GraphShapes graph;
    if (!parseGraph(part.trim(), graph, reason))
      return {};
    if (llvm::any_of(graphs, [&](const GraphShapes &other) { return other.id == graph.id; })) {
      reason = "graph ID '" + graph.id + "' is given twice";
      return {};
    }
    graphs.push_back(std::move(graph));
  }
  if (graphs.empty())
    graphs.emplace_back();
  return graphs;
}

} // namespace ogc::specialize
