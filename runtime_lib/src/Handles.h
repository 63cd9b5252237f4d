//===- Handles.h - what is behind the handles of the C interface ----------===//
#ifndef OGC_RUNTIME_HANDLES_H
#define OGC_RUNTIME_HANDLES_H

#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/include/ogc/runtime.h"

#include <functional>

namespace ogc::runtime {

/// The bundle of a handle, which must not be null.
const format::Bundle &bundleOf(const ogc_bundle &handle);
const format::Bundle &bundleOf(const ogc_context &handle);

/// Runs `action`, remembers its failure for ogc_last_error and lets no exception out.
ogc_code reported(const std::function<Status()> &action);

} // namespace ogc::runtime

#endif
