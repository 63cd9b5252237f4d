//===- BindingUses.h - which arguments lie in a buffer of the user --------===//
#ifndef OGC_FORMAT_BINDING_USES_H
#define OGC_FORMAT_BINDING_USES_H

#include "runtime_lib/format/bundle_generated.h"

#include <optional>
#include <span>
#include <vector>

namespace ogc::format {

/// An argument of a node.
struct Argument {
  uint32_t node, index;
  fb::Slice slice;
};

using Uses = std::vector<fb::BindingUse>;

/// For each of `bindings` (`inputs` inputs, then the outputs of one graph) the arguments that lie in it, in the order of
/// `arguments`. Nothing where the buffer cannot be replaced by another: it is empty, lies in another section than its kind's
/// (a state), overlaps another binding, or an argument overlaps it in part or writes to an input.
std::vector<std::optional<Uses>> bindingUses(std::span<const fb::Slice> bindings, size_t inputs,
                                             std::span<const Argument> arguments);

} // namespace ogc::format

#endif
