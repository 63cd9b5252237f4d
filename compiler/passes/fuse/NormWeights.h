//===- NormWeights.h - what is constant of a norm, in the weight behind it ===//
//
// norm(x) W = (x W') / spread(x) + beta W. All of it is operations on constants, which constant evaluation computes.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_FUSE_NORMWEIGHTS_H
#define OGC_PASSES_FUSE_NORMWEIGHTS_H

#include "compiler/passes/fuse/MatchRowNorm.h"

namespace ogc::fuse {

/// W', in panels as `weight`: times gamma, and less the mean of each column where the norm takes off the mean of the rows.
mlir::Value createNormWeight(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value weight, const MatchedNorm &norm);

/// beta W, one value for each column of each panel, of the type `element`; null without a beta.
mlir::Value createNormOffsets(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value weight, const MatchedNorm &norm,
                              mlir::Type element);

} // namespace ogc::fuse

#endif
