//===- FakeDriver.h - a CUDA driver that does nothing, or fails -----------===//
#ifndef OGC_TEST_UNIT_FAKE_DRIVER_H
#define OGC_TEST_UNIT_FAKE_DRIVER_H

#include "runtime_lib/src/cuda/CudaApi.h"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace ogc::test {

/// State of the fake: which call is to fail, and what is alive. Releasing calls never fail, as there is nothing left to do about
/// it.
struct FakeState {
  int calls = 0, failAt = 0; // the call of this number fails; 0: none
  const char *failed = nullptr;
  std::map<std::string, int> live;
  int maxCluster = 0;
  std::vector<cuda::EdgeData> edges;

  int enter(const char *name) {
    if (++calls != failAt)
      return 0;
    failed = name;
    return 700; // any error number
  }
  void reset(int newFailAt) {
    *this = FakeState();
    failAt = newFailAt;
  }
  int leaked() const {
    int count = 0;
    for (const auto &[what, number] : live)
      count += std::abs(number);
    return count;
  }
};

inline FakeState fake;

/// The default behaviour of a function: count the call. `Tag` makes one instance for each function.
template <typename Tag, typename Function> struct FakeCall;
template <typename Tag, typename... Args> struct FakeCall<Tag, int (*)(Args...)> {
  static inline const char *name = "";
  static int call(Args...) { return fake.enter(name); }
};

/// Makes `what` alive where the call succeeds, and gives out a handle that is not null.
template <typename Handle> int create(const char *name, const char *what, Handle *out) {
  if (int result = fake.enter(name))
    return result;
  *out = (Handle)(uintptr_t(0x1000) + static_cast<uintptr_t>(++fake.live[what]));
  return 0;
}

inline int release(const char *what) {
  --fake.live[what];
  return 0;
}

