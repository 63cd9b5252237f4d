//===- BindingUses.cpp - which arguments lie in a buffer of the user ------===//
#include "runtime_lib/format/BindingUses.h"

#include <algorithm>

namespace ogc::format {

namespace {

uint64_t endOf(const fb::Slice &slice) { return slice.offset_bytes() + slice.size_bytes(); }

/// The bindings of one section that may be replaced, by offset; they are disjoint.
struct SectionBindings {
  std::vector<size_t> order;

  /// Leaves out those that share a byte with another.
  void dropOverlapping(std::span<const fb::Slice> bindings) {
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(bindings[a].offset_bytes(), a) < std::pair(bindings[b].offset_bytes(), b);
    });
    std::vector<bool> overlaps(order.size(), false);
    size_t furthest = 0; // position of the binding that ends last
    for (size_t i = 1; i < order.size(); ++i) {
      if (bindings[order[i]].offset_bytes() < endOf(bindings[order[furthest]]))
        overlaps[i] = overlaps[furthest] = true;
      if (endOf(bindings[order[i]]) > endOf(bindings[order[furthest]]))
        furthest = i;
    }
    size_t kept = 0;
    for (size_t i = 0; i < order.size(); ++i)
      if (!overlaps[i])
        order[kept++] = order[i];
    order.resize(kept);
  }
};

} // namespace

std::vector<std::optional<Uses>> bindingUses(std::span<const fb::Slice> bindings, size_t inputs,
                                             std::span<const Argument> arguments) {
  SectionBindings sections[2]; // inputs, outputs
  for (size_t i = 0; i < bindings.size(); ++i)
    if (bindings[i].size_bytes() != 0 && bindings[i].section() == (i < inputs ? fb::Section::Inputs : fb::Section::Outputs))
      sections[i < inputs ? 0 : 1].order.push_back(i);
  std::vector<std::optional<Uses>> result(bindings.size());
  for (SectionBindings &section : sections) {
    section.dropOverlapping(bindings);
    for (size_t i : section.order)
      result[i].emplace();
  }
  for (const Argument &argument : arguments) {
    const fb::Slice &slice = argument.slice;
    bool isInput = slice.section() == fb::Section::Inputs;
    if ((!isInput && slice.section() != fb::Section::Outputs) || slice.size_bytes() == 0)
      continue;
    const std::vector<size_t> &order = sections[isInput ? 0 : 1].order;
    auto first =
        std::partition_point(order.begin(), order.end(), [&](size_t i) { return endOf(bindings[i]) <= slice.offset_bytes(); });
    for (auto it = first; it != order.end() && bindings[*it].offset_bytes() < endOf(slice); ++it) {
      std::optional<Uses> &uses = result[*it];
      bool isInside = bindings[*it].offset_bytes() <= slice.offset_bytes() && endOf(slice) <= endOf(bindings[*it]);
      if (!isInside || (isInput && slice.access() != fb::Access::Read))
        uses.reset();
      else if (uses)
        uses->emplace_back(slice.offset_bytes() - bindings[*it].offset_bytes(), argument.node, argument.index);
    }
  }
  return result;
}

} // namespace ogc::format
