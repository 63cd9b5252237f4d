//===- GraphAddresses.cpp - where the arguments of a graph are ------------===//
#include "runtime_lib/src/cuda/GraphAddresses.h"

#include <algorithm>
#include <tuple>

namespace ogc::cuda {

BindingTable::BindingTable(const fb::Graph &graph) {
  for (const auto *list : {graph.inputs(), graph.outputs()})
    for (const fb::Binding *binding : *list) {
      uint32_t index = static_cast<uint32_t>(canReplace_.size());
      bool canReplace = binding->uses() != nullptr;
      std::vector<uint32_t> &nodes = nodes_.emplace_back();
      for (unsigned i = 0; binding->uses() && i < binding->uses()->size(); ++i) {
        const fb::BindingUse &use = *binding->uses()->Get(i);
        uses_.push_back({use.node(), use.argument(), index, use.offset_bytes()});
        if (nodes.empty() || nodes.back() != use.node())
          nodes.push_back(use.node());
        canReplace &= graph.nodes()->Get(use.node())->kind() != fb::NodeKind::Gemm;
      }
      canReplace_.push_back(canReplace);
    }
  std::sort(uses_.begin(), uses_.end(),
            [](const Use &a, const Use &b) { return std::tie(a.node, a.argument) < std::tie(b.node, b.argument); });
}

std::span<const BindingTable::Use> BindingTable::ofNode(uint32_t node) const {
  auto begin = std::partition_point(uses_.begin(), uses_.end(), [&](const Use &use) { return use.node < node; });
  auto end = std::partition_point(begin, uses_.end(), [&](const Use &use) { return use.node == node; });
  return {begin, end};
}

void GraphAddresses::resolve(const fb::Node &node, uint32_t index, std::vector<CUdeviceptr> &out) const {
  out.clear();
  for (const fb::Slice *slice : *node.args())
    out.push_back(sections.of(*slice));
  if (table && !bound.empty())
    for (const BindingTable::Use &use : table->ofNode(index))
      if (CUdeviceptr buffer = bound[use.binding])
        out[use.argument] = buffer + use.offset;
}

} // namespace ogc::cuda
