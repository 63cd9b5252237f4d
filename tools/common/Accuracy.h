//===- Accuracy.h - how far one precision of a model is from another ------===//
#ifndef OGC_TOOLS_COMMON_ACCURACY_H
#define OGC_TOOLS_COMMON_ACCURACY_H

#include "tools/common/Compare.h"
#include "tools/common/Session.h"

#include <cmath>
#include <string>
#include <vector>

namespace ogc::tools {

/// One float tensor in both bundles. Errors are those that have come together up to it, not those of the node that stores it.
struct ValueAccuracy {
  enum class Kind { Input, Output, Stored } kind = Kind::Stored;
  std::string name;           ///< of the input or output; of a stored value the ONNX nodes of the kernel that stores it
  format::DataType type;      ///< in the reduced precision; for an input the one that it is rounded to
  Difference difference = {}; ///< from the reference
  double largest = 0;         ///< magnitude of the reference, of finite elements
  double range = 0;           ///< largest finite magnitude of `type`
  size_t order = 0;           ///< of stored values

  /// Beyond the range, or not finite where the reference is.
  bool overflows() const { return largest > range || std::isinf(difference.largest); }
};

struct AccuracyReport {
  std::vector<ValueAccuracy> outputs; ///< in the order of the model
  std::vector<ValueAccuracy> inputs;  ///< those alone that overflow
  std::vector<ValueAccuracy> stored;  ///< by the relative error, largest first
  size_t unmatched = 0; ///< stored values of the reduced precision that the reference does not store, as it was fused otherwise
};

/// Runs both sessions, of one model and the same inputs, node by node: the reference on the cpu, the other one on `device`.
/// `storage` is the type that the reduced precision stores f32 in.
Result<AccuracyReport> compareAccuracy(const Session &reference, const Session &reduced, const std::string &device,
                                       format::DataType storage, unsigned threads);

/// One line about a value that overflows: "the value of a (Add), b (Relu) reaches 131072, float16 ends at 65504".
std::string overflowText(const ValueAccuracy &value);

/// Tables for people; `shown` stored values, 0 for none.
std::string accuracyText(const AccuracyReport &report, size_t shown);

std::string accuracyJson(const AccuracyReport &report, const std::string &precision, size_t shown);

} // namespace ogc::tools

#endif
