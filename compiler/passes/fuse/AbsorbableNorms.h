//===- AbsorbableNorms.h - norms that the products behind them can do -----===//
#ifndef OGC_PASSES_FUSE_ABSORBABLENORMS_H
#define OGC_PASSES_FUSE_ABSORBABLENORMS_H

#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/fuse/MatchRowNorm.h"
#include "mlir/IR/BuiltinOps.h"

namespace ogc::fuse {

/// A product with a constant weight that reads the rows of a norm and can divide its own rows by their spread instead.
struct AbsorbableNorm {
  kern::MatmulOp matmul;
  MatchedNorm norm;
  /// The rows as they are stored, with statistics beside them (`kern.row_statistics`); null where the product sums the rows that
  /// it reads (`ogc.row_norm`).
  mlir::Value stored;
  /// What else reads the normalized rows, and can normalize them for itself: residuals of products.
  std::vector<mlir::OpOperand *> residuals;
};

/// The norms of a module that can be absorbed, in order. None would store a weight a second time: all products of a constant, in
/// any function, read rows of an equal norm, or all are left out.
std::vector<AbsorbableNorm> absorbableNorms(mlir::ModuleOp module);

} // namespace ogc::fuse

#endif
