//===- OutputShape.cpp ----------------------------------------------------===//
#include "runtime_lib/src/driver/OutputShape.h"

namespace ogc::runtime {

Result<std::vector<int64_t>> readShape(Context &context, const fb::Binding &output) {
  std::vector<int64_t> shape(output.shape()->begin(), output.shape()->end());
  const fb::Slice *place = output.extent();
  if (!place)
    return shape;
  int64_t extent = -1;
  OGC_RETURN_IF_ERROR(context.copyOut(place->section(), place->offset_bytes(), &extent, sizeof(extent)));
  OGC_RETURN_IF_ERROR(context.synchronize());
  int64_t &bound = shape[output.extent_dim()];
  if (extent < 0 || extent > bound)
    return Status(Code::FailedPrecondition, "output '" + output.name()->str() + "' has " + std::to_string(extent) +
                                                " elements in dimension " + std::to_string(output.extent_dim()) +
                                                ", expected 0 to " + std::to_string(bound) + ": it was not computed yet");
  bound = extent;
  return shape;
}

} // namespace ogc::runtime
