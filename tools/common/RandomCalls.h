//===- RandomCalls.h - the graphs of a bundle called in random order ------===//
#ifndef OGC_TOOLS_COMMON_RANDOM_CALLS_H
#define OGC_TOOLS_COMMON_RANDOM_CALLS_H

#include "tools/common/Session.h"

namespace ogc::tools {

/// What a series of random calls found.
struct CallReport {
  size_t calls = 0, graphs = 0;
  std::string failure;       // of the first wrong call; empty: all right
  double largestError = 0.0; // relative L2, of the results of each graph alone against the cpu target
  std::string largestGraph;
  double secondsPerCall = 0;    // of the random calls, with their copies and the comparison
  runtime::ExecStats execStats; // of the whole report
  // What the random calls behind the first tenth of them added to the memory of the process, and to that of the device, all
  // programs on it counted; bytes.
  int64_t hostGrowth = 0, deviceGrowth = 0;
};

/// Calls random graphs of the bundle `calls` times, and, other than 0, no longer than `seconds`, in one context on the device,
/// each with one of several sets of inputs of its own. Every result must have the bits that the same graph gives in a context in
/// which nothing else runs. With `againstCpu`, these are compared with the cpu target too.
Result<CallReport> callRandomly(const SessionOptions &options, size_t calls, double seconds, bool againstCpu);

} // namespace ogc::tools

#endif
