//===- RenumberedDim.h - where reshapes put a dimension -------------------===//
#ifndef OGC_PASSES_SPECIALIZE_RENUMBEREDDIM_H
#define OGC_PASSES_SPECIALIZE_RENUMBEREDDIM_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace ogc::specialize {

/// The dimension of `out` that dimension `dim` of `in` becomes, whatever number of elements it has, in a Reshape, Flatten,
/// Squeeze or Unsqueeze from `in` to `out`. Its size does not tell: the bound of an extent may be the size of another dimension,
/// too, which stays as it is when there are fewer elements.
std::optional<int64_t> renumberedDim(mlir::Operation *op, mlir::RankedTensorType in, mlir::RankedTensorType out, int64_t dim);

} // namespace ogc::specialize

#endif
