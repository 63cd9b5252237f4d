//===- VerifyGraph.cpp - bindings, nodes and edges ------------------------===//
#include "runtime_lib/format/VerifyGraph.h"

#include "runtime_lib/format/BindingUses.h"
#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/FileHeader.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace ogc::format {

bool isTensorOfBytes(DataType type, const flatbuffers::Vector<int64_t> &shape, uint64_t bytes) {
  uint64_t size = elementBytes(type);
  if (size == 0 || !isAligned(shape))
    return false;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size))
      return false;
  return size == bytes;
}

namespace {

class GraphVerifier {
public:
  GraphVerifier(const fb::Manifest &manifest, const fb::Graph &graph)
      : manifest_(manifest), graph_(graph), where_("graph '" + graph.id()->str() + "'") {}

  Status run() {
    if (graph_.id()->size() == 0)
      return invalid("has no id");
    if (graph_.scratch_bytes() > manifest_.arena()->scratch_bytes())
      return invalid("needs more scratch than the arena has");
    OGC_RETURN_IF_ERROR(verifyBindings(*graph_.inputs(), "input", fb::Section::Inputs));
    OGC_RETURN_IF_ERROR(verifyBindings(*graph_.outputs(), "output", fb::Section::Outputs));
    for (unsigned i = 0; i < graph_.nodes()->size(); ++i)
      OGC_RETURN_IF_ERROR(verifyNode(i));
    OGC_RETURN_IF_ERROR(verifyUses());
    return verifyEdges();
  }

private:
  Status invalid(const std::string &what) const { return Status(Code::DataLoss, where_ + ": " + what); }
  Status invalidNode(unsigned index, const std::string &what) const {
    return invalid("node " + std::to_string(index) + " " + what);
  }

  bool isInside(const fb::Slice &slice) const {
    if (slice.section() > fb::Section::MAX || slice.access() == fb::Access::None || slice.access() > fb::Access::MAX)
      return false;
    uint64_t bytes = sectionBytes(*manifest_.arena(), slice.section());
    return slice.offset_bytes() <= bytes && slice.size_bytes() <= bytes - slice.offset_bytes();
  }

  using Bindings = flatbuffers::Vector<flatbuffers::Offset<fb::Binding>>;
  Status verifyBindings(const Bindings &bindings, const char *kind, fb::Section section) const {
    std::set<std::string_view> names;
    for (const fb::Binding *binding : bindings) {
      std::string what = std::string(kind) + " '" + binding->name()->str() + "' ";
      if (!names.insert(binding->name()->string_view()).second)
        return invalid(what + "is there twice");
      if (!isInside(*binding->slice()))
        return invalid(what + "lies outside its section");
      if (binding->slice()->section() != section && binding->slice()->section() != fb::Section::State)
        return invalid(what + "lies in " + sectionName(binding->slice()->section()));
      if (binding->symbols()->size() != binding->shape()->size())
        return invalid(what + "has " + std::to_string(binding->symbols()->size()) + " dimension names, expected " +
                       std::to_string(binding->shape()->size()));
      if (!isTensorOfBytes(binding->type(), *binding->shape(), binding->slice()->size_bytes()))
        return invalid(what + "has a size that is not that of its shape and type");
      if (const fb::Slice *extent = binding->extent())
        if (!isInside(*extent) || extent->size_bytes() != sizeof(int64_t) || extent->offset_bytes() % sizeof(int64_t) != 0 ||
            extent->section() != binding->slice()->section() || binding->extent_dim() >= binding->shape()->size())
          return invalid(what + "has an extent that is no number of its section");
    }
    return Status();
  }

  /// The lists of uses are complete and right: computed again, and compared.
  Status verifyUses() const {
    std::vector<fb::Slice> slices;
    std::vector<const fb::Binding *> bindings;
    for (const Bindings *list : {graph_.inputs(), graph_.outputs()})
      for (const fb::Binding *binding : *list) {
        if (binding->uses() && !isAligned(*binding->uses()))
          return invalid("'" + binding->name()->str() + "' has misaligned uses");
        bindings.push_back(binding);
        slices.push_back(*binding->slice());
      }
    std::vector<Argument> arguments;
    for (uint32_t node = 0; node < graph_.nodes()->size(); ++node)
      for (uint32_t i = 0; i < graph_.nodes()->Get(node)->args()->size(); ++i)
        arguments.push_back({node, i, *graph_.nodes()->Get(node)->args()->Get(i)});
    std::vector<std::optional<Uses>> expected = bindingUses(slices, graph_.inputs()->size(), arguments);
    for (size_t i = 0; i < bindings.size(); ++i)
      if (bindings[i]->uses() && !isEqual(*bindings[i]->uses(), expected[i]))
        return invalid("the uses of '" + bindings[i]->name()->str() + "' are not the arguments that lie in it");
    return Status();
  }

