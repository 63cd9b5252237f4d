//===- Panels.h - packed weights of other widths --------------------------===//
#ifndef OGC_PASSES_FUSE_PANELS_H
#define OGC_PASSES_FUSE_PANELS_H

#include "mlir/IR/Builders.h"

namespace ogc::fuse {

/// Panels [n, K, f * width] cut to panels [ceil(columns / width), K, width].
mlir::Value splitPanels(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value panels, int64_t width, int64_t columns);

} // namespace ogc::fuse

#endif
