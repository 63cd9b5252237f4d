//===- DeviceMemory.cpp - the current context and reserved addresses ------===//
#include "runtime_lib/src/cuda/DeviceMemory.h"

#include "runtime_lib/format/FileHeader.h"

#include <string>
#include <utility>

namespace ogc::cuda {

CurrentContext::CurrentContext(const DriverApi &api, CUcontext context) : api_(api) {
  if (CUresult result = api_.cuCtxPushCurrent(context); result != 0)
    status_ = driverError(api_, result, "cuCtxPushCurrent");
  // Otherwise memory that is allocated or freed here breaks a capture that the caller has begun in this thread. A failure leaves
  // the mode as it is, which only matters within such a capture.
  if (status_.ok() && api_.cuThreadExchangeStreamCaptureMode(&captureMode_) != 0)
    captureMode_ = -1;
}

CurrentContext::~CurrentContext() {
  // Nothing can be reported from here; a failure to pop means that the driver is shutting down.
  CUcontext previous = nullptr;
  if (!status_.ok())
    return;
  if (captureMode_ >= 0)
    api_.cuThreadExchangeStreamCaptureMode(&captureMode_);
  api_.cuCtxPopCurrent(&previous);
}

Result<VirtualRegion> VirtualRegion::map(const DriverApi &api, int ordinal, uint64_t bytes, CUdeviceptr hint) {
  VirtualRegion region;
  region.api_ = &api;
  if (bytes != 0)
    OGC_RETURN_IF_ERROR(
        region.initialize(ordinal, bytes, hint).withContext("cannot map " + std::to_string(bytes) + " bytes of device memory"));
  return region;
}

Status VirtualRegion::initialize(int ordinal, uint64_t bytes, CUdeviceptr hint) {
  MemAllocationProp prop = {};
  prop.type = kMemAllocationPinned;
  prop.location = {kMemLocationDevice, ordinal};
  size_t granularity = 0;
  OGC_CUDA(*api_, cuMemGetAllocationGranularity, &granularity, &prop, kGranularityMinimum);
  uint64_t size = format::alignUp(bytes, granularity);
  // The driver takes the hint for reservations of 1 GiB, but serves one of 2 MiB from a pool of its own (seen with driver 580 on
  // an H200). Addresses cost nothing.
  uint64_t reserved = format::alignUp(size, uint64_t(1) << 30);
  OGC_CUDA(*api_, cuMemAddressReserve, &address_, reserved, 0, hint, 0);
  reservedBytes_ = reserved;
  bytes_ = size;
  OGC_CUDA(*api_, cuMemCreate, &handle_, size, &prop, 0);
  created_ = true;
  OGC_CUDA(*api_, cuMemMap, address_, size, 0, handle_, 0);
  mapped_ = true;
  MemAccessDesc access = {prop.location, kMemAccessReadWrite};
  OGC_CUDA(*api_, cuMemSetAccess, address_, size, &access, 1);
  return Status();
}

void VirtualRegion::release() {
  // Undone in reverse; a failure here leaves nothing better to do.
  if (mapped_)
    api_->cuMemUnmap(address_, bytes_);
  if (created_)
    api_->cuMemRelease(handle_);
  if (reservedBytes_ != 0)
    api_->cuMemAddressFree(address_, reservedBytes_);
  mapped_ = created_ = false;
  bytes_ = reservedBytes_ = 0;
}

void VirtualRegion::swap(VirtualRegion &other) noexcept {
  std::swap(api_, other.api_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(reservedBytes_, other.reservedBytes_);
  std::swap(handle_, other.handle_);
  std::swap(created_, other.created_);
  std::swap(mapped_, other.mapped_);
}

} // namespace ogc::cuda
