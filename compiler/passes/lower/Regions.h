//===- Regions.h - the bins of RoiAlign -----------------------------------===//
#ifndef OGC_PASSES_LOWER_REGIONS_H
#define OGC_PASSES_LOWER_REGIONS_H

#include "compiler/passes/lower/Node.h"

namespace ogc::lower {

struct RoiAlignOptions {
  bool isMax, halfPixel;
  float scale;
};

/// One direction of a region, in pixels: its start and the size of a bin.
struct RoiBins {
  mlir::Value start, size;
};

/// The bins of a region from `begin` to `end` along one direction.
RoiBins roiBins(Scalar &s, mlir::Value begin, mlir::Value end, const RoiAlignOptions &options, int64_t count);

/// RoiAlign with as many samples a bin as its size in pixels (sampling_ratio 0).
mlir::Value roiAlignAdaptive(Node &n, const RoiAlignOptions &options);

} // namespace ogc::lower

#endif
