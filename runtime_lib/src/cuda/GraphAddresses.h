//===- GraphAddresses.h - where the arguments of a graph are --------------===//
#ifndef OGC_RUNTIME_CUDA_GRAPH_ADDRESSES_H
#define OGC_RUNTIME_CUDA_GRAPH_ADDRESSES_H

#include "runtime_lib/format/bundle_generated.h"
#include "runtime_lib/src/cuda/CudaTypes.h"

#include <span>
#include <vector>

namespace ogc::cuda {

namespace fb = format::fb;

/// Addresses of the sections, indexed by fb::Section.
struct SectionAddresses {
  CUdeviceptr base[5] = {};
  CUdeviceptr of(const fb::Slice &slice) const { return base[static_cast<size_t>(slice.section())] + slice.offset_bytes(); }
};

/// The arguments of a graph that lie in its inputs and outputs, from the bundle. Immutable.
class BindingTable {
public:
  struct Use {
    uint32_t node, argument, binding;
    uint64_t offset;
  };

  explicit BindingTable(const fb::Graph &graph);

  /// Inputs, then outputs.
  size_t bindings() const { return canReplace_.size(); }
  /// True where a buffer of the caller can take the binding's place: the bundle lists its uses, and none is a library node, whose
  /// parameters only the library knows.
  bool canReplace(size_t binding) const { return canReplace_[binding]; }
  /// The uses in `node`, in the order of its arguments.
  std::span<const Use> ofNode(uint32_t node) const;
  /// The nodes that use `binding`, ascending, each once.
  std::span<const uint32_t> nodesOf(size_t binding) const { return nodes_[binding]; }

private:
  std::vector<Use> uses_; // by node and argument
  std::vector<std::vector<uint32_t>> nodes_;
  std::vector<bool> canReplace_;
};

/// The addresses of one graph in one context. Refers to what it is made of.
struct GraphAddresses {
  const SectionAddresses &sections;
  /// Null, or the uses of bindings and for each binding the caller's buffer, 0 for the context's own.
  const BindingTable *table = nullptr;
  std::span<const CUdeviceptr> bound;

  /// The addresses of the arguments of node `index`.
  void resolve(const fb::Node &node, uint32_t index, std::vector<CUdeviceptr> &out) const;
};

} // namespace ogc::cuda

#endif
