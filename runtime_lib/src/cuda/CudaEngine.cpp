//===- CudaEngine.cpp - device, modules, weights --------------------------===//
#include "runtime_lib/src/cuda/CudaEngine.h"

#include "runtime_lib/format/Refit.h"
#include "runtime_lib/src/cuda/Architecture.h"
#include "runtime_lib/src/cuda/Carveout.h"
#include "runtime_lib/src/cuda/CudaContext.h"
#include "runtime_lib/src/driver/Weights.h"

#include <algorithm>

namespace ogc::cuda {

Result<std::shared_ptr<CudaEngine>> CudaEngine::create(const DriverApi &api, Result<const BlasApi *> blas, BundlePtr bundle,
                                                       int ordinal, const EngineOptions &options) {
  auto engine = std::make_shared<CudaEngine>(api, std::move(bundle), options);
  engine->blasStatus_ = blas.status();
  engine->blas_ = blas.value();
  OGC_RETURN_IF_ERROR(engine->openDevice(ordinal));
  CurrentContext current(api, engine->context_);
  OGC_RETURN_IF_ERROR(current.status());
  OGC_RETURN_IF_ERROR(engine->loadKernels());
  OGC_RETURN_IF_ERROR(engine->uploadWeights(options));
  return engine;
}

CudaEngine::CudaEngine(const DriverApi &api, BundlePtr bundle, const EngineOptions &options)
    : api_(api), bundle_(std::move(bundle)), execSwitch_(options.execSwitch), execPool_(std::max<size_t>(options.execPool, 1)) {
  for (const fb::Graph *graph : *bundle_->manifest().graphs())
    bindingTables_.emplace_back(*graph);
}

Status CudaEngine::openDevice(int ordinal) {
  OGC_CUDA(api_, cuInit, 0);
  int count = 0;
  OGC_CUDA(api_, cuDeviceGetCount, &count);
  if (ordinal >= count)
    return Status(Code::NotFound,
                  "there is no device cuda:" + std::to_string(ordinal) + ", the driver knows " + std::to_string(count));
  CUdevice device = 0;
  OGC_CUDA(api_, cuDeviceGet, &device, ordinal);
  char name[256] = {};
  OGC_CUDA(api_, cuDeviceGetName, name, sizeof name - 1, device);
  int major = 0, minor = 0;
  OGC_CUDA(api_, cuDeviceGetAttribute, &major, kComputeCapabilityMajor, device);
  OGC_CUDA(api_, cuDeviceGetAttribute, &minor, kComputeCapabilityMinor, device);
  std::vector<std::string> archs;
  for (const auto *target : *bundle_->manifest().targets())
    if (target->string_view() != "cpu")
      archs.push_back(target->str());
  Result<std::string> arch = chooseArchitecture(archs, major, minor, name);
  if (!arch.ok())
    return arch.status();
  OGC_CUDA(api_, cuDevicePrimaryCtxRetain, &context_, device);
  name_ = name;
  arch_ = arch.value();
  ordinal_ = ordinal;
  device_ = device;
  return Status();
}

Status CudaEngine::loadKernels() {
  const fb::Manifest &manifest = bundle_->manifest();
  moduleOfBlob_.assign(manifest.blobs()->size(), nullptr);
  for (unsigned i = 0; i < manifest.blobs()->size(); ++i) {
    const fb::Blob &blob = *manifest.blobs()->Get(i);
    if (blob.kind() != fb::BlobKind::Cubin || blob.name()->string_view() != arch_)
      continue;
    OGC_CUDA(api_, cuModuleLoadData, &moduleOfBlob_[i], bundle_->blob(i).data());
    modules_.push_back(moduleOfBlob_[i]);
  }
  kernels_.resize(manifest.kernels()->size());
  for (unsigned i = 0; i < manifest.kernels()->size(); ++i) {
    const fb::Kernel &kernel = *manifest.kernels()->Get(i);
    for (unsigned j = 0; kernel.cuda() && j < kernel.cuda()->size(); ++j)
      OGC_RETURN_IF_ERROR(loadKernel(*kernel.cuda()->Get(j), kernels_[i]));
  }
  return chooseCarveout();
}

Status CudaEngine::chooseCarveout() {
  Multiprocessors device{};
  OGC_CUDA(api_, cuDeviceGetAttribute, &device.count, kMultiprocessors, device_);
  OGC_CUDA(api_, cuDeviceGetAttribute, &device.threads, kMultiprocessorThreads, device_);
  OGC_CUDA(api_, cuDeviceGetAttribute, &device.sharedBytes, kMultiprocessorSharedBytes, device_);
  auto volume = [](const fb::Dim3 &extents) { return int64_t(extents.x()) * extents.y() * extents.z(); };
  std::vector<KernelNeeds> needs;
  for (const LoadedKernel &kernel : kernels_)
    if (kernel.function) {
      int staticBytes = 0;
      OGC_CUDA(api_, cuFuncGetAttribute, &staticBytes, kFuncStaticSharedBytes, kernel.function);
      needs.push_back(
          {volume(*kernel.launch->grid()), volume(*kernel.launch->block()), kernel.launch->shared_bytes() + staticBytes});
    }
  carveoutPercent_ = carveoutPercent(needs, device);
  for (const LoadedKernel &kernel : kernels_)
    if (kernel.function)
      OGC_CUDA(api_, cuFuncSetAttribute, kernel.function, kFuncPreferredCarveout, carveoutPercent_);
  return Status();
}

Status CudaEngine::loadKernel(const fb::CudaKernel &launch, LoadedKernel &out) {
  CUmodule module = moduleOfBlob_[launch.cubin()];
  if (!module)
    return Status();
  CUfunction function = nullptr;
  OGC_CUDA(api_, cuModuleGetFunction, &function, module, launch.entry()->c_str());
  OGC_CUDA(api_, cuFuncSetAttribute, function, kFuncPreferredCarveout, carveoutPercent_);
  if (launch.shared_bytes() != 0)
    OGC_CUDA(api_, cuFuncSetAttribute, function, kFuncMaxDynamicSharedBytes, static_cast<int>(launch.shared_bytes()));
  const fb::Dim3 &cluster = *launch.cluster();
  if (cluster.x() * cluster.y() * cluster.z() > 8)
    OGC_CUDA(api_, cuFuncSetAttribute, function, kFuncNonPortableCluster, 1);
  out = {function, &launch};
  return Status();
}

Status CudaEngine::selectVariant(uint32_t kernel, uint32_t variant) {
  const auto *kernels = bundle_->manifest().kernels();
  const auto *variants = kernel < kernels->size() ? kernels->Get(kernel)->variants() : nullptr;
  if (!variants || variant >= variants->size())
    return Status(Code::InvalidArgument, "kernel " + std::to_string(kernel) + " has no variant " + std::to_string(variant));
  CurrentContext current(api_, context_);
  OGC_RETURN_IF_ERROR(current.status());
  return loadKernel(*variants->Get(variant)->kernel(), kernels_[kernel]);
}

Status CudaEngine::uploadWeights(const EngineOptions &options) {
  Result<runtime::HostWeights> weights = runtime::HostWeights::find(bundle_, options);
  if (!weights.ok())
    return weights.status();
  std::span<const std::byte> bytes = weights.value().bytes();
  Result<VirtualRegion> region = VirtualRegion::map(api_, ordinal_, bytes.size(), bundle_->manifest().arena()->weights_address());
  if (!region.ok())
    return region.status().withContext("weights");
  weights_ = std::move(region.value());
  if (!bytes.empty())
    OGC_CUDA(api_, cuMemcpyHtoD, weights_.address(), bytes.data(), bytes.size());
  return Status();
}

Status CudaEngine::refit(const BundlePtr &refitted, const std::string &weightsFile) {
  OGC_RETURN_IF_ERROR(format::checkRefit(*bundle_, *refitted));
  EngineOptions options;
  options.weightsFile = weightsFile;
  Result<runtime::HostWeights> weights = runtime::HostWeights::find(refitted, options);
  if (!weights.ok())
    return weights.status();
  CurrentContext current(api_, context_);
  OGC_RETURN_IF_ERROR(current.status());
  std::unique_lock lock(weightsMutex_);
  // Runs that were enqueued before still read the old ones.
  OGC_CUDA(api_, cuCtxSynchronize);
  std::span<const std::byte> bytes = weights.value().bytes();
  if (!bytes.empty())
    OGC_CUDA(api_, cuMemcpyHtoD, weights_.address(), bytes.data(), bytes.size());
  return Status();
}

Result<uint64_t> CudaEngine::deviceBytesInUse() const {
  CurrentContext current(api_, context_);
  OGC_RETURN_IF_ERROR(current.status());
  size_t free = 0, total = 0;
  OGC_CUDA(api_, cuMemGetInfo, &free, &total);
  return uint64_t(total - free);
}

Result<BlasHandle> CudaEngine::blasHandle() {
  if (!blas_)
    return blasStatus_;
  std::lock_guard lock(blasMutex_);
  if (!blasHandle_)
    OGC_BLAS(*blas_, cublasLtCreate, &blasHandle_);
  return blasHandle_;
}

CudaEngine::~CudaEngine() {
  if (!context_)
    return;
  {
    CurrentContext current(api_, context_);
    if (blasHandle_)
      blas_->cublasLtDestroy(blasHandle_);
    weights_ = VirtualRegion();
    for (CUmodule module : modules_)
      api_.cuModuleUnload(module);
  }
  api_.cuDevicePrimaryCtxRelease(device_);
}

} // namespace ogc::cuda

namespace ogc::runtime {

Result<std::shared_ptr<Engine>> createCudaEngine(BundlePtr bundle, int device, const EngineOptions &options) {
  Result<const cuda::DriverApi *> driver = cuda::loadDriver();
  if (!driver.ok())
    return driver.status();
  Result<std::shared_ptr<cuda::CudaEngine>> engine =
      cuda::CudaEngine::create(*driver.value(), cuda::loadBlas(), std::move(bundle), device, options);
  if (!engine.ok())
    return engine.status();
  return std::shared_ptr<Engine>(std::move(engine.value()));
}

} // namespace ogc::runtime
