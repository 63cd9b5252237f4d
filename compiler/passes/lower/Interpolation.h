//===- Interpolation.h - reading tensors at positions between elements ----===//
#ifndef OGC_PASSES_LOWER_INTERPOLATION_H
#define OGC_PASSES_LOWER_INTERPOLATION_H

#include "compiler/passes/lower/Structured.h"

namespace ogc::lower {

/// One element that contributes to an interpolated value along one dimension.
struct Tap {
  mlir::Value index;  ///< index type, inside the tensor
  mlir::Value valid;  ///< i1: false reads zero; null: always valid
  mlir::Value weight; ///< in the type that computes; null: one
};

/// Element positions as floats: what lies outside of [0, extent - 1] (NaN: 0) moves to the nearest end.
mlir::Value clampPosition(Scalar &s, mlir::Value position, int64_t extent);
/// True where 0 <= position <= extent - 1; false for NaN.
mlir::Value isInside(Scalar &s, mlir::Value position, int64_t extent);
/// A float that holds a whole number inside the tensor as an index.
mlir::Value indexOf(Scalar &s, mlir::Value position);

/// The two taps of linear interpolation at a position; elements outside of the tensor read zero.
llvm::SmallVector<Tap> linearTaps(Scalar &s, mlir::Value position, int64_t extent);

/// The sum over the products of one tap of each dimension; `leading` are the positions of the dimensions before. 16-bit floats
/// are extended.
mlir::Value interpolate(Scalar &s, mlir::Value data, mlir::ValueRange leading, llvm::ArrayRef<llvm::SmallVector<Tap>> taps);

} // namespace ogc::lower

#endif
