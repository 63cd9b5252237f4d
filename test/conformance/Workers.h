//===- Workers.h - runs numbered items in forked processes ----------------===//
#ifndef OGC_TEST_CONFORMANCE_WORKERS_H
#define OGC_TEST_CONFORMANCE_WORKERS_H

#include <cstddef>
#include <functional>
#include <string>

namespace ogc::conformance {

struct WorkerLimits {
  unsigned jobs = 1;
  /// Items a process does before it ends: 1 keeps them wholly apart, more share what is costly to set up (a CUDA context).
  size_t batch = 1;
  /// An item that takes longer hangs: processor time of a process with a batch of 1, and six times as much on the clock, since
  /// other work may go on beside it.
  unsigned seconds = 20;
  size_t bytes = size_t(8) << 30; ///< address space of a process; 0 for any
};

/// What an item gave: one line of text; `isLast` lets a new process do the rest of the batch.
struct Answer {
  std::string line;
  bool isLast = false;
};

using Work = std::function<Answer(size_t)>;
using Listener = std::function<void(size_t, const std::string &)>;

/// Does the items 0 … count-1 in child processes. `work` runs in a child; `report` gets each item's line in this process, in any
/// order; an item whose process ended or hung before it gave one is told to `failed` with the reason: "signal 11 (Segmentation
/// fault)", "no answer in 20 s", …
void runInProcesses(size_t count, const WorkerLimits &limits, const Work &work, const Listener &report, const Listener &failed);

} // namespace ogc::conformance

#endif
