//===- NodeParameters.cpp - the parameters of a node for the driver -------===//
#include "runtime_lib/src/cuda/NodeParameters.h"

namespace ogc::cuda {

namespace {

/// CUtensorMapSwizzle.
int swizzleOf(uint32_t bytes) { return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0; }

/// CUtensorMapDataType. f32 is what products by tf32 read: it is rounded on its way to shared memory.
int elementOf(fb::DataType type) {
  return type == fb::DataType::BF16 ? kTensorMapBfloat16 : type == fb::DataType::F32 ? kTensorMapTfloat32 : kTensorMapFloat16;
}

Status encode(const DriverApi &api, const fb::TensorMap &map, CUdeviceptr argument, TensorMapValue &out) {
  constexpr uint32_t elementStrides[5] = {1, 1, 1, 1, 1};
  OGC_CUDA(api, cuTensorMapEncodeTiled, &out, elementOf(map.type()), map.extents()->size(),
           devicePointer(argument + map.offset_bytes()), map.extents()->data(), map.strides_bytes()->data(), map.box()->data(),
           elementStrides, kTensorMapInterleaveNone, swizzleOf(map.swizzle_bytes()), kTensorMapPromotion256, kTensorMapFillZero);
  return Status();
}

} // namespace

Status NodeParameters::kernel(const DriverApi &api, const LoadedKernel &kernel) {
  pointers_.clear();
  for (CUdeviceptr &argument : arguments_)
    pointers_.push_back(&argument);
  const fb::CudaKernel &launch = *kernel.launch;
  // The maps hold addresses, so they are made anew wherever an address is.
  maps_.resize(launch.tensor_maps() ? launch.tensor_maps()->size() : 0);
  for (unsigned i = 0; i < maps_.size(); ++i) {
    const fb::TensorMap &map = *launch.tensor_maps()->Get(i);
    OGC_RETURN_IF_ERROR(encode(api, map, arguments_[map.argument()], maps_[i]));
    pointers_.push_back(&maps_[i]);
  }
  const fb::Dim3 &grid = *launch.grid(), &block = *launch.block();
  kernel_ = {kernel.function,       grid.x(),         grid.y(), grid.z(), block.x(), block.y(), block.z(),
             launch.shared_bytes(), pointers_.data(), nullptr,  nullptr,  nullptr};
  return Status();
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