  static bool isEqual(const flatbuffers::Vector<const fb::BindingUse *> &uses, const std::optional<Uses> &expected) {
    return expected && std::equal(uses.begin(), uses.end(), expected->begin(), expected->end(),
                                  [](const fb::BindingUse *a, const fb::BindingUse &b) {
                                    return a->node() == b.node() && a->argument() == b.argument() &&
                                           a->offset_bytes() == b.offset_bytes();
                                  });
  }

  Status verifyNode(unsigned index) const {
    const fb::Node &node = *graph_.nodes()->Get(index);
    if (node.kind() > fb::NodeKind::MAX)
      return invalidNode(index, "has an unknown kind");
    if (!isAligned(*node.args()))
      return invalidNode(index, "has misaligned arguments");
    for (const fb::Slice *slice : *node.args()) {
      if (!isInside(*slice))
        return invalidNode(index, "has an argument outside its section");
      if (slice->section() == fb::Section::Weights && slice->access() != fb::Access::Read)
        return invalidNode(index, "writes to weights");
    }
    switch (node.kind()) {
    case fb::NodeKind::Kernel:
      return verifyKernel(index, node, /*onCuda=*/true);
    case fb::NodeKind::Gemm:
      OGC_RETURN_IF_ERROR(verifyGemm(index, node));
      return verifyKernel(index, node, /*onCuda=*/false);
    case fb::NodeKind::Memcpy:
      if (node.args()->size() != 2 || node.args()->Get(0)->size_bytes() != node.args()->Get(1)->size_bytes())
        return invalidNode(index, "is no copy between two slices of one size");
      if (node.args()->Get(1)->access() == fb::Access::Read)
        return invalidNode(index, "copies to a slice that it only reads");
      return Status();
    case fb::NodeKind::Memset:
      if (node.args()->size() != 1 || node.args()->Get(0)->access() == fb::Access::Read)
        return invalidNode(index, "does not fill exactly one slice");
      return Status();
    }
    return Status();
  }

  /// The kernel exists, has code for every target that would launch it, and has as many arguments as the node gives.
  Status verifyKernel(unsigned index, const fb::Node &node, bool onCuda) const {
    if (node.kernel() >= manifest_.kernels()->size())
      return invalidNode(index, "refers to kernel " + std::to_string(node.kernel()) + ", which does not exist");
    const fb::Kernel &kernel = *manifest_.kernels()->Get(node.kernel());
    size_t count = node.args()->size() - (node.kind() == fb::NodeKind::Gemm && node.gemm()->has_workspace());
    if (kernel.arg_types() && kernel.arg_types()->size() != count)
      return invalidNode(index,
                         "has " + std::to_string(count) + " arguments, expected " + std::to_string(kernel.arg_types()->size()));
    if (kernel.work() && kernel.work()->arg_bytes()->size() != count)
      return invalidNode(index, "has " + std::to_string(count) + " arguments, expected the " +
                                    std::to_string(kernel.work()->arg_bytes()->size()) + " that its work is counted for");
    for (const auto *target : *manifest_.targets())
      if (target->string_view() == "cpu" ? !kernel.cpu() : onCuda && !hasLaunch(kernel, target->string_view()))
        return invalidNode(index, "kernel '" + kernel.name()->str() + "' has no code for target '" + target->str() + "'");
    for (unsigned i = 0; kernel.cuda() && i < kernel.cuda()->size(); ++i)
      OGC_RETURN_IF_ERROR(verifyTensorMaps(index, node, count, *kernel.cuda()->Get(i)));
    for (unsigned i = 0; kernel.variants() && i < kernel.variants()->size(); ++i)
      OGC_RETURN_IF_ERROR(verifyTensorMaps(index, node, count, *kernel.variants()->Get(i)->kernel()));
    return Status();
  }

