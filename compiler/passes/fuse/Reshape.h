//===- Reshape.h - reshapes as views --------------------------------------===//
#ifndef OGC_PASSES_FUSE_RESHAPE_H
#define OGC_PASSES_FUSE_RESHAPE_H

#include "mlir/IR/Builders.h"

namespace ogc::fuse {

/// `value`, a static tensor, in another shape of as many elements: itself when it has that shape, else the result of
/// `tensor.collapse_shape`, `tensor.expand_shape` or both, taken from below reshapes that `value` comes from.
mlir::Value createReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace ogc::fuse

#endif
