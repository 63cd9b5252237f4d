//===- TuneSearch.cpp - the best choice for each problem of a graph -------===//
#include "tools/common/TuneSearch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

namespace ogc::tools {

namespace {

/// A choice has to win by this factor: less is noise.
constexpr double kGain = 0.998;
/// Choices that are measured again before one is taken.
constexpr size_t kFinalists = 3;

class Search {
public:
  Search(const std::vector<TuneProblem> &problems, const TuneOptions &options, const Measure &measure)
      : problems_(problems), options_(options), measure_(measure), begin_(std::chrono::steady_clock::now()) {}

  Result<double> time(const Assignment &assignment, unsigned replays) {
    ++measurements_;
    return measure_(assignment, replays);
  }

  bool isOver() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() > options_.seconds;
  }

  /// Takes the best choice for one problem; the others stay.
  Status improve(size_t problem, Assignment &current, bool &changed);

  /// Passes over all problems until one changes nothing.
  Status descend(Assignment &current, unsigned start, const std::function<void(const std::string &)> &progress);

  size_t measurements() const { return measurements_; }

private:
  const std::vector<TuneProblem> &problems_;
  const TuneOptions &options_;
  const Measure &measure_;
  std::chrono::steady_clock::time_point begin_;
  size_t measurements_ = 0;
};

} // namespace

Status Search::improve(size_t problem, Assignment &current, bool &changed) {
  std::vector<std::pair<double, size_t>> looks;
  for (size_t choice = 0; choice < problems_[problem].choices.size(); ++choice) {
    if (choice == current[problem])
      continue;
    Assignment trial = current;
    trial[problem] = choice;
    Result<double> time = this->time(trial, options_.replays);
    if (!time.ok())
      return time.status();
    looks.emplace_back(time.value(), choice);
  }
  std::sort(looks.begin(), looks.end());
  looks.resize(std::min(looks.size(), kFinalists));
  Result<double> standing = time(current, 4 * options_.replays);
  if (!standing.ok())
    return standing.status();
  double least = standing.value() * kGain;
  for (auto [look, choice] : looks) {
    if (look > standing.value() * 1.02)
      break;
    Assignment trial = current;
    trial[problem] = choice;
    Result<double> time = this->time(trial, 4 * options_.replays);
    if (!time.ok())
      return time.status();
    if (time.value() < least) {
      least = time.value();
      current = trial;
      changed = true;
    }
  }
  return Status();
}

Status Search::descend(Assignment &current, unsigned start, const std::function<void(const std::string &)> &progress) {
  for (unsigned pass = 0; pass < options_.passes; ++pass) {
    bool changed = false;
    for (size_t problem = 0; problem < problems_.size() && !isOver(); ++problem)
      OGC_RETURN_IF_ERROR(improve(problem, current, changed));
    Result<double> time = this->time(current, 4 * options_.replays);
    if (!time.ok())
      return time.status();
    char line[96];
    std::snprintf(line, sizeof line, "start %u, pass %u: %.1f us", start + 1, pass + 1, time.value());
    progress(line);
    if (!changed || isOver())
      break;
  }
  return Status();
}

Result<TuneResult> searchChoices(const std::vector<TuneProblem> &problems, const TuneOptions &options, const Measure &measure,
                                 const std::function<void(const std::string &)> &progress) {
  Search search(problems, options, measure);
  std::mt19937_64 random(options.seed);
  Assignment first(problems.size(), 0), best = first;
  for (unsigned start = 0; start < options.starts && !search.isOver(); ++start) {
    Assignment current = best;
    for (size_t problem = 0; start > 0 && problem < problems.size(); ++problem)
      if (random() % 3 == 0)
        current[problem] = random() % problems[problem].choices.size();
    OGC_RETURN_IF_ERROR(search.descend(current, start, progress));
    Result<double> old = search.time(best, 4 * options.replays), now = search.time(current, 4 * options.replays);
    if (!old.ok() || !now.ok())
      return old.ok() ? now.status() : old.status();
    if (now.value() < old.value())
      best = current;
  }
  TuneResult result;
  result.best = best;
  Result<double> before = search.time(first, 8 * options.replays), after = search.time(best, 8 * options.replays);
  if (!before.ok() || !after.ok())
    return before.ok() ? after.status() : before.status();
  // In the end the compiler's choices may have been the best after all.
  if (before.value() <= after.value())
    result.best = first;
  result.firstUs = before.value();
  result.bestUs = std::min(before.value(), after.value());
  result.measurements = search.measurements();
  return result;
}

} // namespace ogc::tools
