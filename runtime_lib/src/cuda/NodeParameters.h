//===- NodeParameters.h - the parameters of a node for the driver ---------===//
#ifndef OGC_RUNTIME_CUDA_NODE_PARAMETERS_H
#define OGC_RUNTIME_CUDA_NODE_PARAMETERS_H

#include "runtime_lib/src/cuda/CudaEngine.h"
#include "runtime_lib/src/cuda/GraphAddresses.h"

#include <vector>

namespace ogc::cuda {

/// Makes the structures that describe a node to the driver, once to add it and again to change it. Reuses its memory, so that
/// changing a node allocates nothing. What it gives out is valid until the next call.
class NodeParameters {
public:
  /// Computes the addresses of the arguments of node `index`; the other functions use them.
  void resolve(const GraphAddresses &addresses, const fb::Node &node, uint32_t index) {
    addresses.resolve(node, index, arguments_);
  }
  const std::vector<CUdeviceptr> &arguments() const { return arguments_; }

  /// Fills in what `parameters()` gives for a kernel.
  Status kernel(const DriverApi &api, const LoadedKernel &kernel);
  const KernelNodeParams &parameters() const { return kernel_; }
  Memcpy3D copy(const fb::Node &node) const;
  MemsetNodeParams fill(const fb::Node &node) const;

private:
  std::vector<CUdeviceptr> arguments_;
  std::vector<TensorMapValue> maps_;
  std::vector<void *> pointers_;
  KernelNodeParams kernel_ = {};
};

} // namespace ogc::cuda

#endif
