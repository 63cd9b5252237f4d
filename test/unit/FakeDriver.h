//===- FakeDriver.h - a CUDA driver that does nothing, or fails -----------===//
#ifndef OGC_TEST_UNIT_FAKE_DRIVER_H
#define OGC_TEST_UNIT_FAKE_DRIVER_H

#include "runtime_lib/src/cuda/CudaApi.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace ogc::test {

/// State of the fake: which call is to fail, and what is alive. Releasing calls never fail, as there is nothing left to do about
/// it.
struct FakeNode {
  char kind; // k, c, f
  cuda::CUfunction function = nullptr;
  std::vector<cuda::CUdeviceptr> arguments;
};

/// Nodes in the order they were added, and edges between their positions. A graph and its executable form are one of these each.
struct FakeGraph {
  std::vector<FakeNode> nodes;
  std::vector<std::pair<size_t, size_t>> edges;
  cuda::CUgraph origin = nullptr; // of an executable graph

  bool isSameTopology(const FakeGraph &other) const {
    return edges == other.edges && nodes.size() == other.nodes.size() &&
           std::equal(nodes.begin(), nodes.end(), other.nodes.begin(), [](auto &a, auto &b) { return a.kind == b.kind; });
  }
};

struct FakeState {
  int calls = 0, failAt = 0;  // the call of this number fails; 0: none
  bool refuseChanges = false; // of executable graphs, as if they were not possible
  int captureStatus = 0;      // of the caller's stream
  unsigned memoryType = cuda::kMemoryTypeDevice;
  int memoryOrdinal = 0;
  std::map<cuda::CUgraph, FakeGraph> graphs;
  std::map<cuda::CUgraphExec, FakeGraph> execs;
  std::vector<FakeGraph> launches;
  std::map<cuda::CUevent, size_t> recorded; // launches before the event; each of their nodes takes one microsecond
  uintptr_t nextHandle = 0x1000;
  const char *failed = nullptr;
  std::map<std::string, int> live;
  int maxCluster = 0;
  std::vector<cuda::EdgeData> edges;
  size_t neededWorkspace = 1024, workspaceBytes = 0; // of the last product by the library
  void *workspace = nullptr;

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
  ++fake.live[what];
  *out = (Handle)(fake.nextHandle += 0x1000);
  return 0;
}

inline int release(const char *what) {
  --fake.live[what];
  return 0;
}

/// A node's handle holds its graph and position. Graphs have handles that are multiples of 0x1000.
inline size_t positionOf(cuda::CUgraphNode node) { return ((uintptr_t)node & 0xfff) - 1; }

inline int addNode(const char *name, cuda::CUgraphNode *out, cuda::CUgraph graph, FakeNode node) {
  if (int result = fake.enter(name))
    return result;
  fake.graphs[graph].nodes.push_back(std::move(node));
  *out = (cuda::CUgraphNode)((uintptr_t)graph + fake.graphs[graph].nodes.size());
  return 0;
}

/// Function handles say how many parameters the kernel has, which the driver knows too.
inline FakeNode kernelNode(const cuda::KernelNodeParams &params) {
  FakeNode node{'k', params.func, {}};
  for (size_t i = 0; i < (uintptr_t)params.func % 16; ++i)
    node.arguments.push_back(*static_cast<cuda::CUdeviceptr *>(params.kernelParams[i]));
  return node;
}

/// Changes a node of an executable graph, which its node in the graph of origin names.
inline int setNode(const char *name, cuda::CUgraphExec exec, cuda::CUgraphNode handle, FakeNode node) {
  if (int result = fake.enter(name))
    return result;
  FakeGraph &graph = fake.execs.at(exec);
  if (fake.refuseChanges || (uintptr_t)handle / 0x1000 != (uintptr_t)graph.origin / 0x1000 ||
      graph.nodes.at(positionOf(handle)).kind != node.kind)
    return 910;
  graph.nodes[positionOf(handle)] = std::move(node);
  return 0;
}

