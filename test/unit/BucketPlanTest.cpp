//===- BucketPlanTest.cpp - which shapes to compile for observed calls ----===//
#include "compiler/pipeline/BucketPlan.h"
#include "compiler/pipeline/ShapeFile.h"

#include "gtest/gtest.h"
#include <random>

using namespace ogc;

namespace {

ShapeTrace trace(const char *text) {
  auto parsed = parseTrace(text, "t");
  EXPECT_TRUE(bool(parsed));
  return parsed ? *parsed : ShapeTrace();
}

std::string traceError(const char *text) {
  auto parsed = parseTrace(text, "t");
  return parsed ? "" : llvm::toString(parsed.takeError());
}

BucketPlan plan(const ShapeTrace &trace, llvm::ArrayRef<bool> safe, size_t buckets, double gain = 0) {
  auto result = planBuckets(trace, safe, {buckets, gain});
  EXPECT_TRUE(bool(result));
  return result ? *result : BucketPlan();
}

TEST(BucketPlan, trace) {
  ShapeTrace parsed = trace("seq, batch,count\n8,2,3\n\n# comment\n8,2,1\n4,1,1\r\n");
  EXPECT_EQ(parsed.symbols, (std::vector<std::string>{"seq", "batch"}));
  ASSERT_EQ(parsed.calls.size(), 2u);
  EXPECT_EQ(parsed.calls[0].sizes, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(parsed.calls[1].count, 4);
  EXPECT_EQ(traceError("n\n0\n"), "t:2: '0' is no size of 'n'");
  EXPECT_EQ(traceError("n,count\n1,nan\n"), "t:2: 'nan' is no count of 'count'");
  EXPECT_EQ(traceError("n\n1,2\n"), "t:2: 2 fields, expected 1");
  EXPECT_EQ(traceError("n,n\n1,2\n"), "t:1: column 'n' has no name of its own");
  EXPECT_EQ(traceError(""), "t: expected a line of symbol names and at least one call");
}

TEST(BucketPlan, oneSymbol) {
  ShapeTrace calls = trace("n,count\n1,10\n2,10\n7,1\n8,1\n");
  EXPECT_EQ(plan(calls, {true}, 2).buckets, (std::vector<std::vector<int64_t>>{{2}, {8}}));
  EXPECT_DOUBLE_EQ(plan(calls, {true}, 4).work, 1.0);
  EXPECT_DOUBLE_EQ(plan(calls, {true}, 2).work, (20 * 2 + 2 * 8) / 45.0);
  // Further buckets that save less than a tenth are not worth their graphs.
  EXPECT_EQ(plan(calls, {true}, 4, 0.1).buckets.size(), 3u);
}

TEST(BucketPlan, exactValues) {
  ShapeTrace calls = trace("batch,seq\n1,16\n3,16\n4,32\n");
  BucketPlan chosen = plan(calls, {true, false}, 2);
  EXPECT_EQ(chosen.buckets, (std::vector<std::vector<int64_t>>{{3, 16}, {4, 32}}));
  auto refused = planBuckets(calls, {true, false}, {1, 0});
  ASSERT_FALSE(bool(refused));
  EXPECT_NE(llvm::toString(refused.takeError()).find("need 2 graphs"), std::string::npos);
}

TEST(BucketPlan, text) {
  ShapeTrace calls = trace("batch,seq\n1,16\n1,32\n4,32\n");
  EXPECT_EQ(shapesOf(plan(calls, {true, false}, 9), calls.symbols),
            (std::vector<std::string>{"batch=1 seq=16,32", "batch=4 seq=32"}));
}

/// No set of as many buckets does better, every call fits, and more buckets never do worse.
TEST(BucketPlan, bestOfAll) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    ShapeTrace calls{{"n"}, {}};
    int64_t size = 0;
    for (int i = 0; i < 7; ++i)
      calls.calls.push_back({{size += 1 + int64_t(random() % 9)}, 1.0 + random() % 5});
    double before = 1e300;
    for (size_t k = 1; k <= 7; ++k) {
      BucketPlan chosen = plan(calls, {true}, k);
      EXPECT_LE(chosen.work, before + 1e-12);
      before = chosen.work;
      double exact = 0, best = 1e300;
      for (const auto &call : calls.calls)
        exact += call.count * static_cast<double>(call.sizes[0]);
      for (unsigned set = 0; set < 128; ++set) {
        if (static_cast<size_t>(__builtin_popcount(set)) != k || !(set & 64))
          continue;
        double work = 0;
        for (unsigned i = 0; i < 7; ++i) {
          unsigned bucket = i;
          while (!(set & (1u << bucket)))
            ++bucket;
          work += calls.calls[i].count * static_cast<double>(calls.calls[bucket].sizes[0]);
        }
        best = std::min(best, work);
      }
      EXPECT_NEAR(chosen.work, best / exact, 1e-9);
    }
  }
}

TEST(BucketPlan, twoSymbolsCoverAll) {
  std::mt19937 random(2);
  ShapeTrace calls{{"a", "b"}, {}};
  for (int64_t a = 1; a <= 8; ++a)
    for (int64_t b = 1; b <= 8; ++b)
      calls.calls.push_back({{a, b}, 1.0 + random() % 5});
  BucketPlan chosen = plan(calls, {true, true}, 6);
  EXPECT_LE(chosen.buckets.size(), 6u);
  for (const auto &call : calls.calls)
    EXPECT_TRUE(std::any_of(chosen.buckets.begin(), chosen.buckets.end(),
                            [&](const auto &bucket) { return bucket[0] >= call.sizes[0] && bucket[1] >= call.sizes[1]; }));
}

std::string file(const char *text) {
  auto shapes = parseShapeFile(text, "f");
  if (!shapes)
    return "error: " + llvm::toString(shapes.takeError());
  std::string all;
  for (const std::string &shape : *shapes)
    all += (all.empty() ? "" : " | ") + shape;
  return all;
}

TEST(ShapeFile, entries) {
  EXPECT_EQ(file("- batch=1,2 seq=8\n- {id: big, x: 8x3, n: [1, 2]}\n"), "batch=1,2 seq=8 | big: x=8x3 n=1,2");
  EXPECT_EQ(file("# buckets\nshapes:\n  - batch: 1..8:x2\n    seq: [32, 64]\n"), "batch=1..8:x2 seq=32,64");
  EXPECT_EQ(file("a: 1\n"), "error: f:1: unknown key 'a', expected 'shapes'");
  EXPECT_EQ(file(""), "error: f:1: expected a list of shapes");
  EXPECT_EQ(file("- [1, 2]\n"), "error: f:1: expected a text or a number");
}

} // namespace
