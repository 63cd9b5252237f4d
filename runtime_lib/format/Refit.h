//===- Refit.h - bundles that differ in their weights alone ---------------===//
#ifndef OGC_FORMAT_REFIT_H
#define OGC_FORMAT_REFIT_H

#include "runtime_lib/format/Bundle.h"

#include <string>
#include <vector>

namespace ogc::format {

/// An initializer of a model.
struct ParameterInfo {
  std::string name;
  fb::DataType type;
  std::vector<int64_t> shape;
};

/// The initializers that a bundle was compiled with; empty where it keeps no list.
std::vector<ParameterInfo> parametersOf(const fb::Manifest &manifest);

/// What of `actual` is not as `expected`, a line for each initializer that is missing, new, or of another type or shape.
std::vector<std::string> compareParameters(const std::vector<ParameterInfo> &expected, const std::vector<ParameterInfo> &actual);

/// Success where `refitted` is `base` with other weights: the same code, graphs and plan, and weights of the same names, types
/// and shapes in the same places. Otherwise InvalidArgument that names what differs, all of it, a line each. Where the weights
/// lie (inline, external), the model's name and hash, and the checksums of weights may differ.
Status checkRefit(const Bundle &base, const Bundle &refitted);

} // namespace ogc::format

#endif
