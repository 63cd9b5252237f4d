//===- ArenaPlannerTest.cpp - properties of the memory planner ------------===//
#include "compiler/passes/plan/ArenaPlanner.h"

#include <algorithm>
#include <ctime>
#include <gtest/gtest.h>
#include <random>

using ogc::plan::ArenaPlan;
using ogc::plan::BufferLifetime;
using ogc::plan::ConflictGraph;
using ogc::plan::conflictsOf;
using ogc::plan::NodeOrder;
using ogc::plan::planArena;

namespace {

constexpr int64_t alignmentBytes = 256;

/// Time of this process, which other processes do not lengthen.
double cpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A plan for nodes that run one after the other.
ArenaPlan planIntervals(const std::vector<BufferLifetime> &buffers) {
  return planArena(buffers, conflictsOf(buffers), alignmentBytes);
}

/// The largest sum of rounded sizes alive at one position, by counting.
int64_t mostAlive(const std::vector<BufferLifetime> &buffers) {
  int64_t most = 0;
  for (const BufferLifetime &at : buffers) {
    int64_t alive = 0;
    for (const BufferLifetime &buffer : buffers)
      if (buffer.first <= at.first && at.first <= buffer.last)
        alive += (buffer.sizeBytes + alignmentBytes - 1) / alignmentBytes * alignmentBytes;
    most = std::max(most, alive);
  }
  return most;
}

/// Buffers that live at the same time must not share a byte, and nothing lies past the peak.
void expectValid(const std::vector<BufferLifetime> &buffers, const ArenaPlan &plan) {
  ASSERT_EQ(plan.offsetBytes.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsetBytes[i] % alignmentBytes, 0);
    EXPECT_LE(plan.offsetBytes[i] + buffers[i].sizeBytes, plan.peakBytes);
    for (size_t j = 0; j < i; ++j) {
      bool alive = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      bool overlap = plan.offsetBytes[i] < plan.offsetBytes[j] + buffers[j].sizeBytes &&
                     plan.offsetBytes[j] < plan.offsetBytes[i] + buffers[i].sizeBytes;
      EXPECT_FALSE(alive && overlap && buffers[i].sizeBytes && buffers[j].sizeBytes) << "buffers " << i << " and " << j;
    }
  }
}

/// Lifetimes like those of a network: most values die soon, some skip far ahead.
std::vector<BufferLifetime> randomBuffers(std::mt19937 &random, int count) {
  std::vector<BufferLifetime> buffers;
  for (int i = 0; i < count; ++i) {
    int64_t length = random() % 8 ? 1 + random() % 3 : 1 + random() % 40;
    buffers.push_back({static_cast<int64_t>(random() % 100000), i, i + length});
  }
  return buffers;
}

TEST(ArenaPlannerTest, EmptyInputNeedsNothing) {
  ArenaPlan plan = planIntervals({});
  EXPECT_EQ(plan.peakBytes, 0);
  EXPECT_EQ(plan.boundBytes, 0);
}

TEST(ArenaPlannerTest, ChainReusesTwoBuffers) {
  std::vector<BufferLifetime> chain;
  for (int64_t i = 0; i < 10; ++i)
    chain.push_back({1000, i, i + 1});
  ArenaPlan plan = planIntervals(chain);
  expectValid(chain, plan);
  EXPECT_EQ(plan.peakBytes, 2 * 1024);
  EXPECT_EQ(plan.boundBytes, 2 * 1024);
}

TEST(ArenaPlannerTest, ThreeSequentialTemporariesTakeTheSpaceOfOne) {
  std::vector<BufferLifetime> buffers = {{64 << 20, 0, 0}, {64 << 20, 1, 1}, {64 << 20, 2, 2}};
  EXPECT_EQ(planIntervals(buffers).peakBytes, 64 << 20);
}

TEST(ArenaPlannerTest, EmptyBuffersConflictWithNothing) {
  std::vector<BufferLifetime> buffers = {{0, 0, 5}, {512, 0, 5}, {0, 2, 3}};
  ArenaPlan plan = planIntervals(buffers);
  EXPECT_EQ(plan.peakBytes, 512);
  EXPECT_EQ(plan.offsetBytes[0], 0);
}

TEST(ArenaPlannerTest, RandomLifetimesNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferLifetime> buffers = randomBuffers(random, 1 + static_cast<int>(random() % 120));
    ArenaPlan plan = planIntervals(buffers);
    expectValid(buffers, plan);
    EXPECT_EQ(plan.boundBytes, mostAlive(buffers));
    EXPECT_GE(plan.peakBytes, plan.boundBytes);
    EXPECT_LE(plan.peakBytes, plan.boundBytes * 110 / 100);
  }
}

TEST(ArenaPlannerTest, FiveThousandBuffersWithinASecond) {
  std::mt19937 random(11);
  std::vector<BufferLifetime> buffers = randomBuffers(random, 5000);
  double start = cpuSeconds();
  planIntervals(buffers);
  EXPECT_LT(cpuSeconds() - start, 1);
}

