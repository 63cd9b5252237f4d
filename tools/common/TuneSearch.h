//===- TuneSearch.h - the best choice for each problem of a graph ---------===//
#ifndef OGC_TOOLS_COMMON_TUNE_SEARCH_H
#define OGC_TOOLS_COMMON_TUNE_SEARCH_H

#include "runtime_lib/format/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ogc::tools {

/// A problem that kernels of the graph solve, and the choices that were compiled for it.
struct TuneProblem {
  std::string name;
  std::vector<std::string> choices; ///< the first is what the compiler chose
};

/// An index into the choices of each problem.
using Assignment = std::vector<size_t>;

struct TuneOptions {
  unsigned starts = 2;   ///< searches, the first from the compiler's choices
  unsigned passes = 2;   ///< over all problems, in each search
  unsigned replays = 15; ///< of the graph for a first look at a choice; four times as many decide
  uint64_t seed = 0;
  double seconds = 600; ///< no new problem is begun after this time
};

struct TuneResult {
  Assignment best;
  double firstUs = 0, bestUs = 0; ///< of the compiler's choices and of `best`, in the same minute
  size_t measurements = 0;
};

/// Median time in microseconds of the whole graph with the given choices.
using Measure = std::function<Result<double>(const Assignment &assignment, unsigned replays)>;

/// Changes one problem at a time, measured in the whole graph, because what is fastest alone is not what is fastest between its
/// neighbours. Later starts begin at the best so far with a third of the problems drawn anew: the search ends in local optima.
/// `progress` gets a line for each pass.
Result<TuneResult> searchChoices(const std::vector<TuneProblem> &problems, const TuneOptions &options, const Measure &measure,
                                 const std::function<void(const std::string &)> &progress);

} // namespace ogc::tools

#endif
