//===- ThreadPool.h - splits the units of a kernel among threads ----------===//
#ifndef OGC_RUNTIME_CPU_THREAD_POOL_H
#define OGC_RUNTIME_CPU_THREAD_POOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ogc::runtime {

/// The entry of a cpu kernel.
using CpuKernelFn = void (*)(void *const *buffers, int64_t begin, int64_t end);

/// `threads - 1` workers; the caller does its share. Used by one thread at a time. `run` allocates nothing.
class ThreadPool {
public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();

  /// Runs `kernel` over [0, units), split evenly, and waits.
  void run(CpuKernelFn kernel, void *const *buffers, int64_t units);

private:
  struct Job {
    CpuKernelFn kernel = nullptr;
    void *const *buffers = nullptr;
    int64_t units = 0;
  };
  void work(unsigned index);
  void runShare(const Job &job, unsigned index) const;

  unsigned threads_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  Job job_;
  uint64_t generation_ = 0;
  unsigned running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

} // namespace ogc::runtime

#endif
