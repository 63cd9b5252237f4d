//===- ArenaPlanner.cpp - offsets for buffers with known lifetimes --------===//
#include "compiler/passes/plan/ArenaPlanner.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ogc::plan {

namespace {

int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

enum class Fit { First, Best };

/// Places buffers one after the other in the given order, each into a gap between the placed buffers that live at the same time.
ArenaPlan placeInOrder(const std::vector<BufferLifetime> &buffers, const std::vector<size_t> &order, int64_t alignmentBytes,
                       Fit fit) {
  ArenaPlan plan;
  plan.offsetBytes.assign(buffers.size(), 0);
  std::vector<size_t> placed; // sorted by offset
  for (size_t index : order) {
    const BufferLifetime &buffer = buffers[index];
    int64_t size = roundUp(buffer.sizeBytes, alignmentBytes);
    if (size == 0)
      continue;
    int64_t end = 0, best = -1, bestWaste = std::numeric_limits<int64_t>::max();
    for (size_t other : placed) {
      if (buffers[other].last < buffer.first || buffer.last < buffers[other].first)
        continue;
      int64_t gap = plan.offsetBytes[other] - end;
      if (gap >= size && gap - size < bestWaste) {
        best = end;
        bestWaste = gap - size;
        if (fit == Fit::First)
          break;
      }
      end = std::max(end, plan.offsetBytes[other] + roundUp(buffers[other].sizeBytes, alignmentBytes));
    }
    int64_t offset = best >= 0 ? best : end;
    plan.offsetBytes[index] = offset;
    plan.peakBytes = std::max(plan.peakBytes, offset + size);
    auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](int64_t value, size_t other) { return value < plan.offsetBytes[other]; });
    placed.insert(position, index);
  }
  return plan;
}

/// Indices of all buffers, sorted by a key, largest first; ties keep the order of definition.
template <typename Key> std::vector<size_t> orderBy(const std::vector<BufferLifetime> &buffers, Key key) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    auto keyA = key(buffers[a]), keyB = key(buffers[b]);
    return keyA != keyB ? keyA > keyB : a < b;
  });
  return order;
}

} // namespace

int64_t liveBytesBound(const std::vector<BufferLifetime> &buffers, int64_t alignmentBytes) {
  // The sum changes only where a buffer begins or ends: sweep over these events, ends (last + 1) before begins at the same
  // position.
  std::vector<std::pair<int64_t, int64_t>> events;
  for (const BufferLifetime &buffer : buffers) {
    int64_t size = roundUp(buffer.sizeBytes, alignmentBytes);
    events.push_back({buffer.first, size});
    events.push_back({buffer.last + 1, -size});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0, bound = 0;
  for (auto [position, change] : events) {
    live += change;
    bound = std::max(bound, live);
  }
  return bound;
}

ArenaPlan planArena(const std::vector<BufferLifetime> &buffers, int64_t alignmentBytes) {
  int64_t bound = liveBytesBound(buffers, alignmentBytes);
  auto size = [](const BufferLifetime &b) { return b.sizeBytes; };
  auto area = [](const BufferLifetime &b) { return double(b.sizeBytes) * double(b.last - b.first + 1); };
  auto length = [](const BufferLifetime &b) { return std::pair(b.last - b.first, b.sizeBytes); };
  auto definition = [](const BufferLifetime &b) { return std::pair(-b.first, b.sizeBytes); };
  auto death = [](const BufferLifetime &b) { return std::pair(b.last, b.sizeBytes); };
  const std::vector<size_t> orders[] = {orderBy(buffers, size), orderBy(buffers, area), orderBy(buffers, length),
                                        orderBy(buffers, definition), orderBy(buffers, death)};
  ArenaPlan best;
  best.peakBytes = std::numeric_limits<int64_t>::max();
  for (Fit fit : {Fit::Best, Fit::First})
    for (const std::vector<size_t> &order : orders) {
      if (best.peakBytes == bound)
        break;
      ArenaPlan plan = placeInOrder(buffers, order, alignmentBytes, fit);
      if (plan.peakBytes < best.peakBytes)
        best = std::move(plan);
    }
  best.boundBytes = bound;
  return best;
}

} // namespace ogc::plan
