//===- ExecPool.h - the executable graphs of an engine --------------------===//
#ifndef OGC_RUNTIME_CUDA_EXEC_POOL_H
#define OGC_RUNTIME_CUDA_EXEC_POOL_H

#include "runtime_lib/src/cuda/CudaTypes.h"
#include "runtime_lib/src/driver/Driver.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ogc::cuda {

class ExecutableGraph;

/// A bounded number of executable graphs, shared by the contexts of an engine. One that a context does not find is taken from the
/// least recently used of the same topology, so that an update suffices; else from the least recently used of all.
/// Safe to use from several threads. The CUDA context must be current.
class ExecPool {
public:
  class Owner;

  /// An executable graph and what it is at the moment: a graph ID of a context, with buffers of the caller in place of bindings.
  struct Entry {
    Entry();
    ~Entry();
    std::unique_ptr<ExecutableGraph> exec; ///< null: still to be built
    /// The buffers that its nodes use; 0: the context's own.
    std::vector<CUdeviceptr> bound;

  private:
    friend class ExecPool;
    Owner *owner = nullptr;
    size_t graph = 0;
    uint32_t topology = 0;
    uint64_t lastUse = 0;
    bool isLeased = false;
  };

  /// A context as the pool knows it: which entry each graph ID has. Leaves the pool, with its entries, when it is destroyed.
  class Owner {
  public:
    Owner(ExecPool &pool, size_t graphs) : pool_(pool), entries_(graphs, nullptr) {}
    ~Owner() { pool_.remove(*this); }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;

  private:
    friend class ExecPool;
    ExecPool &pool_;
    std::vector<Entry *> entries_; // guarded by the pool
  };

  /// The right to use an entry, which nobody else has meanwhile.
  class Lease {
  public:
    Lease() = default;
    Lease(ExecPool &pool, Entry *entry, bool isForeign) : pool_(&pool), entry_(entry), isForeign_(isForeign) {}
    Lease(Lease &&other) noexcept
        : pool_(other.pool_), entry_(std::exchange(other.entry_, nullptr)), isForeign_(other.isForeign_) {}
    Lease &operator=(Lease &&) = delete;
    ~Lease();
    Entry &operator*() const { return *entry_; }
    Entry *operator->() const { return entry_; }
    /// True where `exec` is still that of another graph or context.
    bool isForeign() const { return isForeign_; }
    void setOwn() { isForeign_ = false; }

  private:
    ExecPool *pool_ = nullptr;
    Entry *entry_ = nullptr;
    bool isForeign_ = false;
  };

  explicit ExecPool(size_t capacity) : capacity_(capacity) {}

  /// The entry of `graph` of `owner`, made where there is none. Waits where all entries are in use at this moment. An entry that
  /// is given back without an executable graph, or while it is still foreign, is dropped.
  Lease acquire(Owner &owner, size_t graph, uint32_t topology);

  runtime::ExecStats stats() const;

  /// What contexts count.
  std::atomic<uint64_t> instantiated = 0, switched = 0, refused = 0, patched = 0;

private:
  void giveBack(Entry &entry);
  void remove(Owner &owner);
  Entry *leastRecentlyUsed(const uint32_t *topology);
  std::unique_ptr<Entry> take(Entry &entry);

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Entry>> entries_;
  uint64_t clock_ = 0, evicted_ = 0;
};

} // namespace ogc::cuda

#endif
