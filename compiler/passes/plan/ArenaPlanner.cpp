//===- ArenaPlanner.cpp - offsets for buffers that may share bytes --------===//
#include "compiler/passes/plan/ArenaPlanner.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ogc::plan {

namespace {

enum class Fit { First, Best };

/// Everything a strategy needs, sizes rounded.
struct Problem {
  Problem(const std::vector<BufferLifetime> &buffers, const ConflictGraph &conflicts, int64_t alignmentBytes)
      : buffers(buffers), conflicts(conflicts) {
    for (const BufferLifetime &buffer : buffers)
      size.push_back(
          static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(buffer.sizeBytes), static_cast<uint64_t>(alignmentBytes))));
  }
  const std::vector<BufferLifetime> &buffers;
  const ConflictGraph &conflicts;
  std::vector<int64_t> size;
};

/// Places buffers one after the other in the given order, each into a gap between the placed buffers it conflicts with. Gives up
/// when the peak reaches `limit`: the plan is no better than one that is known.
bool placeInOrder(const Problem &problem, const std::vector<size_t> &order, Fit fit, int64_t limit, ArenaPlan &plan) {
  plan.offsetBytes.assign(problem.size.size(), 0);
  plan.peakBytes = 0;
  std::vector<std::pair<int64_t, size_t>> placed; // sorted by offset
  for (size_t index : order) {
    int64_t size = problem.size[index];
    if (size == 0)
      continue;
    int64_t end = 0, best = -1, bestWaste = std::numeric_limits<int64_t>::max();
    const llvm::BitVector &row = problem.conflicts.of(index);
    for (auto [begin, other] : placed) {
      if (!row.test(other))
        continue;
      int64_t gap = begin - end;
      if (gap >= size && gap - size < bestWaste) {
        best = end;
        bestWaste = gap - size;
        if (fit == Fit::First)
          break;
      }
      end = std::max(end, begin + problem.size[other]);
    }
    int64_t offset = best >= 0 ? best : end;
    plan.offsetBytes[index] = offset;
    plan.peakBytes = std::max(plan.peakBytes, offset + size);
    if (plan.peakBytes >= limit)
      return false;
    std::pair<int64_t, size_t> entry(offset, index);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), entry), entry);
  }
  return true;
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

struct Strategy {
  const char *name;
  std::vector<size_t> order;
};

std::vector<Strategy> portfolio(const std::vector<BufferLifetime> &buffers) {
  auto size = [](const BufferLifetime &b) { return b.sizeBytes; };
  auto area = [](const BufferLifetime &b) { return double(b.sizeBytes) * double(b.last - b.first + 1); };
  auto length = [](const BufferLifetime &b) { return std::pair(b.last - b.first, b.sizeBytes); };
  auto definition = [](const BufferLifetime &b) { return std::pair(-b.first, b.sizeBytes); };
  auto death = [](const BufferLifetime &b) { return std::pair(b.last, b.sizeBytes); };
  return {{"size", orderBy(buffers, size)},
          {"area", orderBy(buffers, area)},
          {"lifetime", orderBy(buffers, length)},
          {"schedule", orderBy(buffers, definition)},
          {"reverse schedule", orderBy(buffers, death)}};
}

/// Deterministic everywhere, unlike the distributions of <random>.
class Random {
public:
  size_t below(size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % bound);
  }

private:
  uint64_t state = 1;
};

/// Moves buffers that reach up to the peak to earlier places of the order, as long as plans do not get worse.
class LocalSearch {
public:
  LocalSearch(const Problem &problem, int64_t bound) : problem(problem), bound(bound) {}

  void run(std::vector<size_t> order, Fit fit, ArenaPlan &best) {
    // Bounded by work, not by time, so that the result does not depend on the machine.
    int64_t placement = static_cast<int64_t>(order.size()) * static_cast<int64_t>(order.size());
    ArenaPlan plan, current = best;
    for (int64_t work = 0; work < mostWork && best.peakBytes > bound; work += placement) {
      std::vector<size_t> next = order;
      std::vector<size_t> culprits;
      for (size_t at = 0; at < next.size(); ++at)
        if (problem.size[next[at]] != 0 && current.offsetBytes[next[at]] + problem.size[next[at]] == current.peakBytes)
          culprits.push_back(at);
      if (culprits.empty())
        return;
      size_t from = culprits[random.below(culprits.size())];
      if (random.below(4) == 0)
        from = random.below(next.size());
      size_t to = random.below(from + 1);
      std::rotate(next.begin() + static_cast<std::ptrdiff_t>(to), next.begin() + static_cast<std::ptrdiff_t>(from),
                  next.begin() + static_cast<std::ptrdiff_t>(from) + 1);
      if (!placeInOrder(problem, next, fit, current.peakBytes + 1, plan))
        continue;
      order = std::move(next);
      current = plan;
      if (plan.peakBytes < best.peakBytes) {
        best = plan;
        best.strategy = "local search";
      }
    }
  }

private:
  static constexpr int64_t mostWork = 20'000'000;
  const Problem &problem;
  int64_t bound;
  Random random;
};

