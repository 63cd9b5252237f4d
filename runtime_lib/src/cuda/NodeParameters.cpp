//===- NodeParameters.cpp - the parameters of a node for the driver -------===//
#include "runtime_lib/src/cuda/NodeParameters.h"

namespace ogc::cuda {

const KernelNodeParams &NodeParameters::kernel(const LoadedKernel &kernel) {
  pointers_.clear();
  for (CUdeviceptr &argument : arguments_)
    pointers_.push_back(&argument);
  const fb::CudaKernel &launch = *kernel.launch;
  const fb::Dim3 &grid = *launch.grid(), &block = *launch.block();
  kernel_ = {kernel.function,       grid.x(),         grid.y(), grid.z(), block.x(), block.y(), block.z(),
             launch.shared_bytes(), pointers_.data(), nullptr,  nullptr,  nullptr};
  return kernel_;
}

Memcpy3D NodeParameters::copy(const fb::Node &node) const {
  Memcpy3D params = {};
  params.srcMemoryType = params.dstMemoryType = kMemoryTypeDevice;
  params.srcDevice = arguments_[0];
  params.dstDevice = arguments_[1];
  params.WidthInBytes = node.args()->Get(0)->size_bytes();
  params.Height = params.Depth = 1;
  return params;
}

MemsetNodeParams NodeParameters::fill(const fb::Node &node) const {
  return {arguments_[0], 0, node.value(), 1, node.args()->Get(0)->size_bytes(), 1};
}

} // namespace ogc::cuda
