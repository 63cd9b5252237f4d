//===- ArenaPlannerTest.cpp - properties of the memory planner ------------===//
#include "compiler/passes/plan/ArenaPlanner.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <random>

using ogc::plan::ArenaPlan;
using ogc::plan::BufferLifetime;
using ogc::plan::liveBytesBound;
using ogc::plan::planArena;

namespace {

constexpr int64_t alignmentBytes = 256;

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
  ArenaPlan plan = planArena({}, alignmentBytes);
  EXPECT_EQ(plan.peakBytes, 0);
  EXPECT_EQ(plan.boundBytes, 0);
}

TEST(ArenaPlannerTest, ChainReusesTwoBuffers) {
  std::vector<BufferLifetime> chain;
  for (int64_t i = 0; i < 10; ++i)
    chain.push_back({1000, i, i + 1});
  ArenaPlan plan = planArena(chain, alignmentBytes);
  expectValid(chain, plan);
  EXPECT_EQ(plan.peakBytes, 2 * 1024);
  EXPECT_EQ(plan.boundBytes, 2 * 1024);
}

TEST(ArenaPlannerTest, ThreeSequentialTemporariesTakeTheSpaceOfOne) {
  std::vector<BufferLifetime> buffers = {{64 << 20, 0, 0}, {64 << 20, 1, 1}, {64 << 20, 2, 2}};
  EXPECT_EQ(planArena(buffers, alignmentBytes).peakBytes, 64 << 20);
}

TEST(ArenaPlannerTest, EmptyBuffersConflictWithNothing) {
  std::vector<BufferLifetime> buffers = {{0, 0, 5}, {512, 0, 5}, {0, 2, 3}};
  ArenaPlan plan = planArena(buffers, alignmentBytes);
  EXPECT_EQ(plan.peakBytes, 512);
  EXPECT_EQ(plan.offsetBytes[0], 0);
}

TEST(ArenaPlannerTest, RandomLifetimesNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<BufferLifetime> buffers = randomBuffers(random, 1 + static_cast<int>(random() % 120));
    ArenaPlan plan = planArena(buffers, alignmentBytes);
    expectValid(buffers, plan);
    EXPECT_EQ(plan.boundBytes, liveBytesBound(buffers, alignmentBytes));
    EXPECT_GE(plan.peakBytes, plan.boundBytes);
    EXPECT_LE(plan.peakBytes, plan.boundBytes * 3 / 2);
  }
}

TEST(ArenaPlannerTest, FiveThousandBuffersWithinASecond) {
  std::mt19937 random(11);
  std::vector<BufferLifetime> buffers = randomBuffers(random, 5000);
  auto start = std::chrono::steady_clock::now();
  planArena(buffers, alignmentBytes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

} // namespace
