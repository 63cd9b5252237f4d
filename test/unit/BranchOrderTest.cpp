//===- BranchOrderTest.cpp - which nodes run side by side -----------------===//
#include "compiler/passes/plan/BranchOrder.h"

#include <gtest/gtest.h>
#include <random>

using namespace ogc::plan;

namespace {

using Predecessors = std::vector<std::vector<size_t>>;

const NodeCost narrow{2, 0.1}, wide{20, 20};

TEST(BranchOrderTest, HiddenShare) {
  EXPECT_DOUBLE_EQ(hiddenShare(narrow, narrow), 1);
  EXPECT_DOUBLE_EQ(hiddenShare(wide, wide), 0);
  EXPECT_NEAR(hiddenShare(narrow, wide), 0.95, 1e-9); // the narrow one takes 0.1 us of the machine from the wide one
  EXPECT_DOUBLE_EQ(hiddenShare({0, 0}, wide), 1);
}

/// 0 → {1, 2} → 3.
const Predecessors diamond = {{}, {0}, {0}, {1, 2}};

TEST(BranchOrderTest, NarrowBranchesStayParallel) {
  EXPECT_EQ(orderBranches({narrow, narrow, narrow, narrow}, diamond, 0.5).predecessors, diamond);
}

TEST(BranchOrderTest, BranchesThatFillTheMachineFollowEachOther) {
  EXPECT_EQ(orderBranches({wide, wide, wide, wide}, diamond, 0.5).predecessors, (Predecessors{{}, {0}, {1}, {2}}));
}

TEST(BranchOrderTest, ShareAboveOneMakesAChain) {
  EXPECT_EQ(orderBranches(std::vector<NodeCost>(4, narrow), {{}, {}, {}, {}}, 2).predecessors, (Predecessors{{}, {0}, {1}, {2}}));
}

/// Whatever is chosen, data edges hold, no edge is implied by others, and two unordered nodes hide enough.
TEST(BranchOrderTest, RandomGraphs) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    size_t count = 1 + random() % 40;
    Predecessors data(count);
    std::vector<NodeCost> costs;
    for (size_t node = 0; node < count; ++node) {
      double machine = static_cast<double>(random() % 100) / 10;
      costs.push_back({std::max(2.0, machine), machine});
      for (size_t p = 0; p < node; ++p)
        if (random() % count < 2)
          data[node].push_back(p);
    }
    BranchOrder result = orderBranches(costs, data, 0.5);
    NodeOrder emitted(count);
    for (size_t node = 0; node < count; ++node) {
      EXPECT_EQ(addReduced(emitted, node, result.predecessors[node]), result.predecessors[node]);
      for (size_t p : data[node])
        EXPECT_TRUE(emitted.precedes(p, node));
      for (size_t other = 0; other < node; ++other) {
        EXPECT_EQ(emitted.precedes(other, node), result.order.precedes(other, node));
        EXPECT_TRUE(emitted.precedes(other, node) || hiddenShare(costs[other], costs[node]) >= 0.5);
      }
    }
  }
}

} // namespace
