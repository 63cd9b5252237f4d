//===- BucketPlan.cpp - which shapes to compile for observed calls --------===//
#include "compiler/pipeline/BucketPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>
#include <map>

namespace ogc {

namespace {

using Sizes = std::vector<int64_t>;
using Call = ShapeTrace::Call;

constexpr double infinity = std::numeric_limits<double>::infinity();

double workOf(const Sizes &sizes) {
  double work = 1;
  for (int64_t size : sizes)
    work *= static_cast<double>(size);
  return work;
}

/// Calls that agree in the symbols that cannot be padded: buckets are chosen for each group by itself.
struct Group {
  std::vector<Call> calls;
  /// For every number of buckets from 1 on: the least work, and the buckets.
  std::vector<double> work;
  std::vector<std::vector<Sizes>> buckets;
};

/// One symbol to pad: calls sorted by its size, a bucket covers a run of them and has the size of the last. O(n^2 k).
void planLine(Group &group, size_t most) {
  size_t n = group.calls.size(), limit = std::min(n, most);
  std::vector<double> counts(n + 1, 0);
  for (size_t i = 0; i < n; ++i)
    counts[i + 1] = counts[i] + group.calls[i].count;
  // least[k][i]: the first i calls in k buckets.
  std::vector<std::vector<double>> least(limit + 1, std::vector<double>(n + 1, infinity));
  std::vector<std::vector<size_t>> from(limit + 1, std::vector<size_t>(n + 1, 0));
  least[0][0] = 0;
  for (size_t k = 1; k <= limit; ++k) {
    for (size_t i = k; i <= n; ++i)
      for (size_t j = k - 1; j < i; ++j) {
        double work = least[k - 1][j] + (counts[i] - counts[j]) * workOf(group.calls[i - 1].sizes);
        if (work < least[k][i]) {
          least[k][i] = work;
          from[k][i] = j;
        }
      }
    std::vector<Sizes> buckets;
    for (size_t i = n, left = k; left > 0; i = from[left--][i])
      buckets.push_back(group.calls[i - 1].sizes);
    std::reverse(buckets.begin(), buckets.end());
    group.work.push_back(least[k][n]);
    group.buckets.push_back(std::move(buckets));
  }
}

Call join(const Call &a, const Call &b) {
  Call joined{a.sizes, a.count + b.count};
  for (size_t i = 0; i < joined.sizes.size(); ++i)
    joined.sizes[i] = std::max(joined.sizes[i], b.sizes[i]);
  return joined;
}

/// Choosing takes time with the square or the cube of the number of shapes: beyond `most`, neighbours are joined first.
void reduce(std::vector<Call> &calls, size_t most) {
  while (calls.size() > most) {
    std::vector<Call> half;
    for (size_t i = 0; i < calls.size(); i += 2)
      half.push_back(i + 1 < calls.size() ? join(calls[i], calls[i + 1]) : calls[i]);
    calls = std::move(half);
  }
}

/// Several symbols to pad: begins with a bucket a call, and merges the pair that costs least until one is left.
void planByMerging(Group &group, size_t most) {
  std::vector<Call> buckets = group.calls;
  double work = 0;
  for (const Call &call : buckets)
    work += call.count * workOf(call.sizes);
  std::vector<std::pair<double, std::vector<Sizes>>> steps;
  for (;;) {
    if (buckets.size() <= most) {
      std::vector<Sizes> sizes;
      for (const Call &bucket : buckets)
        sizes.push_back(bucket.sizes);
      llvm::sort(sizes);
      steps.push_back({work, std::move(sizes)});
    }
    if (buckets.size() == 1)
      break;
    size_t first = 0, second = 1;
    double cheapest = infinity;
    auto total = [](const Call &bucket) { return bucket.count * workOf(bucket.sizes); };
    for (size_t i = 0; i < buckets.size(); ++i)
      for (size_t j = i + 1; j < buckets.size(); ++j)
        if (double cost = total(join(buckets[i], buckets[j])) - total(buckets[i]) - total(buckets[j]); cost < cheapest) {
          cheapest = cost;
          first = i;
          second = j;
        }
    buckets[first] = join(buckets[first], buckets[second]);
    buckets.erase(buckets.begin() + static_cast<std::ptrdiff_t>(second));
    work += cheapest;
  }
  for (auto &[cost, sizes] : llvm::reverse(steps)) {
    group.work.push_back(cost);
    group.buckets.push_back(std::move(sizes));
  }
}

} // namespace

llvm::Expected<BucketPlan> planBuckets(const ShapeTrace &trace, llvm::ArrayRef<bool> isSafe, const BucketLimits &limits) {
  std::map<Sizes, Group> groups;
  double exact = 0;
  for (const Call &call : trace.calls) {
    Sizes fixed;
    for (auto [size, safe] : llvm::zip_equal(call.sizes, isSafe))
      fixed.push_back(safe ? 0 : size);
    groups[fixed].calls.push_back(call);
    exact += call.count * workOf(call.sizes);
  }
  if (groups.size() > limits.buckets)
    return llvm::createStringError("the calls need " + std::to_string(groups.size()) +
                                   " graphs, one for each value of the symbols that cannot be padded, but at most " +
                                   std::to_string(limits.buckets) + " are allowed");
  size_t padded = llvm::count(isSafe, true);
  for (auto &[fixed, group] : groups) {
    reduce(group.calls, padded <= 1 ? 2048 : 256);
    padded <= 1 ? planLine(group, limits.buckets) : planByMerging(group, limits.buckets);
  }
  // Further buckets go where they save most; a step may be of several, since one alone may save little.
  std::map<Sizes, size_t> chosen;
  size_t used = groups.size();
  double work = 0;
  for (auto &[fixed, group] : groups)
    work += group.work[chosen[fixed] = 0];
  for (;;) {
    double best = 0;
    const Sizes *where = nullptr;
    size_t step = 0;
    for (auto &[fixed, group] : groups)
      for (size_t more = 1; chosen[fixed] + more < group.work.size() && used + more <= limits.buckets; ++more) {
        double saved = (group.work[chosen[fixed]] - group.work[chosen[fixed] + more]) / static_cast<double>(more);
        if (saved > best) {
          best = saved;
          where = &fixed;
          step = more;
        }
      }
    if (!where || best < limits.gain * exact)
      break;
    work -= best * static_cast<double>(step);
    chosen[*where] += step;
    used += step;
  }
  BucketPlan plan;
  for (auto &[fixed, group] : groups)
    llvm::append_range(plan.buckets, group.buckets[chosen[fixed]]);
  llvm::sort(plan.buckets);
  plan.work = exact > 0 ? work / exact : 1.0;
  return plan;
}

std::vector<std::string> shapesOf(const BucketPlan &plan, llvm::ArrayRef<std::string> symbols) {
  std::vector<std::string> texts;
  const Sizes *previous = nullptr;
  for (const Sizes &bucket : plan.buckets) {
    bool isContinued = previous && std::equal(bucket.begin(), bucket.end() - 1, previous->begin());
    previous = &bucket;
    if (isContinued) {
      texts.back() += "," + std::to_string(bucket.back());
      continue;
    }
    texts.emplace_back();
    for (auto [symbol, size] : llvm::zip_equal(symbols, bucket))
      texts.back() += (texts.back().empty() ? "" : " ") + symbol + "=" + std::to_string(size);
  }
  return texts;
}

} // namespace ogc
