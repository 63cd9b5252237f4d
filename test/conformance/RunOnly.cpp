//===- RunOnly.cpp - ogc-conformance-run has no compiler ------------------===//
#include "test/conformance/Execute.h"

namespace ogc::conformance {

Compile makeCompile(const Cases &, const Settings &) { return {}; }

} // namespace ogc::conformance