  /// Tensor maps stay in their argument, so that no copy of a box leaves it: parts of a box outside of the map are not read.
  Status verifyTensorMaps(unsigned index, const fb::Node &node, size_t count, const fb::CudaKernel &launch) const {
    for (unsigned i = 0; launch.tensor_maps() && i < launch.tensor_maps()->size(); ++i) {
      const fb::TensorMap &map = *launch.tensor_maps()->Get(i);
      if (map.argument() >= count)
        return invalidNode(index, "has a tensor map of argument " + std::to_string(map.argument()) + ", which does not exist");
      const fb::Slice &slice = *node.args()->Get(map.argument());
      uint64_t end = map.extents()->Get(0) * elementBytes(map.type());
      bool isIn = !__builtin_add_overflow(end, map.offset_bytes(), &end);
      for (unsigned dim = 1; isIn && dim < map.extents()->size(); ++dim) {
        uint64_t span = 0;
        isIn = !__builtin_mul_overflow(map.extents()->Get(dim) - 1, map.strides_bytes()->Get(dim - 1), &span) &&
               !__builtin_add_overflow(end, span, &end);
      }
      if (!isIn || end > slice.size_bytes())
        return invalidNode(index, "has a tensor map that leaves argument " + std::to_string(map.argument()));
      if (slice.offset_bytes() % 16 != 0)
        return invalidNode(index, "has a tensor map of argument " + std::to_string(map.argument()) +
                                      ", which does not begin at a multiple of 16 bytes");
    }
    return Status();
  }

  bool hasLaunch(const fb::Kernel &kernel, std::string_view arch) const {
    for (unsigned i = 0; kernel.cuda() && i < kernel.cuda()->size(); ++i)
      if (manifest_.blobs()->Get(kernel.cuda()->Get(i)->cubin())->name()->string_view() == arch)
        return true;
    return false;
  }

  Status verifyGemm(unsigned index, const fb::Node &node) const {
    if (!node.gemm())
      return invalidNode(index, "has no gemm description");
    const fb::Gemm &gemm = *node.gemm();
    if (gemm.activation() > fb::Activation::MAX)
      return invalidNode(index, "has an unknown activation");
    size_t expected = 3 + gemm.has_bias() + gemm.has_residual() + gemm.has_workspace();
    if (node.args()->size() != expected)
      return invalidNode(index,
                         "has " + std::to_string(node.args()->size()) + " arguments, expected " + std::to_string(expected));
    const fb::Slice &last = *node.args()->Get(node.args()->size() - 1);
    if (gemm.has_workspace() && (last.section() != fb::Section::Scratch || last.access() != fb::Access::Write))
      return invalidNode(index, "has a workspace that is not written scratch");
    constexpr int64_t limit = int64_t(1) << 31;
    for (int64_t extent : {gemm.batch(), gemm.m(), gemm.n(), gemm.k()})
      if (extent < 1 || extent >= limit)
        return invalidNode(index, "has an extent out of range");
    uint64_t in = elementBytes(gemm.element_type()), out = elementBytes(gemm.result_type());
    if (in == 0 || out == 0)
      return invalidNode(index, "has an unknown type");
    unsigned argument = 0;
    auto take = [&](uint64_t count, int64_t rows, int64_t columns, uint64_t bytes) {
      uint64_t size = bytes;
      for (uint64_t factor : {count, uint64_t(rows), uint64_t(columns)})
        if (__builtin_mul_overflow(size, factor, &size))
          return false;
      return node.args()->Get(argument++)->size_bytes() == size;
    };
    uint64_t batch = static_cast<uint64_t>(gemm.batch());
    bool fits = take(batch, gemm.m(), gemm.k(), in) && take(gemm.broadcast_b() ? 1 : batch, gemm.k(), gemm.n(), in);
    fits =
        fits && (!gemm.has_bias() || take(1, 1, gemm.n(), out)) && (!gemm.has_residual() || take(batch, gemm.m(), gemm.n(), out));
    fits = fits && take(batch, gemm.m(), gemm.n(), out);
    return fits ? Status() : invalidNode(index, "argument " + std::to_string(argument - 1) + " has not the size of its matrix");
  }