/// Adds every buffer that conflicts with all members, in the given order.
void growClique(const Problem &problem, const std::vector<size_t> &order, std::vector<size_t> &clique) {
  llvm::BitVector common(problem.size.size(), true);
  for (size_t member : clique)
    common &= problem.conflicts.of(member);
  for (size_t candidate : order) {
    if (!common.test(candidate) || problem.size[candidate] == 0)
      continue;
    clique.push_back(candidate);
    common &= problem.conflicts.of(candidate);
  }
}

/// The buffers alive at the position where most bytes are.
std::vector<size_t> heaviestPosition(const Problem &problem) {
  // The sum changes only where a buffer begins or ends: ends (last + 1) come before begins at the same position.
  std::vector<std::pair<int64_t, int64_t>> events;
  for (size_t i = 0; i < problem.size.size(); ++i) {
    events.push_back({problem.buffers[i].first, problem.size[i]});
    events.push_back({problem.buffers[i].last + 1, -problem.size[i]});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0, most = 0, position = 0;
  for (auto [at, change] : events) {
    live += change;
    if (live > most) {
      most = live;
      position = at;
    }
  }
  std::vector<size_t> alive;
  for (size_t i = 0; i < problem.size.size(); ++i)
    if (problem.size[i] && problem.buffers[i].first <= position && position <= problem.buffers[i].last)
      alive.push_back(i);
  return alive;
}

void findBound(const Problem &problem, ArenaPlan &plan) {
  std::vector<size_t> bySize = orderBy(problem.buffers, [](const BufferLifetime &b) { return b.sizeBytes; });
  auto consider = [&](std::vector<size_t> clique) {
    growClique(problem, bySize, clique);
    int64_t bytes = 0;
    for (size_t member : clique)
      bytes += problem.size[member];
    if (bytes > plan.boundBytes || (bytes == plan.boundBytes && plan.clique.empty())) {
      plan.boundBytes = bytes;
      plan.clique = std::move(clique);
    }
  };
  consider(heaviestPosition(problem));
  // Where branches run side by side more can be alive together than at any position of the schedule.
  constexpr size_t mostSeeds = 64;
  for (size_t i = 0; i < std::min(bySize.size(), mostSeeds); ++i)
    if (problem.size[bySize[i]])
      consider({bySize[i]});
  std::sort(plan.clique.begin(), plan.clique.end());
}

} // namespace

ConflictGraph conflictsOf(const std::vector<std::vector<size_t>> &touching, const NodeOrder &order) {
  std::vector<llvm::BitVector> before; // nodes that precede all nodes of the buffer
  for (const std::vector<size_t> &nodes : touching) {
    llvm::BitVector common(order.size(), !nodes.empty());
    for (size_t node : nodes)
      common &= order.ancestors(node);
    before.push_back(std::move(common));
  }
  auto precedes = [&](size_t a, size_t b) {
    return std::all_of(touching[a].begin(), touching[a].end(), [&](size_t node) { return before[b].test(node); });
  };
  ConflictGraph conflicts(touching.size());
  for (size_t a = 0; a < touching.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (!precedes(a, b) && !precedes(b, a))
        conflicts.add(a, b);
  return conflicts;
}

ConflictGraph conflictsOf(const std::vector<BufferLifetime> &buffers) {
  ConflictGraph conflicts(buffers.size());
  for (size_t a = 0; a < buffers.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last)
        conflicts.add(a, b);
  return conflicts;
}

ArenaPlan boundOf(const std::vector<BufferLifetime> &buffers, const ConflictGraph &conflicts, int64_t alignmentBytes) {
  ArenaPlan plan;
  findBound(Problem(buffers, conflicts, alignmentBytes), plan);
  return plan;
}

ArenaPlan planArena(const std::vector<BufferLifetime> &buffers, const ConflictGraph &conflicts, int64_t alignmentBytes) {
  Problem problem(buffers, conflicts, alignmentBytes);
  ArenaPlan bound;
  findBound(problem, bound);
  ArenaPlan best;
  best.peakBytes = std::numeric_limits<int64_t>::max();
  std::pair<std::vector<size_t>, Fit> winner;
  for (Fit fit : {Fit::Best, Fit::First})
    for (const Strategy &strategy : portfolio(buffers)) {
      if (best.peakBytes == bound.boundBytes)
        break;
      ArenaPlan plan;
      if (!placeInOrder(problem, strategy.order, fit, best.peakBytes, plan))
        continue;
      plan.strategy = strategy.name;
      best = std::move(plan);
      winner = {strategy.order, fit};
    }
  LocalSearch(problem, bound.boundBytes).run(std::move(winner.first), winner.second, best);
  best.boundBytes = bound.boundBytes;
  best.clique = std::move(bound.clique);
  return best;
}

} // namespace ogc::plan