inline void fakeGraphs(cuda::DriverApi &api) {
  using namespace cuda;
  api.cuGraphCreate = [](CUgraph *graph, unsigned) { return create("cuGraphCreate", "graph", graph); };
  api.cuGraphDestroy = [](CUgraph graph) { return fake.graphs.erase(graph), release("graph"); };
  api.cuGraphAddKernelNode = [](CUgraphNode *node, CUgraph graph, const CUgraphNode *, size_t, const KernelNodeParams *params) {
    return addNode("cuGraphAddKernelNode", node, graph, kernelNode(*params));
  };
  api.cuGraphAddMemcpyNode = [](CUgraphNode *node, CUgraph graph, const CUgraphNode *, size_t, const Memcpy3D *params,
                                CUcontext) {
    return addNode("cuGraphAddMemcpyNode", node, graph, {'c', nullptr, {params->srcDevice, params->dstDevice}});
  };
  api.cuGraphAddMemsetNode = [](CUgraphNode *node, CUgraph graph, const CUgraphNode *, size_t, const MemsetNodeParams *params,
                                CUcontext) {
    return addNode("cuGraphAddMemsetNode", node, graph, {'f', nullptr, {params->dst}});
  };
  api.cuGraphAddDependencies = [](CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const EdgeData *data,
                                  size_t count) {
    fake.edges.insert(fake.edges.end(), data, data + count);
    for (size_t i = 0; i < count; ++i)
      fake.graphs[graph].edges.emplace_back(positionOf(from[i]), positionOf(to[i]));
    return fake.enter("cuGraphAddDependencies");
  };
  api.cuGraphKernelNodeSetAttribute = [](CUgraphNode, int, const LaunchAttributeValue *value) {
    fake.maxCluster = static_cast<int>(value->clusterDim.x);
    return fake.enter("cuGraphKernelNodeSetAttribute");
  };
  api.cuGraphInstantiate = [](CUgraphExec *exec, CUgraph graph, unsigned long long) {
    int result = create("cuGraphInstantiate", "exec", exec);
    if (result == 0)
      (fake.execs[*exec] = fake.graphs[graph]).origin = graph;
    return result;
  };
  api.cuGraphExecDestroy = [](CUgraphExec exec) { return fake.execs.erase(exec), release("exec"); };
  api.cuGraphExecUpdate = [](CUgraphExec exec, CUgraph graph, ExecUpdateInfo *info) {
    if (int result = fake.enter("cuGraphExecUpdate"))
      return result;
    FakeGraph &changed = fake.execs.at(exec);
    info->result = fake.refuseChanges || !changed.isSameTopology(fake.graphs[graph]) ? 2 : 0;
    if (info->result == 0)
      changed.nodes = fake.graphs[graph].nodes;
    return info->result == 0 ? 0 : 910;
  };
  api.cuGraphExecKernelNodeSetParams = [](CUgraphExec exec, CUgraphNode node, const KernelNodeParams *params) {
    return setNode("cuGraphExecKernelNodeSetParams", exec, node, kernelNode(*params));
  };
  api.cuGraphExecMemcpyNodeSetParams = [](CUgraphExec exec, CUgraphNode node, const Memcpy3D *params, CUcontext) {
    return setNode("cuGraphExecMemcpyNodeSetParams", exec, node, {'c', nullptr, {params->srcDevice, params->dstDevice}});
  };
  api.cuGraphExecMemsetNodeSetParams = [](CUgraphExec exec, CUgraphNode node, const MemsetNodeParams *params, CUcontext) {
    return setNode("cuGraphExecMemsetNodeSetParams", exec, node, {'f', nullptr, {params->dst}});
  };
  // What a map describes is found in it again by the address, its first word here.
  api.cuTensorMapEncodeTiled = [](TensorMapValue *map, int type, unsigned rank, void *address, const uint64_t *extents,
                                  const uint64_t *strides, const uint32_t *box, const uint32_t *, int, int swizzle, int, int) {
    *map = {{(uint64_t)address, (uint64_t)type, rank, extents[0], extents[1], strides[0], box[0], box[1], (uint64_t)swizzle}};
    return fake.enter("cuTensorMapEncodeTiled");
  };
  api.cuGraphLaunch = [](CUgraphExec exec, CUstream) {
    int result = fake.enter("cuGraphLaunch");
    if (result == 0)
      fake.launches.push_back(fake.execs.at(exec));
    return result;
  };
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
  api.cuModuleGetFunction = [](CUfunction *function, CUmodule, const char *name) {
    // A handle for each kernel of TestKernels.c, with its number of parameters; "mapped" is add_weight with a tensor map.
    std::string kernel = name;
    *function = (CUfunction)(uintptr_t(kernel == "add_weight" ? 0x13
                                       : kernel == "twice"    ? 0x22
                                       : kernel == "mapped"   ? 0x44
                                                              : 0x33));
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
  api.cuStreamIsCapturing = [](CUstream, int *status) { return *status = fake.captureStatus, fake.enter("cuStreamIsCapturing"); };
  api.cuPointerGetAttributes = [](unsigned, const int *, void **values, CUdeviceptr) {
    *static_cast<unsigned *>(values[0]) = fake.memoryType;
    *static_cast<int *>(values[1]) = fake.memoryOrdinal;
    return fake.enter("cuPointerGetAttributes");
  };
  api.cuMemGetInfo = [](size_t *free, size_t *total) { return *free = 1, *total = 4, fake.enter("cuMemGetInfo"); };
  api.cuStreamBeginCaptureToGraph = [](CUstream, CUgraph, const CUgraphNode *, const EdgeData *, size_t, int) {
    int result = fake.enter("cuStreamBeginCaptureToGraph");
    fake.live["capture"] += result == 0;
    return result;
  };
  api.cuStreamGetCaptureInfo = [](CUstream, int *, unsigned long long *, CUgraph *, const CUgraphNode **nodes, const EdgeData **,
                                  size_t *count) {
    static const CUgraphNode leaf = (CUgraphNode)uintptr_t(1);
    *nodes = &leaf;
    *count = 1;
    return fake.enter("cuStreamGetCaptureInfo");
  };
  api.cuStreamEndCapture = [](CUstream, CUgraph *) { return release("capture"), fake.enter("cuStreamEndCapture"); };
  api.cuEventCreate = [](CUevent *event, unsigned) { return create("cuEventCreate", "event", event); };
  api.cuEventDestroy = [](CUevent) { return release("event"); };
  api.cuEventRecord = [](CUevent event, CUstream) {
    fake.recorded[event] = fake.launches.size();
    return fake.enter("cuEventRecord");
  };
  api.cuEventElapsedTime = [](float *milliseconds, CUevent from, CUevent to) {
    size_t nodes = 0;
    for (size_t i = fake.recorded[from]; i < fake.recorded[to]; ++i)
      nodes += fake.launches[i].nodes.size();
    *milliseconds = 1e-3f * static_cast<float>(nodes);
    return fake.enter("cuEventElapsedTime");
  };
  fakeGraphs(api);
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
    results[0].workspaceSize = fake.neededWorkspace;
    *returned = 1;
    return fake.enter("cublasLtMatmulAlgoGetHeuristic");
  };
  api.cublasLtMatmul = [](BlasHandle, BlasDesc, const void *, const void *, BlasLayout, const void *, BlasLayout, const void *,
                          const void *, BlasLayout, void *, BlasLayout, const BlasAlgo *, void *workspace, size_t bytes,
                          CUstream) {
    fake.workspace = workspace;
    fake.workspaceBytes = bytes;
    return fake.enter("cublasLtMatmul");
  };
  return api;
}

} // namespace ogc::test

#endif
