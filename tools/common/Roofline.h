//===- Roofline.h - time of each node against what the machine allows -----===//
#ifndef OGC_TOOLS_COMMON_ROOFLINE_H
#define OGC_TOOLS_COMMON_ROOFLINE_H

#include "runtime_lib/format/NodeWork.h"
#include "tools/common/Session.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ogc::tools {

/// What a device can do, per second: bytes from and to its memory, and operations by the type that they are done in ("float16",
/// "tf32", …). Operations beside matrix products are counted as float32. Empty where nothing is known of a device.
struct DevicePeaks {
  double bytes = 0;
  std::map<std::string, double> operations;
};

/// Of devices known by name: measured where that is said in Roofline.cpp, else of their data sheets.
DevicePeaks knownPeaks(const std::string &deviceName);

struct RooflineNode {
  unsigned index = 0;
  std::string title; ///< kernel
  std::string names; ///< ONNX nodes
  format::NodeWork work;
  bool isBeside = false; ///< has no edge from the node before it: its time is not its own alone
  double timeUs = 0;     ///< by which the graph becomes longer with it
  double floorUs = 0;    ///< the larger of bytes and operations over their peaks; 0 where these are not known
  bool isComputeBound = false;

  double lostUs() const { return timeUs - floorUs; }
};

struct RooflineSum {
  unsigned nodes = 0;
  uint64_t bytes = 0, operations = 0;
  double timeUs = 0, floorUs = 0;
};

struct Roofline {
  std::vector<RooflineNode> nodes; ///< in schedule order
  std::map<std::string, RooflineSum> kinds;
  RooflineSum total;
  double startUs = 0;      ///< between the two events with nothing in between, part of no node
  double modelFloorUs = 0; ///< weights, states, inputs and outputs touched once, and all operations: however nodes are fused
  bool hasFloors = false;
  std::string method;
};

struct RooflineOptions {
  unsigned replays = 60;
  DevicePeaks peaks;
};

/// Times the nodes of the session's graph. On a CUDA device the time of a node is the difference of the medians of two prefixes,
/// with and without it, each followed by the rest of the graph; on the cpu each node is timed by itself, in order.
Result<Roofline> measureRoofline(const Session &session, runtime::Context &context, const RooflineOptions &options);

/// Tables for people, the nodes by the time lost: `shown` of them, 0 for all.
std::string rooflineText(const Session &session, const std::string &deviceName, const Roofline &roofline, unsigned shown);

std::string rooflineJson(const Session &session, const std::string &device, const std::string &deviceName,
                         const Roofline &roofline, const RooflineOptions &options);

} // namespace ogc::tools

#endif
