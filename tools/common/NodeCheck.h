//===- NodeCheck.h - compares two devices node by node --------------------===//
#ifndef OGC_TOOLS_COMMON_NODE_CHECK_H
#define OGC_TOOLS_COMMON_NODE_CHECK_H

#include "tools/common/Session.h"

#include <string>
#include <vector>

namespace ogc::tools {

struct NodeDifference {
  std::string node; ///< index, kernel and ONNX names
  bool passed;
  std::string detail;
  double relativeL2;
};

/// The tolerance that fits the precision a bundle was compiled for: 1e-4 for fp32, 5e-3 where a gemm may use tf32, 2e-2 for
/// 16-bit floats.
double defaultTolerance(const fb::Manifest &manifest);

/// Runs each node alone on both devices, from the bytes that the reference has at that point, and compares what it writes. So an
/// error shows at the node that makes it, and nowhere later.
Result<std::vector<NodeDifference>> checkNodes(const Session &session, runtime::Context &context, runtime::Context &reference,
                                               double tolerance);

} // namespace ogc::tools

#endif
