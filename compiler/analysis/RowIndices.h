//===- RowIndices.h - computed indices that stay in their row -------------===//
#ifndef OGC_ANALYSIS_ROWINDICES_H
#define OGC_ANALYSIS_ROWINDICES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc::rows {

/// Elements of integer constants, or nothing for a value of another kind.
std::optional<llvm::SmallVector<int64_t>> constantInts(mlir::Value value);

/// The loop of `op` whose index `index` (a value of its body) equals in every iteration, found by evaluation of the integer
/// arithmetic that computes it from loop indices and constants. `candidates` are the loops to try. -1 when there is none, when
/// the index depends on data, or when there are too many iterations to try.
int findIndexLoop(mlir::linalg::LinalgOp op, mlir::Value index, llvm::ArrayRef<unsigned> candidates);

} // namespace ogc::rows

#endif
