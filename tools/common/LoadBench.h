//===- LoadBench.h - what loading, switching and rebinding cost -----------===//
#ifndef OGC_TOOLS_COMMON_LOAD_BENCH_H
#define OGC_TOOLS_COMMON_LOAD_BENCH_H

#include "runtime_lib/src/driver/Driver.h"

#include <string>
#include <vector>

namespace ogc::tools {

struct LoadBenchOptions {
  std::string bundle, device;
  runtime::EngineOptions engine;
  unsigned iterations = 100;
};

/// Times are medians, in microseconds of the calling thread where not said otherwise. What could not be measured is negative: a
/// bundle of one graph has nothing to switch to.
struct LoadCosts {
  std::string deviceName;
  size_t graphs = 0, topologies = 0, nodes = 0; ///< nodes of the first graph
  double openMs = 0;                            ///< map and verify the file
  double engineMs = 0;                          ///< load code, upload weights
  double contextMs = 0;                         ///< arena, streams
  double firstResultMs = 0;                     ///< from nothing to the outputs of the first graph on the host
  double instantiateUs = 0, instantiateUsPerNode = 0;
  double launchUs = 0;         ///< the call of a launch of the graph launched before
  double switchUs = -1;        ///< the same where the graph before was another one in the pool
  double updateUs = -1;        ///< where an executable graph of the same topology must become it first
  double updateUsPerNode = -1; ///< the time above a launch, a node
  double prepareUpdateUs = -1; ///< that change done ahead, with its upload
  double rebindUs = -1;        ///< a launch for which one input got another buffer
  double rebindUsPerNode = -1; ///< the time above a launch, a node that uses it
  size_t rebindNodes = 0;
  uint64_t refused = 0; ///< updates that the driver refused while this was measured
  uint64_t weightsBytes = 0, arenaBytes = 0;
  uint64_t contextBytes = 0, execBytes = 0; ///< of device memory that each took, as the driver counts it
};

/// Measures all of it on engines of its own.
Result<LoadCosts> measureLoad(const LoadBenchOptions &options);

std::string loadCostsJson(const LoadBenchOptions &options, const LoadCosts &costs);
std::string loadCostsText(const LoadCosts &costs);

} // namespace ogc::tools

#endif
