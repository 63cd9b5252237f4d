//===- Select.cpp - the graph for the shapes of the inputs ----------------===//
#include "runtime_lib/src/select/Select.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace ogc::runtime {

namespace {

using Bindings = flatbuffers::Vector<flatbuffers::Offset<fb::Binding>>;

std::string text(const Shape &shape) {
  std::string all;
  for (int64_t size : shape)
    all += (all.empty() ? "" : "x") + std::to_string(size);
  return all.empty() ? "scalar" : all;
}

Shape shapeOf(const fb::Binding &binding) { return Shape(binding.shape()->begin(), binding.shape()->end()); }

const fb::Binding *find(const Bindings &bindings, const std::string &name) {
  for (const fb::Binding *binding : bindings)
    if (binding->name()->string_view() == name)
      return binding;
  return nullptr;
}

const fb::Symbol *findSymbol(const fb::Manifest &manifest, std::string_view name) {
  for (unsigned i = 0; !name.empty() && manifest.symbols() && i < manifest.symbols()->size(); ++i)
    if (manifest.symbols()->Get(i)->name()->string_view() == name)
      return manifest.symbols()->Get(i);
  return nullptr;
}

uint64_t costOf(const fb::Graph &graph) {
  uint64_t bytes = 0;
  for (const fb::Node *node : *graph.nodes())
    for (const fb::Slice *slice : *node->args())
      bytes += slice->size_bytes();
  return bytes;
}

/// Tries one graph, and remembers why it does not fit.
class Candidate {
public:
  Candidate(const fb::Manifest &manifest, size_t index) : manifest_(manifest), graph_(*manifest.graphs()->Get(unsigned(index))) {
    selection_.graph = index;
  }

  std::optional<Selection> match(const std::vector<GivenInput> &inputs) {
    for (const GivenInput &input : inputs) {
      const fb::Binding *binding = find(*graph_.inputs(), input.name);
      if (!binding || !match(*binding, input.shape))
        return std::nullopt;
    }
    // Equal sizes are remembered too while matching, so that a symbol cannot be padded in one input alone.
    std::erase_if(selection_.paddings, [](const Selection::Padding &padding) { return padding.given == padding.size; });
    return selection_;
  }

  /// The symbol that would have to be padded, but must not.
  const fb::Symbol *forbidden() const { return forbidden_; }

private:
  bool match(const fb::Binding &binding, const Shape &given) {
    if (given.size() != binding.shape()->size())
      return false;
    for (unsigned dim = 0; dim < given.size(); ++dim) {
      int64_t size = binding.shape()->Get(dim);
      const fb::Symbol *symbol = findSymbol(manifest_, binding.symbols()->Get(dim)->string_view());
      if (!symbol && given[dim] != size)
        return false;
      if (symbol && !match(*symbol, given[dim], size))
        return false;
    }
    return true;
  }

  bool match(const fb::Symbol &symbol, int64_t given, int64_t size) {
    for (const Selection::Padding &padding : selection_.paddings)
      if (padding.symbol == &symbol)
        return padding.given == given;
    selection_.paddings.push_back({&symbol, given, size});
    if (given == size)
      return true;
    if (given >= 1 && given < size && !symbol.padding_safe())
      forbidden_ = &symbol;
    return symbol.padding_safe() && given >= 1 && given < size;
  }

  const fb::Manifest &manifest_;
  const fb::Graph &graph_;
  Selection selection_;
  const fb::Symbol *forbidden_ = nullptr;
};

/// Names inputs that no graph has, and symbols that are given two sizes.
Status checkInputs(const fb::Manifest &manifest, const std::vector<GivenInput> &inputs) {
  std::vector<std::pair<const fb::Symbol *, const GivenInput *>> seen;
  std::vector<int64_t> sizes;
  const Bindings &bindings = *manifest.graphs()->Get(0)->inputs();
  for (const GivenInput &input : inputs) {
    const fb::Binding *binding = find(bindings, input.name);
    if (!binding) {
      std::string names;
      for (const fb::Binding *other : bindings)
        names += (names.empty() ? "'" : ", '") + other->name()->str() + "'";
      return Status(Code::InvalidArgument, "there is no input '" + input.name + "', the graphs have " + names);
    }
    for (unsigned dim = 0; dim < std::min<size_t>(input.shape.size(), binding->symbols()->size()); ++dim) {
      const fb::Symbol *symbol = findSymbol(manifest, binding->symbols()->Get(dim)->string_view());
      for (size_t i = 0; i < seen.size(); ++i)
        if (symbol && seen[i].first == symbol && sizes[i] != input.shape[dim])
          return Status(Code::InvalidArgument, "dimension '" + symbol->name()->str() + "' is " + std::to_string(sizes[i]) +
                                                   " in input '" + seen[i].second->name + "', but " +
                                                   std::to_string(input.shape[dim]) + " in input '" + input.name + "'");
      if (symbol) {
        seen.push_back({symbol, &input});
        sizes.push_back(input.shape[dim]);
      }
    }
  }
  return Status();
}

/// "'b1' (x 1x3), 'b8' (x 8x3)", of the inputs that were given.
std::string knownShapes(const fb::Manifest &manifest, const std::vector<GivenInput> &inputs) {
  constexpr unsigned mostGraphs = 64;
  std::string all;
  for (unsigned i = 0; i < std::min(manifest.graphs()->size(), mostGraphs); ++i) {
    const fb::Graph *graph = manifest.graphs()->Get(i);
    std::string shapes;
    for (const GivenInput &input : inputs)
      if (const fb::Binding *binding = find(*graph->inputs(), input.name))
        shapes += (shapes.empty() ? "" : ", ") + input.name + " " + text(shapeOf(*binding));
    all += (all.empty() ? "'" : ", '") + graph->id()->str() + "' (" + shapes + ")";
  }
  return manifest.graphs()->size() > mostGraphs ? all + ", …" : all;
}

} // namespace

