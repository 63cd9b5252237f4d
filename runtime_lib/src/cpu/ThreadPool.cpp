//===- ThreadPool.cpp - splits the units of a kernel among threads --------===//
#include "runtime_lib/src/cpu/ThreadPool.h"

#include <algorithm>

namespace ogc::runtime {

ThreadPool::ThreadPool(unsigned threads) : threads_(std::max(threads, 1u)) {
  for (unsigned i = 1; i < threads_; ++i)
    workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void ThreadPool::runShare(const Job &job, unsigned index) const {
  // 128-bit products: units may be near 2^63 in a hostile bundle.
  auto cut = [&](unsigned part) { return static_cast<int64_t>(static_cast<__int128>(job.units) * part / threads_); };
  if (int64_t begin = cut(index), end = cut(index + 1); begin < end)
    job.kernel(job.buffers, begin, end);
}

void ThreadPool::run(CpuKernelFn kernel, void *const *buffers, int64_t units) {
  Job job{kernel, buffers, units};
  if (workers_.empty() || units <= 1) {
    if (units > 0)
      kernel(buffers, 0, units);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    job_ = job;
    running_ = static_cast<unsigned>(workers_.size());
    ++generation_;
  }
  started_.notify_all();
  runShare(job, 0);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return running_ == 0; });
}

void ThreadPool::work(unsigned index) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    started_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_)
      return;
    seen = generation_;
    Job job = job_;
    lock.unlock();
    runShare(job, index);
    lock.lock();
    if (--running_ == 0)
      finished_.notify_one();
  }
}

} // namespace ogc::runtime
