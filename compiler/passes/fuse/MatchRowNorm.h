//===- MatchRowNorm.h - normalizations of rows as structured operations --------===//
#ifndef OGC_PASSES_FUSE_MATCHROWNORM_H
#define OGC_PASSES_FUSE_MATCHROWNORM_H

#include "compiler/dialect/kern/RowNorm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ogc::fuse {

/// y = x / sqrt(mean(x^2) + epsilon), or (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), over the last dimension, then
/// * gamma + beta, one value for each element of a row.
struct MatchedNorm {
  kern::RowNorm norm;
  mlir::Value rows;        ///< x, of the shape and type of y
  mlir::Value gamma, beta; ///< of as many elements as a row; may be null
  /// The operations that nothing but the norm needs, readers first.
  llvm::SmallVector<mlir::Operation *> ops;

  /// True where the mean of the rows is taken off.
  bool isCentered() const { return norm.kind == kern::RowNorm::StandardDeviation; }
};

/// The norm that gives `value`, where its statistics serve nothing else.
std::optional<MatchedNorm> matchRowNorm(mlir::Value value);

} // namespace ogc::fuse

#endif
