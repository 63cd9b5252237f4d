//===- CudaApi.cpp - opens the driver and cuBLASLt ------------------------===//
#include "runtime_lib/src/cuda/CudaApi.h"

#include <dlfcn.h>
#include <initializer_list>
#include <string>

namespace ogc::cuda {

namespace {

/// The first of `names` that can be opened. Never closed again: libraries of the driver do not survive that.
Result<void *> openLibrary(const char *what, std::initializer_list<const char *> names) {
  std::string reasons;
  for (const char *name : names) {
    if (void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return handle;
    const char *reason = dlerror();
    reasons += (reasons.empty() ? "" : "; ") + std::string(reason ? reason : name);
  }
  return Status(Code::NotFound, std::string(what) + " not found: " + reasons);
}

template <typename Function> Status findSymbol(void *library, const char *symbol, Function &out) {
  out = reinterpret_cast<Function>(dlsym(library, symbol));
  return out ? Status() : Status(Code::Unsupported, std::string("the installed library is too old: it has no ") + symbol);
}

Status fill(DriverApi &api) {
  Result<void *> library = openLibrary("the CUDA driver", {"libcuda.so.1"});
  if (!library.ok())
    return library.status();
#define OGC_FIND(name, symbol, parameters) OGC_RETURN_IF_ERROR(findSymbol(library.value(), symbol, api.name));
  OGC_CUDA_SYMBOLS(OGC_FIND)
  return Status();
}

Status fill(BlasApi &api) {
  Result<void *> library =
      openLibrary("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"});
  if (!library.ok())
    return library.status();
  OGC_BLAS_SYMBOLS(OGC_FIND)
#undef OGC_FIND
  return Status();
}

template <typename Api> struct Loaded {
  Api api;
  Status status = fill(api);
};

} // namespace

Result<const DriverApi *> loadDriver() {
  static const Loaded<DriverApi> loaded;
  if (!loaded.status.ok())
    return loaded.status;
  return &loaded.api;
}

Result<const BlasApi *> loadBlas() {
  static const Loaded<BlasApi> loaded;
  if (!loaded.status.ok())
    return loaded.status;
  return &loaded.api;
}

Status driverError(const DriverApi &api, CUresult result, const char *function) {
  const char *name = nullptr, *text = nullptr;
  std::string message = std::string(function) + " failed: ";
  if (api.cuGetErrorName(result, &name) != 0 || !name)
    return Status(Code::Device, message + "error " + std::to_string(result));
  message += name;
  if (api.cuGetErrorString(result, &text) == 0 && text)
    message += " (" + std::string(text) + ")";
  constexpr CUresult outOfMemory = 2;
  return Status(result == outOfMemory ? Code::OutOfMemory : Code::Device, message);
}

} // namespace ogc::cuda