/// Where most pairs conflict the planner has to look at all of them.
TEST(ArenaPlannerTest, FiveThousandBuffersOfParallelBranchesWithinASecond) {
  std::vector<BufferLifetime> buffers;
  std::vector<std::vector<size_t>> touching;
  NodeOrder order(5000);
  for (size_t node = 0; node < 5000; ++node) {
    if (node >= 50)
      order.add(node - 50, node);
    buffers.push_back({static_cast<int64_t>(1 + node * 37 % 5000), static_cast<int64_t>(node),
                       static_cast<int64_t>(std::min<size_t>(node + 50, 4999))});
    touching.push_back({node, std::min<size_t>(node + 50, 4999)});
  }
  double start = cpuSeconds();
  ArenaPlan plan = planArena(buffers, conflictsOf(touching, order), alignmentBytes);
  EXPECT_LT(cpuSeconds() - start, 1);
  EXPECT_GE(plan.peakBytes, plan.boundBytes);
}

/// A graph of nodes that write one buffer each and read some earlier ones.
struct RandomDag {
  RandomDag(std::mt19937 &random, size_t count) : order(count), reads(count), touching(count) {
    size_t reach = 2 + random() % 12;
    for (size_t node = 0; node < count; ++node) {
      touching[node].push_back(node);
      buffers.push_back({static_cast<int64_t>(1 + random() % 100000), static_cast<int64_t>(node), static_cast<int64_t>(node)});
      for (size_t tries = random() % 3; node && tries; --tries)
        reads[node].push_back(node - 1 - random() % std::min(node, reach));
      std::sort(reads[node].begin(), reads[node].end());
      reads[node].erase(std::unique(reads[node].begin(), reads[node].end()), reads[node].end());
      for (size_t source : reads[node]) {
        touching[source].push_back(node);
        buffers[source].last = static_cast<int64_t>(node);
        order.add(source, node);
      }
    }
  }
  /// Nodes in a random order that the edges allow.
  std::vector<size_t> shuffled(std::mt19937 &random) const {
    std::vector<size_t> result;
    std::vector<bool> done(reads.size());
    while (result.size() < reads.size()) {
      std::vector<size_t> ready;
      for (size_t node = 0; node < reads.size(); ++node)
        if (!done[node] && std::all_of(reads[node].begin(), reads[node].end(), [&](size_t source) { return done[source]; }))
          ready.push_back(node);
      result.push_back(ready[random() % ready.size()]);
      done[result.back()] = true;
    }
    return result;
  }
  NodeOrder order;
  std::vector<std::vector<size_t>> reads, touching;
  std::vector<BufferLifetime> buffers;
};

/// Runs the graph in orders of which the planner saw none: whoever reads a buffer must find every byte as its writer left it.
TEST(ArenaPlannerTest, EveryOrderOfARandomGraphFindsItsBytes) {
  std::mt19937 random(23);
  for (int round = 0; round < 60; ++round) {
    RandomDag dag(random, 1 + random() % 60);
    ArenaPlan plan = planArena(dag.buffers, conflictsOf(dag.touching, dag.order), alignmentBytes);
    ASSERT_GE(plan.peakBytes, plan.boundBytes);
    EXPECT_LE(plan.peakBytes, plan.boundBytes * 5 / 4);
    for (int run = 0; run < 10; ++run) {
      std::vector<size_t> owner(static_cast<size_t>(plan.peakBytes / alignmentBytes), SIZE_MAX);
      auto units = [&](size_t buffer) {
        auto begin = owner.begin() + plan.offsetBytes[buffer] / alignmentBytes;
        return std::pair(begin, begin + (dag.buffers[buffer].sizeBytes + alignmentBytes - 1) / alignmentBytes);
      };
      for (size_t node : dag.shuffled(random)) {
        for (size_t source : dag.reads[node]) {
          auto [begin, end] = units(source);
          ASSERT_EQ(std::count(begin, end, source), end - begin) << "node " << node << " reads buffer " << source;
        }
        auto [begin, end] = units(node);
        std::fill(begin, end, node);
      }
    }
  }
}

/// The members of the bound's set must conflict with each other, and make the bound.
TEST(ArenaPlannerTest, BoundIsASetOfConflictingBuffers) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    RandomDag dag(random, 1 + random() % 80);
    ConflictGraph conflicts = conflictsOf(dag.touching, dag.order);
    ArenaPlan plan = planArena(dag.buffers, conflicts, alignmentBytes);
    int64_t bytes = 0;
    for (size_t a : plan.clique) {
      bytes += (dag.buffers[a].sizeBytes + alignmentBytes - 1) / alignmentBytes * alignmentBytes;
      for (size_t b : plan.clique)
        EXPECT_TRUE(a == b || conflicts.test(a, b));
    }
    EXPECT_EQ(bytes, plan.boundBytes);
    EXPECT_GE(plan.boundBytes, mostAlive(dag.buffers));
  }
}

} // namespace