Result<Selection> selectGraph(const fb::Manifest &manifest, const std::vector<GivenInput> &inputs) {
  if (manifest.graphs()->size() == 0)
    return Status(Code::InvalidArgument, "the bundle has no graph");
  OGC_RETURN_IF_ERROR(checkInputs(manifest, inputs));
  std::optional<Selection> best;
  uint64_t bestCost = 0;
  const fb::Symbol *forbidden = nullptr;
  for (size_t i = 0; i < manifest.graphs()->size(); ++i) {
    Candidate candidate(manifest, i);
    std::optional<Selection> selection = candidate.match(inputs);
    forbidden = candidate.forbidden() ? candidate.forbidden() : forbidden;
    if (!selection)
      continue;
    uint64_t cost = selection->paddings.empty() ? 0 : 1 + costOf(*manifest.graphs()->Get(unsigned(i)));
    if (!best || cost < bestCost) {
      best = selection;
      bestCost = cost;
    }
  }
  if (best)
    return *best;
  std::string message = "no graph takes";
  for (const GivenInput &input : inputs)
    message += (&input == inputs.data() ? " '" : ", '") + input.name + "' of shape " + text(input.shape);
  message += "; the graphs are " + knownShapes(manifest, inputs);
  if (forbidden) {
    message += "; '" + forbidden->name()->str() + "' is not padded: ";
    if (forbidden->operator_type()->size())
      message += forbidden->operator_type()->str() + " node '" + forbidden->node()->str() + "' ";
    message += forbidden->reason()->str();
  }
  return Status(Code::InvalidArgument, message);
}

Shape inputShape(const fb::Manifest &manifest, const Selection &selection, size_t index) {
  const fb::Binding &binding = *manifest.graphs()->Get(unsigned(selection.graph))->inputs()->Get(unsigned(index));
  Shape shape = shapeOf(binding);
  for (const Selection::Padding &padding : selection.paddings)
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      if (binding.symbols()->Get(dim)->string_view() == padding.symbol->name()->string_view())
        shape[dim] = padding.given;
  return shape;
}

Shape outputShape(const fb::Manifest &manifest, const Selection &selection, size_t index) {
  Shape shape = shapeOf(*manifest.graphs()->Get(unsigned(selection.graph))->outputs()->Get(unsigned(index)));
  for (const Selection::Padding &padding : selection.paddings)
    for (const fb::RowCut *cut : *padding.symbol->cuts())
      if (cut->output() == index)
        shape[cut->dim()] = std::min(shape[cut->dim()], padding.given * cut->inner());
  return shape;
}

void copyRows(const void *source, const Shape &from, void *target, const Shape &to, size_t elementBytes) {
  size_t targetBytes = elementBytes;
  for (int64_t size : to)
    targetBytes *= static_cast<size_t>(size);
  // Everything inside the outermost dimension that differs is copied in one piece.
  size_t first = 0;
  while (first < from.size() && from[first] == to[first])
    ++first;
  size_t last = from.size();
  while (last > first && from[last - 1] == to[last - 1])
    --last;
  size_t fromBytes = elementBytes, toBytes = elementBytes, outer = 1;
  for (size_t dim = last; dim < from.size(); ++dim) {
    fromBytes *= static_cast<size_t>(from[dim]);
    toBytes *= static_cast<size_t>(to[dim]);
  }
  for (size_t dim = 0; dim < first; ++dim)
    outer *= static_cast<size_t>(from[dim]);
  auto *bytes = static_cast<char *>(target);
  const auto *read = static_cast<const char *>(source);
  if (first == last) {
    std::memcpy(bytes, read, targetBytes);
    return;
  }
  std::memset(bytes, 0, targetBytes);
  // Positions of the dimensions in [first, last), row by row of the innermost one.
  size_t fromRow = static_cast<size_t>(from[last - 1]) * fromBytes, toRow = static_cast<size_t>(to[last - 1]) * toBytes;
  size_t rowBytes = std::min(fromRow, toRow), fromRows = outer, toRows = outer;
  for (size_t dim = first; dim + 1 < last; ++dim) {
    fromRows *= static_cast<size_t>(from[dim]);
    toRows *= static_cast<size_t>(to[dim]);
  }
  for (size_t row = 0; row < fromRows; ++row) {
    size_t rest = row, index = 0, stride = 1;
    bool isInside = true;
    for (size_t dim = last - 1; dim-- > first;) {
      size_t at = rest % static_cast<size_t>(from[dim]);
      rest /= static_cast<size_t>(from[dim]);
      isInside &= at < static_cast<size_t>(to[dim]);
      index += at * stride;
      stride *= static_cast<size_t>(to[dim]);
    }
    index += rest * stride;
    if (isInside && index < toRows)
      std::memcpy(bytes + index * toRow, read + row * fromRow, rowBytes);
  }
}

} // namespace ogc::runtime
