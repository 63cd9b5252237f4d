//===- CudaEngine.h - a bundle on a GPU -----------------------------------===//
#ifndef OGC_RUNTIME_CUDA_CUDA_ENGINE_H
#define OGC_RUNTIME_CUDA_CUDA_ENGINE_H

#include "runtime_lib/src/cuda/CudaApi.h"
#include "runtime_lib/src/cuda/DeviceMemory.h"
#include "runtime_lib/src/cuda/ExecPool.h"
#include "runtime_lib/src/cuda/GraphAddresses.h"
#include "runtime_lib/src/driver/Driver.h"

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace ogc::cuda {

using runtime::BundlePtr;
using runtime::ContextOptions;
using runtime::EngineOptions;
using runtime::ExecSwitch;
namespace fb = format::fb;

/// A kernel on this device.
struct LoadedKernel {
  CUfunction function = nullptr;
  const fb::CudaKernel *launch = nullptr;
};

/// The primary context of a device, the modules loaded into it and the weights.
class CudaEngine final : public runtime::Engine {
public:
  /// `api` stays in use as long as the engine lives. `blas` may be null: then the status says why, and gemm nodes run their
  /// fallback.
  static Result<std::shared_ptr<CudaEngine>> create(const DriverApi &api, Result<const BlasApi *> blas, BundlePtr bundle,
                                                    int ordinal, const EngineOptions &options);
  CudaEngine(const DriverApi &api, BundlePtr bundle, const EngineOptions &options);
  ~CudaEngine() override;

  Result<std::unique_ptr<runtime::Context>> createContext(std::shared_ptr<runtime::Engine> self,
                                                          const ContextOptions &options) override;
  const format::Bundle &bundle() const override { return *bundle_; }
  std::string deviceName() const override { return name_; }
  Status refit(const BundlePtr &refitted, const std::string &weightsFile) override;
  runtime::ExecStats execStats() const override { return execPool_.stats(); }
  Result<uint64_t> deviceBytesInUse() const override;

  const DriverApi &api() const { return api_; }
  const BlasApi *blas() const { return blas_; }
  /// Created on first use, because it costs time and memory that a bundle without gemm nodes need not pay.
  Result<BlasHandle> blasHandle();
  /// Why there is no cuBLASLt.
  const Status &blasStatus() const { return blasStatus_; }
  int ordinal() const { return ordinal_; }
  CUcontext context() const { return context_; }
  ExecPool &execPool() { return execPool_; }
  runtime::ExecSwitch execSwitch() const { return execSwitch_; }
  const BindingTable &bindingTable(size_t graph) const { return bindingTables_[graph]; }
  /// Held shared while a run is enqueued, and alone while weights are replaced.
  std::shared_mutex &weightsMutex() { return weightsMutex_; }
  CUdeviceptr weights() const { return weights_.address(); }
  /// Null where the bundle has no code of this kernel for the device.
  const LoadedKernel *kernel(uint32_t index) const { return kernels_[index].function ? &kernels_[index] : nullptr; }
  /// Replaces a kernel by one of its variants, for all graphs built later. Not safe while other threads use the engine.
  Status selectVariant(uint32_t kernel, uint32_t variant);

private:
  Status openDevice(int ordinal);
  Status loadKernels();
  /// Finds a kernel in its module; leaves `out` alone where the module is for another architecture.
  Status loadKernel(const fb::CudaKernel &launch, LoadedKernel &out);
  /// Divides first-level memory for all kernels that are loaded.
  Status chooseCarveout();
  Status uploadWeights(const EngineOptions &options);

  const DriverApi &api_;
  const BlasApi *blas_ = nullptr;
  Status blasStatus_;
  BundlePtr bundle_;
  std::string name_, arch_;
  int ordinal_ = 0;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::vector<CUmodule> modules_;
  std::vector<CUmodule> moduleOfBlob_; ///< null for other architectures
  std::vector<LoadedKernel> kernels_;
  int carveoutPercent_ = 100;
  VirtualRegion weights_;
  std::shared_mutex weightsMutex_;
  std::vector<BindingTable> bindingTables_;
  runtime::ExecSwitch execSwitch_;
  ExecPool execPool_;
  std::mutex blasMutex_;
  BlasHandle blasHandle_ = nullptr;
};

} // namespace ogc::cuda

#endif