inline cuda::DriverApi makeFakeDriver() {
  using namespace cuda;
  DriverApi api;
#define OGC_FAKE(function, symbol, parameters)                                                                                   \
  {                                                                                                                              \
    struct Tag;                                                                                                                  \
    FakeCall<Tag, decltype(api.function)>::name = #function;                                                                     \
    api.function = FakeCall<Tag, decltype(api.function)>::call;                                                                  \
  }
  OGC_CUDA_SYMBOLS(OGC_FAKE)
  api.cuGetErrorName = [](CUresult, const char **name) { return *name = "CUDA_ERROR_FAKE", 0; };
  api.cuGetErrorString = [](CUresult, const char **text) { return *text = "made up", 0; };
  api.cuDeviceGetCount = [](int *count) { return *count = 1, fake.enter("cuDeviceGetCount"); };
  api.cuDeviceGetAttribute = [](int *value, int attribute, CUdevice) {
    *value = attribute == kComputeCapabilityMajor ? 9 : 0;
    return fake.enter("cuDeviceGetAttribute");
  };
  api.cuDevicePrimaryCtxRetain = [](CUcontext *context, CUdevice) {
    return create("cuDevicePrimaryCtxRetain", "context", context);
  };
  api.cuDevicePrimaryCtxRelease = [](CUdevice) { return release("context"); };
  api.cuCtxPushCurrent = [](CUcontext) {
    int result = fake.enter("cuCtxPushCurrent");
    fake.live["current"] += result == 0;
    return result;
  };
  api.cuCtxPopCurrent = [](CUcontext *) { return release("current"); };
  api.cuModuleLoadData = [](CUmodule *module, const void *) { return create("cuModuleLoadData", "module", module); };
  api.cuModuleUnload = [](CUmodule) { return release("module"); };
  api.cuModuleGetFunction = [](CUfunction *function, CUmodule, const char *) {
    *function = (CUfunction)uintptr_t(8);
    return fake.enter("cuModuleGetFunction");
  };
  api.cuMemGetAllocationGranularity = [](size_t *bytes, const MemAllocationProp *, int) {
    return *bytes = 2 << 20, fake.enter("cuMemGetAllocationGranularity");
  };
  api.cuMemAddressReserve = [](CUdeviceptr *address, size_t, size_t, CUdeviceptr, unsigned long long) {
    return create("cuMemAddressReserve", "reservation", address);
  };
  api.cuMemAddressFree = [](CUdeviceptr, size_t) { return release("reservation"); };
  api.cuMemCreate = [](CUmemHandle *handle, size_t, const MemAllocationProp *, unsigned long long) {
    return create("cuMemCreate", "memory", handle);
  };
  api.cuMemRelease = [](CUmemHandle) { return release("memory"); };
  api.cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemHandle, unsigned long long) {
    int result = fake.enter("cuMemMap");
    fake.live["mapping"] += result == 0;
    return result;
  };
  api.cuMemUnmap = [](CUdeviceptr, size_t) { return release("mapping"); };
  api.cuMemAlloc = [](CUdeviceptr *address, size_t) { return create("cuMemAlloc", "allocation", address); };
  api.cuMemFree = [](CUdeviceptr) { return release("allocation"); };
  api.cuMemHostAlloc = [](void **memory, size_t size, unsigned) {
    int result = create("cuMemHostAlloc", "pinned", memory);
    if (result == 0)
      *memory = std::calloc(1, size);
    return result;
  };
  api.cuMemFreeHost = [](void *memory) { return std::free(memory), release("pinned"); };
  api.cuStreamCreate = [](CUstream *stream, unsigned) { return create("cuStreamCreate", "stream", stream); };
  api.cuStreamDestroy = [](CUstream) { return release("stream"); };
  api.cuStreamIsCapturing = [](CUstream, int *status) { return *status = 0, fake.enter("cuStreamIsCapturing"); };
  api.cuStreamBeginCaptureToGraph = [](CUstream, CUgraph, const CUgraphNode *, const EdgeData *, size_t, int) {
    int result = fake.enter("cuStreamBeginCaptureToGraph");
    fake.live["capture"] += result == 0;
    return result;
  };
  api.cuStreamGetCaptureInfo = [](CUstream, int *, unsigned long long *, CUgraph *, const CUgraphNode **nodes, const EdgeData **,
                                  size_t *count) {
    static const CUgraphNode leaf = (CUgraphNode)uintptr_t(64);
    *nodes = &leaf;
    *count = 1;
    return fake.enter("cuStreamGetCaptureInfo");
  };
  api.cuStreamEndCapture = [](CUstream, CUgraph *) { return release("capture"), fake.enter("cuStreamEndCapture"); };
  api.cuEventCreate = [](CUevent *event, unsigned) { return create("cuEventCreate", "event", event); };
  api.cuEventDestroy = [](CUevent) { return release("event"); };
  api.cuGraphCreate = [](CUgraph *graph, unsigned) { return create("cuGraphCreate", "graph", graph); };
  api.cuGraphDestroy = [](CUgraph) { return release("graph"); };
  api.cuGraphInstantiate = [](CUgraphExec *exec, CUgraph, unsigned long long) {
    return create("cuGraphInstantiate", "exec", exec);
  };
  api.cuGraphExecDestroy = [](CUgraphExec) { return release("exec"); };
  api.cuGraphAddDependencies = [](CUgraph, const CUgraphNode *, const CUgraphNode *, const EdgeData *data, size_t count) {
    fake.edges.insert(fake.edges.end(), data, data + count);
    return fake.enter("cuGraphAddDependencies");
  };
  api.cuGraphKernelNodeSetAttribute = [](CUgraphNode, int, const LaunchAttributeValue *value) {
    fake.maxCluster = static_cast<int>(value->clusterDim.x);
    return fake.enter("cuGraphKernelNodeSetAttribute");
  };
  return api;
}

inline cuda::BlasApi makeFakeBlas() {
  using namespace cuda;
  BlasApi api;
  OGC_BLAS_SYMBOLS(OGC_FAKE)
#undef OGC_FAKE
  api.cublasLtCreate = [](BlasHandle *handle) { return create("cublasLtCreate", "library", handle); };
  api.cublasLtDestroy = [](BlasHandle) { return release("library"); };
  api.cublasLtMatmulDescCreate = [](BlasDesc *desc, int, int) { return create("cublasLtMatmulDescCreate", "desc", desc); };
  api.cublasLtMatmulDescDestroy = [](BlasDesc) { return release("desc"); };
  api.cublasLtMatrixLayoutCreate = [](BlasLayout *layout, int, uint64_t, uint64_t, int64_t) {
    return create("cublasLtMatrixLayoutCreate", "layout", layout);
  };
  api.cublasLtMatrixLayoutDestroy = [](BlasLayout) { return release("layout"); };
  api.cublasLtMatmulPreferenceCreate = [](BlasPreference *preference) {
    return create("cublasLtMatmulPreferenceCreate", "preference", preference);
  };
  api.cublasLtMatmulPreferenceDestroy = [](BlasPreference) { return release("preference"); };
  api.cublasLtMatmulAlgoGetHeuristic = [](BlasHandle, BlasDesc, BlasLayout, BlasLayout, BlasLayout, BlasLayout, BlasPreference,
                                          int, BlasHeuristic *results, int *returned) {
    results[0].workspaceSize = 1024;
    *returned = 1;
    return fake.enter("cublasLtMatmulAlgoGetHeuristic");
  };
  return api;
}

} // namespace ogc::test

#endif
