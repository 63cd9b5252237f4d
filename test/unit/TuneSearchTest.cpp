//===- TuneSearchTest.cpp - the search of ogc tune ------------------------===//
#include "tools/common/TuneSearch.h"
#include <gtest/gtest.h>

using namespace ogc;
using namespace ogc::tools;

namespace {

std::vector<TuneProblem> problemsOf(std::vector<size_t> choices) {
  std::vector<TuneProblem> problems;
  for (size_t count : choices)
    problems.push_back({"p" + std::to_string(problems.size()), std::vector<std::string>(count, "x=1")});
  return problems;
}

void ignore(const std::string &) {}

} // namespace

TEST(TuneSearch, FindsTheBestOfIndependentProblems) {
  auto measure = [](const Assignment &a, unsigned) -> Result<double> {
    return 100.0 - 5.0 * a[0] + 3.0 * a[1] - 2.0 * (a[2] == 2);
  };
  Result<TuneResult> result = searchChoices(problemsOf({4, 3, 4}), {}, measure, ignore);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().best, (Assignment{3, 0, 2}));
  EXPECT_EQ(result.value().firstUs, 100.0);
  EXPECT_EQ(result.value().bestUs, 83.0);
}

TEST(TuneSearch, LaterStartsLeaveALocalOptimum) {
  // Only both changes together help, so that one at a time finds nothing.
  auto measure = [](const Assignment &a, unsigned) -> Result<double> {
    return a[0] == 1 && a[1] == 1 ? 50.0 : 100.0 + 10.0 * (a[0] + a[1]);
  };
  TuneOptions options;
  options.starts = 1;
  Result<TuneResult> once = searchChoices(problemsOf({2, 2}), options, measure, ignore);
  options.starts = 40;
  Result<TuneResult> often = searchChoices(problemsOf({2, 2}), options, measure, ignore);
  ASSERT_TRUE(once.ok() && often.ok());
  EXPECT_EQ(once.value().best, (Assignment{0, 0}));
  EXPECT_EQ(often.value().best, (Assignment{1, 1}));
}

TEST(TuneSearch, NoiseChangesNothing) {
  unsigned calls = 0;
  auto measure = [&](const Assignment &, unsigned) -> Result<double> { return 100.0 + 0.1 * (calls++ % 2); };
  Result<TuneResult> result = searchChoices(problemsOf({5, 5}), {}, measure, ignore);
  ASSERT_TRUE(result.ok());
  EXPECT_LE(result.value().bestUs, result.value().firstUs);
}

TEST(TuneSearch, AFailureEndsTheSearch) {
  auto measure = [](const Assignment &a, unsigned) -> Result<double> {
    return a[0] == 1 ? Result<double>(Status(Code::Device, "launch failed")) : Result<double>(1.0);
  };
  Result<TuneResult> result = searchChoices(problemsOf({2}), {}, measure, ignore);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "launch failed");
}

TEST(TuneSearch, TimeIsLimited) {
  size_t calls = 0;
  TuneOptions options;
  options.seconds = -1;
  auto measure = [&](const Assignment &, unsigned) -> Result<double> { return ++calls, 1.0; };
  ASSERT_TRUE(searchChoices(problemsOf({9, 9}), options, measure, ignore).ok());
  EXPECT_LE(calls, 2u);
}
