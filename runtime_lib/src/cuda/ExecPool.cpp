//===- ExecPool.cpp - the executable graphs of an engine ------------------===//
#include "runtime_lib/src/cuda/ExecPool.h"

#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/src/cuda/ExecutableGraph.h"

#include <algorithm>
#include <utility>

namespace ogc::cuda {

ExecPool::Entry::Entry() = default;
ExecPool::Entry::~Entry() = default;

ExecPool::Lease::~Lease() {
  if (!entry_)
    return;
  if (isForeign_)
    entry_->exec.reset();
  pool_->giveBack(*entry_);
}

ExecPool::Entry *ExecPool::leastRecentlyUsed(const uint32_t *topology) {
  Entry *best = nullptr;
  for (const std::unique_ptr<Entry> &entry : entries_)
    if (!entry->isLeased && (!topology || entry->topology == *topology) && (!best || entry->lastUse < best->lastUse))
      best = entry.get();
  return best;
}

std::unique_ptr<ExecPool::Entry> ExecPool::take(Entry &entry) {
  entry.owner->entries_[entry.graph] = nullptr;
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto &other) { return other.get() == &entry; });
  std::unique_ptr<Entry> taken = std::move(*found);
  entries_.erase(found);
  return taken;
}

ExecPool::Lease ExecPool::acquire(Owner &owner, size_t graph, uint32_t topology) {
  std::unique_ptr<Entry> evicted; // destroyed after the lock is released
  std::unique_lock lock(mutex_);
  Entry *entry = owner.entries_[graph];
  bool isForeign = false;
  if (!entry) {
    while (entries_.size() >= capacity_ && !leastRecentlyUsed(nullptr))
      returned_.wait(lock);
    if (entries_.size() >= capacity_) {
      Entry *similar = topology == format::kNoTopology ? nullptr : leastRecentlyUsed(&topology);
      if (similar) {
        similar->owner->entries_[similar->graph] = nullptr;
        entry = similar;
        isForeign = true;
      } else {
        evicted = take(*leastRecentlyUsed(nullptr));
        ++evicted_;
      }
    }
    if (!entry)
      entry = entries_.emplace_back(std::make_unique<Entry>()).get();
    owner.entries_[graph] = entry;
    entry->owner = &owner;
    entry->graph = graph;
    entry->topology = topology;
  }
  entry->isLeased = true;
  entry->lastUse = ++clock_;
  lock.unlock();
  return {*this, entry, isForeign};
}

void ExecPool::giveBack(Entry &entry) {
  std::unique_ptr<Entry> dropped;
  {
    std::lock_guard lock(mutex_);
    entry.isLeased = false;
    if (!entry.exec)
      dropped = take(entry);
  }
  returned_.notify_one();
}

void ExecPool::remove(Owner &owner) {
  std::vector<std::unique_ptr<Entry>> removed;
  {
    std::lock_guard lock(mutex_);
    for (Entry *entry : owner.entries_)
      if (entry)
        removed.push_back(take(*entry));
  }
  returned_.notify_all();
}

runtime::ExecStats ExecPool::stats() const {
  std::lock_guard lock(mutex_);
  runtime::ExecStats stats;
  stats.live = entries_.size();
  stats.capacity = capacity_;
  stats.evicted = evicted_;
  stats.instantiated = instantiated;
  stats.switched = switched;
  stats.refused = refused;
  stats.patched = patched;
  return stats;
}

} // namespace ogc::cuda
