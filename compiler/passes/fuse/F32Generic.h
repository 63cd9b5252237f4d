//===- F32Generic.h - structured operations that compute in f32 -----------===//
#ifndef OGC_PASSES_FUSE_F32GENERIC_H
#define OGC_PASSES_FUSE_F32GENERIC_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ogc::fuse {

/// Gives an element of the result, in f32, from elements of the inputs that are extended to f32.
using F32Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;

/// A generic with one loop for each dimension of its result, which has the shape of `type` and is rounded to its element type.
mlir::Value createF32Elementwise(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> inputs,
                                 llvm::ArrayRef<mlir::AffineMap> maps, mlir::RankedTensorType type, F32Body body);

/// An f32 generic with one loop more, innermost, which is folded from `start` on: behind the inputs the body gets what it has
/// given for the elements before.
mlir::Value createF32Fold(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> inputs,
                          llvm::ArrayRef<mlir::AffineMap> maps, llvm::ArrayRef<int64_t> shape, float start, F32Body body);

} // namespace ogc::fuse

#endif
