//===- CarriedExtents.h - operators that carry run-time extents on --------===//
#ifndef OGC_PASSES_SPECIALIZE_CARRIEDEXTENTS_H
#define OGC_PASSES_SPECIALIZE_CARRIEDEXTENTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace ogc::specialize {

/// Dimension `dim` of a value has `count` elements at run time (a scalar of i64); the type has the bound.
struct Bound {
  int64_t dim;
  mlir::Value count;
};
using Bounds = llvm::DenseMap<mlir::Value, Bound>;

/// The dimension of the one result of `op`, of inferred types, that has the run-time extent of its operands `bounded`; nothing
/// where it is not known to treat the elements along the extent one by one.
std::optional<int64_t> carriedDim(mlir::Operation *op, llvm::ArrayRef<unsigned> bounded, const Bounds &bounds);

} // namespace ogc::specialize

#endif