  Status verifyEdges() const {
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (const fb::Edge *edge : *graph_.edges()) {
      std::string what = "edge " + std::to_string(edge->from()) + " -> " + std::to_string(edge->to());
      if (edge->kind() > fb::EdgeKind::MAX)
        return invalid(what + " has an unknown kind");
      if (edge->from() >= edge->to() || edge->to() >= graph_.nodes()->size())
        return invalid(what + " does not lead from a lower to a higher node");
      if (edge->kind() == fb::EdgeKind::Programmatic && (graph_.nodes()->Get(edge->from())->kind() != fb::NodeKind::Kernel ||
                                                         graph_.nodes()->Get(edge->to())->kind() != fb::NodeKind::Kernel))
        return invalid(what + " is programmatic, but not from kernel to kernel");
      edges.emplace_back(edge->from(), edge->to());
    }
    std::sort(edges.begin(), edges.end());
    if (auto twice = std::adjacent_find(edges.begin(), edges.end()); twice != edges.end())
      return invalid("edge " + std::to_string(twice->first) + " -> " + std::to_string(twice->second) + " is there twice");
    return Status();
  }

  const fb::Manifest &manifest_;
  const fb::Graph &graph_;
  std::string where_;
};

} // namespace

namespace {

bool isEmptyTransfer(const fb::Node &node) {
  return (node.kind() == fb::NodeKind::Memcpy || node.kind() == fb::NodeKind::Memset) && node.args()->Get(0)->size_bytes() == 0;
}

/// Nodes of the same kinds, and the same edges.
bool isSameTopology(const fb::Graph &a, const fb::Graph &b) {
  if (a.nodes()->size() != b.nodes()->size() || a.edges()->size() != b.edges()->size())
    return false;
  for (unsigned i = 0; i < a.nodes()->size(); ++i)
    if (a.nodes()->Get(i)->kind() != b.nodes()->Get(i)->kind() ||
        isEmptyTransfer(*a.nodes()->Get(i)) != isEmptyTransfer(*b.nodes()->Get(i)))
      return false;
  return std::equal(a.edges()->begin(), a.edges()->end(), b.edges()->begin(), [](const fb::Edge *x, const fb::Edge *y) {
    return x->from() == y->from() && x->to() == y->to() && x->kind() == y->kind();
  });
}

/// Sections are no larger than what is in them: memory is given for what a bundle says.
Status verifySectionSizes(const fb::Manifest &manifest) {
  uint64_t used[5] = {};
  auto use = [&](const fb::Slice &slice) {
    uint64_t &end = used[static_cast<size_t>(slice.section())];
    end = std::max(end, slice.offset_bytes() + slice.size_bytes());
  };
  for (const fb::Graph *graph : *manifest.graphs()) {
    for (const auto *bindings : {graph->inputs(), graph->outputs()})
      for (const fb::Binding *binding : *bindings)
        use(*binding->slice());
    for (const fb::Node *node : *graph->nodes())
      for (const fb::Slice *slice : *node->args())
        use(*slice);
  }
  for (const fb::Weight *weight : *manifest.weights())
    used[0] = std::max(used[0], weight->offset_bytes() + weight->size_bytes());
  for (fb::Section section : fb::EnumValuesSection()) {
    uint64_t bytes = sectionBytes(*manifest.arena(), section), most = alignUp(used[static_cast<size_t>(section)]);
    if (bytes > most)
      return Status(Code::DataLoss, std::string("arena: section ") + sectionName(section) + " has " + std::to_string(bytes) +
                                        " bytes, expected at most " + std::to_string(most));
  }
  return Status();
}

Status verifyTopologies(const fb::Manifest &manifest) {
  std::map<uint32_t, const fb::Graph *> classes;
  for (const fb::Graph *graph : *manifest.graphs()) {
    if (graph->topology() == kNoTopology)
      continue;
    const fb::Graph &first = *classes.try_emplace(graph->topology(), graph).first->second;
    if (!isSameTopology(first, *graph))
      return Status(Code::DataLoss,
                    "graph '" + graph->id()->str() + "': is said to have the topology of '" + first.id()->str() + "'");
  }
  return Status();
}

} // namespace

Status verifyGraphs(const fb::Manifest &manifest) {
  if (manifest.graphs()->size() == 0)
    return Status(Code::DataLoss, "manifest: has no graph");
  std::set<std::string_view> ids;
  for (const fb::Graph *graph : *manifest.graphs()) {
    if (!ids.insert(graph->id()->string_view()).second)
      return Status(Code::DataLoss, "graph '" + graph->id()->str() + "': is there twice");
    OGC_RETURN_IF_ERROR(GraphVerifier(manifest, *graph).run());
  }
  OGC_RETURN_IF_ERROR(verifySectionSizes(manifest));
  return verifyTopologies(manifest);
}

} // namespace ogc::format
