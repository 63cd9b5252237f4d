//===- DeviceMemory.h - the current context and reserved addresses --------===//
#ifndef OGC_RUNTIME_CUDA_DEVICE_MEMORY_H
#define OGC_RUNTIME_CUDA_DEVICE_MEMORY_H

#include "runtime_lib/src/cuda/CudaApi.h"

namespace ogc::cuda {

/// Makes a context current for the life of this object and restores the caller's. Check `status()` first. Captures of the calling
/// thread are not disturbed by what is done meanwhile.
class CurrentContext {
public:
  CurrentContext(const DriverApi &api, CUcontext context);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

  const Status &status() const { return status_; }

private:
  const DriverApi &api_;
  Status status_;
  int captureMode_ = kCaptureModeRelaxed;
};

/// Device memory mapped at an address that the bundle asks for, or wherever the driver grants it. The context it was made in must
/// be current when it is destroyed.
class VirtualRegion {
public:
  VirtualRegion() = default;
  ~VirtualRegion() { release(); }
  VirtualRegion(VirtualRegion &&other) noexcept { swap(other); }
  VirtualRegion &operator=(VirtualRegion &&other) noexcept {
    swap(other);
    return *this;
  }

  /// Maps at least `bytes` (0: nothing) on device `ordinal`, at `hint` where that is free. What was made before a failure is
  /// released.
  static Result<VirtualRegion> map(const DriverApi &api, int ordinal, uint64_t bytes, CUdeviceptr hint);

  CUdeviceptr address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

private:
  Status initialize(int ordinal, uint64_t bytes, CUdeviceptr hint);
  void release();
  void swap(VirtualRegion &other) noexcept;

  const DriverApi *api_ = nullptr;
  CUdeviceptr address_ = 0;
  uint64_t bytes_ = 0, reservedBytes_ = 0;
  CUmemHandle handle_ = 0;
  bool created_ = false, mapped_ = false;
};

} // namespace ogc::cuda

#endif
