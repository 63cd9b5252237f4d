//===- Isolate.h - runs cases in child processes, under limits -------------===//
#ifndef OGC_TEST_FUZZ_ISOLATE_H
#define OGC_TEST_FUZZ_ISOLATE_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ogc::fuzz {

/// How a case ended that must not end so.
struct Finding {
  uint64_t index;
  std::string what; ///< "signal 11", "exit code 1", "hang", …
  std::string log;  ///< the end of what the child wrote to standard error
};

struct Limits {
  unsigned jobs = 1;
  double hangSeconds = 10; ///< of processor time; ten times as much by the clock
  /// Stop beginning new cases after this time; 0: never.
  double seconds = 0;
  /// Cases a child does before a fresh one takes over.
  uint64_t casesPerChild = 400;
  uint64_t maxFindings = 50;
};

struct Outcome {
  uint64_t begun = 0, accepted = 0; ///< cases
  std::vector<Finding> findings;    ///< cases that ended their process or took too long, in order
};

/// Runs `run(i)` for i in [0, count) in child processes; it says whether the case was accepted.
Outcome runIsolated(uint64_t count, const Limits &limits, const std::function<bool(uint64_t)> &run);

/// Limits what this process may hold from now on to `bytes` more than it holds now; beyond, it is ended with a message. With
/// AddressSanitizer by counting, else by the size of the address space.
void limitAllocations(uint64_t bytes);

/// Ends this process with a message: the case is a finding.
[[noreturn]] void fail(const std::string &message);

} // namespace ogc::fuzz

#endif
