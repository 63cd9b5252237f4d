//===- OutputShape.h - shapes that a run decides --------------------------===//
#ifndef OGC_DRIVER_OUTPUT_SHAPE_H
#define OGC_DRIVER_OUTPUT_SHAPE_H

#include "runtime_lib/src/driver/Driver.h"

#include <vector>

namespace ogc::runtime {

/// The shape of an output after the last run, for which this waits where the shape depends on the data. Fails when the extent is
/// outside of its bound.
Result<std::vector<int64_t>> readShape(Context &context, const fb::Binding &output);

} // namespace ogc::runtime

#endif
